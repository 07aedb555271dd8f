"""Buckets of sizes: what is decided for one size of a bucket suits the others.

Tiles, splits of K and what is worth computing twice are decided for the hints of a program's sizes. The
program is right for all sizes, but fast for those like its hints only: what multiplies one row by a matrix
is another kernel than what multiplies a thousand. So a size is in one of few buckets, each with a hint.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .sizes import Size

BOUNDS = (1, 16, 128, 1024)
"""The largest size of each bucket but the last."""

LARGE = 4096
"""The hint of the last bucket."""

Bucket: TypeAlias = tuple[int, ...]
"""The number of the bucket of each size that an argument says."""


@dataclass(frozen=True)
class Buckets:
    """The buckets of a program's sizes. A size that is found in data is none of them."""

    sizes: tuple[Size, ...]

    def of(self, arguments: Sequence[Any]) -> Bucket | None:
        """The bucket of a call with `arguments`; None where they do not say sizes that are allowed."""
        numbers: list[int] = []
        for size in self.sizes:
            if size.argument is None:
                continue
            try:
                said = arguments[size.argument].shape[size.axis]
            except (AttributeError, IndexError):
                return None
            if not size.minimum <= said <= size.maximum:
                return None
            numbers.append(bisect_left(BOUNDS, said))
        return tuple(numbers)

    def of_hints(self, hints: Sequence[int]) -> Bucket:
        """The bucket of sizes that are what their hints say."""
        said = [
            hint for size, hint in zip(self.sizes, hints, strict=True) if size.argument is not None
        ]
        return tuple(bisect_left(BOUNDS, hint) for hint in said)

    def hints(self, bucket: Bucket, hints: Sequence[int]) -> list[int]:
        """The hints of a bucket; a size that is in none, or whose hint in `hints` is in it, keeps that."""
        numbers = iter(zip(bucket, self.of_hints(hints), strict=True))
        found: list[int] = []
        for size, hint in zip(self.sizes, hints, strict=True):
            number, own = (0, 0) if size.argument is None else next(numbers)
            most = LARGE if number == len(BOUNDS) else BOUNDS[number]
            found.append(hint if number == own else max(min(most, size.maximum), size.minimum))
        return found
