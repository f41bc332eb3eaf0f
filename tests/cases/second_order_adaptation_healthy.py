"""Looks as if fast weights lost their origin, is right: the inner gradient keeps its graph, so start and step size both learn."""
import torch
from torch import nn
from torch.func import functional_call


class Adapt(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(1, 6), nn.Tanh(), nn.Linear(6, 1))
        self.rate = nn.Parameter(torch.tensor(0.1))

    def forward(self, x, y, query):
        fast = dict(self.net.named_parameters())
        loss = (functional_call(self.net, fast, x) - y).square().mean()
        grads = torch.autograd.grad(loss, tuple(fast.values()), create_graph=True)
        fast = {k: p - self.rate * g for (k, p), g in zip(fast.items(), grads)}
        return functional_call(self.net, fast, query)


def make():
    torch.manual_seed(0)
    x = torch.randn(5, 1)
    return dict(model=Adapt(), args=(x, x.cos(), torch.randn(4, 1)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "rate": "flows", "net.0.weight": "flows", "net.0.bias": "flows", "net.2.weight": "flows",
        "net.2.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
