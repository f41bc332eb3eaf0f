"""A mixture of experts whose router never changes: every token keeps the expert it got at the start.

The router's scores are used only to pick an expert, and the pick is an index.
"""

import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, width: int, experts: int) -> None:
        super().__init__()
        self.score = nn.Linear(width, experts)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.score(tokens).argmax(dim=-1)


class Mixture(nn.Module):
    def __init__(self, width: int = 8, experts: int = 4) -> None:
        super().__init__()
        self.router = Router(width, experts)
        self.weights = nn.Parameter(0.3 * torch.randn(experts, width, width))
        self.out = nn.Linear(width, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        chosen = self.weights[self.router(tokens)]
        mixed = torch.einsum("bti,btio->bto", tokens, chosen)
        return self.out(torch.relu(mixed).mean(dim=1))


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Mixture(), args=(torch.randn(3, 6, 8),))
