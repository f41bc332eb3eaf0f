"""Looks severed, is right: the focal weight is held constant on purpose, the cross entropy beside it carries the gradient."""
import torch
from torch import nn
import torch.nn.functional as F


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.tower = nn.Conv2d(1, 4, 3, padding=1)
        self.score = nn.Conv2d(4, 1, 1)
        self.box = nn.Conv2d(4, 4, 1)

    def forward(self, img, truth):
        h = F.relu_(self.tower(img))
        logits, box = self.score(h), self.box(h)
        each = F.binary_cross_entropy_with_logits(logits, truth, reduction="none")
        weight = (truth - logits.sigmoid()).abs().pow(2).detach()
        score = (weight * each).sum() / weight.sum()
        inside = truth.bool().expand_as(box)
        return score + F.smooth_l1_loss(box[inside], torch.zeros_like(box[inside]))


def make():
    torch.manual_seed(0)
    truth = (torch.rand(2, 1, 5, 5) > 0.7).float()
    return dict(model=Detector(), args=(torch.randn(2, 1, 5, 5), truth), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "tower.weight": "flows", "tower.bias": "flows", "score.weight": "flows", "score.bias": "flows",
        "box.weight": "flows", "box.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
