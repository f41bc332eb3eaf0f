"""The conditioning of a generator does nothing and cannot start: the modulation layer starts at zero and so does the per-block
gain that multiplies it, so each one's gradient is multiplied by the other's zeros."""
import torch
from torch import nn


class Modulate(nn.Module):
    def __init__(self, cond, width):
        super().__init__()
        self.to_shift = nn.Linear(cond, width)
        nn.init.zeros_(self.to_shift.weight)
        nn.init.zeros_(self.to_shift.bias)
        self.gain = nn.Parameter(torch.zeros(width))

    def forward(self, x, c):
        return x + self.gain * self.to_shift(c)  # CAUSE-1


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 6)
        self.film = Modulate(2, 6)
        self.out = nn.Linear(6, 4)

    def forward(self, z, c):
        return self.out(torch.relu(self.film(self.lift(z), c)))


def make():
    torch.manual_seed(0)
    return dict(model=Generator(), args=(torch.randn(4, 3), torch.randn(4, 2)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "lift.weight": "flows", "lift.bias": "flows", "film.gain": "zero", "film.to_shift.weight": "zero",
        "film.to_shift.bias": "zero", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="zero-factor", line="CAUSE-1",
             params=["film.gain", "film.to_shift.weight", "film.to_shift.bias"]),
    ],
    fix=None,
    after=None,
)
