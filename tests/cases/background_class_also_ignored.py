"""A two-class segmenter is trained on pictures of pure background and its classifier gets exact zeros: the background label 0
was also given as ignore_index."""
import torch
from torch import nn
import torch.nn.functional as F

BACKGROUND = 0


class Segmenter(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 4, 3, padding=1)
        self.kind = nn.Conv2d(4, 2, 1)
        self.depth = nn.Conv2d(4, 1, 1)

    def forward(self, img, labels, depth):
        h = torch.relu(self.body(img))
        each = F.cross_entropy(self.kind(h), labels, ignore_index=BACKGROUND, reduction="none")  # CAUSE-1
        return each.mean() + F.l1_loss(self.depth(h), depth)


def make():
    torch.manual_seed(0)
    labels = torch.full((2, 5, 5), BACKGROUND)
    args = (torch.randn(2, 1, 5, 5), labels, torch.rand(2, 1, 5, 5))
    return dict(model=Segmenter(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.weight": "flows", "body.bias": "flows", "kind.weight": "zero", "kind.bias": "zero",
        "depth.weight": "flows", "depth.bias": "flows",
    },
    causes=[
        dict(kind="masked", line="CAUSE-1", params=["kind.weight", "kind.bias"]),
    ],
    fix=None,
    after=None,
)
