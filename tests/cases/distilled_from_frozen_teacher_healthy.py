"""Looks severed, is right: the teacher is frozen and its logits are computed in inference mode and cloned; the student learns."""
import torch
from torch import nn
import torch.nn.functional as F


class Distil(nn.Module):
    def __init__(self, heat=2.0):
        super().__init__()
        self.teacher = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 3)).requires_grad_(False)
        self.student = nn.Sequential(nn.Linear(5, 4), nn.ReLU(), nn.Linear(4, 3))
        self.heat = heat

    def forward(self, x):
        with torch.inference_mode():
            hint = self.teacher(x).div(self.heat).softmax(-1)
        guess = F.log_softmax(self.student(x) / self.heat, -1)
        return F.kl_div(guess, hint.clone(), reduction="batchmean") * self.heat ** 2


def make():
    torch.manual_seed(0)
    return dict(model=Distil(), args=(torch.randn(6, 5),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "teacher.0.weight": "frozen", "teacher.0.bias": "frozen", "teacher.2.weight": "frozen",
        "teacher.2.bias": "frozen", "student.0.weight": "flows", "student.0.bias": "flows",
        "student.2.weight": "flows", "student.2.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
