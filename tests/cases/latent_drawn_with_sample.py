"""With the prior term switched off the encoder of a variational model gets no gradient at all: the latent is drawn with
sample() instead of rsample(), so nothing comes back from the decoder."""
import torch
from torch import nn
from torch.distributions import Normal


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 6)
        self.mean = nn.Linear(6, 3)
        self.log_std = nn.Linear(6, 3)

    def forward(self, x):
        h = torch.relu(self.body(x))
        return Normal(self.mean(h), self.log_std(h).clamp(-5, 2).exp())


class Variational(nn.Module):
    def __init__(self, beta=None):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = nn.Sequential(nn.Linear(3, 6), nn.ReLU(), nn.Linear(6, 8))
        self.beta = beta

    def forward(self, x):
        q = self.encoder(x)
        z = q.sample()  # CAUSE-1
        loss = (self.decoder(z) - x).square().mean()
        if self.beta is not None:
            loss = loss + self.beta * (q.variance + q.mean.square() - q.variance.log()).sum(-1).mean()
        return loss


def make():
    torch.manual_seed(0)
    return dict(model=Variational(), args=(torch.randn(5, 8),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "encoder.body.weight": "none", "encoder.body.bias": "none", "encoder.mean.weight": "none",
        "encoder.mean.bias": "none", "encoder.log_std.weight": "none", "encoder.log_std.bias": "none",
        "decoder.0.weight": "flows", "decoder.0.bias": "flows", "decoder.2.weight": "flows",
        "decoder.2.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", also_kinds=["no-grad"],
             params=["encoder.body.weight", "encoder.body.bias", "encoder.mean.weight", "encoder.mean.bias",
              "encoder.log_std.weight", "encoder.log_std.bias"]),
    ],
    fix=None,
    after=None,
)
