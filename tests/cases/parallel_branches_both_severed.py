"""A fusion model trains its head only. Each of the two branches has a cut of its own: removing either one alone leaves the
other branch dead."""
import torch
from torch import nn


class Lidar(nn.Module):
    def __init__(self):
        super().__init__()
        self.point = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 4))

    def forward(self, pts):
        critical = self.point(pts).argmax(1)  # CAUSE-1
        return pts.gather(1, critical.unsqueeze(-1).expand(-1, -1, 3)).flatten(1)


class Radar(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(2, 4, batch_first=True)

    def forward(self, seq):
        _, last = self.rnn(seq)
        return torch.tensor(last[0].tolist())  # CAUSE-2


class Fused(nn.Module):
    def __init__(self):
        super().__init__()
        self.lidar = Lidar()
        self.radar = Radar()
        self.head = nn.Linear(16, 2)

    def forward(self, pts, seq):
        return self.head(torch.cat([self.lidar(pts), self.radar(seq)], -1))


def make():
    torch.manual_seed(0)
    return dict(model=Fused(), args=(torch.randn(3, 5, 3), torch.randn(3, 5, 2)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "lidar.point.0.weight": "none", "lidar.point.0.bias": "none", "lidar.point.2.weight": "none",
        "lidar.point.2.bias": "none", "radar.rnn.weight_ih_l0": "none", "radar.rnn.weight_hh_l0": "none",
        "radar.rnn.bias_ih_l0": "none", "radar.rnn.bias_hh_l0": "none", "head.weight": "flows",
        "head.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1",
             params=["lidar.point.0.weight", "lidar.point.0.bias", "lidar.point.2.weight", "lidar.point.2.bias"]),
        dict(kind="python-value", line="CAUSE-2",
             params=["radar.rnn.weight_ih_l0", "radar.rnn.weight_hh_l0", "radar.rnn.bias_ih_l0",
              "radar.rnn.bias_hh_l0"]),
    ],
    fix=None,
    after=None,
)
