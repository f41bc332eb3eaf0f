"""Looks severed, is right: a one-hot code from argmax is used in forward and the softmax's gradient in backward."""
import torch
from torch import nn


def hard(logits):
    soft = logits.softmax(-1)
    code = torch.zeros_like(soft).scatter_(-1, soft.argmax(-1, keepdim=True), 1.0)
    return code + (soft - soft.detach())


class Symbols(nn.Module):
    def __init__(self):
        super().__init__()
        self.speak = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 4))
        self.meaning = nn.Linear(4, 6, bias=False)
        self.listen = nn.Linear(6, 5)

    def forward(self, x):
        return self.listen(torch.relu(self.meaning(hard(self.speak(x))) + 0.5))


def make():
    torch.manual_seed(0)
    return dict(model=Symbols(), args=(torch.randn(6, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "speak.0.weight": "flows", "speak.0.bias": "flows", "speak.2.weight": "flows", "speak.2.bias": "flows",
        "meaning.weight": "flows", "listen.weight": "flows", "listen.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
