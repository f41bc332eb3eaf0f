"""A lattice model is NaN when some state cannot be reached: all incoming scores are -inf, and subtracting the maximum from them
gives inf - inf. The values themselves are cleaned up afterwards."""
import torch
from torch import nn

NEVER = float("-inf")


def soft_max(scores):
    top = scores.max(-1, keepdim=True).values
    spread = torch.exp(scores - top)  # CAUSE-1
    return (top + spread.sum(-1, keepdim=True).log()).squeeze(-1)


class Lattice(nn.Module):
    def __init__(self, states):
        super().__init__()
        self.move = nn.Parameter(0.1 * torch.randn(states, states))
        self.emit = nn.Linear(4, states)

    def forward(self, x, arcs):
        move = self.move.masked_fill(~arcs, NEVER)
        emit = self.emit(x)
        alpha = emit[0]
        for e in emit[1:]:
            alpha = soft_max(alpha + move) + e
            alpha = torch.where(arcs.any(-1), alpha, torch.full_like(alpha, -1e4))  # ALSO-1
        return alpha


def make():
    torch.manual_seed(0)
    arcs = torch.tensor([[1, 1, 0], [0, 1, 1], [0, 0, 0]]).bool()
    return dict(model=Lattice(3), args=(torch.randn(4, 4), arcs), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "move": "nan", "emit.weight": "nan", "emit.bias": "nan",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", also=["ALSO-1"], params=["move", "emit.weight", "emit.bias"]),
    ],
    fix=None,
    after=None,
)
