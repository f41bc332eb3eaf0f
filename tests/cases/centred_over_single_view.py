"""The projector of a multi-view model has zero gradients when only one view is given: each view is centred on the mean over
views, and the mean of one view is the view itself."""
import torch
from torch import nn


class Project(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(6, 4)

    def forward(self, views):
        z = self.fc(views)
        return z - z.mean(dim=1, keepdim=True)  # CAUSE-1


class Views(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = Project()
        self.label = nn.Linear(4, 2)

    def forward(self, views):
        return self.label(self.project(views) + 1.0).mean(1)


def make():
    torch.manual_seed(0)
    return dict(model=Views(), args=(torch.randn(5, 1, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "project.fc.weight": "zero", "project.fc.bias": "zero", "label.weight": "flows", "label.bias": "flows",
    },
    causes=[
        dict(kind="cancelled", line="CAUSE-1", params=["project.fc.weight", "project.fc.bias"]),
    ],
    fix=None,
    after=None,
)
