"""Looks full of exits, is right: accuracy, entropy and a histogram are computed from detached values for a log and used nowhere
else."""
import torch
from torch import nn
import torch.nn.functional as F


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU())
        self.head = nn.Linear(8, 3)
        self.log = {}

    def forward(self, x, y):
        logits = self.head(self.body(x))
        with torch.inference_mode():
            p = logits.softmax(-1)
            self.log["accuracy"] = (logits.argmax(-1) == y).float().mean().item()
            self.log["entropy"] = float(-(p * p.log()).sum(-1).mean())
            self.log["confident"] = torch.histc(p.max(-1).values, 4, 0, 1).tolist()
        return F.cross_entropy(logits, y, label_smoothing=0.1)


def make():
    torch.manual_seed(0)
    return dict(model=Classifier(), args=(torch.randn(6, 5), torch.randint(0, 3, (6,))), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "body.0.weight": "flows", "body.0.bias": "flows", "body.1.weight": "flows", "body.1.bias": "flows",
        "head.weight": "flows", "head.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
