"""The spectrogram encoder before the smoothing filter has no gradient; the classifier behind it trains.
The smoothing runs row by row through numpy.convolve."""
import numpy as np
import torch
from torch import nn


def smooth(rows, kernel=(0.25, 0.5, 0.25)):
    done = []
    for row in rows.detach().numpy():  # CAUSE-1
        done.append(np.convolve(row, kernel, mode="same"))
    return torch.from_numpy(np.stack(done)).to(rows.dtype)  # ALSO-1


class Spectral(nn.Module):
    def __init__(self):
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(8) + 0.1)
        self.scale = nn.Linear(5, 5)

    def forward(self, wave):
        frames = wave.unfold(-1, 8, 4) * self.window
        return self.scale(torch.fft.rfft(frames).abs()).mean(1)


class Genre(nn.Module):
    def __init__(self):
        super().__init__()
        self.spectral = Spectral()
        self.classify = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, wave):
        return self.classify(smooth(self.spectral(wave)))


def make():
    torch.manual_seed(0)
    return dict(model=Genre(), args=(torch.randn(3, 24),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "spectral.window": "none", "spectral.scale.weight": "none", "spectral.scale.bias": "none",
        "classify.0.weight": "flows", "classify.0.bias": "flows", "classify.2.weight": "flows",
        "classify.2.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1", also=["ALSO-1"],
             params=["spectral.window", "spectral.scale.weight", "spectral.scale.bias"]),
    ],
    fix=None,
    after=None,
)
