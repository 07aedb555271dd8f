"""What the model of tilings (`tilings.py`) needs to know of a contraction."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from ..dialects.loop import KernelOp, LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.tile import LaunchOp
from ..dialects.wgmma import MIN_COLUMNS, PANEL, ROW_BYTES
from ..machine.targets import Target
from .borders import loads_through_borders
from .boxes import comes_in_boxes, is_row_along
from .contraction import Contraction, axes_of, shared_along, step_along
from .cost import traffic, trips
from .factors import choose_instruction
from .lines import length_along, lengths_along
from .tilings import HALF_BYTES, Problem


def problem_of(contraction: Contraction, launch: LaunchOp, target: Target) -> Problem:
    """The sizes of a contraction; dynamic ones are what they are hinted to be."""
    extents = [trips(axis.extent.data) for axis in launch.axes]
    batch = prod(e for i, e in enumerate(extents) if i not in (contraction.m, contraction.n))
    operands = {
        (load.memref, load.map, tuple(load.indices)): load
        for load in loads_through_borders(contraction.sweep.body.block)
    }

    column, position = launch.body.block.args[contraction.n], contraction.sweep.induction_var

    def width(axis: int) -> float:
        counter = launch.body.block.args[axis]
        loads = [load for load in operands.values() if axis in axes_of(load, launch)]
        steps = [
            step_along(load, counter) / shared_along(load, counter, position) for load in loads
        ]
        sizes = [storage_bytes(load.result.type) for load in loads]
        return sum(size * step for size, step in zip(sizes, steps, strict=True))

    kernel = launch.parent_op()
    assert isinstance(kernel, KernelOp)
    rows = launch.body.block.args[contraction.m]
    direct = all(load.parent is contraction.sweep.body.block for load in operands.values())
    boxes = direct and all(
        comes_in_boxes(load, (rows, column), position) for load in operands.values()
    )
    return Problem(
        batch,
        extents[contraction.m],
        extents[contraction.n],
        trips(contraction.sweep.extent.data),
        len(contraction.sweep.res),
        width(contraction.m),
        width(contraction.n),
        traffic(kernel),
        instruction=choose_instruction(contraction.sweep, target),
        line=max(length_along(load, column) or 1 for load in operands.values()),
        boxes=boxes,
        rows_along_k=all(
            is_row_along(load, rows, position, ROW_BYTES // HALF_BYTES)
            for load in operands.values()
            if rows in load.indices
        ),
        column_step=_column_step(
            [load for load in operands.values() if column in load.indices], column, position
        ),
        lengths=max((tuple(lengths_along(o, position)) for o in operands.values()), key=len),
    )


def _column_step(loads: Sequence[LoadOp], column: SSAValue, position: SSAValue) -> int:
    """What the columns of a block of warpgroups are a multiple of; 0 if there are no such blocks."""
    steps = [
        MIN_COLUMNS
        if is_row_along(load, column, position, ROW_BYTES // HALF_BYTES)
        else PANEL
        if is_row_along(load, position, column, PANEL)
        else 0
        for load in loads
    ]
    return max(steps) if all(steps) else 0
