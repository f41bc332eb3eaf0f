"""Models of timm, torchvision and transformers, randomly initialised, with inputs from their own configuration.

Nothing is downloaded. Every model comes in training mode, as its constructor leaves it.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch
from torch import nn

from ..target_error import Target, TargetError, near, raised

BATCH = 2
CLIP_FRAMES = 8


def timm_model(name: str) -> Target:
    """A timm model and two images of the size in its `pretrained_cfg`.

    Raises:
        TargetError: timm is missing, does not know the name, or its constructor raises.
    """
    timm = library("timm")
    if not timm.is_model(name):
        raise TargetError(f"timm has no model {name!r}{near(name, timm.list_models(), 'see timm.list_models()')}")
    model = built(f"timm:{name}", lambda: timm.create_model(name, pretrained=False))
    config = getattr(model, "pretrained_cfg", None) or getattr(model, "default_cfg", None) or {}
    size = tuple(config.get("input_size") or (3, 224, 224))
    return Target(model, (torch.randn(BATCH, *size),), name=f"timm:{name}")


def transformers_model(name: str) -> Target:
    """A transformers model of a type (`llama`) or class (`LlamaForCausalLM`), with its structure but few and narrow
    layers, and inputs with the labels that its loss needs.

    Raises:
        TargetError: transformers is missing, does not know the name, or no small version of the model runs.
    """
    from .transformers_small import small_model

    return small_model(name)


# --- torchvision ----------------------------------------------------------------------------------------------------


def torchvision_model(name: str) -> Target:
    """A torchvision model, and inputs as its family takes them: images, images with boxes, clips, pairs of images.

    Detection models come with the sum of their losses, at images of about 256 pixels.

    Raises:
        TargetError: torchvision is missing, does not know the name, or its constructor raises.
    """
    models = library("torchvision.models")
    if name not in models.list_models():
        hint = near(name, models.list_models(), "see torchvision.models.list_models()")
        raise TargetError(f"torchvision has no model {name!r}{hint}")
    options = _offline(models, name)
    model = built(f"torchvision:{name}", lambda: models.get_model(name, **options))
    family = models.get_model_builder(name).__module__.split(".")[2]
    target: Target = _FAMILIES.get(family, _classification)(model, _facts(models, name))
    target.name = f"torchvision:{name}"
    return target


def _offline(models: Any, name: str) -> dict[str, Any]:
    """Arguments that keep the constructor from downloading, and from quantising (no gradient goes through int8)."""
    import inspect

    takes = inspect.signature(models.get_model_builder(name)).parameters
    options = {"weights": None, "weights_backbone": None, "quantize": False}
    if name.removeprefix("quantized_") in ("googlenet", "inception_v3"):
        return {"weights": None, "init_weights": True, **({"quantize": False} if "quantize" in takes else {})}
    return {k: v for k, v in options.items() if k in takes}


def _facts(models: Any, name: str) -> dict[str, Any]:
    """What the first published weights say of their input: `crop` and the entries of their `meta`."""
    weights = next(iter(models.get_model_weights(name)), None)
    if weights is None:
        return {}
    options = getattr(weights.transforms, "keywords", {})
    crop = options.get("crop_size", 224)
    return {**weights.meta, "crop": crop[0] if isinstance(crop, (tuple, list)) else crop}


def _classification(model: nn.Module, facts: dict[str, Any]) -> Target:
    size = getattr(model, "image_size", None) or facts.get("crop", 224)
    return Target(model, (torch.randn(BATCH, 3, size, size),))


def _segmentation(model: nn.Module, facts: dict[str, Any]) -> Target:
    return Target(model, (torch.randn(BATCH, 3, 224, 224),))


def _video(model: nn.Module, facts: dict[str, Any]) -> Target:
    frames = max(CLIP_FRAMES, facts.get("min_temporal_size", 1))
    height, width = (max(112, size) for size in facts.get("min_size", (112, 112)))
    return Target(model, (torch.randn(BATCH, 3, frames, height, width),))


def _optical_flow(model: nn.Module, facts: dict[str, Any]) -> Target:
    return Target(model, (torch.randn(BATCH, 3, 128, 128), torch.randn(BATCH, 3, 128, 128)))


def _detection(model: Any, facts: dict[str, Any]) -> Target:
    resize = model.transform
    if getattr(resize, "fixed_size", None) is None:
        resize.min_size, resize.max_size = (256,), 320
    images = [torch.rand(3, 256, 288), torch.rand(3, 256, 256)]
    classes = len(facts.get("categories", [])) or 91
    targets = [_objects(image, classes, hasattr(model, "roi_heads") and model.roi_heads) for image in images]
    return Target(model, (images, targets), loss=sum_of_losses)


def _objects(image: torch.Tensor, classes: int, heads: Any) -> dict[str, torch.Tensor]:
    """Two boxes with what the model's heads learn from: labels, masks, keypoints."""
    boxes = torch.tensor([[20.0, 30.0, 120.0, 150.0], [100.0, 80.0, 230.0, 240.0]])
    labels = torch.randint(1, classes, (2,))
    found = {"boxes": boxes, "labels": labels}
    if heads and heads.has_mask():
        masks = torch.zeros(2, *image.shape[1:], dtype=torch.uint8)
        for mask, (x0, y0, x1, y1) in zip(masks, boxes.int().tolist(), strict=True):
            mask[y0:y1, x0:x1] = 1
        found["masks"] = masks
    if heads and heads.has_keypoint():
        inside = torch.rand(2, 17, 2) * (boxes[:, None, 2:] - boxes[:, None, :2]) + boxes[:, None, :2]
        found["keypoints"] = torch.cat([inside, torch.ones(2, 17, 1)], dim=2)
    return found


def sum_of_losses(output: Any) -> torch.Tensor:
    """A detection model's loss: the sum of the losses it returns in training; in evaluation, where it returns boxes
    and scores instead, the sum of their squares."""
    if isinstance(output, dict):
        return torch.stack([loss.sum() for loss in output.values()]).sum()
    return torch.stack([(t * t).sum() for t in _floats(output)]).sum()


def _floats(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        if value.is_floating_point():
            yield value
    elif isinstance(value, dict):
        yield from _floats(list(value.values()))
    elif isinstance(value, Iterable):
        for part in value:
            yield from _floats(part)


_FAMILIES: dict[str, Callable[[Any, dict[str, Any]], Target]] = {
    "detection": _detection,
    "segmentation": _segmentation,
    "video": _video,
    "optical_flow": _optical_flow,
}


# --- shared ---------------------------------------------------------------------------------------------------------


def library(module: str) -> Any:
    """The imported library, or one line on how to get it."""
    name = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as e:
        missing = (e.name or name).partition(".")[0]
        raise TargetError(f"{missing} is not installed; pip install 'fxdoctor[zoo]'") from e
    except (ImportError, RuntimeError, OSError, AttributeError) as e:
        raise TargetError(f"{name} is installed but cannot be imported here: {raised(e)}") from e


def built(what: str, build: Callable[[], nn.Module]) -> nn.Module:
    """The result of a library's constructor; its exceptions become one line."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return build()
        except Exception as e:
            raise TargetError(f"{what} cannot be built: {raised(e)}") from e
