"""Small whole models of transformers: one or two layers, random weights, a batch of two."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"

import torch
import transformers

VOCABULARY = 99

TEXT_SETTINGS = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GROUPED = TEXT_SETTINGS | {"num_key_value_heads": 2}
SMALL_HEADS = GROUPED | {"head_dim": 8}
_IMAGE = {"num_labels": 5}
COUNTS = ("num_hidden_layers", "n_layer", "num_layers")
"""What configurations call the number of layers."""

CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("AutoModelForCausalLM", GROUPED),
    "qwen2": ("AutoModelForCausalLM", GROUPED),
    "qwen3": ("AutoModelForCausalLM", SMALL_HEADS),
    "mistral": ("AutoModelForCausalLM", GROUPED | {"sliding_window": 4}),
    "gemma2": ("AutoModelForCausalLM", SMALL_HEADS | {"sliding_window": 4}),
    "phi3": ("AutoModelForCausalLM", GROUPED),
    "gpt2": (
        "AutoModelForCausalLM",
        {
            "vocab_size": VOCABULARY,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 64,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    "gpt_neox": ("AutoModelForCausalLM", TEXT_SETTINGS),
    "bert": ("AutoModelForMaskedLM", TEXT_SETTINGS),
    "t5": (
        "T5EncoderModel",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "d_kv": 8,
            "d_ff": 48,
            "num_layers": 2,
            "num_heads": 4,
        },
    ),
    "vit": (
        "AutoModelForImageClassification",
        _IMAGE
        | {
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 16,
            "patch_size": 4,
        },
    ),
    "resnet": (
        "AutoModelForImageClassification",
        _IMAGE
        | {
            "embedding_size": 8,
            "hidden_sizes": [8, 16],
            "depths": [1, 2],
            "layer_type": "basic",
        },
    ),
    "convnext": (
        "AutoModelForImageClassification",
        _IMAGE | {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    ),
    "whisper": (
        "AutoModel",
        {
            "vocab_size": VOCABULARY,
            "d_model": 32,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_attention_heads": 4,
            "decoder_attention_heads": 4,
            "encoder_ffn_dim": 48,
            "decoder_ffn_dim": 48,
            "num_mel_bins": 8,
            "max_source_positions": 12,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "decoder_start_token_id": 1,
        },
    ),
}
"""The class that builds each model, and its configuration. Of Whisper and T5, the encoder is meant."""

EXPERTS: dict[str, dict[str, Any]] = {
    "mixtral": GROUPED | {"num_local_experts": 4, "num_experts_per_tok": 2},
    "qwen2_moe": GROUPED
    | {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "shared_expert_intermediate_size": 40,
    },
    "qwen3_moe": SMALL_HEADS
    | {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24},
    "olmoe": GROUPED | {"num_experts": 4, "num_experts_per_tok": 2},
    "gpt_oss": SMALL_HEADS
    | {"num_local_experts": 4, "num_experts_per_tok": 2, "sliding_window": 4},
    "deepseek_v3": TEXT_SETTINGS
    | {
        "num_key_value_heads": 4,
        "n_routed_experts": 8,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 24,
        "n_shared_experts": 1,
        "first_k_dense_replace": 1,
        "q_lora_rank": 16,
        "kv_lora_rank": 16,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 8,
        "v_head_dim": 8,
        "n_group": 2,
        "topk_group": 1,
    },
    "jamba": GROUPED
    | {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "use_mamba_kernels": False,
        "attn_layer_period": 2,
        "attn_layer_offset": 1,
        "expert_layer_period": 2,
        "expert_layer_offset": 1,
        "mamba_d_state": 4,
        "mamba_dt_rank": 4,
    },
}
"""Mixtures of experts that generate text. The first layers of DeepSeek and Jamba have none."""

TEXT = [name for name in CONFIGS if name not in ("vit", "resnet", "convnext", "whisper")]
"""The models whose input is a batch of token sequences."""


@dataclass(frozen=True)
class WholeModel:
    """A model in evaluation mode and the keyword arguments of one call."""

    module: torch.nn.Module
    inputs: dict[str, torch.Tensor]


def tokens(batch: int, length: int) -> torch.Tensor:
    """Token numbers, none of them padding: int64 [batch, length]."""
    generator = torch.Generator().manual_seed(batch * 1000 + length)
    return torch.randint(1, VOCABULARY, (batch, length), generator=generator)


def build(architecture: str, layers: int = 2) -> WholeModel:
    """The model of an architecture with seeded random weights; convolutional networks keep their depths."""
    torch.manual_seed(0)
    configs = CONFIGS | {name: ("AutoModelForCausalLM", each) for name, each in EXPERTS.items()}
    kind, settings = configs[architecture]
    settings = settings | {key: layers for key in COUNTS if key in settings}
    config = transformers.AutoConfig.for_model(architecture, **settings)
    config.use_cache = False
    loader = getattr(transformers, kind)
    if hasattr(loader, "from_config"):
        model = loader.from_config(config)
    else:
        model = loader(config)
    if architecture == "whisper":
        model = model.encoder
    model = model.eval()
    if architecture in (*TEXT, *EXPERTS):
        return WholeModel(model, {"input_ids": tokens(2, 9)})
    name, shape = {
        "vit": ("pixel_values", (2, 3, 16, 16)),
        "whisper": ("input_features", (2, 8, 24)),
    }.get(architecture, ("pixel_values", (2, 3, 32, 32)))
    return WholeModel(model, {name: torch.randn(shape)})
