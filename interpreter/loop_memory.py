"""Memory that a loop nest reads and writes, all lanes at once.

What is read by linear indices is a view. Outputs count their stores; scratchpads and registers have leading
axes for the loops that they were made in.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import MemRefType

from ..dialects.loop import (
    AccumulateOp,
    LoadOp,
    RegistersOp,
    StoreOp,
)
from ..dialects.loop_transpose import TransposeOp
from ..dialects.sizes import static_shape
from ..dialects.tile import StageOp
from .loop_lanes import Lanes
from .memory import Buffer
from .numpy_types import Array, numpy_dtype
from .poison import poisoned
from .product import Value, as_array
from .tensor_ir import ProgramFault, evaluate_index
from .views import MAX_ELEMENTS, Place, linear_terms, require


class LaneMemory(Lanes):
    """The accesses of a nest: loads, stores, and what copies."""

    def _place(
        self, op: LoadOp | StoreOp | AccumulateOp, shape: Sequence[int]
    ) -> Place | None:
        """Where an access goes if it is linear in the counters and inside of memory of `shape`."""
        if not all(value in self.axes for value in op.indices):
            return None
        base: list[int] = []
        steps: list[tuple[int, ...]] = []
        for expr in op.map.data.results:
            terms = linear_terms(expr, len(op.indices))
            if terms is None:
                return None
            row, first = [0] * len(self.counters), terms[1]
            for factor, value in zip(terms[0], op.indices, strict=True):
                axis = self.axes[value]
                row[axis] += factor
                first += factor * int(self.counters[axis][0]) if self.counters[axis].size else 0
            base.append(first)
            steps.append(tuple(row))
        place = Place(tuple(base), tuple(steps), self.shape)
        return place if place.inside(shape) else None

    def _indices(
        self, op: LoadOp | StoreOp | AccumulateOp, shape: Sequence[int]
    ) -> tuple[Array, ...]:
        """Index arrays of one access, checked against the extents of memory where the mask is set."""
        dims = [self.get(value) for value in op.indices]
        indices: list[Array] = []
        for axis, (expr, extent) in enumerate(zip(op.map.data.results, shape, strict=True)):
            used = [dims[position].shape for position in expr.used_dims()]
            self._require(np.broadcast_shapes(*used))
            index = self._align(evaluate_index(expr, dims))
            outside = (index < 0) | (index >= extent)
            if np.any(outside) and np.any(wrong := self._active(outside)):
                bad = np.broadcast_to(index, wrong.shape)[wrong]
                raise ProgramFault(
                    f"'{op.name}' out of bounds: index {bad.min()}..{bad.max()} of "
                    f"axis {axis}, whose extent is {extent}",
                    op,
                )
            indices.append(np.clip(index, 0, max(extent - 1, 0)))
        return tuple(indices)

    def _lane_indices(self, buffer: Buffer) -> tuple[Array, ...]:
        """Positions along a scratchpad's leading axes for each lane."""
        depth = len(self.counters)
        return tuple(
            np.arange(buffer.data.shape[axis]).reshape(
                (1,) * axis + (-1,) + (1,) * (depth - axis - 1)
            )
            for axis in range(buffer.lanes)
        )

    def _load(self, op: LoadOp) -> Value:
        buffer = self.buffers[op.memref]
        if not buffer.lanes and (place := self._place(op, buffer.shape)) is not None:
            return buffer.view(place)
        indices = self._indices(op, buffer.shape)
        if 0 in buffer.data.shape:  # only reached where no lane is active
            memref = op.memref.type
            assert isinstance(memref, MemRefType)
            return np.zeros((1,) * len(self.counters), numpy_dtype(memref.element_type))
        where = (*self._lane_indices(buffer), *indices)
        require(np.broadcast_shapes(*(index.shape for index in where)), self._factor_limit)
        result = buffer.elements()[where]
        return self._align(np.asarray(result))

    def _registers(self, op: RegistersOp) -> None:
        memref = op.result.type
        assert isinstance(memref, MemRefType)
        shape = (*self.shape, *static_shape(memref))
        self._require(shape)
        self.buffers[op.result] = Buffer(
            poisoned(memref.element_type, shape), lanes=len(self.shape)
        )

    def _store(self, op: StoreOp) -> None:
        if op.memref in self.buffers:
            self._store_own(op)
            return
        output = self.outputs[op.memref]
        place = self._place(op, output.shape) if np.all(self.mask) else None
        if place is not None and output.data is None:
            axes = place.counter_of_axis(output.shape)
            if axes is not None:
                output.put_all(self._unsummed(op.value), axes)
                return
        data, stores = output.open()
        if place is not None and place.distinct(data):
            place.of(data, writeable=True)[...] = self.get(op.value)
            place.of(stores, writeable=True)[...] += 1
            return
        active = self._full(self.mask)
        where: Array = np.zeros((), np.int64)
        for index, extent in zip(self._indices(op, output.shape), output.shape, strict=True):
            where = where * extent + index
        where = np.broadcast_to(where, self.shape)[active]
        data.reshape(-1)[where] = self._full(self.get(op.value))[active]
        np.add.at(stores.reshape(-1), where, 1)

    def _store_own(self, op: StoreOp) -> None:
        """Store to an array of the thread's own."""
        buffer = self.buffers[op.memref]
        where = (*self._lane_indices(buffer), *self._indices(op, buffer.shape))
        self._require(self.shape)
        active = self._full(self.mask)
        places = tuple(self._full(w)[active] for w in where)
        buffer.elements()[places] = self._full(self.get(op.value))[active]

    def _accumulate(self, op: AccumulateOp) -> None:
        output = self.outputs[op.memref]
        if output.data is None:
            output.data = np.array(self.buffers[op.start].elements())
        active = self._full(self.mask)
        where = tuple(
            np.broadcast_to(index, self.shape)[active] for index in self._indices(op, output.shape)
        )
        np.add.at(
            as_array(output.data, MAX_ELEMENTS), where, self._full(self.get(op.value))[active]
        )

    def _stage(self, op: StageOp) -> None:
        source = self.buffers[op.source].elements()
        slab = op.slab.type
        assert isinstance(slab, MemRefType)
        dims = [self.get(v) for v in op.origin]
        lanes = np.broadcast_shapes(*(d.shape for d in dims))
        require((*lanes, *static_shape(slab)), self._factor_limit)
        depth, rank = len(self.counters), slab.get_num_dims()
        indices: list[Array] = []
        inside = np.ones((), np.bool_)
        skipped = source.ndim - rank
        for axis, expr in enumerate(op.map.data.results):
            index = self._align(evaluate_index(expr, dims))
            index = index.reshape(index.shape + (1,) * rank)
            if axis >= skipped:
                own = axis - skipped
                counter = np.arange(static_shape(slab)[own])
                index = index + counter.reshape(
                    (1,) * (depth + own) + (-1,) + (1,) * (rank - own - 1)
                )
            inside = inside & (index >= 0) & (index < source.shape[axis])
            indices.append(np.clip(index, 0, max(source.shape[axis] - 1, 0)))
        copied = np.asarray(source[tuple(indices)])
        self.buffers[op.slab] = Buffer(
            np.where(inside, copied, np.zeros((), copied.dtype)), lanes=depth
        )

    def _transpose(self, op: TransposeOp) -> None:
        source = self.buffers[op.source].elements()
        shape = (*self.shape, *op.shape)
        self._require(shape)
        dims = [self.get(v) for v in op.origin]
        indices: list[Array] = []
        active = self._align(self.mask)[..., None, None]
        for axis, expr in enumerate(op.map.data.results):
            index = self._align(evaluate_index(expr, dims))[..., None, None]
            if axis == op.dimension:
                index = index + np.arange(op.shape[1])
            elif axis == source.ndim - 1:
                index = index + np.arange(op.shape[0])[:, None]
            outside = (index < 0) | (index >= source.shape[axis])
            if np.any(outside & active):
                raise ProgramFault("'loop.transpose' copies what is outside", op)
            indices.append(np.where(outside, 0, index))
        copied = np.asarray(source[tuple(indices)])
        self.buffers[op.result] = Buffer(np.broadcast_to(copied, shape), lanes=len(self.shape))
