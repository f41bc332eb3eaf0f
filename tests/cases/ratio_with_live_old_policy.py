"""A clipped policy-gradient agent never changes its actor. The old log-probability is recomputed with the same live weights
instead of being stored, so its gradient cancels the new one exactly."""
import torch
from torch import nn
from torch.distributions import Categorical


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))
        self.critic = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))

    def policy(self, obs):
        return Categorical(logits=self.actor(obs))


class Update(nn.Module):
    def __init__(self):
        super().__init__()
        self.agent = Agent()

    def forward(self, obs, action, returns):
        now = self.agent.policy(obs).log_prob(action)
        before = now
        value = self.agent.critic(obs).squeeze(-1)
        gain = (returns - value).detach()
        ratio = torch.exp(now - before)  # CAUSE-1
        return -(ratio * gain).mean() + (returns - value).square().mean()


def make():
    torch.manual_seed(0)
    args = (torch.randn(6, 4), torch.randint(0, 3, (6,)), torch.randn(6))
    return dict(model=Update(), args=args, kwargs={}, loss=lambda l: l)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "agent.actor.0.weight": "zero", "agent.actor.0.bias": "zero", "agent.actor.2.weight": "zero",
        "agent.actor.2.bias": "zero", "agent.critic.0.weight": "flows", "agent.critic.0.bias": "flows",
        "agent.critic.2.weight": "flows", "agent.critic.2.bias": "flows",
    },
    causes=[
        dict(kind="cancelled", line="CAUSE-1",
             params=["agent.actor.0.weight", "agent.actor.0.bias", "agent.actor.2.weight", "agent.actor.2.bias"]),
    ],
    fix=None,
    after=None,
)
