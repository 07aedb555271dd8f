"""Random numbers by counter: operators that draw, as integer arithmetic on a seed and element numbers.

Element i of a tensor in row-major order gets two words of 32 bits: Threefry (`analysis/threefry.py`). Its key
is a seed of 64 bits, its counter is i.

    mask = aten.bernoulli.p(x, 0.9)

becomes a call of PyTorch for the seed, and elementwise operators, which fuse with what reads the mask:

    seed = aten.randint.low(-2**63, 2**63 - 1, [])
    mask = (threefry(seed, arange(x.numel()))[0] >>> 8) * 2**-24 < 0.9
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch
from torch.utils.checkpoint import CheckpointPolicy

from ..analysis.threefry import SIGNIFICANDS, threefry, upper_bits

aten = torch.ops.aten
Tensor = torch.Tensor

SEEDS = (-(2**63), 2**63 - 1, [])
"""The arguments of `aten.randint.low` that draw a seed."""
REASON = "the seed of random numbers by counter"
"""Why PyTorch runs the call that draws a seed, with every `fallback`."""


def is_seed(node: torch.fx.Node) -> bool:
    """Whether a node draws the seed of random numbers by counter."""
    return node.target is aten.randint.low and tuple(node.args) == SEEDS


def save_seeds(joint: torch.fx.GraphModule) -> None:
    """Have the partitioner save seeds for the backward pass, where a checkpoint would draw them again too."""
    for node in filter(is_seed, joint.graph.nodes):
        node.meta["recompute"] = CheckpointPolicy.MUST_SAVE


def _halves(words: Tensor) -> tuple[Tensor, Tensor]:
    """Split int64 into its lower and its upper 32 bits, as int32."""
    return words.to(torch.int32), (words >> 32).to(torch.int32)


def _uniform(shape: Sequence[Any], dtype: torch.dtype, device: Any) -> Tensor:
    """Draw multiples of the dtype's precision from 0 to before 1."""
    seed = aten.randint.low(*SEEDS, dtype=torch.int64, device=device)
    counts = torch.arange(prod(shape), device=device).reshape(shape)
    words = threefry(_halves(seed), _halves(counts))
    if dtype == torch.float64:
        high, low = (upper_bits(word, n).to(dtype) for word, n in zip(words, (27, 26), strict=True))
        return (high * 2.0**26 + low) * 2.0**-53
    bits = SIGNIFICANDS[str(dtype).removeprefix("torch.")]
    return upper_bits(words[0], bits).to(dtype) * 2.0**-bits


def _rand(size: Sequence[Any], *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    return _uniform(size, dtype or torch.get_default_dtype(), device)


def _rand_like(value: Tensor, *, dtype: Any = None, device: Any = None, **_: Any) -> Tensor:
    return _uniform(value.shape, dtype or value.dtype, device or value.device)


def _uniform_like(value: Tensor, low: float = 0.0, high: float = 1.0, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    return _uniform(value.shape, value.dtype, value.device) * (high - low) + low


def _bernoulli(value: Tensor, p: float = 0.5, generator: Any = None) -> Any:
    if generator is not None:
        return NotImplemented
    return (_uniform(value.shape, torch.float32, value.device) < p).to(value.dtype)


def _dropout(value: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """The value with elements dropped and the others scaled, and which are kept."""
    if train is False or p == 0:
        return value.clone(), torch.ones_like(value, dtype=torch.bool)
    kept = _uniform(value.shape, torch.float32, value.device) >= p
    return value * kept * (0.0 if p == 1 else 1 / (1 - p)), kept


COUNTER_RULES: dict[Any, Callable[..., Any]] = {
    aten.bernoulli.p: _bernoulli,
    aten.native_dropout.default: _dropout,
    aten.rand.default: _rand,
    aten.rand_like.default: _rand_like,
    aten.uniform.default: _uniform_like,
}
"""Operator -> what draws its numbers by counter."""
