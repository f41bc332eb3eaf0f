"""Adding "accuracy" to the loss changes nothing: a count of right answers has no gradient, so the auxiliary head it should
train stays as it was built."""
import torch
from torch import nn
import torch.nn.functional as F


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(5, 6)
        self.main = nn.Linear(6, 3)
        self.aux = nn.Linear(6, 3)

    def forward(self, x):
        h = torch.tanh(self.trunk(x))
        return self.main(h), self.aux(h)


def hit_rate(logits, labels):
    right = logits.argmax(-1) == labels  # CAUSE-1
    return right.float().mean()


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.pair = Pair()

    def forward(self, x, labels):
        main, aux = self.pair(x)
        return F.cross_entropy(main, labels) + 0.5 * (1 - hit_rate(aux, labels))


def make():
    torch.manual_seed(0)
    return dict(model=Trained(), args=(torch.randn(6, 5), torch.randint(0, 3, (6,))), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "pair.trunk.weight": "flows", "pair.trunk.bias": "flows", "pair.main.weight": "flows",
        "pair.main.bias": "flows", "pair.aux.weight": "none", "pair.aux.bias": "none",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", params=["pair.aux.weight", "pair.aux.bias"]),
    ],
    fix=None,
    after=None,
)
