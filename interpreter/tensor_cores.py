"""What products of matrices by warps and warpgroups mean.

`dialects/mma.py` and `dialects/wgmma.py` say whose elements are where.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.ir import Operation

from ..dialects.kernel import WARP
from ..dialects.mma import DEPTH, LANES, ROWS, SLOTS, MmaBase
from ..dialects.wgmma import PAIR, WARP_ROWS, WARPGROUP, sums_of
from .device_memory import fault
from .lanes import Lanes
from .numpy_types import Array

_GROUPS = WARP // LANES


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


def check_warpgroups(op: Operation, totals: int, rows: int, columns: int, threads: int) -> None:
    """Raise MachineFault unless so many threads multiply so many rows and columns, with as many totals."""
    sums = sums_of(rows, columns, threads)
    if isinstance(sums, str):
        raise fault(op, sums)
    if sums != totals:
        raise fault(op, f"gives {totals} sums of {sums}")
    assert threads % WARPGROUP == 0
