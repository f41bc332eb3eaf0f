"""Looks as if half the spectrum were lost, is right: a Fourier operator multiplies the low modes by complex parameters and writes
them into an empty spectrum before transforming back."""
import torch
from torch import nn


class SpectralConv(nn.Module):
    def __init__(self, width, modes):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(0.3 * torch.randn(width, width, modes, dtype=torch.cfloat))

    def forward(self, x):
        full = torch.fft.rfft(x)
        out = torch.zeros_like(full)
        out[..., : self.modes] = torch.einsum("bim,iom->bom", full[..., : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.shape[-1])


class Operator(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Conv1d(1, 3, 1)
        self.spectral = SpectralConv(3, 3)
        self.local = nn.Conv1d(3, 3, 1)
        self.out = nn.Conv1d(3, 1, 1)

    def forward(self, u):
        x = self.lift(u)
        return self.out(nn.functional.gelu(self.spectral(x) + self.local(x)))


def make():
    torch.manual_seed(0)
    return dict(model=Operator(), args=(torch.randn(2, 1, 10),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "lift.weight": "flows", "lift.bias": "flows", "spectral.weight": "flows", "local.weight": "flows",
        "local.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
