"""The learned relation table of a set encoder has grad None. The bias is computed by a helper under inference_mode and
cloned afterwards, which gets rid of the error message but not of the cut."""
import torch
from torch import nn


class Relations(nn.Module):
    def __init__(self, kinds, heads):
        super().__init__()
        self.table = nn.Embedding(kinds, heads)
        self.scale = nn.Linear(heads, heads)

    def forward(self, kinds):
        with torch.inference_mode():  # CAUSE-1
            bias = self.scale(self.table(kinds))  # ALSO-1
        return bias.permute(2, 0, 1).clone()


class SetLayer(nn.Module):
    def __init__(self, width=4, heads=2):
        super().__init__()
        self.relations = Relations(3, heads)
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.heads = heads

    def split(self, x):
        return x.view(len(x), self.heads, -1).transpose(0, 1)

    def forward(self, x, kinds):
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        share = (q @ k.transpose(1, 2) + self.relations(kinds)).softmax(-1)
        return x + (share @ v).transpose(0, 1).flatten(1)


class SetNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = SetLayer()
        self.read = nn.Linear(4, 2)

    def forward(self, x, kinds):
        return self.read(self.layer(x, kinds).mean(0))


def make():
    torch.manual_seed(0)
    return dict(model=SetNet(), args=(torch.randn(5, 4), torch.randint(0, 3, (5, 5))), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "layer.relations.table.weight": "none", "layer.relations.scale.weight": "none",
        "layer.relations.scale.bias": "none", "layer.q.weight": "flows", "layer.q.bias": "flows",
        "layer.k.weight": "flows", "layer.k.bias": "flows", "layer.v.weight": "flows", "layer.v.bias": "flows",
        "read.weight": "flows", "read.bias": "flows",
    },
    causes=[
        dict(kind="no-grad", line="CAUSE-1", also=["ALSO-1"],
             params=["layer.relations.table.weight", "layer.relations.scale.weight", "layer.relations.scale.bias"]),
    ],
    fix=None,
    after=None,
)
