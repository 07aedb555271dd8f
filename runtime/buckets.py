"""Buckets of sizes: what is decided for the largest size of a bucket suits the others.

Tiles, splits of K and what is worth computing twice are decided for the hints of a program's sizes. The
program is right for all sizes, but fast for those up to its hints only, and not much smaller: what multiplies
one row by a matrix is another kernel than what multiplies a thousand. So a size is in one of few buckets.
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
"""The hint of each size."""


@dataclass(frozen=True)
class Buckets:
    """The buckets of the sizes of a program that was compiled for `hints`.

    Such a hint stays what is compiled for up to itself, in its bucket. A size found in data keeps it.
    """

    sizes: tuple[Size, ...]
    hints: Bucket

    def of(self, arguments: Sequence[Any]) -> Bucket | None:
        """The bucket of a call with `arguments`; None where they do not say sizes that are allowed."""
        found: list[int] = []
        for size, hint in zip(self.sizes, self.hints, strict=True):
            if size.argument is None:
                found.append(hint)
                continue
            try:
                said = size.at(arguments[size.argument].shape[size.axis])
            except (AttributeError, IndexError, RuntimeError):
                return None
            if said is None:
                return None
            number = bisect_left(BOUNDS, said)
            largest = max(LARGE, hint) if number == len(BOUNDS) else BOUNDS[number]
            own = said <= hint and number == bisect_left(BOUNDS, hint)
            found.append(hint if own else max(min(largest, size.maximum), size.minimum))
        return tuple(found)
