"""Library models: built without a download, and one eager training step of each runs."""

from __future__ import annotations

import math
import socket
from typing import Any

import pytest
import torch
from torch.utils import _pytree as pytree

from fxdoctor.targets import TargetError, load_target

pytestmark = pytest.mark.zoo

SMALL = [
    "timm:resnet10t",
    "torchvision:mobilenet_v3_small",
    "torchvision:lraspp_mobilenet_v3_large",
    "transformers:bert",
    "transformers:gpt2",
    "transformers:llama",
    "transformers:mixtral",
    "transformers:t5",
    "transformers:whisper",
    "transformers:wav2vec2",
    "transformers:clip",
    "transformers:vit_mae",
    "transformers:segformer",
    "transformers:mamba2",
    "transformers:BertForPreTraining",
    "transformers:BertForMultipleChoice",
    "transformers:T5Model",
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any, **kwargs: Any) -> None:
        raise AssertionError("a library model tried to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)


def step(target: Any) -> torch.Tensor:
    """One plain PyTorch step; the loss is the model's own where it has one."""
    output = target.model(*target.args, **target.kwargs)
    loss = target.loss(output) if target.loss else getattr(output, "loss", None)
    if loss is None:
        tensors = pytree.tree_leaves(dict(output) if hasattr(output, "keys") else output)
        live = [t for t in tensors if isinstance(t, torch.Tensor) and t.requires_grad]
        loss = torch.stack([(t * torch.randn_like(t)).sum() for t in live]).sum()
    loss.backward()
    return loss.detach()


@pytest.mark.parametrize("name", SMALL)
def test_a_training_step_runs_and_repeats(name: str) -> None:
    losses = []
    for _ in range(2):
        target = load_target(name)
        assert target.model.training and target.name == name
        losses.append(float(step(target)))
    assert math.isfinite(losses[0]) and losses[0] == pytest.approx(losses[1], rel=1e-5)
    assert any(p.grad is not None for p in target.model.parameters())


@pytest.mark.parametrize(
    "name", ["bert", "llama", "t5", "whisper", "wav2vec2", "clip", "vit_mae", "segformer", "BertForPreTraining"]
)
def test_transformers_models_get_what_their_own_loss_needs(name: str) -> None:
    target = load_target(f"transformers:{name}")
    assert target.model(**target.kwargs).loss.requires_grad
    assert sum(p.numel() for p in target.model.parameters()) < 5_000_000


def test_the_type_decides_the_class() -> None:
    expected = {
        "bert": "BertForMaskedLM",
        "gpt2": "GPT2LMHeadModel",
        "t5": "T5ForConditionalGeneration",
        "wav2vec2": "Wav2Vec2ForCTC",
        "clip": "CLIPModel",
        "vit": "ViTForImageClassification",
        "deberta_v2": "DebertaV2ForMaskedLM",
        "LlamaForSequenceClassification": "LlamaForSequenceClassification",
    }
    assert {n: type(load_target(f"transformers:{n}").model).__name__ for n in expected} == expected


def test_detection_models_get_boxes_and_the_sum_of_losses() -> None:
    from fxdoctor.zoo.sources import sum_of_losses

    target = load_target("torchvision:maskrcnn_resnet50_fpn")
    images, objects = target.args
    assert len(images) == len(objects) and {"boxes", "labels", "masks"} <= set(objects[0])
    assert objects[0]["masks"].shape[1:] == images[0].shape[1:]
    assert "keypoints" in load_target("torchvision:keypointrcnn_resnet50_fpn").args[1][0]
    a, b = torch.tensor(2.0), torch.tensor(3.0)
    assert sum_of_losses({"a": a, "b": b}) == 5
    assert sum_of_losses([{"boxes": a, "labels": torch.tensor(7)}, {"boxes": b}]) == 13


@pytest.mark.parametrize(
    "name, shapes",
    [
        ("torchvision:r3d_18", [(2, 3, 8, 112, 112)]),
        ("torchvision:raft_small", [(2, 3, 128, 128)] * 2),
        ("torchvision:efficientnet_b3", [(2, 3, 300, 300)]),
        ("torchvision:vit_b_32", [(2, 3, 224, 224)]),
        ("timm:mobilenetv3_small_050", [(2, 3, 224, 224)]),
    ],
)
def test_input_sizes_come_from_the_model(name: str, shapes: list[tuple[int, ...]]) -> None:
    assert [tuple(a.shape) for a in load_target(name).args] == shapes


def test_own_inputs_replace_all_others() -> None:
    target = load_target("transformers:bert", ["3x7:int64<100"])
    assert target.args[0].shape == (3, 7) and target.kwargs == {}
    assert load_target("timm:resnet10t", ["1x3x64x64"]).args[0].shape == (1, 3, 64, 64)


@pytest.mark.parametrize(
    "name, part",
    [
        ("timm:resnet5", "timm has no model 'resnet5'; did you mean resnet50"),
        ("timm:zzzzzzzzzz", "see timm.list_models()"),
        ("torchvision:resnet81", "torchvision has no model 'resnet81'; did you mean resnet18"),
        ("transformers:lama", "no model type or class 'lama'; did you mean llama"),
        ("transformers:LlamaForCausallLM", "did you mean LlamaForCausalLM"),
        ("transformers:BertConfig", "is no model with a configuration"),
        ("transformers:os.path", "no model type or class"),
        ("transformers:llava", "mixes image tokens into its text"),
        ("transformers:decision_transformer", "main input states cannot be made up"),
    ],
)
def test_bad_names(name: str, part: str) -> None:
    with pytest.raises(TargetError) as error:
        load_target(name)
    assert part in str(error.value) and "\n" not in str(error.value)
