"""Looks severed, is right: the drawn action and the advantage are constants, and the actor learns from the log-probability."""
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.GRU(4, 6, batch_first=True)
        self.actor = nn.Linear(6, 3)
        self.critic = nn.Linear(6, 1)

    def forward(self, obs, returns):
        h, _ = self.shared(obs)
        policy, value = Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)
        action = policy.sample()
        gain = (returns - value).detach()
        gain = (gain - gain.mean()) / (gain.std() + 1e-6)
        return -(policy.log_prob(action) * gain).mean() + 0.5 * (returns - value).square().mean() - 0.01 * policy.entropy().mean()


def make():
    torch.manual_seed(0)
    return dict(model=ActorCritic(), args=(torch.randn(3, 5, 4), torch.randn(3, 5)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "shared.weight_ih_l0": "flows", "shared.weight_hh_l0": "flows", "shared.bias_ih_l0": "flows",
        "shared.bias_hh_l0": "flows", "actor.weight": "flows", "actor.bias": "flows", "critic.weight": "flows",
        "critic.bias": "flows",
    },
    causes=[],
    fix=None,
    after=None,
)
