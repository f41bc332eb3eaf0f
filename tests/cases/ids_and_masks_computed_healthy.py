"""Looks full of integer casts, is right: positions, segment numbers and masks are integers computed from the input, and nothing that
should learn passes through them."""
import torch
from torch import nn


class Inputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(10, 4)
        self.place = nn.Embedding(8, 4)
        self.kind = nn.Embedding(3, 4)

    def forward(self, ids):
        real = ids.ne(0)
        place = (torch.cumsum(real.int(), 1) * real).long()
        kind = (torch.cumsum(ids.eq(9), 1) - ids.eq(9).long()).clamp(max=2)
        return self.words(ids) + self.place(place) + self.kind(kind), real


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inputs = Inputs()
        self.attend = nn.MultiheadAttention(4, 2, batch_first=True)
        self.norm = nn.LayerNorm(4)
        self.out = nn.Linear(4, 2)

    def forward(self, ids):
        x, real = self.inputs(ids)
        y, _ = self.attend(x, x, x, key_padding_mask=~real)
        x = self.norm(x + y) * real.unsqueeze(-1)
        return self.out(x.sum(1) / real.sum(1, keepdim=True).float())


def make():
    torch.manual_seed(0)
    ids = torch.tensor([[1, 2, 9, 3, 9, 0], [4, 9, 5, 6, 7, 9]])
    return dict(model=Encoder(), args=(ids,), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "inputs.words.weight": "flows", "inputs.place.weight": "flows", "inputs.kind.weight": "flows",
        "attend.in_proj_weight": "flows", "attend.in_proj_bias": "flows", "attend.out_proj.weight": "flows",
        "attend.out_proj.bias": "flows", "norm.weight": "flows", "norm.bias": "flows", "out.weight": "flows",
        "out.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
