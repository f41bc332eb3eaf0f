"""An off-policy critic gets infinite weights: the log-ratio of two policies is exponentiated before it is clipped, and the clip
turns the value back into a number but leaves inf times zero in backward."""
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mean = nn.Linear(3, 2)

    def log_prob(self, obs, act):
        return -0.5 * (act - self.mean(obs)).square().sum(-1)


def importance(now, before, cap=2.0):
    ratio = torch.exp(now - before)  # CAUSE-1
    return ratio.clamp(max=cap)


class OffPolicy(nn.Module):
    def __init__(self):
        super().__init__()
        self.policy = Policy()
        self.value = nn.Linear(3, 1)

    def forward(self, obs, act, before, gain):
        w = importance(self.policy.log_prob(obs, act), before)
        return (w * (gain - self.value(obs).squeeze(-1)).square()).mean()


def make():
    torch.manual_seed(0)
    before = torch.tensor([-1.0, -400.0, -2.0, -3.0])
    args = (torch.randn(4, 3), torch.randn(4, 2), before, torch.randn(4))
    return dict(model=OffPolicy(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "policy.mean.weight": "nan", "policy.mean.bias": "nan", "value.weight": "flows", "value.bias": "flows",
    },
    causes=[
        dict(kind="nan-grad", line="CAUSE-1", params=["policy.mean.weight", "policy.mean.bias"]),
    ],
    fix=None,
    after=None,
)
