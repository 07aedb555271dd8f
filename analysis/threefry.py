"""Threefry-2x32 of 20 rounds: two words of random bits of a key and a counter.

After Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

Words are int32 of anything that computes: lazy tensors, tensors of PyTorch that are traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

Words = TypeVar("Words", bound=Any)

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
"""Bits that rounds rotate by, in turns of eight (Salmon et al., table 2)."""
PARITY = 0x1BD11BDA
"""The constant of Threefish's key schedule, cut to 32 bits as the Random123 library has it."""
SIGNIFICANDS = {"float16": 11, "bfloat16": 8, "float32": 24}
"""Bits of a float's significand: so many random ones make a number from 0 to before 1."""


def threefry(key: Sequence[Words], counter: Sequence[Words]) -> tuple[Words, Words]:
    """Two words of random bits for each counter of two words."""
    keys = (*key, key[0] ^ key[1] ^ PARITY)
    one, other = counter[0] + keys[0], counter[1] + keys[1]
    for number in range(20):
        one = one + other
        count = ROTATIONS[number % 8]
        other = ((other << count) | upper_bits(other, count)) ^ one
        if number % 4 == 3:
            step = number // 4 + 1
            one = one + keys[step % 3]
            other = other + (keys[(step + 1) % 3] + step)
    return one, other


def upper_bits(word: Words, count: int) -> Words:
    """The uppermost bits of words as numbers; a shift of int32 to the right copies the sign."""
    return (word >> (32 - count)) & ((1 << count) - 1)
