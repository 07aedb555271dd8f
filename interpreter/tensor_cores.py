"""What a warp's product of small matrices means (`dialects/mma.py` says whose elements are where)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dialects.kernel import WARP
from ..dialects.mma import DEPTH, LANES, ROWS, SLOTS, MmaBase
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
