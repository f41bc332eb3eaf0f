"""The generated image filter has no effect on its own weights: the functional path reads them from state_dict(),
whose tensors are detached copies of the handles, not the parameters."""
import torch
from torch import nn
import torch.nn.functional as F


class Kernels(nn.Module):
    def __init__(self):
        super().__init__()
        self.low = nn.Parameter(0.3 * torch.randn(2, 1, 3, 3))
        self.high = nn.Parameter(0.3 * torch.randn(2, 1, 3, 3))


def filter_bank(module, prefix=""):
    state = module.state_dict()  # CAUSE-1
    return torch.cat([state[prefix + "low"], state[prefix + "high"]])  # ALSO-1


class Restorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.kernels = Kernels()
        self.merge = nn.Conv2d(4, 1, 1)

    def forward(self, img):
        bands = F.conv2d(img, filter_bank(self.kernels), padding=1)
        return img + self.merge(torch.tanh(bands))


def make():
    torch.manual_seed(0)
    return dict(model=Restorer(), args=(torch.randn(2, 1, 6, 6),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "kernels.low": "none", "kernels.high": "none", "merge.weight": "flows", "merge.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1", also=["ALSO-1"], params=["kernels.low", "kernels.high"]),
    ],
    fix=None,
    after=None,
)
