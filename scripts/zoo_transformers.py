"""Tiny configurations of transformers' architectures, with the inputs and labels that each takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

CLASSES = 10
VOCAB, LENGTH = 99, 12
SMALL = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LLAMA = {**SMALL, "num_key_value_heads": 2}
EXPERTS = {**LLAMA, "moe_intermediate_size": 24, "num_experts": 4, "num_experts_per_tok": 2}
SEQ2SEQ = {
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 2,
}
VISION = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
PYRAMID = {"image_size": 32, "num_labels": CLASSES}


def text(labels: bool = True) -> dict[str, Any]:
    ids = torch.randint(3, VOCAB, (2, LENGTH))
    batch = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    return {**batch, "labels": ids.clone()} if labels else batch


def sentence_class() -> dict[str, Any]:
    return {**text(False), "labels": torch.tensor([0, 1])}


def picture(size: int = 32, labels: bool = True) -> dict[str, Any]:
    return {"pixel_values": torch.randn(2, 3, size, size), **({"labels": torch.tensor([1, 2])} if labels else {})}


# name -> (model class, config class, config, inputs)
TRANSFORMERS: dict[str, tuple[str, str, dict[str, Any], Callable[[], dict[str, Any]]]] = {
    "bert": ("BertForMaskedLM", "BertConfig", SMALL, text),
    "bert_classifier": ("BertForSequenceClassification", "BertConfig", SMALL, sentence_class),
    "roberta": ("RobertaForMaskedLM", "RobertaConfig", SMALL, text),
    "distilbert": (
        "DistilBertForMaskedLM",
        "DistilBertConfig",
        {"vocab_size": VOCAB, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
        text,
    ),
    "albert": ("AlbertForMaskedLM", "AlbertConfig", {**SMALL, "embedding_size": 16}, text),
    "electra": ("ElectraForMaskedLM", "ElectraConfig", {**SMALL, "embedding_size": 16}, text),
    "deberta_v2": (
        "DebertaV2ForMaskedLM",
        "DebertaV2Config",
        {**SMALL, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
        text,
    ),
    "gpt2": (
        "GPT2LMHeadModel",
        "GPT2Config",
        {
            "vocab_size": VOCAB,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
        text,
    ),
    "gpt_neox": ("GPTNeoXForCausalLM", "GPTNeoXConfig", SMALL, text),
    "bloom": (
        "BloomForCausalLM",
        "BloomConfig",
        {"vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4, "pad_token_id": 0},
        text,
    ),
    "opt": (
        "OPTForCausalLM",
        "OPTConfig",
        {**SMALL, "ffn_dim": 48, "word_embed_proj_dim": 32},
        text,
    ),
    "falcon": ("FalconForCausalLM", "FalconConfig", SMALL, text),
    "llama": ("LlamaForCausalLM", "LlamaConfig", LLAMA, text),
    "gemma2": ("Gemma2ForCausalLM", "Gemma2Config", {**LLAMA, "head_dim": 8}, text),
    "phi3": ("Phi3ForCausalLM", "Phi3Config", LLAMA, text),
    "mixtral": (
        "MixtralForCausalLM",
        "MixtralConfig",
        {**LLAMA, "num_local_experts": 4, "output_router_logits": True},
        text,
    ),
    "qwen2_moe": (
        "Qwen2MoeForCausalLM",
        "Qwen2MoeConfig",
        {**EXPERTS, "shared_expert_intermediate_size": 24, "output_router_logits": True},
        text,
    ),
    "deepseek_v3": (
        "DeepseekV3ForCausalLM",
        "DeepseekV3Config",
        {
            **LLAMA,
            "num_key_value_heads": 4,
            "moe_intermediate_size": 24,
            "n_routed_experts": 4,
            "num_experts_per_tok": 2,
            "n_group": 2,
            "topk_group": 1,
            "first_k_dense_replace": 1,
            "q_lora_rank": 16,
            "kv_lora_rank": 16,
            "qk_rope_head_dim": 8,
            "qk_nope_head_dim": 8,
            "v_head_dim": 8,
        },
        text,
    ),
    "mamba": (
        "MambaForCausalLM",
        "MambaConfig",
        {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 8},
        lambda: {k: v for k, v in text().items() if k != "attention_mask"},
    ),
    "t5": (
        "T5ForConditionalGeneration",
        "T5Config",
        {
            "vocab_size": VOCAB,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
            "decoder_start_token_id": 0,
        },
        text,
    ),
    "bart": (
        "BartForConditionalGeneration",
        "BartConfig",
        {"vocab_size": VOCAB, "max_position_embeddings": 64, **SEQ2SEQ},
        text,
    ),
    "whisper": (
        "WhisperForConditionalGeneration",
        "WhisperConfig",
        {
            **SEQ2SEQ,
            "vocab_size": VOCAB,
            "num_mel_bins": 16,
            "max_source_positions": 20,
            "max_target_positions": 32,
            "suppress_tokens": None,
            "begin_suppress_tokens": None,
        },
        lambda: {"input_features": torch.randn(2, 16, 40), "labels": torch.randint(3, VOCAB, (2, LENGTH))},
    ),
    "wav2vec2": (
        "Wav2Vec2ForCTC",
        "Wav2Vec2Config",
        {
            **SMALL,
            "conv_dim": (16, 16),
            "conv_stride": (5, 4),
            "conv_kernel": (10, 8),
            "num_feat_extract_layers": 2,
            "num_conv_pos_embeddings": 16,
            "num_conv_pos_embedding_groups": 2,
            "mask_time_length": 4,
            "mask_time_prob": 0.3,
        },
        lambda: {"input_values": torch.randn(2, 1200), "labels": torch.randint(3, VOCAB, (2, 6))},
    ),
    "clip": (
        "CLIPModel",
        "CLIPConfig",
        {"text_config": SMALL, "vision_config": VISION, "projection_dim": 16},
        lambda: {**text(False), **picture(labels=False), "return_loss": True},
    ),
    "vit": ("ViTForImageClassification", "ViTConfig", {**VISION, "num_labels": CLASSES}, picture),
    "vit_mae": (
        "ViTMAEForPreTraining",
        "ViTMAEConfig",
        {
            **VISION,
            "decoder_hidden_size": 16,
            "decoder_num_hidden_layers": 1,
            "decoder_num_attention_heads": 2,
            "decoder_intermediate_size": 24,
        },
        lambda: picture(labels=False),
    ),
    "swin": (
        "SwinForImageClassification",
        "SwinConfig",
        {**PYRAMID, "patch_size": 2, "embed_dim": 16, "depths": [1, 2], "num_heads": [2, 4], "window_size": 4},
        picture,
    ),
    "convnextv2": (
        "ConvNextV2ForImageClassification",
        "ConvNextV2Config",
        {**PYRAMID, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 2, 1]},
        picture,
    ),
    "segformer": (
        "SegformerForSemanticSegmentation",
        "SegformerConfig",
        {
            "depths": [1, 1, 1, 1],
            "hidden_sizes": [8, 16, 24, 32],
            "num_attention_heads": [1, 2, 2, 4],
            "decoder_hidden_size": 16,
            "num_labels": 3,
        },
        lambda: {"pixel_values": torch.randn(2, 3, 64, 64), "labels": torch.randint(3, (2, 64, 64))},
    ),
}
