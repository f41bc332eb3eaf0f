"""Looks as if the router only gave indices, is right: the two kept scores are renormalised and weigh the experts' outputs."""
import torch
from torch import nn


class Mixture(nn.Module):
    def __init__(self, width=4, count=3):
        super().__init__()
        self.router = nn.Linear(width, count, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 6), nn.SiLU(), nn.Linear(6, width)) for _ in range(count))

    def forward(self, x):
        share, which = self.router(x).softmax(-1).topk(2, dim=-1)
        share = share / share.sum(-1, keepdim=True)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            row, slot = torch.where(which == i)
            if row.numel():
                out.index_add_(0, row, share[row, slot].unsqueeze(-1) * expert(x[row]))
        return out


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(5, 4)
        self.mix = Mixture()
        self.out = nn.Linear(4, 2)

    def forward(self, x):
        return self.out(self.mix(self.enter(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(12, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "mix.router.weight": "flows",
        "mix.experts.0.0.weight": "flows", "mix.experts.0.0.bias": "flows", "mix.experts.0.2.weight": "flows",
        "mix.experts.0.2.bias": "flows", "mix.experts.1.0.weight": "flows", "mix.experts.1.0.bias": "flows",
        "mix.experts.1.2.weight": "flows", "mix.experts.1.2.bias": "flows", "mix.experts.2.0.weight": "flows",
        "mix.experts.2.0.bias": "flows", "mix.experts.2.2.weight": "flows", "mix.experts.2.2.bias": "flows",
        "out.weight": "flows", "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
