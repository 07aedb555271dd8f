"""Arrays that repeat or overlap without taking memory, and where an index expression lands in one.

An axis along which an array repeats has stride 0, as `np.broadcast_to` makes it; `compact` cuts it to
extent 1. A `Place` is what a linear index selects over a box of counters, and is read as a strided view.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from numpy.lib.stride_tricks import as_strided
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from .numpy_types import Array
from .scalar_ops import NotExecutable

MAX_ELEMENTS = 1 << 27
"""Most elements of any array; one of indices then takes a gigabyte."""


class TooWide(NotExecutable):
    """An array that an evaluation needs has more elements than it may have."""


def require(shape: Sequence[int], limit: int) -> None:
    """Raise TooWide if an array of `shape` has more than `limit` elements."""
    if (count := prod(shape)) > limit:
        raise TooWide(f"it needs an array of {count} elements, more than {limit}")


def compact(array: Array) -> Array:
    """The array with extent 1 along the axes on which it repeats."""
    return array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]


def linear_terms(expr: AffineExpr, dims: int) -> tuple[list[int], int] | None:
    """The factor of each of `dims` dims and the constant of `expr`, or None if it divides."""
    match expr:
        case AffineConstantExpr(value=value):
            return [0] * dims, value
        case AffineDimExpr(position=position):
            return [int(dim == position) for dim in range(dims)], 0
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = linear_terms(lhs, dims), linear_terms(rhs, dims)
            if left is None or right is None:
                return None
            return [a + b for a, b in zip(left[0], right[0], strict=True)], left[1] + right[1]
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=factor)
        ):
            terms = linear_terms(lhs, dims)
            return terms and ([a * factor for a in terms[0]], terms[1] * factor)
        case _:
            return None


@dataclass(frozen=True)
class Place:
    """The elements `base + steps @ counters` of an array, for counters from 0 to `extents`.

    `steps` has a row for each axis of the array and a column for each counter.
    """

    base: tuple[int, ...]
    steps: tuple[tuple[int, ...], ...]
    extents: tuple[int, ...]

    def inside(self, shape: Sequence[int]) -> bool:
        """Whether all of it lies in an array of `shape`, and it is not empty."""
        if 0 in self.extents:
            return False
        for first, row, extent in zip(self.base, self.steps, shape, strict=True):
            spans = [step * (count - 1) for step, count in zip(row, self.extents, strict=True)]
            if first + sum(min(s, 0) for s in spans) < 0:
                return False
            if first + sum(max(s, 0) for s in spans) >= extent:
                return False
        return True

    def strides(self, array: Array) -> list[int]:
        """Bytes from one element to the next along each counter."""
        return [
            sum(row[n] * stride for row, stride in zip(self.steps, array.strides, strict=True))
            for n in range(len(self.extents))
        ]

    def of(self, array: Array, *, writeable: bool = False) -> Array:
        """The elements, an axis for each counter, of extent 1 where they do not vary."""
        strides = self.strides(array)
        shape = [n if stride else 1 for n, stride in zip(self.extents, strides, strict=True)]
        corner = array[tuple(slice(first, None) for first in self.base)]
        return as_strided(corner, shape, strides, writeable=writeable)

    def distinct(self, array: Array) -> bool:
        """Whether no two values of the counters select one element of a contiguous array."""
        reach = 0
        moving = zip(self.strides(array), self.extents, strict=True)
        for stride, count in sorted((abs(s), n) for s, n in moving if n > 1):
            if stride <= reach:
                return False
            reach += stride * (count - 1)
        return True

    def counter_of_axis(self, shape: Sequence[int]) -> list[int | None] | None:
        """The counter that runs along each axis of an array that the place covers one to one.

        None for an axis of extent 1; None instead of the list if it does not cover the array so.
        """
        found: list[int | None] = []
        for first, row, extent in zip(self.base, self.steps, shape, strict=True):
            used = [n for n, step in enumerate(row) if step and self.extents[n] > 1]
            if first or len(used) > 1 or (not used and extent != 1):
                return None
            if used and (row[used[0]] != 1 or self.extents[used[0]] != extent):
                return None
            found.append(used[0] if used else None)
        counters = [n for n in found if n is not None]
        moving = [n for n, count in enumerate(self.extents) if count > 1]
        return found if sorted(counters) == moving else None
