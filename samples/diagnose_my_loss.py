"""A training loop in which the encoder never learns, and the call that says why: `python samples/diagnose_my_loss.py`.

`fxdoctor.diagnose` needs only the loss and the model: put it into your own loop, before or after `loss.backward()`.
"""

import torch
from torch import nn

import fxdoctor


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.norm = nn.LayerNorm(32)
        self.head = nn.Linear(32, 4)

    def pooled(self, x: torch.Tensor) -> torch.Tensor:
        features = self.encoder(x)
        return torch.tensor(features.tolist())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.pooled(x)))


def make() -> tuple[nn.Module, tuple[torch.Tensor]]:
    """For `fxdoctor analyze samples/diagnose_my_loss.py`, which runs the model and names the line."""
    torch.manual_seed(0)
    return Tagger(), (torch.randn(8, 16),)


def main() -> None:
    torch.manual_seed(0)
    model = Tagger()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step in range(3):
        x, target = torch.randn(8, 16), torch.randint(0, 4, (8,))
        loss = nn.functional.cross_entropy(model(x), target)
        loss.backward()
        if step == 0:
            print(fxdoctor.diagnose(loss, model, source=Tagger).to_text(show_all=True))
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    main()
