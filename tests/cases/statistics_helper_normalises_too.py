"""The encoder of an image-to-image model never trains. The helper was to compute statistics without a graph, but the
normalised features are computed inside the same no_grad block."""
import torch
from torch import nn


def standardise(x, eps=1e-5):
    with torch.no_grad():  # CAUSE-1
        mean = x.mean((2, 3), keepdim=True)
        spread = x.var((2, 3), keepdim=True).add(eps).sqrt()
        y = (x - mean) / spread  # ALSO-1
    return y, mean, spread


class Stylise(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 4, 3, padding=1))
        self.gain = nn.Parameter(torch.ones(4, 1, 1))
        self.decode = nn.Conv2d(4, 1, 3, padding=1)

    def forward(self, content, style):
        plain, _, _ = standardise(self.encode(content))
        _, mean, spread = standardise(self.encode(style))
        return self.decode(self.gain * plain * spread + mean)


def make():
    torch.manual_seed(0)
    args = (torch.randn(2, 1, 5, 5), torch.randn(2, 1, 5, 5))
    return dict(model=Stylise(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "gain": "flows", "encode.0.weight": "none", "encode.0.bias": "none", "encode.2.weight": "none",
        "encode.2.bias": "none", "decode.weight": "flows", "decode.bias": "flows",
    },
    causes=[
        dict(kind="no-grad", line="CAUSE-1", also=["ALSO-1"],
             params=["encode.0.weight", "encode.0.bias", "encode.2.weight", "encode.2.bias"]),
    ],
    fix=None,
    after=None,
)
