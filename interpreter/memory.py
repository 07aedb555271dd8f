"""The memory of a loop kernel: what it reads, and what it stores, each element once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Attribute

from .numpy_types import Array, numpy_dtype
from .poison import poisoned
from .product import Product, Value, as_array, multiply
from .views import MAX_ELEMENTS, Place, require


@dataclass
class Buffer:
    """Memory that is read: `data` has `lanes` leading axes, one per open loop, if it is a scratchpad."""

    data: Value
    lanes: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the memory."""
        return self.data.shape[self.lanes :]

    def elements(self) -> Array:
        """The memory as an array."""
        return as_array(self.data, MAX_ELEMENTS)

    def view(self, place: Place) -> Value:
        """What lies at a place inside of it, an axis per open loop."""
        if not isinstance(self.data, Product):
            return place.of(self.data)
        lhs, rhs = (np.broadcast_to(f, self.shape) for f in (self.data.lhs, self.data.rhs))
        return multiply(place.of(lhs), place.of(rhs), MAX_ELEMENTS)


@dataclass
class Output:
    """Memory that is written, and how often each element was: all of them once if `stores` is None."""

    element: Attribute
    shape: tuple[int, ...]
    data: Value | None = None
    stores: Array | None = None

    def put_all(self, value: Value, axes: Sequence[int | None]) -> None:
        """Store a value whose axis `axes[n]` runs along axis n, where nothing was stored before."""

        def spread(array: Array) -> Array:
            order = [axis for axis in axes if axis is not None]
            rest = [axis for axis in range(array.ndim) if axis not in order]
            extents = [1 if axis is None else array.shape[axis] for axis in axes]
            in_order = array.transpose([*order, *rest]).reshape(extents)
            return np.broadcast_to(in_order, self.shape)

        if isinstance(value, Product):
            self.data = Product(spread(value.lhs), spread(value.rhs))
        else:
            self.data = spread(value.astype(numpy_dtype(self.element), copy=False))

    def open(self) -> tuple[Array, Array]:
        """The elements and how often each was stored, to store some more."""
        if self.data is None:
            require(self.shape, MAX_ELEMENTS)
            self.data = poisoned(self.element, self.shape)
            self.stores = np.zeros(self.shape, np.int32)
        elif self.stores is None:
            self.data = np.array(as_array(self.data, MAX_ELEMENTS))
            self.stores = np.ones(self.shape, np.int32)
        assert isinstance(self.data, np.ndarray)
        assert self.stores is not None
        return self.data, self.stores

    def wrong_counts(self) -> list[int]:
        """How often elements were stored that were not stored once."""
        if self.data is not None and self.stores is None:
            return []
        _, stores = self.open()
        return sorted(set(stores[stores != 1].tolist()))
