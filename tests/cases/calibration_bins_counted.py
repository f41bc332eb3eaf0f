"""A temperature trained on a binned calibration error does not move: the confidence is replaced by the upper edge of its
bin, and the slope of ceil is zero everywhere."""
import torch
from torch import nn


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_heat = nn.Parameter(torch.tensor(0.2))
        self.shift = nn.Parameter(torch.zeros(3))

    def forward(self, logits):
        return (logits + self.shift) / self.log_heat.exp()


def binned_error(conf, right, bins=4):
    level = torch.ceil(conf * bins) / bins  # CAUSE-1
    return (level - right).abs().mean()


class Calibrator(nn.Module):
    def __init__(self):
        super().__init__()
        self.scaled = Scaled()

    def forward(self, logits, labels):
        conf, guess = self.scaled(logits).softmax(-1).max(-1)
        return binned_error(conf, (guess == labels).float())


def make():
    torch.manual_seed(0)
    return dict(model=Calibrator(), args=(torch.randn(8, 3), torch.randint(0, 3, (8,))), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "scaled.log_heat": "zero", "scaled.shift": "zero",
    },
    causes=[
        dict(kind="zero-grad-op", line="CAUSE-1", params=["scaled.log_heat", "scaled.shift"]),
    ],
    fix=None,
    after=None,
)
