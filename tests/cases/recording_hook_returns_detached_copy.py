"""After activation logging was added the first half of the network stopped learning.
The forward hook returns what it stored, and a hook's return value replaces the module's output: a detached copy."""
import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.seen = {}

    def watch(self, name, module):
        def keep(mod, inputs, output):
            self.seen[name] = output.detach()  # CAUSE-1
            return self.seen[name]  # ALSO-1
        module.register_forward_hook(keep)


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(5, 6)
        self.mix = nn.Linear(6, 6)

    def forward(self, x):
        return self.mix(torch.relu(self.lift(x)))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.decoder = nn.Sequential(nn.Linear(6, 6), nn.Tanh(), nn.Linear(6, 5))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def make():
    torch.manual_seed(0)
    model = Model()
    Recorder().watch("encoder", model.encoder)
    return dict(model=model, args=(torch.randn(4, 5),), kwargs={}, loss=None)


EXPECT = dict(
    eager="ok",
    error_match=None,
    params={
        "encoder.lift.weight": "none", "encoder.lift.bias": "none", "encoder.mix.weight": "none",
        "encoder.mix.bias": "none", "decoder.0.weight": "flows", "decoder.0.bias": "flows",
        "decoder.2.weight": "flows", "decoder.2.bias": "flows",
    },
    causes=[
        dict(kind="detach", line="CAUSE-1", also=["ALSO-1"],
             params=["encoder.lift.weight", "encoder.lift.bias", "encoder.mix.weight", "encoder.mix.bias"]),
    ],
    fix=None,
    after=None,
)
