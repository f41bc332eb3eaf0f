"""A learned exposure turns to NaN on pictures with true black: the display curve is a power below one, whose slope at zero is
infinite. The colour matrix is spared only because ReLU stops the gradient at zero."""
import torch
from torch import nn


class Camera(nn.Module):
    def __init__(self):
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(3) + 0.01)
        self.exposure = nn.Parameter(torch.tensor(0.0))

    def forward(self, rgb):
        return torch.relu(rgb @ self.matrix.t()) * self.exposure.exp()


def display(linear):
    return linear.clamp(max=1.0) ** (1 / 2.2)  # CAUSE-1


class Develop(nn.Module):
    def __init__(self):
        super().__init__()
        self.camera = Camera()
        self.tint = nn.Parameter(torch.ones(3))

    def forward(self, rgb):
        return display(self.camera(rgb)) * self.tint


def make():
    torch.manual_seed(0)
    rgb = torch.rand(5, 3)
    rgb[2] = 0.0
    return dict(model=Develop(), args=(rgb,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "tint": "flows", "camera.matrix": "flows", "camera.exposure": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["camera.exposure"]),
    ],
    fix=None,
    after=None,
)
