"""Products of slabs by warpgroups on the lockstep machine, and those that are still on their way.

What is multiplied is read from the moment on that a product begins until it is done: whoever writes it in
between is told. Its sums are computed at once, for nobody may read them before (`dialects/kernel_mma.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.ir import Operation

from ..dialects import kernel
from ..dialects.tensor_map import swizzled
from ..dialects.wgmma import GROUP_ROWS, PANEL, ROW_BYTES, WARPGROUP
from .device_memory import Memory, Touched, fault
from .flights import Flights
from .lanes import Lanes
from .numpy_types import Array
from .tensor_cores import check_warpgroups, multiply_slabs, rows_held, sums_of_threads

UNIT_BYTES = 16
"""What a thread is noted to read at once of a slab."""


@dataclass
class _Reading:
    """Units of a slab that threads read."""

    memory: Memory
    units: Touched

    def note(self, op: Operation, blocks: Array) -> None:
        """The threads of some blocks read them now."""
        rows = blocks[self.units.slots]
        if np.any(rows):
            flat = self.units.flat(self.memory)[rows]
            self.memory.read(op, self.units.numbers[rows][:, None], flat)

    def meets(self, memory: Memory, lanes: Touched, blocks: Array) -> bool:
        """Whether some blocks read an element that others touch."""
        if memory is not self.memory:
            return False
        rows = blocks[self.units.slots]
        mine = self.units.flat(memory)[rows]
        return bool(np.isin(lanes.flat(memory), mine).any())


@dataclass
class _Product:
    """A product on its way in some blocks."""

    op: Operation
    readings: list[_Reading]
    blocks: Array


class Warpgroups:
    """The products of a machine's warpgroups."""

    def __init__(self, machine: Lanes, flights: Flights):
        self.machine = machine
        self.flights = flights
        self.pending: list[_Product] = []
        flights.watchers.append(self._check)
        self.handlers: dict[type[Operation], Callable[[Any], None]] = {
            kernel.WgmmaOp: self._multiply,
            kernel.WgmmaWaitOp: self._wait,
        }

    def finish(self) -> None:
        """The kernel ends; raises MachineFault at a product that is still on its way."""
        for product in self.pending:
            raise fault(product.op, "is on its way when the kernel ends: nobody waits for it")

    def _multiply(self, op: kernel.WgmmaOp) -> None:
        active = self._blocks(op)
        threads = self.machine.shape[1]
        height, width = op.shape
        if op.rows is None:
            height = threads // WARPGROUP * GROUP_ROWS
        check_warpgroups(op, len(op.products), height, width, threads)
        panels = width // PANEL if op.transposed else 1
        heights = [
            *([height] if op.rows else []),
            op.depth * panels if op.transposed else width,
        ]
        product = _Product(op, [], active)
        slabs = [
            self._read(product, *self.machine.place(op, *slab), rows)
            for slab, rows in zip(op.slabs, heights, strict=True)
        ]
        held = [self.machine.full(self.machine.values[v]) for v in op.held]
        rows = slabs[0] if op.rows else rows_held(held, threads)
        columns = np.swapaxes(slabs[-1], -1, -2)
        if op.transposed:
            columns = np.concatenate(np.split(slabs[-1], panels, axis=-2), axis=-1)
        with np.errstate(all="ignore"):
            products = sums_of_threads(multiply_slabs(rows, columns), threads)
        for result, value, total in zip(op.products, products, op.sums, strict=True):
            before = self.machine.values[total]
            new = value + before
            self.machine.values[result] = np.where(self.machine.mask, new, before)
        self.pending.append(product)
        self._complete(active, op.pending)

    def _wait(self, op: kernel.WgmmaWaitOp) -> None:
        for result, total in zip(op.results_, op.sums, strict=True):
            self.machine.values[result] = self.machine.values[total]
        self._complete(self._blocks(op), 0)

    def _blocks(self, op: Operation) -> Array:
        """The blocks that take part, with all of their threads."""
        active = self.machine.full(self.machine.mask)
        some: Array = np.any(active, axis=1)
        every: Array = np.all(active, axis=1)
        if np.any(some & ~every):
            raise fault(op, "is reached by some threads of a block only: divergent wgmma")
        return some

    def _complete(self, blocks: Array, pending: int) -> None:
        """All products of some blocks are done but the last ones."""
        later = np.zeros(len(blocks), np.int64)
        for product in reversed(self.pending):
            done = product.blocks & blocks & (later >= pending)
            later += product.blocks
            for reading in product.readings:
                reading.note(product.op, done)
            product.blocks = product.blocks & ~done
        self.pending = [product for product in self.pending if np.any(product.blocks)]

    def _check(self, op: Operation, memory: Memory, lanes: Touched, verb: str) -> None:
        """Raise MachineFault if what is being multiplied is written."""
        if verb not in ("writes", "copies to"):
            return
        for product in self.pending:
            if any(reading.meets(memory, lanes, product.blocks) for reading in product.readings):
                raise fault(
                    op,
                    f"{verb} an element of {memory.name} that the product at {product.op.location} "
                    "may still read: nobody has waited for it",
                )

    def _read(self, product: _Product, memory: Memory, first: Array, rows: int) -> Array:
        """The slab of so many rows that begins at a flat offset; each thread reads its share of it."""
        machine, op = self.machine, product.op
        slots, threads = machine.shape
        item = memory.item_bytes
        width = ROW_BYTES // item
        flat = machine.full(first)
        if np.any(flat != flat[:, :1]) or np.any(flat * item % (8 * ROW_BYTES)):
            raise fault(op, f"multiplies no slab of {memory.name} that begins at 8 rows of it")
        places = flat[:, :1] + np.array(
            [swizzled(i * item, ROW_BYTES) // item for i in range(rows * width)]
        )
        unit = UNIT_BYTES // item
        units = rows * width // unit
        for turn in range(-(-units // threads)):
            own = (machine.thread_id + turn * threads) % units * unit
            read = machine.rows(op, memory, flat + own, unit)
            machine.note(op, memory, read)
            self.flights.check(op, memory, read, "multiplies")
            reading = _Reading(memory, read)
            reading.note(op, product.blocks)
            product.readings.append(reading)
        held = np.take_along_axis(memory.data, places, axis=1)
        return held.reshape(slots, rows, width).astype(np.float32)
