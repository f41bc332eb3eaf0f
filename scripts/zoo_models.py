"""Real architectures, randomly initialised and small: what `check_zoo.py` examines.

Each entry builds a model, its inputs, and its natural loss (labels where the model takes them). Nothing is downloaded.
Image sizes and widths are as small as the constructors allow; each step takes seconds on one core and under 4 GiB.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from zoo_transformers import CLASSES, TRANSFORMERS


@dataclass
class Example:
    """A model with what one training step needs. `loss` is None where the model's own `.loss` or the default serves."""

    model: nn.Module
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    loss: Callable[[Any], torch.Tensor] | None = None


Builder = Callable[[bool], Example]
"""train -> Example; the model comes already in that mode."""


def images(size: int, batch: int = 2) -> torch.Tensor:
    return torch.randn(batch, 3, size, size)


def classes_loss(output: Any) -> torch.Tensor:
    """Cross entropy of every head: googlenet and inception give a named tuple in training, distilled ViTs a pair."""
    heads = [h for h in output if h is not None] if isinstance(output, tuple) else [output]
    target = torch.arange(heads[0].shape[0]) % CLASSES
    return sum((F.cross_entropy(h, target) for h in heads), torch.zeros(()))


# --- torchvision ----------------------------------------------------------------------------------------------------

CLASSIFIERS: dict[str, tuple[int, dict[str, Any]]] = {
    "resnet18": (64, {}),
    "mobilenet_v3_small": (64, {}),
    "efficientnet_b0": (64, {}),
    "convnext_tiny": (64, {}),
    "swin_t": (64, {}),
    "swin_v2_t": (64, {}),
    "maxvit_t": (224, {}),
    "vit_b_16": (32, {"image_size": 32}),
    "densenet121": (64, {}),
    "googlenet": (64, {"init_weights": False}),
    "inception_v3": (299, {"init_weights": False}),
    "shufflenet_v2_x1_0": (64, {}),
    "squeezenet1_1": (64, {}),
    "regnet_y_400mf": (64, {}),
    "mnasnet0_5": (64, {}),
}
FEW_BOXES = {"box_detections_per_img": 5, "box_batch_size_per_image": 16}
DETECTORS: dict[str, dict[str, Any]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {"min_size": 128, "max_size": 160},
    "retinanet_resnet50_fpn": {"min_size": 128, "max_size": 160},
    "ssdlite320_mobilenet_v3_large": {},
    "fcos_resnet50_fpn": {"min_size": 128, "max_size": 160},
    "maskrcnn_resnet50_fpn": {"min_size": 128, "max_size": 160, **FEW_BOXES},
    "keypointrcnn_resnet50_fpn": {"min_size": 128, "max_size": 160, "num_keypoints": 3, **FEW_BOXES},
}
SEGMENTERS = ["deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large", "fcn_resnet50"]
VIDEO: dict[str, tuple[tuple[int, int], dict[str, Any]]] = {
    "r3d_18": ((4, 32), {}),
    "mvit": ((4, 32), {}),
    "swin3d_t": ((4, 64), {}),
}


def _torchvision() -> Iterator[tuple[str, Builder]]:
    for name, (size, options) in CLASSIFIERS.items():
        yield name, lambda train, n=name, s=size, o=options: _classifier(n, s, o, train)
    for name, options in DETECTORS.items():
        yield name, lambda train, n=name, o=options: _detector(n, o, train)
    for name in SEGMENTERS:
        yield name, lambda train, n=name: _segmenter(n, train)
    for name, ((frames, size), options) in VIDEO.items():
        yield name, lambda train, n=name, f=frames, s=size, o=options: _video(n, f, s, o, train)
    yield "raft_small", _raft


def _classifier(name: str, size: int, options: dict[str, Any], train: bool) -> Example:
    import torchvision

    if name == "googlenet" or name == "inception_v3":
        options = {"aux_logits": True, **options}
    model = torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)
    return Example(model.train(train), (images(size),), loss=classes_loss)


def _detector(name: str, options: dict[str, Any], train: bool) -> Example:
    """In training the model returns its losses by name; in evaluation the boxes and scores of what it detects."""
    import torchvision

    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=3, **options)
    pictures = [torch.rand(3, 120, 140), torch.rand(3, 128, 128)]
    boxes = torch.tensor([[5.0, 8.0, 60.0, 70.0], [30.0, 20.0, 110.0, 100.0]])
    targets = []
    for picture in pictures:
        target = {"boxes": boxes.clone(), "labels": torch.tensor([1, 2])}
        if name.startswith("maskrcnn"):
            masks = torch.zeros(2, *picture.shape[1:], dtype=torch.uint8)
            masks[0, 8:70, 5:60] = 1
            masks[1, 20:100, 30:110] = 1
            target["masks"] = masks
        if name.startswith("keypointrcnn"):
            target["keypoints"] = torch.tensor([[[20.0, 20.0, 1.0]] * 3, [[60.0, 60.0, 1.0]] * 3])
        targets.append(target)
    if not train:
        return Example(model.eval(), (pictures,))
    return Example(model.train(), (pictures, targets), loss=lambda losses: sum(losses.values(), torch.zeros(())))


def _segmenter(name: str, train: bool) -> Example:
    import torchvision

    options = {} if name.startswith("lraspp") else {"aux_loss": True}
    model = torchvision.models.get_model(name, weights=None, weights_backbone=None, num_classes=3, **options)
    labels = torch.randint(3, (2, 64, 64))

    def loss(output: dict[str, torch.Tensor]) -> torch.Tensor:
        return sum((F.cross_entropy(o, labels) for o in output.values()), torch.zeros(()))

    return Example(model.train(train), (images(64),), loss=loss)


def _video(name: str, frames: int, size: int, options: dict[str, Any], train: bool) -> Example:
    import torchvision

    if name == "mvit":
        model = _small_mvit(frames, size)
    else:
        model = torchvision.models.get_model(name, weights=None, num_classes=CLASSES, **options)
    return Example(model.train(train), (torch.randn(2, 3, frames, size, size),), loss=classes_loss)


def _small_mvit(frames: int, size: int) -> nn.Module:
    """torchvision's named MViTs fix 16 x 224 x 224; the class takes any size."""
    from torchvision.models.video.mvit import MSBlockConfig, MViT

    blocks = [
        MSBlockConfig(1, 16, 16, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 2, 2]),
        MSBlockConfig(2, 16, 32, [3, 3, 3], [3, 3, 3], [1, 2, 2], [1, 1, 1]),
        MSBlockConfig(2, 32, 32, [3, 3, 3], [3, 3, 3], [1, 1, 1], [1, 1, 1]),
    ]
    return MViT(
        (size, size),
        frames,
        blocks,
        residual_pool=True,
        residual_with_cls_embed=False,
        rel_pos_embed=True,
        proj_after_attn=True,
        dropout=0.1,
        num_classes=CLASSES,
        stochastic_depth_prob=0.1,
    )


def _raft(train: bool) -> Example:
    import torchvision

    model = torchvision.models.optical_flow.raft_small(weights=None).train(train)
    target = torch.randn(1, 2, 128, 128)
    return Example(
        model,
        (images(128, 1), images(128, 1)),
        {"num_flow_updates": 2},
        lambda flows: sum(((f - target).abs().mean() for f in flows), torch.zeros(())),
    )


# --- timm -----------------------------------------------------------------------------------------------------------

TIMM: dict[str, tuple[int, dict[str, Any]]] = {
    "resnet26": (64, {}),
    "efficientnet_lite0": (64, {}),
    "mobilenetv4_conv_small": (64, {}),
    "convnextv2_atto": (64, {}),
    "vit_tiny_patch16_224": (64, {"img_size": 64}),
    "deit_tiny_distilled_patch16_224": (64, {"img_size": 64}),
    "swinv2_cr_tiny_ns_224": (224, {}),
    "maxvit_rmlp_pico_rw_256": (256, {}),
    "coatnet_nano_rw_224": (224, {}),
    "mixer_s32_224": (224, {}),
    "gmlp_ti16_224": (224, {}),
    "poolformer_s12": (64, {}),
    "edgenext_xx_small": (64, {}),
    "levit_128s": (224, {}),
    "cait_xxs24_224": (64, {"img_size": 64}),
    "xcit_nano_12_p16_224": (64, {"img_size": 64}),
    "pvt_v2_b0": (64, {}),
    "crossvit_tiny_240": (240, {}),
    "mobilevit_xxs": (64, {}),
    "repvgg_a0": (64, {}),
    "ghostnet_100": (64, {}),
    "eca_nfnet_l0": (64, {}),
    "fastvit_t8": (64, {}),
    "eva02_tiny_patch14_224": (56, {"img_size": 56}),
    "hiera_tiny_224": (224, {}),
    "halonet26t": (256, {}),
    "lambda_resnet26t": (256, {}),
    "sequencer2d_s": (64, {"img_size": 64}),
    "res2net50_26w_4s": (64, {}),
    "mambaout_femto": (64, {}),
}


def _timm(name: str, train: bool) -> Example:
    import timm

    size, options = TIMM[name]
    model = timm.create_model(name, pretrained=False, num_classes=CLASSES, **options)
    return Example(model.train(train), (images(size),), loss=classes_loss)


# --- transformers ---------------------------------------------------------------------------------------------------


def _transformers(name: str, train: bool) -> Example:
    import transformers

    model_class, config_class, options, inputs = TRANSFORMERS[name]
    config = getattr(transformers, config_class)(**options)
    model = getattr(transformers, model_class)(config)
    return Example(model.train(train), (), inputs())


# --- all ------------------------------------------------------------------------------------------------------------


def entries(pattern: str = "*") -> dict[str, Builder]:
    """Builders by "library:name", those that match a shell pattern (in the whole or in the name alone)."""
    found: dict[str, Builder] = {f"torchvision:{name}": build for name, build in _torchvision()}
    found |= {f"timm:{name}": (lambda train, n=name: _timm(n, train)) for name in TIMM}
    found |= {f"transformers:{name}": (lambda train, n=name: _transformers(n, train)) for name in TRANSFORMERS}
    return {n: b for n, b in found.items() if fnmatch.fnmatch(n, pattern) or fnmatch.fnmatch(n.split(":")[1], pattern)}


def build(name: str, train: bool, seed: int = 0) -> Example:
    """The example of a full name, the same one for the same seed; the random state afterwards is fixed, too."""
    seed_all(seed)
    example = entries(name)[name](train)
    seed_all(seed + 1)
    return example


def seed_all(seed: int) -> None:
    """Seeds every generator that models draw from (SpecAugment in wav2vec2 draws from numpy)."""
    import random

    import numpy as np

    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
