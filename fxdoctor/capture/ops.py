"""What is known of a torch function by its name alone: one table that recorder, flow and rules all ask.

Verdicts are decided by facts of the run; names here pick the wording, and say which arguments carry no value.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch

METADATA = frozenset(
    [
        "size",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "stride",
        "is_contiguous",
        "storage_offset",
        "element_size",
        "data_ptr",
        "untyped_storage",
        "storage",
        "storage_type",
        "get_device",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "is_inference",
        "is_shared",
        "is_pinned",
        "is_neg",
        "is_conj",
        "is_set_to",
        "is_same_size",
        "has_names",
        "__len__",
        "__hash__",
        "__repr__",
        "__format__",
        "__dir__",
        "__reduce_ex__",
        "__deepcopy__",
        "type_of",
        "is_tensor",
        "is_storage",
        "result_type",
        "can_cast",
        "promote_types",
        "broadcast_shapes",
        "__contains__",
        "is_nonzero",
        "shape",
        "ndim",
        "dtype",
        "device",
        "layout",
        "requires_grad",
        "is_leaf",
        "grad_fn",
        "is_cuda",
        "is_cpu",
        "is_sparse",
        "is_quantized",
        "is_nested",
        "is_meta",
        "is_mps",
        "is_xpu",
        "is_mkldnn",
        "is_sparse_csr",
        "is_vulkan",
        "is_ipu",
        "is_xla",
        "is_maia",
        "is_mtia",
        "output_nr",
        "name",
        "names",
        "_version",
        "_base",
        "itemsize",
        "nbytes",
        "volatile",
        "_backward_hooks",
        "_post_accumulate_grad_hooks",
        "retains_grad",
        "_is_view",
        "_is_all_true_",
        "allclose",
        "equal",
        "__torch_dispatch__",
        "_has_symbolic_sizes_strides",
        "_nnz",
        "sparse_dim",
        "dense_dim",
        "is_coalesced",
        "__cuda_array_interface__",
        "_cdata",
        "_is_zerotensor",
        "is_distributed",
        "_make_wrapper_subclass",
        "get_default_dtype",
        "is_grad_enabled",
    ]
)
"""Reads nothing but metadata, or is only asked to print or to compare: no node."""

EXITS = frozenset(
    [
        "item",
        "tolist",
        "numpy",
        "__array__",
        "__float__",
        "__int__",
        "__bool__",
        "__index__",
        "__complex__",
        "__dlpack__",
    ]
)
"""Leaves the graph for Python: what comes back has no data edge."""

CONTROL_EXITS = frozenset(["__bool__"])

VALUE_FREE = frozenset(
    [
        "zeros_like",
        "ones_like",
        "empty_like",
        "full_like",
        "rand_like",
        "randn_like",
        "randint_like",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_full",
        "new_tensor_shape",
        "new_empty_strided",
        "zeros",
        "ones",
        "empty",
        "rand",
        "randn",
        "randint",
        "randperm",
        "arange",
        "eye",
    ]
)
"""The result takes shape, dtype or device from its tensor arguments, never their values."""

SHAPE_ONLY_REST = frozenset(["expand_as", "view_as", "reshape_as", "type_as", "to", "broadcast_like", "sum_to_size"])
"""Only the first tensor argument carries a value; the others give shape, dtype or device."""

DETACH = frozenset(["detach", "detach_", "data"])
TENSOR_FROM_PYTHON = frozenset(
    ["tensor", "as_tensor", "from_numpy", "asarray", "new_tensor", "scalar_tensor", "FloatTensor"]
)
INT_CASTS = frozenset(["long", "int", "short", "char", "byte", "bool", "to", "type", "type_as"])
ZERO_GRAD = frozenset(
    [
        "round",
        "floor",
        "ceil",
        "trunc",
        "fix",
        "sign",
        "sgn",
        "heaviside",
        "round_",
        "floor_",
        "ceil_",
        "trunc_",
        "fix_",
        "sign_",
        "sgn_",
        "rint",
        "floor_divide",
        "div",
    ]
)
SATURATING = frozenset(
    [
        "clamp",
        "clip",
        "clamp_min",
        "clamp_max",
        "clamp_",
        "clip_",
        "clamp_min_",
        "clamp_max_",
        "hardtanh",
        "hardtanh_",
        "relu",
        "relu_",
        "relu6",
        "threshold",
        "threshold_",
        "sigmoid",
        "sigmoid_",
        "tanh",
        "tanh_",
        "softmax",
        "log_softmax",
        "softmin",
        "hardsigmoid",
        "hardswish",
        "hardshrink",
        "softshrink",
        "elu",
        "selu",
        "celu",
        "gelu",
        "silu",
        "mish",
        "softplus",
        "logsigmoid",
        "logsigmoid_",
        "leaky_relu",
        "rrelu",
        "minimum",
        "maximum",
        "max",
        "min",
        "amax",
        "amin",
        "relu6_",
        "hardsigmoid_",
        "layer_norm",
        "batch_norm",
        "group_norm",
        "instance_norm",
        "normalize",
        "glu",
        "erf",
        "gumbel_softmax",
    ]
)
MASKING = frozenset(
    [
        "where",
        "masked_fill",
        "masked_fill_",
        "masked_scatter",
        "masked_select",
        "gather",
        "index_select",
        "embedding",
        "embedding_bag",
        "__getitem__",
        "__setitem__",
        "getitem",
        "index_put",
        "index_put_",
        "scatter",
        "scatter_",
        "nll_loss",
        "cross_entropy",
        "dropout",
        "tril",
        "triu",
        "nan_to_num",
        "nan_to_num_",
        "index_fill",
        "index_fill_",
        "take",
        "take_along_dim",
        "topk",
        "sort",
        "multi_margin_loss",
        "ctc_loss",
        "select",
        "narrow",
        "index",
        "index_copy",
        "index_copy_",
        "masked_scatter_",
        "alpha_dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
    ]
)
MULTIPLYING = frozenset(
    [
        "mul",
        "mul_",
        "multiply",
        "multiply_",
        "matmul",
        "mm",
        "bmm",
        "addmm",
        "baddbmm",
        "addbmm",
        "mv",
        "dot",
        "inner",
        "outer",
        "linear",
        "bilinear",
        "einsum",
        "conv1d",
        "conv2d",
        "conv3d",
        "conv_transpose1d",
        "conv_transpose2d",
        "conv_transpose3d",
        "__mul__",
        "__rmul__",
        "__matmul__",
        "__rmatmul__",
        "__imul__",
        "addcmul",
        "addcmul_",
        "tensordot",
        "kron",
        "scaled_dot_product_attention",
        "multi_head_attention_forward",
        "lstm",
        "gru",
        "rnn_tanh",
        "rnn_relu",
        "lstm_cell",
        "gru_cell",
        "rnn_tanh_cell",
        "rnn_relu_cell",
        "vdot",
        "chain_matmul",
        "div",
        "true_divide",
        "__truediv__",
        "div_",
        "lerp",
        "lerp_",
        "addmv",
    ]
)
GRAD_SWITCH = "_set_grad_enabled"


@dataclass(frozen=True)
class Op:
    """How one torch function is recorded."""

    name: str
    op: str
    """`call_function` or `call_method`."""
    target: Callable[..., Any] | str
    skip: bool
    exit: bool
    lead: tuple[Any, ...] = ()
    """Arguments to put behind the first one, as in `getattr(x, "data")`."""
    in_place_name: bool = field(init=False, default=False)
    value_free: bool = field(init=False, default=False)
    """The result takes nothing from its inputs' values."""
    shape_only_rest: bool = field(init=False, default=False)
    """Only the first tensor argument carries a value."""
    identifier: str = field(init=False, default="")
    """The start of the node's name."""

    def __post_init__(self) -> None:
        n = self.name
        writes = n in ("__setitem__", "data.__set__") or (n.endswith("_") and not n.endswith("__")) or n[:3] == "__i"
        object.__setattr__(self, "in_place_name", writes)
        object.__setattr__(self, "value_free", n in VALUE_FREE or n.endswith("_like"))
        object.__setattr__(self, "shape_only_rest", n in SHAPE_ONLY_REST)
        object.__setattr__(self, "identifier", n.strip("_").replace(".", "_") or "call")


_cache: dict[Any, Op] = {}


def op_of(func: Any) -> Op:
    """The `Op` for a function as `TorchFunctionMode` hands it over."""
    try:
        found = _cache.get(func)
    except TypeError:  # unhashable callables
        return _describe(func)
    if found is None:
        found = _cache[func] = _describe(func)
    return found


def _describe(func: Any) -> Op:
    name = getattr(func, "__name__", type(func).__name__)
    owner: Any = getattr(func, "__self__", None)
    if name in ("__get__", "__set__", "__delete__") and hasattr(owner, "__name__"):
        attribute = str(owner.__name__)
        if name == "__get__":
            skip = attribute in METADATA
            return Op(attribute, "call_function", getattr, skip, False, (attribute,))
        return Op(f"{attribute}.__set__", "call_function", setattr, False, False, (attribute,))
    if getattr(torch.Tensor, name, None) is func:
        return Op(name, "call_method", name, name in METADATA, name in EXITS)
    return Op(name, "call_function", func, name in METADATA, name in EXITS)


def may_write(op: Op, kwargs: dict[str, Any]) -> bool:
    """Whether the call can write to one of its tensor arguments, judged before it runs."""
    if op.in_place_name:
        return op.name not in (
            GRAD_SWITCH,
            "requires_grad_",
            "requires_grad.__set__",
            "__init__",
            "__index__",
            "__int__",
            "__invert__",
        )
    if not kwargs:
        return op.name in ("batch_norm", "instance_norm", "native_batch_norm")
    return (
        kwargs.get("out") is not None
        or kwargs.get("inplace") is True
        or kwargs.get("max_norm") is not None
        or kwargs.get("running_mean") is not None
        or op.name in ("batch_norm", "instance_norm", "native_batch_norm")
    )


def call(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Calls a function that the graph holds as an attribute of its module (a custom Function, a transform)."""
    return function(*args, **kwargs)


getitem = operator.getitem
