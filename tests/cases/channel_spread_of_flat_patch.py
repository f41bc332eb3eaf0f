"""Style statistics of a picture with a flat region break training: the variance there is exactly zero and its square root has
an infinite slope."""
import torch
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Conv2d(2, 3, 1)

    def forward(self, img):
        return torch.relu(self.mix(img))


def moments(f):
    mean = f.mean((2, 3))
    spread = f.var((2, 3), unbiased=False).sqrt()  # CAUSE-1
    return torch.cat([mean, spread], -1)


class Style(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = Features()
        self.judge = nn.Linear(6, 1)

    def forward(self, img):
        return self.judge(moments(self.features(img)))


def make():
    torch.manual_seed(0)
    img = torch.randn(2, 2, 4, 4)
    img[1] = 0.0
    return dict(model=Style(), args=(img,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "features.mix.weight": "nan", "features.mix.bias": "nan", "judge.weight": "flows", "judge.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["features.mix.weight", "features.mix.bias"]),
    ],
    fix=None,
    after=None,
)
