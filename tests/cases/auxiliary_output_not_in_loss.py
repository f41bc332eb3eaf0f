"""The boundary head has no gradient. The model returns its output next to the mask, but the loss function reads the mask only."""
import torch
from torch import nn
import torch.nn.functional as F


class Outlines(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(1, 4, 3, padding=1)
        self.mask = nn.Conv2d(4, 1, 1)
        self.boundary = nn.Conv2d(4, 1, 1)  # CAUSE-1

    def forward(self, img):
        h = torch.relu(self.body(img))
        return {"mask": self.mask(h), "boundary": self.boundary(h)}


def mask_loss(out):
    logits = out["mask"]  # ALSO-1
    return F.binary_cross_entropy_with_logits(logits, (logits > 0).float().flip(-1))


def make():
    torch.manual_seed(0)
    return dict(model=Outlines(), args=(torch.randn(2, 1, 5, 5),), kwargs={}, loss=mask_loss)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.weight": "flows", "body.bias": "flows", "mask.weight": "flows", "mask.bias": "flows",
        "boundary.weight": "none", "boundary.bias": "none",
    },
    causes=[
        dict(kind="unused-param", line="CAUSE-1", also=["ALSO-1"], params=["boundary.weight", "boundary.bias"]),
    ],
    fix=None,
    after=None,
)
