"""Random numbers: expressions of an element's position and a seed, the same wherever they are computed.

Element i of a tensor gets two words of 32 bits: Threefry (`analysis/threefry.py`) with the seed's 64 bits as
key and i as counter. The shape is only a reading of the positions: rand((2, 3), seed=0) has the elements of
rand(6, seed=0).

The seed is data, not part of the program: another seed is not compiled again.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import pi
from typing import Any

import numpy as np

from ..analysis.threefry import SIGNIFICANDS, threefry, upper_bits
from ..dialects.sizes import Extent, Size
from .creation import arange
from .dtypes import FLOATING, SIGNED, DType, as_dtype, float32, float64, iinfo, int32, int64
from .expression import leaf
from .functions import astype, call, public
from .manipulation import reshape
from .tensor import Tensor
from .variables import extents


@lru_cache(1024)
def _key(seed: int) -> np.ndarray[Any, Any]:
    """The words of a seed."""
    return np.array([seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF], np.uint32).view(np.int32)


def _words(shape: Sequence[Extent], seed: int) -> tuple[Tensor, Tensor]:
    """Two int32 tensors of random bits."""
    if not -(2**63) <= seed < 2**64:
        raise ValueError(f"a seed has 64 bits, {seed} has more")
    size: Extent = 1
    for each in shape:
        size = size * each
    if not isinstance(size, Size) and not 0 <= size < 2**31:
        raise ValueError(f"random tensors have less than 2^31 elements, not {size}")
    key = Tensor.of(leaf(_key(seed), int32))
    places = arange(size, dtype=int32)
    one, other = threefry((key[0], key[1]), (places, call("zeros_like", places)))
    return reshape(one, shape), reshape(other, shape)


def _uniform(words: Sequence[Tensor], dtype: DType) -> Tensor:
    """Numbers from 0 to before 1 of one word, or of two for float64."""
    if dtype is float64:
        high, low = (
            astype(upper_bits(w, n), float64) for w, n in zip(words, (27, 26), strict=True)
        )
        return (high * 2.0**26 + low) * 2.0**-53
    bits = SIGNIFICANDS[dtype.name]
    return astype(upper_bits(words[0], bits), dtype) * 2.0**-bits


def _floating(name: str, dtype: Any) -> DType:
    chosen = float32 if dtype is None else as_dtype(dtype)
    if chosen.kind != FLOATING:
        raise TypeError(f"{name} gives floats, not {chosen}")
    return chosen


def rand(shape: Extent | Sequence[Extent], *, seed: int, dtype: Any = None) -> Tensor:
    """Uniform numbers from 0 to before 1, multiples of as small a power of two as the dtype has all of."""
    return _uniform(_words(extents(shape), seed), _floating("rand", dtype))


def randn(shape: Extent | Sequence[Extent], *, seed: int, dtype: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1, by Box and Muller's formula, in float32 for half types."""
    chosen = _floating("randn", dtype)
    wide = float64 if chosen is float64 else float32
    one, other = _words(extents(shape), seed)
    if (
        wide is float64
    ):  # a word is enough for each: 2^-32 is far below what anybody sees of an angle
        radius, angle = (astype(upper_bits(w, 31), float64) * 2.0**-31 for w in (one, other))
    else:
        radius, angle = _uniform([one], wide), _uniform([other], wide)
    normal = call("sqrt", -2.0 * call("log1p", -radius)) * call("cos", angle * (2 * pi))
    return astype(normal, chosen)


def randint(
    low: int, high: int, shape: Extent | Sequence[Extent], *, seed: int, dtype: Any = None
) -> Tensor:
    """Integers from low to before high, 2^31 values at most; how likely each is differs by up to 2^-32."""
    chosen = int64 if dtype is None else as_dtype(dtype)
    if chosen.kind != SIGNED:
        raise TypeError(f"randint gives integers, not {chosen}")
    limits = iinfo(chosen)
    if not (0 < high - low <= 2**31 and limits.min <= low and high - 1 <= limits.max):
        raise ValueError(
            f"randint: from {low} to before {high} are not 1 to 2^31 values of {chosen}"
        )
    word = astype(_words(extents(shape), seed)[0], int64) & 0xFFFFFFFF
    return astype((word * (high - low) >> 32) + low, chosen)


for _function in (rand, randn, randint):
    public(_function, method=False)
