"""A learned oscillator bank does not tune itself: the phase is wrapped with trunc before the table look-up, and the fraction
that should carry the gradient is computed from the truncated value."""
import torch
from torch import nn


class Oscillators(nn.Module):
    def __init__(self, count):
        super().__init__()
        self.pitch = nn.Parameter(torch.linspace(0.05, 0.2, count))
        self.gain = nn.Parameter(torch.ones(count) / count)

    def forward(self, t):
        phase = t.unsqueeze(-1) * self.pitch
        turn = torch.trunc(64 * phase) / 64  # CAUSE-1
        return torch.sin(6.2831853 * turn) @ self.gain


class Voice(nn.Module):
    def __init__(self):
        super().__init__()
        self.tone = Oscillators(3)
        self.room = nn.Conv1d(1, 1, 5, padding=2)

    def forward(self, t):
        return self.room(self.tone(t).unsqueeze(1))


def make():
    torch.manual_seed(0)
    return dict(model=Voice(), args=(torch.arange(1.0, 17.0).repeat(2, 1),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "tone.pitch": "zero", "tone.gain": "flows", "room.weight": "flows", "room.bias": "flows",
    },
    causes=[
        dict(kind="zero-grad-op", line="CAUSE-1", params=["tone.pitch"]),
    ],
    fix=None,
    after=None,
)
