"""A speaker encoder that stays at its random start, while the rest of a voice model trains.

A helper that normalises embeddings was written for a search index, where no gradient was wanted.
"""

import torch
from torch import nn


def unit(vectors: torch.Tensor) -> torch.Tensor:
    length = vectors.norm(dim=-1, keepdim=True).clamp_min(1e-6)
    return (vectors / length).detach()


class Speaker(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.GRU(5, 8, batch_first=True)
        self.project = nn.Linear(8, 4)

    def forward(self, audio: torch.Tensor) -> torch.Tensor:
        _, last = self.frames(audio)
        return unit(self.project(last[0]))


class Voice(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.speaker = Speaker()
        self.text = nn.Embedding(20, 4)
        self.mel = nn.Linear(4, 6)

    def forward(self, tokens: torch.Tensor, audio: torch.Tensor) -> torch.Tensor:
        return self.mel(torch.tanh(self.text(tokens) + self.speaker(audio).unsqueeze(1)))


def make() -> dict:
    torch.manual_seed(0)
    return dict(model=Voice(), args=(torch.randint(0, 20, (2, 7)), torch.randn(2, 9, 5)))
