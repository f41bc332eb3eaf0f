"""A fusion layer gets no gradient although it sits after the frozen part: gradients are switched off for the teacher and
switched on again only after the fusion."""
import torch
from torch import nn


class Teacher(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 5)).requires_grad_(False)

    def forward(self, x):
        return self.net(x)


class Student(nn.Module):
    def __init__(self):
        super().__init__()
        self.teacher = Teacher()
        self.fuse = nn.Linear(5, 4)
        self.body = nn.Linear(4, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        before = torch.is_grad_enabled()
        torch.set_grad_enabled(False)  # CAUSE-1
        hint = self.teacher(x)
        hint = torch.tanh(self.fuse(hint))  # ALSO-1
        torch.set_grad_enabled(before)
        return self.head(torch.relu(self.body(x + hint)))


def make():
    torch.manual_seed(0)
    return dict(model=Student(), args=(torch.randn(5, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "teacher.net.0.weight": "frozen", "teacher.net.0.bias": "frozen", "teacher.net.2.weight": "frozen",
        "teacher.net.2.bias": "frozen", "fuse.weight": "none", "fuse.bias": "none", "body.weight": "flows",
        "body.bias": "flows", "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="no-grad", line="CAUSE-1", also=["ALSO-1"], params=["fuse.weight", "fuse.bias"]),
    ],
    fix=None,
    after=None,
)
