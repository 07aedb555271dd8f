"""Products that are not multiplied out.

`x[i, k] * w[j, k]` has as many elements as i, j and k together, and hardly any program wants them: it
sums over k, which is a product of matrices. So a product that is larger than both its factors is kept as
the two, until its elements are needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute

from ..dialects.scalars import ui8
from .numpy_types import Array
from .views import compact, require

MAX_FACTOR = 1 << 26
"""Most elements of a factor, which may have to be copied to become a matrix."""


@dataclass(frozen=True)
class Product:
    """`lhs * rhs`, which broadcast and have the same number of axes, summed over the last `summed`."""

    lhs: Array
    rhs: Array
    summed: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes that are not summed."""
        shape = np.broadcast_shapes(self.lhs.shape, self.rhs.shape)
        return shape[: len(shape) - self.summed]

    def align(self, axes: int) -> Product:
        """The same with `axes` axes that are not summed, new ones of extent 1 behind the others."""

        def widen(array: Array) -> Array:
            kept = array.ndim - self.summed
            shape = (*array.shape[:kept], *(1,) * (axes - kept), *array.shape[kept:])
            return array.reshape(shape)

        return Product(widen(self.lhs), widen(self.rhs), self.summed)

    def transpose(self, axes: Sequence[int]) -> Product:
        """The same with its axes in another order, before any is summed."""
        assert not self.summed
        return Product(self.lhs.transpose(axes), self.rhs.transpose(axes))

    def masked(self, condition: Array) -> Product | None:
        """The same with 0 where a condition on its axes does not hold, before any is summed.

        None where the condition and a factor together vary over more than a factor may have elements.
        """
        assert not self.summed
        factors = (self.lhs, self.rhs)
        shapes = [np.broadcast_shapes(factor.shape, condition.shape) for factor in factors]
        if max(prod(shape) for shape in shapes) > MAX_FACTOR:
            return None
        # Both become 0: 0 times an infinity would be no 0.
        lhs, rhs = (np.where(condition, f, np.zeros((), f.dtype)) for f in factors)
        return Product(lhs, rhs)

    def sum_last(self, extent: int) -> Product:
        """The sum over the last axis that is not summed yet, which has `extent` positions."""
        axis = self.lhs.ndim - self.summed - 1
        shape = (*self.lhs.shape[:axis], extent, *self.lhs.shape[axis + 1 :])
        return Product(np.broadcast_to(self.lhs, shape), self.rhs, self.summed + 1)

    def array(self) -> Array:
        """Its elements, of extent 1 along the axes on which neither factor varies.

        Raises TooWide if a factor is too large to be copied.
        """
        if not self.summed:
            return self.lhs * self.rhs
        kept = len(self.shape)
        left, right = self.lhs.shape[:kept], self.rhs.shape[:kept]
        summed = np.broadcast_shapes(self.lhs.shape[kept:], self.rhs.shape[kept:])
        # 0: both vary along the axis, 1: only lhs, 2: only rhs, 3: neither
        kind = [(a == 1) * 2 + (b == 1) for a, b in zip(left, right, strict=True)]
        order = sorted(range(kept), key=kind.__getitem__)
        groups = [[axis for axis in order if kind[axis] == k] for k in range(3)]
        result_shape = np.broadcast_shapes(left, right)
        batch, rows, columns = (prod(result_shape[axis] for axis in g) for g in groups)

        def matrices(factor: Array, count: int) -> Array:
            """`factor` as `batch` matrices of `count` rows, whose columns are the summed axes."""
            require((batch, count, *summed), MAX_FACTOR)
            whole = np.broadcast_to(factor, (*factor.shape[:kept], *summed))
            sorted_axes = whole.transpose((*order, *range(kept, whole.ndim)))
            return np.ascontiguousarray(sorted_axes.reshape(batch, count, prod(summed)))

        a, b = matrices(self.lhs, rows), matrices(self.rhs, columns)
        product = np.matmul(a, b.swapaxes(1, 2))
        in_order = product.reshape([result_shape[axis] for axis in order])
        return in_order.transpose(np.argsort(order))


Value: TypeAlias = Array | Product


def multiply(lhs: Array, rhs: Array, limit: int) -> Value:
    """The product of two arrays of floats with equally many axes; deferred if it is larger than both.

    A product of half types is not deferred: matrices of them would be summed in another precision. Raises
    TooWide if it is not deferred and has more than `limit` elements.
    """
    lhs, rhs = compact(lhs), compact(rhs)
    shape = np.broadcast_shapes(lhs.shape, rhs.shape)
    if prod(shape) > max(lhs.size, rhs.size) and lhs.dtype.itemsize >= 4:
        return Product(lhs, rhs)
    require(shape, limit)
    with np.errstate(all="ignore"):
        return lhs * rhs


def as_array(value: Value, limit: int) -> Array:
    """The elements of a value; raises TooWide if a deferred product has more than `limit`."""
    if not isinstance(value, Product):
        return value
    require(value.shape, limit)
    with np.errstate(all="ignore"):
        return value.array()


def as_bits(value: Value) -> Value:
    """What a kernel sees of a value: ui8 as the i8 of the same bits."""
    return (
        value.view(np.int8) if isinstance(value, np.ndarray) and value.dtype == np.uint8 else value
    )


def from_bits(value: Value, element: Attribute) -> Value:
    """What a kernel made as a value of `element`."""
    return value.view(np.uint8) if isinstance(value, np.ndarray) and element == ui8 else value
