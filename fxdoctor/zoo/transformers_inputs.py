"""Inputs and labels for a transformers model, from its configuration and the arguments of its forward."""

from __future__ import annotations

import importlib.util
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

BATCH, LENGTH = 2, 16
AUDIO_SAMPLES = 8000
_ONE_CLASS = ("SequenceClassification", "ImageClassification", "AudioClassification", "VideoClassification")


class Unsupported(Exception):
    """These inputs cannot be made up; the message says why."""


def example_kwargs(model: nn.Module, config: Any) -> dict[str, Any]:
    """Keyword arguments for one training step, drawn from torch's global generator.

    Raises:
        Unsupported: the model's main input is of a kind that is not known here, or mixes text and images in one
            sequence.
    """
    takes = inspect.signature(model.forward).parameters
    main = getattr(model, "main_input_name", "input_ids")
    makers = {
        "input_ids": _text,
        "pixel_values": _images,
        "pixel_values_videos": _images,
        "input_values": _audio,
        "input_features": _features,
    }
    if main not in makers or main not in takes:
        raise Unsupported(f"its main input {main} cannot be made up")
    made = makers[main](config, main)
    if main == "input_ids" and "pixel_values" in takes:
        if any(find(config, n) is not None for n in ("image_token_id", "image_token_index")):
            raise Unsupported("it mixes image tokens into its text")
        made |= _images(config, "pixel_values")
    if "bbox" in takes:
        made["bbox"] = torch.tensor([10, 20, 30, 40]).expand(BATCH, LENGTH, 4).clone()
    if type(model).__name__.endswith("MultipleChoice"):
        made = {k: torch.stack([v, v.flip(0)], dim=1) for k, v in made.items()}
    if "attention_mask" in made and "attention_mask" not in takes:
        del made["attention_mask"]
    made |= _targets(model, config, takes, made)
    return made


def find(config: Any, name: str) -> Any:
    """A setting of the configuration, or of the first of its parts that has it."""
    value = getattr(config, name, None)
    if value is not None:
        return value
    for part in getattr(type(config), "sub_configs", {}):
        inner = getattr(config, part, None)
        if inner is not None and not isinstance(inner, dict):
            value = find(inner, name)
            if value is not None:
                return value
    return None


# --- inputs ---------------------------------------------------------------------------------------------------------


def _ids(config: Any, *shape: int) -> torch.Tensor:
    """Token numbers away from both ends of the vocabulary, where the special tokens are."""
    vocab = find(config, "vocab_size") or 100
    low, high = (5, vocab - 16) if vocab > 64 else (1, vocab)
    return torch.randint(low, high, shape)


def _text(config: Any, name: str) -> dict[str, Any]:
    ids = _ids(config, BATCH, LENGTH)
    end = find(config, "eos_token_id")
    if isinstance(end, int) and 0 <= end < (find(config, "vocab_size") or 0):
        ids[:, -1] = end  # some models pool at the end token
    return {name: ids, "attention_mask": torch.ones_like(ids)}


def _images(config: Any, name: str) -> dict[str, Any]:
    size = find(config, "image_size") or 64
    if isinstance(size, Mapping):
        size = (size["height"], size["width"])
    height, width = (size, size) if isinstance(size, int) else (size[-2], size[-1])
    frames = find(config, "num_frames")
    clip = (frames,) if isinstance(frames, int) else ()
    return {name: torch.randn(BATCH, *clip, find(config, "num_channels") or 3, height, width)}


def _audio(config: Any, name: str) -> dict[str, Any]:
    bins, frames = find(config, "num_mel_bins"), find(config, "max_length")
    if isinstance(bins, int) and isinstance(frames, int):
        return {name: torch.randn(BATCH, frames, bins)}
    return {name: torch.randn(BATCH, AUDIO_SAMPLES)}


def _features(config: Any, name: str) -> dict[str, Any]:
    """Spectrograms: bins before frames in Whisper's family, frames before bins in the others."""
    wide = find(config, "feature_projection_input_dim") or find(config, "input_feat_per_channel")
    if isinstance(wide, int):
        return {name: torch.randn(BATCH, 64, wide)}
    bins, positions = find(config, "num_mel_bins"), find(config, "max_source_positions")
    if isinstance(bins, int) and isinstance(positions, int):
        return {name: torch.randn(BATCH, bins, 2 * positions)}
    raise Unsupported("the shape of its input_features is not in its configuration")


# --- labels ---------------------------------------------------------------------------------------------------------


def _targets(model: nn.Module, config: Any, takes: Mapping[str, Any], made: dict[str, Any]) -> dict[str, Any]:
    """What the model's own loss needs; where it has none, what its decoder needs."""
    out: dict[str, Any] = {}
    if "return_loss" in takes:
        out["return_loss"] = True
    if "start_positions" in takes:
        out["start_positions"] = torch.randint(1, LENGTH // 2, (BATCH,))
        out["end_positions"] = torch.randint(LENGTH // 2, LENGTH, (BATCH,))
    for name in ("next_sentence_label", "sentence_order_label"):
        if name in takes:
            out[name] = torch.randint(0, 2, (BATCH,))
    if "labels" in takes:
        labels = _labels(type(model).__name__, config, made)
        if labels is not None:
            out["labels"] = labels
    elif "decoder_input_ids" in takes:
        out["decoder_input_ids"] = _ids(config, BATCH, LENGTH)
    return out


def _labels(cls: str, config: Any, made: dict[str, Any]) -> Any:
    classes = find(config, "num_labels") or 2
    if cls.endswith("MultipleChoice"):
        return torch.randint(0, 2, (BATCH,))
    if cls.endswith(_ONE_CLASS):
        return torch.randint(0, classes, (BATCH,))
    if cls.endswith("TokenClassification"):
        return torch.randint(0, classes, (BATCH, LENGTH))
    if cls.endswith("SemanticSegmentation"):
        return torch.randint(0, classes, (BATCH, *made["pixel_values"].shape[-2:]))
    if cls.endswith("DepthEstimation"):
        return None
    if cls.endswith("ObjectDetection"):
        return _objects(classes)
    if "input_ids" in made:
        return made["input_ids"].clone()
    return _ids(config, BATCH, 5)


def _objects(classes: int) -> Any:
    """Boxes to match; None without SciPy, which the matching of transformers needs: the outputs are used then."""
    if importlib.util.find_spec("scipy") is None:
        return None
    boxes = torch.tensor([[0.3, 0.4, 0.2, 0.3], [0.6, 0.5, 0.4, 0.4]])
    return [{"class_labels": torch.randint(0, classes, (2,)), "boxes": boxes.clone()} for _ in range(BATCH)]
