"""The inpainting network is never trained. where() takes the network's pixels at the hole, but the loss then looks at the known
pixels only, which come from the picture."""
import torch
from torch import nn


class Inpaint(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 3, padding=1))
        self.blend = nn.Parameter(torch.ones(()))

    def forward(self, img, hole):
        guess = self.net(torch.cat([img * ~hole, hole.float()], 1))
        full = torch.where(hole, guess, img * self.blend)  # ALSO-1
        return full, hole


def known_error(out):
    full, hole = out
    return full.masked_select(~hole).square().mean()  # CAUSE-1


def make():
    torch.manual_seed(0)
    hole = torch.zeros(2, 1, 5, 5, dtype=torch.bool)
    hole[:, :, 1:3, 1:4] = True
    return dict(model=Inpaint(), args=(torch.randn(2, 1, 5, 5), hole), kwargs={}, loss=known_error)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "blend": "flows", "net.0.weight": "zero", "net.0.bias": "zero", "net.2.weight": "zero",
        "net.2.bias": "zero",
    },
    causes=[
        dict(kind="masked", line="CAUSE-1", also=["ALSO-1"],
             params=["net.0.weight", "net.0.bias", "net.2.weight", "net.2.bias"]),
    ],
    fix=None,
    after=None,
)
