"""Meta-learning makes no progress: neither the shared start nor the learned step sizes get a gradient.
Every inner step turns the fast weights into fresh leaves, so the query loss no longer knows where they came from."""
import torch
from torch import nn
import torch.nn.functional as F


class Learner(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.ParameterList([nn.Parameter(0.4 * torch.randn(6, 1)), nn.Parameter(0.4 * torch.randn(1, 6))])
        self.b = nn.ParameterList([nn.Parameter(torch.zeros(6)), nn.Parameter(torch.zeros(1))])

    def fast(self):
        return [self.w[0], self.b[0], self.w[1], self.b[1]]

    @staticmethod
    def run(weights, x):
        w0, b0, w1, b1 = weights
        return F.linear(torch.tanh(F.linear(x, w0, b0)), w1, b1)


class MetaSgd(nn.Module):
    def __init__(self, inner=2):
        super().__init__()
        self.learner = Learner()
        self.rates = nn.Parameter(torch.full((4,), 0.1))
        self.scale = nn.Parameter(torch.ones(()))
        self.inner = inner

    def adapt(self, weights, x, y):
        loss = F.mse_loss(self.learner.run(weights, x), y)
        grads = torch.autograd.grad(loss, weights, create_graph=True)
        return [(w - r * g).detach().requires_grad_() for w, r, g in zip(weights, self.rates, grads)]  # CAUSE-1

    def forward(self, x, y, query):
        weights = self.learner.fast()
        for _ in range(self.inner):
            weights = self.adapt(weights, x, y)
        return self.scale * self.learner.run(weights, query)


def make():
    torch.manual_seed(0)
    x = torch.randn(5, 1)
    return dict(model=MetaSgd(), args=(x, x.sin(), torch.randn(4, 1)), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "rates": "none", "scale": "flows", "learner.w.0": "none", "learner.w.1": "none", "learner.b.0": "none",
        "learner.b.1": "none",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1",
             params=["learner.w.0", "learner.w.1", "learner.b.0", "learner.b.1", "rates"]),
    ],
    fix=None,
    after=None,
)
