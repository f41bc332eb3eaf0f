"""A small, randomly initialised model for each transformers architecture, and what one training step needs.

The configuration class is called with few layers and narrow widths in place of its own defaults; everything that
shapes the architecture (activation, norms, tying, routing, relative positions) stays. Not every architecture takes
every shrinking, so each attempt is tried by one forward pass, and the next one is milder.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..target_error import Target, TargetError, near, raised
from .sources import library
from .transformers_inputs import Unsupported, example_kwargs

MAX_PARAMETERS = 200_000_000
"""A milder attempt may not make a model that no laptop runs."""

_LAYERS = set(
    "num_hidden_layers num_layers n_layer n_layers encoder_layers decoder_layers num_encoder_layers "
    "num_decoder_layers decoder_num_hidden_layers".split()
)
_WIDTHS: dict[str, int] = {
    name: size
    for size, names in {
        64: "hidden_size d_model n_embd dim word_embed_proj_dim decoder_hidden_size encoder_hidden_size lru_width "
        "attention_hidden_size",
        128: "intermediate_size d_ff d_inner ffn_dim encoder_ffn_dim decoder_ffn_dim hidden_dim moe_intermediate_size "
        "shared_expert_intermediate_size moe_shared_expert_intermediate_size decoder_intermediate_size n_inner "
        "intermediate_size_mlp",
        4: "num_attention_heads n_head n_heads encoder_attention_heads decoder_attention_heads "
        "decoder_num_attention_heads num_local_experts num_experts n_routed_experts moe_num_experts",
        2: "num_experts_per_tok num_experts_per_token n_group",
        1: "topk_group",
        16: "head_dim d_kv kv_channels v_head_dim kv_lora_rank d_head",
        8: "qk_rope_head_dim qk_nope_head_dim",
        32: "q_lora_rank embedding_size projection_dim",
        512: "vocab_size",
        50: "max_source_positions",
        256: "max_position_embeddings n_positions max_target_positions",
    }.items()
    for name in names.split()
}
_LISTS = {"hidden_sizes": 4, "conv_dim": 8, "embed_dims": 4}
_CLASSES = (
    "SEQ_TO_SEQ_CAUSAL_LM SPEECH_SEQ_2_SEQ MASKED_LM CAUSAL_LM CTC OBJECT_DETECTION SEMANTIC_SEGMENTATION "
    "ZERO_SHOT_IMAGE_CLASSIFICATION IMAGE_CLASSIFICATION VIDEO_CLASSIFICATION PRETRAINING AUDIO_CLASSIFICATION "
    "DEPTH_ESTIMATION MASKED_IMAGE_MODELING SEQUENCE_CLASSIFICATION"
).split()
"""Tasks in the order in which one is taken for a model type: the one the model is trained with, as far as it has."""


@dataclass(frozen=True)
class Attempt:
    """One way to shrink."""

    layers: bool
    widths: bool


_ATTEMPTS = (Attempt(True, True), Attempt(False, True), Attempt(True, False), Attempt(False, False))


def small_model(name: str) -> Target:
    """See `fxdoctor.zoo.sources.transformers_model`."""
    transformers = library("transformers")
    config_class, classes = _lookup(transformers, name)
    failures: list[str] = []
    for attempt in _ATTEMPTS:
        for cls in classes:
            try:
                return _tried(cls, config_class, attempt, f"transformers:{name}")
            except (Unsupported, TargetError) as e:
                failures.append(f"{cls.__name__}: {e}")
            except Exception as e:  # whatever a foreign constructor or forward raises: the next attempt may do
                failures.append(f"{cls.__name__}: {raised(e)}")
    raise TargetError(f"transformers:{name}: no small version of it runs ({failures[0]}); write a make() for it")


def _tried(cls: Any, config_class: Any, attempt: Attempt, name: str) -> Target:
    """The target, after a model built alike has run once."""
    config = small_config(config_class, attempt)
    _refuse_large(cls, config)
    trial = _built(cls, config)
    with torch.no_grad():
        trial(**example_kwargs(trial, config))
    del trial
    torch.manual_seed(0)
    model = _built(cls, config)
    return Target(model, (), example_kwargs(model, config), name=name)


def _built(cls: Any, config: Any) -> nn.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model: nn.Module = cls(config)
    return model.train()


def _refuse_large(cls: Any, config: Any) -> None:
    with torch.device("meta"):
        count = sum(p.numel() for p in cls(config).parameters())
    if count > MAX_PARAMETERS:
        raise Unsupported(f"{count / 1e6:.0f} million parameters")


# --- which class ----------------------------------------------------------------------------------------------------


def _lookup(transformers: Any, name: str) -> tuple[Any, list[Any]]:
    """The configuration class and the model classes to try, best first."""
    auto = library("transformers.models.auto.configuration_auto")
    kinds: Mapping[str, str] = auto.CONFIG_MAPPING_NAMES
    for kind in (name, name.lower().replace("_", "-"), name.lower().replace("-", "_")):
        if kind in kinds:
            classes = list(_classes(transformers, kind))
            if not classes:
                raise TargetError(f"transformers has a configuration {kind!r} but no model for it")
            return getattr(transformers, kinds[kind]), classes
    cls = getattr(transformers, name, None) if name.isidentifier() else None
    if cls is None:
        every = [*kinds, *(n for n in dir(transformers) if "For" in n or n.endswith("Model"))]
        hint = near(name, every, "give a model type such as bert, or a class such as BertForMaskedLM")
        raise TargetError(f"transformers has no model type or class {name!r}{hint}")
    if not (isinstance(cls, type) and issubclass(cls, nn.Module) and getattr(cls, "config_class", None)):
        raise TargetError(f"transformers.{name} is no model with a configuration; give a class such as BertForMaskedLM")
    return cls.config_class, [cls]  # type: ignore[attr-defined]


def _classes(transformers: Any, kind: str) -> Iterator[Any]:
    auto = library("transformers.models.auto.modeling_auto")
    names: list[str] = []
    for task in [f"MODEL_FOR_{t}_MAPPING_NAMES" for t in _CLASSES] + ["MODEL_MAPPING_NAMES"]:
        found = getattr(auto, task, {}).get(kind)
        names += [found] if isinstance(found, str) else list(found or ())
    is_seq2seq = kind in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
    for name in list(dict.fromkeys(names))[: 1 if is_seq2seq else 3]:
        cls = getattr(transformers, name, None)
        if cls is not None:
            yield cls


# --- which configuration --------------------------------------------------------------------------------------------


def small_config(config_class: Any, attempt: Attempt) -> Any:
    """An instance of the configuration class, shrunk, its parts too."""
    return config_class(**_overrides(config_class, attempt))


def _overrides(config_class: Any, attempt: Attempt) -> dict[str, Any]:
    """Arguments for the constructor. A default of None is left alone: the constructor derives the value."""
    default = config_class()
    taken = inspect.signature(config_class).parameters
    parts = getattr(config_class, "sub_configs", {})
    out: dict[str, Any] = {}
    for name, parameter in taken.items():
        value = getattr(default, name, None)
        if name in parts:
            part = type(value) if value is not None else None
            if part is not None and part is not dict and name != "backbone_config":
                out[name] = _overrides(part, attempt)
        elif parameter.default is not None and value is not None:
            small = _small(name, value, attempt, default)
            if small is not None and small != value:
                out[name] = small
    out.update(_tokens(taken, default, out.get("vocab_size", getattr(default, "vocab_size", None))))
    if {"expand", "num_heads", "head_dim"} <= set(taken) and {"hidden_size", "head_dim"} <= set(out):
        # Mamba-2's family: the heads together are as wide as the expanded state.
        out["num_heads"] = out["hidden_size"] * default.expand // out["head_dim"]
    starts = getattr(default, "is_encoder_decoder", False) and getattr(default, "decoder_start_token_id", None) is None
    if starts:
        out["decoder_start_token_id"] = getattr(default, "pad_token_id", None) or 0
    if "use_cache" in taken:
        out["use_cache"] = False
    return out


def _small(name: str, value: Any, attempt: Attempt, default: Any) -> Any:
    """The small value of one setting; None leaves it as it is."""
    if "layerdrop" in name:
        return 0.0  # a layer left out at random would look like one that never learns
    if isinstance(value, (list, tuple)):
        return _small_list(name, value, attempt)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if name in _LAYERS:
        return min(value, 2) if attempt.layers and not hasattr(default, "depths") else None
    if name == "image_size" and (attempt.layers or attempt.widths):
        patch = getattr(default, "patch_size", None)
        if isinstance(patch, int) and patch >= 8 and not hasattr(default, "depths"):
            return min(value, 4 * patch)
        return min(value, 96) if patch is None else None
    if not attempt.widths:
        return None
    if name == "num_key_value_heads":
        heads = getattr(default, "num_attention_heads", value)
        return value if value == 1 else 4 if value == heads else 2
    if name == "embed_dim":
        return value // 4 if hasattr(default, "depths") else None
    return min(value, _WIDTHS[name]) if name in _WIDTHS else None


def _small_list(name: str, value: Any, attempt: Attempt) -> Any:
    if not value or not all(isinstance(v, int) for v in value):
        return None
    if name == "depths" and attempt.layers:
        return type(value)(1 for _ in value)
    if name in _LISTS and attempt.widths and all(v % _LISTS[name] == 0 for v in value):
        return type(value)(v // _LISTS[name] for v in value)
    return None


def _tokens(taken: Mapping[str, Any], default: Any, vocab: Any) -> dict[str, int]:
    """Special tokens beyond the small vocabulary move to its end, one number for each."""
    if not isinstance(vocab, int):
        return {}
    moved: dict[int, int] = {}
    out: dict[str, int] = {}
    for name in taken:
        value = getattr(default, name, None)
        if name.endswith(("_token_id", "_token_index")) and isinstance(value, int) and value >= vocab:
            out[name] = moved.setdefault(value, vocab - 1 - len(moved))
    if "pad_token_id" in taken and getattr(default, "pad_token_id", None) is None:
        out["pad_token_id"] = 0  # heads that pool the last real token need to know what padding is
    return out
