"""Silencing the upper bands per sample fails: the window was broadcast to the batch first, so all its rows are one piece of
memory, and a write to a column would hit every row at once."""
import torch
from torch import nn


class Bands(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.register_buffer("window", torch.hann_window(size, periodic=False) + 0.1)

    def forward(self, spec, keep):
        shape = torch.broadcast_to(self.window, spec.shape)
        shape *= torch.arange(spec.shape[-1]) < keep.unsqueeze(1)  # CAUSE-1
        return spec * shape


class Vad(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(6, 8)
        self.bands = Bands(8)
        self.out = nn.Linear(8, 1)

    def forward(self, wave, keep):
        return self.out(self.bands(self.lift(wave), keep))


def make():
    torch.manual_seed(0)
    return dict(model=Vad(), args=(torch.randn(3, 6), torch.tensor([5, 3, 8])), kwargs={}, loss=None)


EXPECT = dict(
    eager="forward-error",
    error_match="single memory location",
    params={},
    causes=[
        dict(kind="inplace-expanded", line="CAUSE-1", params=[]),
    ],
    fix=None,
    after=None,
)
