"""Programs given as Hugging Face architectures: built from a configuration, random weights, no download.

hf:llama --config hidden_size=256,intermediate_size=704 --layer 0 --seq-len 32
hf:tinyllama-1.1b --layer 0
hf:TinyLlama/TinyLlama-1.1B-Chat-v1.0 --layer 0
"""

from __future__ import annotations

import ast
import difflib
import os
import re
from typing import Any

import torch

from ..errors import MissingEnvironmentError, UsageError

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "tinyllama-1.1b": (
        "llama",
        {
            "hidden_size": 2048,
            "intermediate_size": 5632,
            "num_hidden_layers": 22,
            "num_attention_heads": 32,
            "num_key_value_heads": 4,
            "head_dim": 64,
            "vocab_size": 32000,
            "max_position_embeddings": 2048,
            "rms_norm_eps": 1e-5,
        },
    ),
    "qwen2.5-7b": (
        "qwen2",
        {
            "hidden_size": 3584,
            "intermediate_size": 18944,
            "num_hidden_layers": 28,
            "num_attention_heads": 28,
            "num_key_value_heads": 4,
            "vocab_size": 152064,
            "max_position_embeddings": 32768,
            "rms_norm_eps": 1e-6,
        },
    ),
}
"""Architecture and configuration of known models, from their published config.json."""

HUB_NAMES = {
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": "tinyllama-1.1b",
    "Qwen/Qwen2.5-7B": "qwen2.5-7b",
}
"""Name on the Hugging Face Hub -> the preset with its configuration; the weights are random all the same."""

IMAGE_SIZE = 224
"""Rows and columns of an image where the configuration names no size."""

LAYER_VOCABULARY = 1024
"""Rows of the embedding table when only a layer is asked for: the table is not part of the program."""

Loaded = tuple[torch.nn.Module, tuple[Any, ...], dict[str, Any]]


def program_of_architecture(name: str, *, config: str, layer: int | None, seq_len: int) -> Loaded:
    """A model, or one layer of it, in evaluation mode, and one input: `seq_len` tokens, or an image.

    Of a model that encodes and decodes, the encoder is meant.

    Raises UsageError for an unknown name or setting, MissingEnvironmentError without transformers.
    """
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        import transformers
    except ImportError as error:
        raise MissingEnvironmentError(
            "hf: programs need the transformers package: pip install 'deplo[hf]'"
        ) from error
    if seq_len < 1:
        raise UsageError(f"--seq-len must be at least 1, got {seq_len}")
    transformers.logging.set_verbosity_error()
    architecture, settings = PRESETS.get(HUB_NAMES.get(name, name), (name, {}))
    settings = settings | _settings(config)
    built = _configuration(transformers, name, architecture, settings, layer)
    model = _model(transformers, built, whole=layer is None)
    inputs = _inputs(name, model, built, seq_len)
    if layer is None:
        return _FirstOutput(model), (), inputs
    return _layer(model, built, layer, inputs)


def _inputs(name: str, model: Any, config: Any, seq_len: int) -> dict[str, torch.Tensor]:
    """One input of the kind the model takes: a sequence of tokens, an image, or a spectrogram."""
    match model.main_input_name:
        case "input_ids":
            return {"input_ids": torch.randint(0, config.vocab_size, (1, seq_len))}
        case "pixel_values":
            size = getattr(config, "image_size", IMAGE_SIZE)
            height, width = size if isinstance(size, list | tuple) else (size, size)
            return {"pixel_values": torch.randn(1, config.num_channels, height, width)}
        case "input_features" if hasattr(config, "max_source_positions"):
            frames = 2 * config.max_source_positions  # the first convolution halves them
            return {"input_features": torch.randn(1, config.num_mel_bins, frames)}
        case other:
            raise UsageError(
                f"hf:{name} takes {other}; deplo makes up tokens, images and speech only"
            )


def _settings(text: str) -> dict[str, Any]:
    """`k=v,…` with Python literals or plain words as values."""
    settings: dict[str, Any] = {}
    for item in filter(None, re.split(r",(?![^\[(]*[\])])", text)):  # no comma inside brackets
        key, separator, value = item.partition("=")
        if not separator:
            raise UsageError(f"--config takes name=value,…; got {item!r}")
        try:
            settings[key.strip()] = ast.literal_eval(value.strip())
        except (ValueError, SyntaxError):
            settings[key.strip()] = value.strip()
    return settings


def _configuration(
    transformers: Any, name: str, architecture: str, settings: dict[str, Any], layer: int | None
) -> Any:
    known = transformers.models.auto.configuration_auto.CONFIG_MAPPING_NAMES
    if architecture not in known:
        close = difflib.get_close_matches(name, [*PRESETS, *HUB_NAMES, *known], 3)
        hint = f"; did you mean {', '.join(close)}?" if close else ""
        raise UsageError(f"transformers knows no architecture {name!r}{hint}")
    default = transformers.AutoConfig.for_model(architecture)
    for key in settings:
        if not hasattr(default, key):
            close = difflib.get_close_matches(key, default.to_dict(), 3)
            hint = f"; did you mean {', '.join(close)}?" if close else ""
            raise UsageError(f"{architecture} has no setting {key!r}{hint}")
    if layer is not None:
        layers = getattr(_made(transformers, architecture, settings), "num_hidden_layers", None)
        if layer < 0 or (layers is not None and layer >= layers):
            raise UsageError(f"--layer {layer}: {name} has layers 0 to {(layers or 1) - 1}")
        # only what the layer's inputs depend on is built
        settings = {"vocab_size": LAYER_VOCABULARY} | settings | {"num_hidden_layers": layer + 1}
        settings["vocab_size"] = min(settings["vocab_size"], LAYER_VOCABULARY)
    built = _made(transformers, architecture, settings)
    built.use_cache = False
    return built


def _made(transformers: Any, architecture: str, settings: dict[str, Any]) -> Any:
    try:
        return transformers.AutoConfig.for_model(architecture, **settings)
    except Exception as error:
        reason = " ".join(str(error).split())
        raise UsageError(f"transformers refuses this configuration: {reason}") from error


def _model(transformers: Any, config: Any, whole: bool) -> Any:
    names = transformers.models.auto.modeling_auto
    kinds: dict[str, Any] = {
        "AutoModelForMaskedLM": names.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
        "AutoModelForCausalLM": names.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
        "AutoModelForImageClassification": names.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
    }
    if not whole or config.is_encoder_decoder:
        kinds = {}
    kind = next((k for k, known in kinds.items() if config.model_type in known), "AutoModel")
    try:
        model = getattr(transformers, kind).from_config(config)
    except Exception as error:
        raise UsageError(
            f"transformers cannot build {config.model_type}: {type(error).__name__}: {error}"
        ) from error
    if config.is_encoder_decoder:
        model = model.get_encoder()
    return model.eval()


class _FirstOutput(torch.nn.Module):
    """A model whose result is its first output alone."""

    def __init__(self, model: torch.nn.Module):
        super().__init__()
        self.model = model
        self.eval()

    def forward(
        self,
        input_ids: torch.Tensor | None = None,
        pixel_values: torch.Tensor | None = None,
        input_features: torch.Tensor | None = None,
    ) -> torch.Tensor:
        inputs = {
            "input_ids": input_ids,
            "pixel_values": pixel_values,
            "input_features": input_features,
        }
        given = {name: value for name, value in inputs.items() if value is not None}
        return self.model(**given, return_dict=False)[0]


class _Captured(Exception):
    """Stops a model's forward pass once a layer's inputs are known."""


def _layer(
    model: torch.nn.Module, config: Any, layer: int, inputs: dict[str, torch.Tensor]
) -> Loaded:
    """Layer `layer` on the inputs that the model gives it: hidden states, rotary tables, masks."""
    layers = [
        module
        for module in model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == config.num_hidden_layers
    ]
    if not layers:
        raise UsageError(f"{config.model_type} has no list of {config.num_hidden_layers} layers")
    program = layers[0][layer]
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def stop(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        seen.append((args, kwargs))
        raise _Captured

    hook = program.register_forward_pre_hook(stop, with_kwargs=True)
    try:
        with torch.no_grad():
            model(**inputs)
    except _Captured:
        pass
    finally:
        hook.remove()
    args, kwargs = seen[0]
    return program, args, {key: value for key, value in kwargs.items() if value is not None}
