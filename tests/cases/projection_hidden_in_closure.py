"""The projection of a similarity function is a layer inside a closure; the module stores only the function, so the layer is
never moved to the device and never trained."""
import torch
from torch import nn


def bilinear(width):
    layer = nn.Linear(width, width, bias=False)  # CAUSE-1

    def score(a, b):
        return layer(a) @ b.t()

    return score


class Matcher(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(5, 4)
        self.right = nn.Linear(3, 4)
        self.score = bilinear(4)  # ALSO-1

    def forward(self, a, b):
        return self.score(self.left(a), self.right(b))


def make():
    torch.manual_seed(0)
    return dict(model=Matcher(), args=(torch.randn(4, 5), torch.randn(6, 3)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "left.weight": "flows", "left.bias": "flows", "right.weight": "flows", "right.bias": "flows",
    },
    causes=[
        dict(kind="unregistered-param", line="CAUSE-1", also=["ALSO-1"], params=[]),
    ],
    fix=None,
    after=None,
)
