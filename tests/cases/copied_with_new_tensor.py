"""The reward network is not trained by the return: discounted sums are put into a tensor made by new_tensor."""
import torch
from torch import nn


class Reward(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 6), nn.Softplus(), nn.Linear(6, 1))

    def forward(self, obs):
        return self.net(obs).squeeze(-1)


def discounted(rewards, gamma):
    total, out = 0.0, []
    for r in rewards.flip(0):
        total = r + gamma * total
        out.append(total)
    return rewards.new_tensor(out[::-1])  # CAUSE-1


class Planner(nn.Module):
    def __init__(self):
        super().__init__()
        self.reward = Reward()
        self.value = nn.Linear(4, 1)

    def forward(self, obs):
        goal = discounted(self.reward(obs), 0.9)
        return (self.value(obs).squeeze(-1) - goal).square().mean()


def make():
    torch.manual_seed(0)
    return dict(model=Planner(), args=(torch.randn(6, 4),), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "reward.net.0.weight": "none", "reward.net.0.bias": "none", "reward.net.2.weight": "none",
        "reward.net.2.bias": "none", "value.weight": "flows", "value.bias": "flows",
    },
    causes=[
        dict(kind="python-value", line="CAUSE-1",
             params=["reward.net.0.weight", "reward.net.0.bias", "reward.net.2.weight", "reward.net.2.bias"]),
    ],
    fix=None,
    after=None,
)
