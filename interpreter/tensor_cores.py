"""What products of matrices by warps and warpgroups mean.

`dialects/mma.py` and `dialects/wgmma.py` say whose elements are where.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from ..dialects import cuda, kernel
from ..dialects.kernel import WARP
from ..dialects.mma import DEPTH, LANES, ROWS, SLOTS, MmaBase
from ..dialects.tensor_map import swizzled
from ..dialects.wgmma import GROUP_ROWS, PAIR, ROW_BYTES, WARP_ROWS, WARPGROUP, sums_of
from .device_memory import Memory, fault
from .flights import Flights
from .lanes import Lanes
from .numpy_types import Array

_GROUPS = WARP // LANES
UNIT_BYTES = 16
"""What a thread is noted to read at once of a slab."""


def multiply(op: MmaBase, threads: int, operands: Sequence[Array]) -> list[Array]:
    """The four products of every thread, from its elements of rows and of columns.

    `operands` have one array axis at the end for the `threads` of a block, or 1. Raises MachineFault if these
    are no whole warps.
    """
    if threads % WARP:
        raise fault(op, f"is computed by whole warps; a block of {threads} threads has others")
    shape = np.broadcast_shapes(*(value.shape for value in operands), (threads,))
    warps = (*shape[:-1], threads // WARP, _GROUPS, LANES)
    held = [
        np.broadcast_to(value, shape).astype(np.float32, copy=False).reshape(warps)
        for value in operands
    ]
    # Axes: group, lane, slot; a lane's slots are its positions of the reduced axis.
    upper, lower, columns = (
        np.stack(held[first : first + SLOTS], axis=-1).reshape(*warps[:-1], DEPTH)
        for first in (0, SLOTS, 2 * SLOTS)
    )
    rows = np.concatenate([upper, lower], axis=-2)
    assert rows.shape[-2:] == (ROWS, DEPTH)
    products = rows @ np.swapaxes(columns, -1, -2)
    products = products.reshape(*warps[:-2], 2, _GROUPS, LANES, 2)
    return [products[..., half, :, :, which].reshape(shape) for half in (0, 1) for which in (0, 1)]


def multiply_in_warps(machine: Lanes, op: MmaBase) -> None:
    """Execute a product on a lockstep machine; all lanes of a warp must take part, or none."""
    machine.require_whole_warps(op)
    operands = [machine.full(machine.values[value]) for value in (*op.rows, *op.columns)]
    products = multiply(op, machine.shape[1], operands)
    sums = [machine.values[value] for value in op.sums] or [np.float32(0)] * len(products)
    for result, product, total in zip(op.products, products, sums, strict=True):
        machine.values[result] = product + total


def sums_of_threads(products: Array, threads: int) -> list[Array]:
    """The sums of each thread, of a product of slabs in the last two axes: one axis of threads instead."""
    thread = np.arange(threads)
    lane, group = thread % LANES, thread % WARP // LANES
    first = thread // WARP * WARP_ROWS + group
    height, width = products.shape[-2:]
    found: list[Array] = []
    for down in range(0, height, threads // WARP * WARP_ROWS):
        for row in (first + down, first + down + PAIR):
            for across in range(0, width, 2 * LANES):
                found += [products[..., row, across + 2 * lane + which] for which in (0, 1)]
    return found


def rows_held(values: Sequence[Array], threads: int) -> Array:
    """The rows that threads hold, of all warpgroups one below the other, from what each holds.

    `values` have an array axis of threads at the end; it becomes one of rows and one of positions.
    """
    outer = np.broadcast_shapes(*(value.shape[:-1] for value in values))
    held = np.stack([np.broadcast_to(v, (*outer, threads)) for v in values], axis=-1)
    # Axes: warp, group, lane, then step, row, half of a step, which of two.
    shape = (*outer, threads // WARP, _GROUPS, LANES, len(values) // (2 * SLOTS), 2, 2, 2)
    fragments = held.astype(np.float32).reshape(shape)
    first = len(outer)
    order = [*range(first), *(first + axis for axis in (0, 4, 1, 3, 5, 2, 6))]
    return fragments.transpose(order).reshape(*outer, threads // WARP * WARP_ROWS, -1)


def multiply_slabs(
    machine: Lanes, flights: Flights, op: kernel.WgmmaOp | cuda.WgmmaOp
) -> list[Array]:
    """The products of each thread.

    All threads of a block must take part. Each is noted to read its share of the slabs.
    """
    threads = machine.shape[1]
    active = machine.full(machine.mask)
    if np.any(active.any(axis=1) & ~active.all(axis=1)):
        raise fault(op, "is reached by some threads of a block only: divergent wgmma")
    height, width = op.shape
    if op.rows is None:
        height = threads // WARPGROUP * GROUP_ROWS
    check_warpgroups(op, height, width, threads)
    heights = [*([height] if op.rows else []), len(op.held) * 2 if op.transposed else width]
    slabs = [
        _slab_read(machine, flights, op, *machine.place(op, *slab), rows)
        for slab, rows in zip(op.slabs, heights, strict=True)
    ]
    rows = (
        slabs[0]
        if op.rows
        else rows_held([machine.full(machine.values[v]) for v in op.held], threads)
    )
    columns = slabs[-1] if op.transposed else np.swapaxes(slabs[-1], -1, -2)
    with np.errstate(all="ignore"):
        return sums_of_threads(rows @ columns, threads)


def _slab_read(
    machine: Lanes, flights: Flights, op: Operation, memory: Memory, first: Array, rows: int
) -> Array:
    """The slab of so many rows that begins at a flat offset."""
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
        flights.check(op, memory, read, "multiplies")
        memory.read(op, read.numbers[:, None], read.flat(memory))
    held = np.take_along_axis(memory.data, places, axis=1)
    return held.reshape(slots, rows, width).astype(np.float32)


def check_warpgroups(op: Operation, rows: int, columns: int, threads: int) -> None:
    """Raise MachineFault unless so many threads multiply so many rows and columns."""
    sums = sums_of(rows, columns, threads)
    if isinstance(sums, str):
        raise fault(op, sums)
    if sums != len(op.results):
        raise fault(op, f"gives {len(op.results)} sums of {sums}")
    assert threads % WARPGROUP == 0
