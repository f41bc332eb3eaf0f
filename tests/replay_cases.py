"""Small models, one for each thing that a recorder must get right; `test_replay.py` runs their graphs again."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import parametrizations
from torch.utils.checkpoint import checkpoint

CASES: dict[str, Callable[[], tuple[nn.Module, Any]]] = {}


class Net(nn.Module):
    """A model from a forward function; `parts` become attributes (modules and parameters are registered)."""

    def __init__(self, step: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        for name, part in parts.items():
            setattr(self, name, part)
        self.step = step

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.step(self, *args, **kwargs)


def case(**parts: Callable[[], Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Makes a case of a forward function. `x=` gives the inputs (default: one 3x4 tensor), the rest are its parts."""

    def decorate(step: Callable[..., Any]) -> Callable[..., Any]:
        def make() -> tuple[nn.Module, Any]:
            torch.manual_seed(0)
            made = {name: part() for name, part in parts.items() if name != "x"}
            made.setdefault("layer", nn.Linear(4, 4))
            return Net(step, **made), parts["x"]() if "x" in parts else torch.randn(3, 4)

        CASES[step.__name__] = make
        return step

    return decorate


# --- cases ----------------------------------------------------------------------------------------------------------


@case()
def control_flow(m: Any, x: torch.Tensor) -> torch.Tensor:
    for i in range(3):
        x = torch.tanh(m.layer(x)) if x.sum() > -100 else x * i
        if float(x[0, 0].detach()) > 1e6:
            break
    return x


@case()
def item_exit(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    return h * h.mean().item() + float(h.std()) - int(h.argmax())


@case()
def tolist_exit(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    return h + torch.tensor(h.tolist()) + torch.tensor(h[0, 0].item())


@case()
def numpy_round_trip(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    return h + torch.from_numpy(h.detach().numpy() * 2)


@case()
def data_read(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x) + m.layer(x).data * m.layer.weight.data.sum()


@case()
def data_write(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    h.data.mul_(2.0)
    h.data = h.data + 1.0
    return h.sin()


@case()
def detached(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    return h * h.detach() + h.clone().detach_()


@case(other=lambda: nn.Linear(4, 4))
def no_grad(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        mean = m.other(x)
        with torch.enable_grad():
            inner = m.other(x)
    with torch.set_grad_enabled(False):
        more = m.other(x)
    return m.layer(x) + mean + inner + more


@case()
def inference_mode(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.inference_mode():
        scale = m.layer(x).abs().mean()
    return m.layer(x) * scale.clone()


@case()
def autocast(m: Any, x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        h = m.layer(x)
        with torch.autocast("cpu", enabled=False):
            h = m.layer(h.float())
        h = m.layer(h)
    return h.float().sin()


@case()
def checkpoint_plain(m: Any, x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda h: F.dropout(torch.tanh(m.layer(h)), 0.5), m.layer(x), use_reentrant=False)


@case()
def checkpoint_reentrant(m: Any, x: torch.Tensor) -> torch.Tensor:
    return checkpoint(lambda h: F.dropout(torch.tanh(m.layer(h)), 0.5), m.layer(x), use_reentrant=True)


class Halve(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor, factor: float) -> tuple[torch.Tensor, torch.Tensor]:
        ctx.save_for_backward(x)
        ctx.factor = factor
        return x * factor, x.sign()

    @staticmethod
    def backward(ctx: Any, g: torch.Tensor, _: torch.Tensor) -> tuple[torch.Tensor, None]:
        (x,) = ctx.saved_tensors
        return g * ctx.factor + x * 0.01, None


@case()
def custom_function(m: Any, x: torch.Tensor) -> torch.Tensor:
    half, sign = Halve.apply(m.layer(x), 0.5)
    return half * sign.detach() + half


@case()
def parameter_in_forward(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x) * nn.Parameter(torch.full((4,), 3.0)) + nn.Parameter(m.layer.bias * 2)


@case()
def vmapped(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.func.vmap(lambda row: torch.tanh(m.layer(row)).cumsum(0))(x)


@case()
def func_grad(m: Any, x: torch.Tensor) -> torch.Tensor:
    return torch.func.grad(lambda t: m.layer(t).sin().sum())(x) + m.layer(x)


@case()
def functional_call(m: Any, x: torch.Tensor) -> torch.Tensor:
    weights = {n: p * 2 for n, p in m.layer.named_parameters()}
    return torch.func.functional_call(m.layer, weights, (x,))


@case()
def autograd_grad(m: Any, x: torch.Tensor) -> torch.Tensor:
    y = x.clone().requires_grad_()
    (slope,) = torch.autograd.grad(m.layer(y).sin().sum(), y, create_graph=True)
    return slope.square()


@case()
def module_hooks(m: Any, x: torch.Tensor) -> torch.Tensor:
    handles = [
        m.layer.register_forward_hook(lambda mod, args, out: out * 2),
        m.layer.register_forward_pre_hook(lambda mod, args: (args[0] + 1,)),
    ]
    out = m.layer(x)
    for handle in handles:
        handle.remove()
    return out


@case()
def tensor_hook(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    h.register_hook(lambda g: g * 3)
    return h.sin()


@case(layer=lambda: parametrizations.weight_norm(nn.Linear(4, 4)))
def weight_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x)


@case(layer=lambda: parametrizations.spectral_norm(nn.Linear(4, 4)))
def spectral_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x)


@case(layer=lambda: parametrizations.orthogonal(nn.Linear(4, 4)))
def orthogonal(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x)


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(4, 4)
        self.head = nn.Linear(4, 4)
        self.head.weight = self.table.weight


@case(layer=Tied)
def tied(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer.head(x + m.layer.table(torch.tensor([0, 1, 1])))


class Meters(torch.Tensor):
    """A subclass that every op passes on."""


@case()
def subclass(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x.as_subclass(Meters)).sin().as_subclass(torch.Tensor)


@case(table=lambda: nn.Embedding(6, 4, sparse=True))
def sparse_gradient(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x) + m.table(torch.tensor([0, 5, 5]))


@case(table=lambda: nn.Embedding(6, 4, max_norm=0.5))
def max_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.layer(x) + m.table(torch.tensor([0, 5, 5]))


@case(w=lambda: nn.Parameter(torch.randn(4, 4, dtype=torch.complex64)))
def complex_numbers(m: Any, x: torch.Tensor) -> torch.Tensor:
    z = torch.fft.fft(m.layer(x)) @ m.w
    return torch.view_as_real(z).sum(-1) + z.abs() + z.conj().real


@case(rnn=lambda: nn.LSTM(4, 4, num_layers=2, bidirectional=True, batch_first=True, dropout=0.3))
def lstm(m: Any, x: torch.Tensor) -> Any:
    return m.rnn(x.unsqueeze(0))


@case(rnn=lambda: nn.GRU(4, 4))
def gru(m: Any, x: torch.Tensor) -> Any:
    packed = nn.utils.rnn.pack_sequence([m.layer(x), m.layer(x)[:2]])
    out, last = m.rnn(packed)
    return nn.utils.rnn.pad_packed_sequence(out)[0], last


@dataclasses.dataclass
class Output:
    main: torch.Tensor
    extra: list[torch.Tensor]
    count: int = 3


@case()
def dataclass_output(m: Any, x: torch.Tensor) -> Output:
    h = m.layer(x)
    return Output(h, [h.sin(), h.cos()])


@case()
def nested_output(m: Any, x: torch.Tensor) -> Any:
    h = m.layer(x)
    return {"a": h, "b": [h.sin(), (h.cos(), None)], "n": 3, "c": {"d": x}}


@case(x=lambda: ((torch.randn(3, 4), {"b": [torch.randn(3, 4)], "k": 2}), {"scale": torch.tensor(2.0)}))
def nested_input(m: Any, x: torch.Tensor, more: dict[str, Any], scale: torch.Tensor) -> torch.Tensor:
    return m.layer(x) + more["b"][0] * more["k"] * scale


@case(drop=lambda: nn.Dropout(0.5))
def dropout(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.drop(m.layer(x)) * torch.rand(4) + torch.randn_like(x)
    return h + torch.bernoulli(torch.full_like(h, 0.5)) + torch.empty(3, 4).uniform_() + h * torch.randperm(4)


@case()
def own_generator(m: Any, x: torch.Tensor) -> torch.Tensor:
    g = torch.Generator().manual_seed(3)
    return m.layer(x) * torch.rand(4, generator=g) + torch.randn(3, 4, generator=g)


@case(norm=lambda: nn.BatchNorm1d(4))
def batch_norm(m: Any, x: torch.Tensor) -> torch.Tensor:
    return m.norm(m.layer(x))


@case()
def in_place(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)
    h[:, 0] = 2.0
    h += x
    h[:, 1:3].mul_(0.5)
    buffer = torch.zeros(3, 4)
    buffer[1] = h[1]
    torch.add(x, 1.0, out=torch.empty(3, 4))
    return F.relu(h + buffer, inplace=True)


@case()
def input_written(m: Any, x: torch.Tensor) -> torch.Tensor:
    x.add_(1.0)
    return m.layer(x)


@case(attention=lambda: nn.MultiheadAttention(4, 2, batch_first=True))
def attention(m: Any, x: torch.Tensor) -> Any:
    h = m.layer(x).unsqueeze(0)
    return m.attention(h, h, h, need_weights=True)[0] + F.scaled_dot_product_attention(h, h, h)


@case()
def tensor_lists(m: Any, x: torch.Tensor) -> torch.Tensor:
    parts = m.layer(x).split([1, 3], dim=1)
    values, indices = torch.topk(parts[1], 2)
    return (
        torch.stack([torch.einsum("ij,kj->i", values, values), torch.block_diag(parts[0], values).sum(0)[:3]])
        + indices.sum()
    )


@case()
def constants(m: Any, x: torch.Tensor) -> torch.Tensor:
    grid = torch.arange(4, dtype=x.dtype, device=x.device) / x.shape[-1]
    return torch.where(x > 0, m.layer(x), grid) * torch.as_tensor([1.0, 2.0, 3.0, 4.0]) + x.new_ones(4)


@case()
def slices_and_ellipsis(m: Any, x: torch.Tensor) -> torch.Tensor:
    h = m.layer(x)[..., None, ::2].squeeze(-2)
    n = h.argmax(-1)
    return h[torch.arange(3), n] + h[: int(n.max()) + 1, -1].sum()
