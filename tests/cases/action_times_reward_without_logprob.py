"""A policy-gradient loss that multiplies the drawn action's index by the advantage: the policy head has no gradient, the
value head does. The log-probability of the action is missing."""
import torch
from torch import nn
from torch.distributions import Categorical


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.shared = nn.Linear(4, 6)
        self.actor = nn.Linear(6, 3)
        self.critic = nn.Linear(6, 1)

    def forward(self, obs):
        h = torch.tanh(self.shared(obs))
        return Categorical(logits=self.actor(h)), self.critic(h).squeeze(-1)


class Episode(nn.Module):
    def __init__(self):
        super().__init__()
        self.agent = ActorCritic()

    def forward(self, obs, returns):
        policy, value = self.agent(obs)
        action = policy.sample()  # CAUSE-1
        advantage = (returns - value).detach()
        return -(action * advantage).mean() + (returns - value).square().mean()


def make():
    torch.manual_seed(0)
    return dict(model=Episode(), args=(torch.randn(6, 4), torch.randn(6)), kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "agent.shared.weight": "flows", "agent.shared.bias": "flows", "agent.actor.weight": "none",
        "agent.actor.bias": "none", "agent.critic.weight": "flows", "agent.critic.bias": "flows",
    },
    causes=[
        dict(kind="nondiff-op", line="CAUSE-1", also_kinds=["no-grad"],
             params=["agent.actor.weight", "agent.actor.bias"]),
    ],
    fix=None,
    after=None,
)
