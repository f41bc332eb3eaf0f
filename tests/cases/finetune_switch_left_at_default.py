"""All weights require grad and are in the optimizer, but the text tower stays as it was loaded: its forward runs under
set_grad_enabled(self.finetune), and finetune was never switched on."""
import torch
from torch import nn


class TextTower(nn.Module):
    def __init__(self, finetune=False):
        super().__init__()
        self.finetune = finetune
        self.words = nn.Embedding(9, 5)
        self.rnn = nn.GRU(5, 5, batch_first=True)

    def forward(self, ids):
        with torch.set_grad_enabled(self.finetune and self.training):  # CAUSE-1
            seq, _ = self.rnn(self.words(ids))  # ALSO-1
        return seq.mean(1)


class ImageTower(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 5, 3)

    def forward(self, img):
        return torch.relu(self.conv(img)).mean((2, 3))


class Contrast(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = TextTower()
        self.image = ImageTower()
        self.heat = nn.Parameter(torch.tensor(1.0))

    def forward(self, ids, img):
        a = nn.functional.normalize(self.text(ids), dim=-1)
        b = nn.functional.normalize(self.image(img), dim=-1)
        return self.heat.exp() * a @ b.t()


def make():
    torch.manual_seed(0)
    args = (torch.randint(0, 9, (3, 4)), torch.randn(3, 1, 6, 6))
    return dict(model=Contrast(), args=args, kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "heat": "flows", "text.words.weight": "none", "text.rnn.weight_ih_l0": "none",
        "text.rnn.weight_hh_l0": "none", "text.rnn.bias_ih_l0": "none", "text.rnn.bias_hh_l0": "none",
        "image.conv.weight": "flows", "image.conv.bias": "flows",
    },
    causes=[
        dict(kind="no-grad", line="CAUSE-1", also=["ALSO-1"],
             params=["text.words.weight", "text.rnn.weight_ih_l0", "text.rnn.weight_hh_l0", "text.rnn.bias_ih_l0",
              "text.rnn.bias_hh_l0"]),
    ],
    fix=None,
    after=None,
)
