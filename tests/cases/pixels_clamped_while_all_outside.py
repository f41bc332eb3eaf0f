"""A decoder of byte-valued images has exact zero gradients everywhere: its output bias starts at 128 but the output is
clamped to [0, 1], so each pixel sits on the flat side."""
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(3, 8)
        self.paint = nn.Linear(8, 16)
        nn.init.constant_(self.paint.bias, 128.0)

    def forward(self, z):
        flat = self.paint(torch.relu(self.lift(z)))
        return flat.clamp(0.0, 1.0).view(-1, 4, 4)  # CAUSE-1


class Sharpen(nn.Module):
    def __init__(self):
        super().__init__()
        self.amount = nn.Parameter(torch.tensor(0.7))

    def forward(self, img):
        return img * self.amount


class Painter(nn.Module):
    def __init__(self):
        super().__init__()
        self.decoder = Decoder()
        self.sharpen = Sharpen()

    def forward(self, z):
        return self.sharpen(self.decoder(z))


def make():
    torch.manual_seed(0)
    return dict(model=Painter(), args=(torch.randn(4, 3),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "decoder.lift.weight": "zero", "decoder.lift.bias": "zero", "decoder.paint.weight": "zero",
        "decoder.paint.bias": "zero", "sharpen.amount": "flows",
    },
    causes=[
        dict(kind="saturated", line="CAUSE-1",
             params=["decoder.lift.weight", "decoder.lift.bias", "decoder.paint.weight", "decoder.paint.bias"]),
    ],
    fix=None,
    after=None,
)
