"""The codec's encoder and its scale both have exact zeros, for different reasons: rounding has no slope, and the scale's
logarithm starts far above its clamp."""
import torch
from torch import nn


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = nn.Parameter(torch.full((3,), 9.0))

    def forward(self):
        return self.log.clamp(-2.0, 2.0).exp()  # CAUSE-2


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(6, 5), nn.ELU(), nn.Linear(5, 3))
        self.scale = Scale()
        self.decode = nn.Linear(3, 6)

    def forward(self, x):
        code = torch.floor(4 * self.encode(x) + 0.5)  # CAUSE-1
        return self.decode(code / 4 * self.scale())


def make():
    torch.manual_seed(0)
    return dict(model=Codec(), args=(torch.randn(8, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "encode.0.weight": "zero", "encode.0.bias": "zero", "encode.2.weight": "zero", "encode.2.bias": "zero",
        "scale.log": "zero", "decode.weight": "flows", "decode.bias": "flows",
    },
    causes=[
        dict(kind="zero-grad-op", line="CAUSE-1",
             params=["encode.0.weight", "encode.0.bias", "encode.2.weight", "encode.2.bias"]),
        dict(kind="saturated", line="CAUSE-2", params=["scale.log"]),
    ],
    fix=None,
    after=None,
)
