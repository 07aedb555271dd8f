"""Tiny models of many architectures of transformers: random weights, few layers, nothing downloaded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
import transformers
from whole_models import GROUPED, SMALL_HEADS, TEXT_SETTINGS, VOCABULARY, WholeModel

LENGTH = 9
IMAGE = 32

_GPT = {
    "vocab_size": VOCABULARY,
    "n_embd": 32,
    "n_layer": 2,
    "n_head": 4,
    "n_positions": 64,
    "n_ctx": 64,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_EXPERTS = {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 24,
}
_LATENT = {
    "q_lora_rank": 16,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 8,
    "v_head_dim": 8,
    "n_routed_experts": 4,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 24,
    "num_experts_per_tok": 2,
}
_SEQUENCES = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
}
_T5 = {
    "vocab_size": VOCABULARY,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 1,
    "num_decoder_layers": 1,
    "num_heads": 4,
    "decoder_start_token_id": 0,
}
_VIT = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": IMAGE,
    "patch_size": 8,
    "num_labels": 5,
}
_MAMBA = {
    "vocab_size": VOCABULARY,
    "hidden_size": 32,
    "state_size": 4,
    "num_hidden_layers": 2,
    "time_step_rank": 4,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_MAMBA2 = _MAMBA | {"num_heads": 8, "head_dim": 8, "n_groups": 2, "chunk_size": 4}
_STAGES = {"num_labels": 5, "hidden_sizes": [8, 16], "depths": [1, 1]}
_SWIN = {
    "image_size": IMAGE,
    "patch_size": 4,
    "embed_dim": 16,
    "depths": [1, 2],
    "num_heads": [2, 4],
    "window_size": 4,
    "num_labels": 5,
}
_SPEECH = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "conv_dim": [16, 16],
    "conv_stride": [5, 2],
    "conv_kernel": [10, 3],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 16,
    "num_conv_pos_embedding_groups": 4,
    "vocab_size": VOCABULARY,
}

CAUSAL, MASKED, BASE = "AutoModelForCausalLM", "AutoModelForMaskedLM", "AutoModel"
IMAGES = "AutoModelForImageClassification"

ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "phi3", "stablelm", "starcoder2"), (CAUSAL, GROUPED)
    ),
    **dict.fromkeys(("olmo", "olmo2", "granite", "cohere", "cohere2", "glm"), (CAUSAL, GROUPED)),
    **dict.fromkeys(
        ("qwen3", "gemma", "gemma2", "gemma3_text", "smollm3", "helium", "nemotron"),
        (CAUSAL, SMALL_HEADS),
    ),
    **dict.fromkeys(("phi", "gpt_neox", "persimmon"), (CAUSAL, TEXT_SETTINGS)),
    **dict.fromkeys(("gpt2", "gptj", "codegen"), (CAUSAL, _GPT | {"rotary_dim": 4})),
    "gpt_neo": (
        CAUSAL,
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
        },
    ),
    "gpt_bigcode": (CAUSAL, _GPT),
    "opt": (CAUSAL, TEXT_SETTINGS | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "bloom": (CAUSAL, {"vocab_size": VOCABULARY, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "falcon": (CAUSAL, TEXT_SETTINGS),
    "mpt": (
        CAUSAL,
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64},
    ),
    "xlnet": (
        BASE,
        {"vocab_size": VOCABULARY, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48},
    ),
    **dict.fromkeys(
        ("mixtral", "qwen2_moe", "qwen3_moe", "olmoe", "granitemoe", "phimoe"),
        (CAUSAL, SMALL_HEADS | _EXPERTS | {"shared_expert_intermediate_size": 24}),
    ),
    "gpt_oss": (CAUSAL, SMALL_HEADS | _EXPERTS | {"sliding_window": 4}),
    "ernie4_5_moe": (CAUSAL, SMALL_HEADS | _EXPERTS | {"moe_num_experts": 4, "moe_k": 2}),
    "deepseek_v2": (CAUSAL, TEXT_SETTINGS | _LATENT | {"num_key_value_heads": 4}),
    "deepseek_v3": (CAUSAL, TEXT_SETTINGS | _LATENT | {"num_key_value_heads": 4}),
    "jamba": (
        CAUSAL,
        SMALL_HEADS
        | _EXPERTS
        | {
            "mamba_d_state": 4,
            "mamba_dt_rank": 4,
            "use_mamba_kernels": False,
            "attn_layer_period": 2,
            "attn_layer_offset": 1,
            "expert_layer_period": 2,
            "expert_layer_offset": 1,
        },
    ),
    "rwkv": (
        CAUSAL,
        {
            "vocab_size": VOCABULARY,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "attention_hidden_size": 32,
            "context_length": 64,
        },
    ),
    "mamba": (CAUSAL, _MAMBA),
    "falcon_mamba": (CAUSAL, _MAMBA),
    "mamba2": (CAUSAL, _MAMBA2),
    "bamba": (
        CAUSAL,
        SMALL_HEADS
        | {
            "mamba_n_heads": 8,
            "mamba_d_head": 8,
            "mamba_n_groups": 2,
            "mamba_d_state": 4,
            "mamba_chunk_size": 4,
            "attn_layer_indices": [1],
        },
    ),
    "recurrent_gemma": (
        CAUSAL,
        SMALL_HEADS
        | {"lru_width": 32, "attention_window_size": 8, "block_types": ["recurrent", "attention"]},
    ),
    **dict.fromkeys(
        (
            "bert",
            "roberta",
            "electra",
            "camembert",
            "xlm-roberta",
            "ernie",
            "mpnet",
            "convbert",
            "deberta",
            "deberta-v2",
            "nystromformer",
            "squeezebert",
            "roformer",
            "megatron-bert",
        ),
        (MASKED, TEXT_SETTINGS | {"embedding_size": 32}),
    ),
    "albert": (MASKED, TEXT_SETTINGS | {"embedding_size": 16}),
    "distilbert": (
        MASKED,
        {
            "vocab_size": VOCABULARY,
            "dim": 32,
            "hidden_dim": 48,
            "n_layers": 2,
            "n_heads": 4,
            "max_position_embeddings": 64,
        },
    ),
    "modernbert": (MASKED, TEXT_SETTINGS | {"local_attention": 4}),
    "fnet": (MASKED, TEXT_SETTINGS),
    "longformer": (MASKED, TEXT_SETTINGS | {"attention_window": 4}),
    "big_bird": (MASKED, TEXT_SETTINGS | {"attention_type": "original_full"}),
    **dict.fromkeys(
        ("bart", "mbart", "pegasus", "marian", "m2m_100", "blenderbot"), (BASE, _SEQUENCES)
    ),
    **dict.fromkeys(("t5", "mt5", "longt5", "umt5"), (BASE, _T5)),
    **dict.fromkeys(("vit", "dinov2", "ijepa"), (IMAGES, _VIT)),
    "beit": (IMAGES, _VIT | {"use_relative_position_bias": True}),
    "swin": (IMAGES, _SWIN),
    "swinv2": (IMAGES, _SWIN),
    "convnext": (IMAGES, _STAGES | {"num_stages": 2}),
    "convnextv2": (IMAGES, _STAGES | {"num_stages": 2}),
    "resnet": (IMAGES, _STAGES | {"embedding_size": 8, "layer_type": "basic"}),
    "regnet": (IMAGES, _STAGES | {"embedding_size": 8, "groups_width": 8}),
    "poolformer": (
        IMAGES,
        {"hidden_sizes": [8, 16, 16, 16], "depths": [1, 1, 1, 1], "num_labels": 5},
    ),
    "mobilenet_v1": (IMAGES, {"depth_multiplier": 0.25, "num_labels": 5}),
    "mobilenet_v2": (IMAGES, {"depth_multiplier": 0.25, "num_labels": 5}),
    "segformer": (
        IMAGES,
        {
            "hidden_sizes": [8, 16, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_labels": 5,
            "num_attention_heads": [1, 2, 2, 2],
            "decoder_hidden_size": 16,
        },
    ),
    "pvt": (
        IMAGES,
        {
            "hidden_sizes": [8, 16, 16, 16],
            "depths": [1, 1, 1, 1],
            "num_labels": 5,
            "image_size": 64,
            "num_attention_heads": [1, 2, 2, 2],
        },
    ),
    "focalnet": (
        IMAGES,
        {
            "image_size": IMAGE,
            "embed_dim": 8,
            "hidden_sizes": [8, 16],
            "depths": [1, 1],
            "focal_levels": [1, 1],
            "focal_windows": [3, 3],
            "num_labels": 5,
        },
    ),
    "wav2vec2": (BASE, _SPEECH),
    "hubert": (BASE, _SPEECH),
    "whisper": (
        BASE,
        _SEQUENCES | {"num_mel_bins": 8, "max_source_positions": 12, "max_target_positions": 24},
    ),
}
"""Architecture -> the class that builds it, and its configuration."""


def build(name: str) -> WholeModel:
    """The model of an architecture with seeded random weights."""
    torch.manual_seed(0)
    kind, settings = ARCHITECTURES[name]
    config = transformers.AutoConfig.for_model(name, **settings)
    config.use_cache = False
    model = getattr(transformers, kind).from_config(config).eval()
    tokens = torch.randint(3, VOCABULARY, (2, LENGTH))
    if name == "whisper":
        return WholeModel(model, {"input_features": torch.randn(2, 8, 24), "decoder_input_ids": tokens})
    if settings is _SPEECH:
        return WholeModel(model, {"input_values": torch.randn(2, 400)})
    if kind == IMAGES:
        size = getattr(config, "image_size", IMAGE)
        side = size if isinstance(size, int) and name in ("pvt",) else IMAGE
        return WholeModel(model, {"pixel_values": torch.randn(2, 3, side, side)})
    inputs = {"input_ids": tokens}
    if config.is_encoder_decoder:
        inputs["decoder_input_ids"] = tokens.flip(1)
    return WholeModel(model, inputs)


def results_of(output: Any) -> list[torch.Tensor]:
    """The tensors of an output, in order."""
    if isinstance(output, torch.Tensor):
        return [output]
    values = output.values() if isinstance(output, Mapping) else output
    nested = [each for each in values if isinstance(each, torch.Tensor | Mapping | list | tuple)]
    return [tensor for each in nested for tensor in results_of(each)]
