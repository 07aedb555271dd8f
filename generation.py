"""`deplo.generate`: tokens that a language model of transformers writes, of two compiled graphs.

    deplo.generate(model, input_ids, max_new_tokens=64)
    deplo.generate(model, input_ids, max_new_tokens=64, do_sample=True, temperature=0.8, seed=0)

transformers' `generate` chooses the tokens, so its options are those here. What computes logits, the model's
`forward`, is compiled by deplo once for prompts and once for single tokens: their lengths are sizes, and
the memory of a static cache has one of few lengths.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from typing import Any, Literal, cast

import torch
from torch._dynamo.decorators import maybe_mark_dynamic

from .errors import UsageError

Cache = Literal["static", "growing"]

CACHES: Mapping[Cache, Mapping[str, Any]] = {
    "static": {"cache_implementation": "static"},
    "growing": {"cache_implementation": None},
}
"""What transformers' options call each kind of cache."""

OURS = ("cache_implementation", "compile_config", "disable_compile", "max_cache_len", "max_length")
"""Options of transformers that `generate` sets itself."""

SHORTEST = 64
"""Tokens for which a static cache has room at least."""


def generate(
    model: torch.nn.Module,
    input_ids: torch.Tensor,
    *,
    max_new_tokens: int,
    cache: Cache = "static",
    seed: int | None = None,
    fallback: Literal["eager", "error"] = "eager",
    **options: Any,
) -> Any:
    """Let a causal language model of transformers continue prompts.

    `input_ids` has shape [batch, tokens], of int64; shorter prompts are padded on the left and need an
    `attention_mask`. The result has shape [batch, tokens + new], new <= `max_new_tokens`, and is what
    `model.generate` returns; `options` are its options, such as `do_sample`, `temperature`, `top_k`,
    `eos_token_id`, `return_dict_in_generate`. With `seed`, sampling draws the same numbers each time, and
    leaves PyTorch's generators as they were.

    A `static` cache of keys and values is allocated once, for a power of two of tokens; a `growing` one is a
    token longer after each step. With `fallback="error"`, an operator that deplo does not support is an
    error (PyTorch's BackendCompilerFailed) instead of a call of PyTorch.

    Raises UsageError for a model that cannot generate, encodes and decodes, or has a `forward` of its own,
    and for arguments that do not fit.
    """
    _check(model, input_ids, max_new_tokens, cache, options)
    settings = {**CACHES[cache], **options}
    if cache == "static":
        settings["max_cache_len"] = _room(input_ids.shape[1] + max_new_tokens)
    compiled = _compiled(type(model).forward, fallback)

    @functools.wraps(model.forward)
    def forward(*args: Any, **kwargs: Any) -> Any:
        _mark_lengths(kwargs)
        return compiled(model, *args, **kwargs)

    twin: Any = copy.copy(model)  # with the same parameters; the caller's object stays as it is
    twin.forward = forward
    with nullcontext() if seed is None else torch.random.fork_rng():
        if seed is not None:
            torch.manual_seed(seed)
        return twin.generate(
            input_ids, max_new_tokens=max_new_tokens, disable_compile=True, **settings
        )


@functools.cache
def _compiled(forward: Callable[..., Any], fallback: str) -> Callable[..., Any]:
    """A class' `forward`, compiled: models of one class and configuration share their graphs."""
    return cast(Any, torch.compile)(forward, backend="deplo", options={"fallback": fallback})


def _room(tokens: int) -> int:
    """For how many tokens a static cache is made that has to hold `tokens`."""
    return max(SHORTEST, 1 << (tokens - 1).bit_length())


def _mark_lengths(kwargs: Mapping[str, Any]) -> None:
    """Tell Dynamo that the numbers of tokens of a call change: of new ones, old ones, and both.

    The first axis is the batch. A cache has as many tokens as the tensors in its layers that grow.
    """
    new = kwargs["input_ids"].shape[1]
    held = list(_held(kwargs))
    old = {tensor.shape[2] for tensor in held if tensor.ndim == 4}
    lengths = {new, *old, *(length + new for length in old)} - {1}
    given = (value for value in kwargs.values() if isinstance(value, torch.Tensor))
    for tensor in (*given, *held):
        for axis in range(1, tensor.ndim):
            if tensor.shape[axis] in lengths:
                maybe_mark_dynamic(tensor, axis)


def _held(kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """The tensors of growing layers of the caches among the arguments of a model."""
    for value in kwargs.values():
        for layer in getattr(value, "layers", ()):
            if not getattr(layer, "is_compileable", False):
                yield from (each for each in vars(layer).values() if isinstance(each, torch.Tensor))


def _check(
    model: Any, input_ids: Any, max_new_tokens: Any, cache: Any, options: Mapping[str, Any]
) -> None:
    """Raise UsageError for what `generate` cannot work with."""
    name = type(model).__name__
    generates = hasattr(model, "prepare_inputs_for_generation")
    if not isinstance(model, torch.nn.Module) or not generates:
        raise UsageError(
            f"{name} cannot generate: deplo.generate takes causal language models of transformers, "
            "such as AutoModelForCausalLM gives"
        )
    config: Any = model.config
    if config.is_encoder_decoder:
        raise UsageError(
            f"{name} encodes and decodes, which deplo.generate does not take; "
            'set model.forward = torch.compile(model.forward, backend="deplo") and call model.generate'
        )
    if "forward" in vars(model):
        raise UsageError(f"this {name} has a forward of its own: give the model as it was built")
    if not isinstance(input_ids, torch.Tensor) or input_ids.ndim != 2 or not input_ids.numel():
        got = tuple(input_ids.shape) if isinstance(input_ids, torch.Tensor) else input_ids
        raise UsageError(f"input_ids must be a tensor of shape [batch, tokens], got {got!r}")
    if type(max_new_tokens) is not int or max_new_tokens < 1:
        raise UsageError(f"max_new_tokens must be an int from 1 on, got {max_new_tokens!r}")
    if cache not in CACHES:
        raise UsageError(f"cache must be one of {', '.join(map(repr, CACHES))}, got {cache!r}")
    if ours := sorted(options.keys() & set(OURS)):
        raise UsageError(f"deplo.generate sets {', '.join(ours)} itself: leave it out")
