"""The watermark embedder gets no gradient through the simulated file: pixels are turned into bytes and back."""
import torch
from torch import nn


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.spread = nn.Linear(4, 36)
        self.amount = nn.Parameter(torch.tensor(0.1))

    def forward(self, img, bits):
        return torch.sigmoid(img + self.amount * self.spread(bits).view(-1, 1, 6, 6))


def through_file(img):
    stored = (img * 255).byte()  # CAUSE-1
    return stored.float() / 255


class Watermark(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Embedder()
        self.extract = nn.Sequential(nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 4))

    def forward(self, img, bits):
        logits = self.extract(through_file(self.embed(img, bits)))
        return nn.functional.binary_cross_entropy_with_logits(logits, bits)


def make():
    torch.manual_seed(0)
    args = (torch.randn(3, 1, 6, 6), torch.randint(0, 2, (3, 4)).float())
    return dict(model=Watermark(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "embed.amount": "none", "embed.spread.weight": "none", "embed.spread.bias": "none",
        "extract.0.weight": "flows", "extract.0.bias": "flows", "extract.3.weight": "flows",
        "extract.3.bias": "flows",
    },
    causes=[
        dict(kind="int-cast", line="CAUSE-1",
             params=["embed.amount", "embed.spread.weight", "embed.spread.bias"]),
    ],
    fix=None,
    after=None,
)
