"""The lanes of a loop nest: values as arrays with one axis for each open loop.

A value has extent 1 along the axes of loops in which it does not vary. `mask` says which lanes are active.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from math import prod

import numpy as np
from xdsl.ir import SSAValue

from ..analysis.cost import points
from .memory import Buffer, Output
from .numpy_types import Array
from .product import MAX_FACTOR, Product, Value, as_array
from .views import MAX_ELEMENTS, TooWide, require

MAX_LANES = 1 << 22
"""Elements of an array that a kernel is evaluated with as a whole; slices have about as many."""

MAX_SLICES = 1 << 14
"""Slices that a kernel is evaluated in at most, some hundredths of a second each."""


class Lanes:
    """The open loops of a nest, and what has been computed in them."""

    most_slices = MAX_SLICES
    stops_early = True
    """Whether it does not begin what takes too many slices."""

    def __init__(self, *, sliced: bool) -> None:
        self.sliced = sliced
        self._slices_begun = 0
        self.values: dict[SSAValue, Value] = {}
        self.buffers: dict[SSAValue, Buffer] = {}
        self.outputs: dict[SSAValue, Output] = {}
        self.counters: list[Array] = []
        self.axes: dict[SSAValue, int] = {}
        self.mask: Array = np.asarray(True)
        self._points = cache(points)

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the open loops."""
        return tuple(c.shape[0] for c in self.counters)

    def get(self, value: SSAValue) -> Array:
        """The value with one axis per open loop."""
        held = self.values[value]
        if isinstance(held, Product):
            held = as_array(held, self._limit)
            self.values[value] = held
        return self._align(held)

    def _get_all(self, values: Sequence[SSAValue]) -> list[Array]:
        """Values that one operation works on."""
        arrays = [self.get(value) for value in values]
        self._require(np.broadcast_shapes(*(array.shape for array in arrays)))
        return arrays

    @property
    def _limit(self) -> int:
        """Most elements of an array; slices are small enough by themselves."""
        return MAX_ELEMENTS if self.sliced else MAX_LANES

    @property
    def _factor_limit(self) -> int:
        """Most elements of what is loaded, which may become a factor of a product of matrices."""
        return MAX_ELEMENTS if self.sliced else MAX_FACTOR

    def _require(self, shape: Sequence[int]) -> None:
        require(shape, self._limit)

    def _align(self, array: Array) -> Array:
        return array.reshape(array.shape + (1,) * (len(self.counters) - array.ndim))

    def _full(self, array: Array) -> Array:
        self._require(self.shape)
        return np.broadcast_to(self._align(array), self.shape)

    def _active(self, lanes: Array) -> Array:
        """Those of some lanes where the mask is set."""
        mask = self._align(self.mask)
        self._require(np.broadcast_shapes(mask.shape, lanes.shape))
        return lanes & mask

    def _unsummed(self, value: SSAValue) -> Value:
        """A value with one axis per open loop, and a product still not multiplied out."""
        held = self.values[value]
        if isinstance(held, Product) and not held.summed:
            return held.align(len(self.counters))
        return self.get(value)

    def _open(self, counter: Array, value: SSAValue) -> None:
        self.axes[value] = len(self.counters)
        self.counters.append(counter)
        self.values[value] = counter.reshape((1,) * (len(self.counters) - 1) + (-1,))

    def _slices(self, extent: int, inner: int) -> Iterator[Array]:
        """The parts of a loop's range that run at a time, if there are `inner` points inside of it.

        Raises TooWide if one is too long, or if there are too many.
        """
        step = extent
        if self.sliced:
            step = max(MAX_LANES // max(prod(self.shape) * inner, 1), 1)
        require([min(step, extent)], MAX_ELEMENTS)
        starts = range(0, extent, max(step, 1))
        for number, first in enumerate(starts):
            more = len(starts) - number if self.stops_early else 1
            if self.sliced and self._slices_begun + more > self.most_slices:
                raise TooWide(f"it takes more than {self.most_slices} slices of {MAX_LANES} points")
            self._slices_begun += 1
            yield np.arange(first, min(first + step, extent))
