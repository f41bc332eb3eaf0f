"""A multi-task model with one head per task in a plain dict: the trunk trains, the heads are not parameters of the model."""
import torch
from torch import nn


class Tasks(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(5, 6), nn.ReLU())
        self.heads = {name: nn.Linear(6, size) for name, size in sizes.items()}  # CAUSE-1
        self.log_var = nn.ParameterDict({name: nn.Parameter(torch.zeros(())) for name in sizes})

    def forward(self, x):
        h = self.trunk(x)
        return {name: head(h) for name, head in self.heads.items()}

    def loss(self, out):
        parts = [(-self.log_var[k]).exp() * v.square().mean() + self.log_var[k] for k, v in out.items()]
        return torch.stack(parts).sum()


def make():
    torch.manual_seed(0)
    model = Tasks(dict(age=1, kind=3))
    return dict(model=model, args=(torch.randn(4, 5),), kwargs={}, loss=model.loss)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "trunk.0.weight": "flows", "trunk.0.bias": "flows", "log_var.age": "flows", "log_var.kind": "flows",
    },
    causes=[
        dict(kind="unregistered-param", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
