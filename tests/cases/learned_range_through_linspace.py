"""The ends of the support of a distributional value head are parameters without a gradient: linspace reads two tensors but
returns a new one without history."""
import torch
from torch import nn


class Support(nn.Module):
    def __init__(self, atoms):
        super().__init__()
        self.low = nn.Parameter(torch.tensor(-1.0))
        self.high = nn.Parameter(torch.tensor(2.0))
        self.atoms = atoms

    def forward(self):
        return torch.linspace(self.low, self.high, self.atoms)  # CAUSE-1


class ValueDistribution(nn.Module):
    def __init__(self, actions=2, atoms=5):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.logits = nn.Linear(8, actions * atoms)
        self.support = Support(atoms)

    def forward(self, obs):
        h = torch.relu(self.body(obs))
        prob = self.logits(h).unflatten(-1, (-1, self.support.atoms)).softmax(-1)
        return prob @ self.support()


def make():
    torch.manual_seed(0)
    return dict(model=ValueDistribution(), args=(torch.randn(3, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.weight": "flows", "body.bias": "flows", "logits.weight": "flows", "logits.bias": "flows",
        "support.low": "none", "support.high": "none",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", also_kinds=["python-value"],
             params=["support.low", "support.high"]),
    ],
    fix=None,
    after=None,
)
