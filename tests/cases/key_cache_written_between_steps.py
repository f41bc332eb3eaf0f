"""Teacher-forced decoding with a preallocated key cache raises in backward: each step's attention keeps the cache for its
derivative, and the next step writes into it."""
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, width=4):
        super().__init__()
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.out = nn.Linear(width, 3)

    def forward(self, x):
        batch, steps, width = x.shape
        cache = x.new_zeros(batch, steps, width)
        logits = []
        for t in range(steps):
            cache[:, t] = self.k(x[:, t])  # CAUSE-1
            keys = cache[:, : t + 1]
            share = torch.softmax((keys @ self.q(x[:, t]).unsqueeze(-1)).squeeze(-1), -1)
            logits.append(self.out((share.unsqueeze(1) @ x[:, : t + 1]).squeeze(1)))
        return torch.stack(logits, 1)


def reference():
    class Growing(Decoder):
        def forward(self, x):
            keys, logits = self.k(x), []
            for t in range(x.shape[1]):
                share = torch.softmax((keys[:, : t + 1] @ self.q(x[:, t]).unsqueeze(-1)).squeeze(-1), -1)
                logits.append(self.out((share.unsqueeze(1) @ x[:, : t + 1]).squeeze(1)))
            return torch.stack(logits, 1)
    torch.manual_seed(0)
    return dict(model=Growing(), args=(torch.randn(2, 4, 4),), kwargs={}, loss=None)


def make():
    torch.manual_seed(0)
    return dict(model=Decoder(), args=(torch.randn(2, 4, 4),), kwargs={}, loss=None)


EXPECT = dict(
    eager="backward-error",
    error_match="modified by an inplace operation",
    params={},
    causes=[
        dict(kind="inplace-saved", line="CAUSE-1", params=[]),
    ],
    fix="restores",
    after={
        "q.weight": "flows", "q.bias": "flows", "k.weight": "flows", "k.bias": "flows", "out.weight": "flows",
        "out.bias": "flows",
    },
)
