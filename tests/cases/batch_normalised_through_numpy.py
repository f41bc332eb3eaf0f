"""The stored training images change with every epoch: numpy() shares memory with the tensor, and the array is standardised in
place."""
import torch
from torch import nn


def standardise(img):
    raw = img.numpy()
    raw -= raw.mean()  # CAUSE-1
    raw /= raw.std()  # ALSO-1
    return img


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3)
        self.out = nn.Linear(3, 2)

    def forward(self, img):
        return self.out(torch.relu(self.conv(standardise(img))).mean((2, 3)))


def make():
    torch.manual_seed(0)
    return dict(model=Net(), args=(torch.randn(2, 1, 5, 5) + 3,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "conv.weight": "flows", "conv.bias": "flows", "out.weight": "flows", "out.bias": "flows",
    },
    causes=[
        dict(kind="inplace-input", line="CAUSE-1", also=["ALSO-1"], also_kinds=["data-write"], params=[]),
    ],
    fix=None,
    after=None,
)
