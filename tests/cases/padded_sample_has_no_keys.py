"""One sample of the batch is padding only, so all its attention scores are -inf and softmax gives NaN. Its output is replaced by
zeros afterwards, but the NaN shares still multiply the gradient of the value layer."""
import torch
from torch import nn


class Cross(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))

    def forward(self, x, memory, real):
        scores = self.q(x) @ self.k(memory).transpose(1, 2)
        scores = scores.masked_fill(~real.unsqueeze(1), float("-inf"))
        share = scores.softmax(-1)  # CAUSE-1
        out = share @ self.v(memory)  # ALSO-1
        return out.masked_fill(~real.any(1)[:, None, None], 0.0)


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(3, 4)
        self.cross = Cross(4)
        self.head = nn.Linear(4, 2)

    def forward(self, x, memory, real):
        h = self.enter(x)
        return self.head(h + self.cross(h, memory, real))


def make():
    torch.manual_seed(0)
    real = torch.tensor([[1, 1, 0], [0, 0, 0]]).bool()
    return dict(model=Block(), args=(torch.randn(2, 4, 3), torch.randn(2, 3, 4), real), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "enter.weight": "flows", "enter.bias": "flows", "cross.q.weight": "flows", "cross.q.bias": "flows",
        "cross.k.weight": "flows", "cross.k.bias": "flows", "cross.v.weight": "nan", "cross.v.bias": "nan",
        "head.weight": "flows", "head.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", also=["ALSO-1"], params=["cross.v.weight", "cross.v.bias"]),
    ],
    fix=None,
    after=None,
)
