"""What products of matrices by warps and warpgroups mean: the loop nests of their rows in `machine/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

import numpy as np
from xdsl.ir import Operation

from ..dialects.fragments import COLUMNS, ROWS, SUMS, elements_of_registers, parse_layout
from ..dialects.mma import MmaBase
from ..dialects.wgmma import WARPGROUP, sums_of
from ..errors import DeploError
from ..machine.matrix_instructions import WGMMA
from .device_memory import fault
from .lanes import Lanes
from .numpy_types import Array
from .tensor_ir import evaluate_index

_NEST = re.compile(r"sums\[(\w), (\w)\] \+= rows\[(\w), (\w)\] \* columns\[(\w), (\w)\]")


def evaluate_nest(meaning: str, rows: Array, columns: Array) -> Array:
    """What the loop nest of an instruction adds to sums, of matrices in the last two axes."""
    if (match := _NEST.fullmatch(meaning)) is None:
        raise DeploError(f"'{meaning}' is no loop nest of a matrix instruction")
    i, j, *rows_at, c, d = match.groups()
    (k,) = depths if len(depths := {*rows_at} - {i}) == 1 else (i,)
    if len({i, j, k}) != 3 or {*rows_at} != {i, k} or {c, d} != {k, j}:
        raise DeploError(f"'{meaning}' is no product of matrices")
    left = rows if rows_at == [i, k] else np.swapaxes(rows, -1, -2)
    return left @ (columns if (c, d) == (k, j) else np.swapaxes(columns, -1, -2))


@cache
def places(
    layout: str, threads: int, count: int, along: int, depth: int = 0, repeats: int = 1
) -> tuple[Array, Array]:
    """Where each element that a thread holds is in a matrix: of each axis an array of threads by elements."""
    map = parse_layout(layout)
    found = np.zeros((2, threads, count * repeats), np.int64)
    numbers = elements_of_registers(layout, count, along, depth, repeats)
    thread = np.arange(threads)
    for repeat, of_registers in enumerate(numbers):
        for register, number in enumerate(of_registers):
            for axis, expr in enumerate(map.results):
                found[axis, :, number] = evaluate_index(expr, [thread, np.full(threads, register)])
            found[along, :, number] += repeat * depth
    return found[0], found[1]


def multiply(op: MmaBase, threads: int, operands: Sequence[Array]) -> list[Array]:
    """The products of every thread, from its elements of rows and of columns.

    `operands` have one array axis at the end for the `threads` of a block, or 1. Raises MachineFault if these
    are no whole warps.
    """
    row, repeats = op.instruction
    (height, width, depth), (of_rows, of_columns, of_sums) = row.shape, row.held
    if threads % row.threads:
        raise fault(op, f"is computed by whole warps; a block of {threads} threads has others")
    outer = np.broadcast_shapes(*(value.shape[:-1] for value in operands))
    dtype = {"f32": np.float32, "f64": np.float64, "i32": np.int32}[row.sum_type]

    def matrix(values: Sequence[Array], shape: tuple[int, int], at: tuple[Array, Array]) -> Array:
        held = np.stack([np.broadcast_to(v, (*outer, threads)) for v in values], axis=-1)
        whole = np.zeros((*outer, threads // row.threads, *shape), dtype)
        whole[..., at[0], at[1]] = held.reshape(*whole.shape[:-2], row.threads, len(values))
        return whole

    count = of_rows * repeats
    rows = matrix(
        operands[:count],
        (height, depth * repeats),
        places(row.rows, row.threads, of_rows, ROWS, depth, repeats),
    )
    columns = matrix(
        operands[count:],
        (depth * repeats, width),
        places(row.columns, row.threads, of_columns, COLUMNS, depth, repeats),
    )
    products = evaluate_nest(row.meaning, rows, columns)
    i, j = places(row.sums, row.threads, of_sums, SUMS)
    held = products[..., i, j].reshape(*outer, threads, of_sums)
    return [held[..., number] for number in range(of_sums)]


def multiply_in_warps(machine: Lanes, op: MmaBase) -> None:
    """Execute a product on a lockstep machine; all lanes of a warp must take part, or none."""
    machine.require_whole_warps(op)
    operands = [machine.full(machine.values[value]) for value in (*op.rows, *op.columns)]
    products = multiply(op, machine.shape[1], operands)
    sums = [machine.values[value] for value in op.sums] or [np.float32(0)] * len(products)
    for result, product, total in zip(op.products, products, sums, strict=True):
        machine.values[result] = product + total


def multiply_slabs(rows: Array, columns: Array) -> Array:
    """The product of slabs in the last two axes."""
    return evaluate_nest(WGMMA.meaning, rows, columns)


def sums_of_threads(products: Array, threads: int) -> list[Array]:
    """The sums of each thread, of a product of slabs in the last two axes: one axis of threads instead."""
    height, width = products.shape[-2:]
    group = np.arange(threads) // WARPGROUP * WGMMA.shape[0]
    count = WGMMA.shape[0] * width // WARPGROUP
    row, column = places(WGMMA.sums, WARPGROUP, count, SUMS)
    mine = np.arange(threads) % WARPGROUP
    return [
        products[..., row[mine, number] + group + down, column[mine, number]]
        for down in range(0, height, threads // WARPGROUP * WGMMA.shape[0])
        for number in range(count)
    ]


def rows_held(values: Sequence[Array], threads: int) -> Array:
    """The rows that threads hold, of all warpgroups one below the other, from what each holds.

    `values` have an array axis of threads at the end; it becomes one of rows and one of positions.
    """
    outer = np.broadcast_shapes(*(value.shape[:-1] for value in values))
    count, depth = WGMMA.held[0], WGMMA.shape[2]
    row, position = places(WGMMA.rows, WARPGROUP, count, ROWS)
    mine = np.arange(threads) % WARPGROUP
    group = np.arange(threads) // WARPGROUP * WGMMA.shape[0]
    height = threads // WARPGROUP * WGMMA.shape[0]
    held = np.zeros((*outer, height, len(values) // count * depth), np.float32)
    for number, value in enumerate(values):
        step, element = divmod(number, count)
        held[..., row[mine, element] + group, position[mine, element] + step * depth] = value
    return held


def check_warpgroups(op: Operation, totals: int, rows: int, columns: int, threads: int) -> None:
    """Raise MachineFault unless so many threads multiply so many rows and columns, with as many totals."""
    sums = sums_of(rows, columns, threads)
    if isinstance(sums, str):
        raise fault(op, sums)
    if sums != totals:
        raise fault(op, f"gives {totals} sums of {sums}")
    assert threads % WARPGROUP == 0
