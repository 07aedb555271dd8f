"""Windows: reductions of a few steps, such as those of a pooling or of a depthwise convolution.

On a CPU they are unrolled (`unroll-windows`), so that the loop around them is one that LLVM makes vectors of.
"""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.inside import ops_in, ops_of
from ..dialects.loop import ForOp, LoadOp, StoreOp
from ..dialects.tile import LaunchOp
from ..machine.matrix_instructions import HALVES
from .conditions import linear

MOST_STEPS = 8
"""Of a window, along one axis."""

MOST_ELEMENTS = 64
"""Of a window."""

MOST_WASTE = 6
"""Channels that tensor cores sum over, for each one that there is; the others are 0."""

LEAST_ROWS = 16
"""Rows of weights, at least, for windows to be multiplied as matrices."""

MOST_STRIDE = 4
"""From a window to the next one, in elements."""


def padded_channels(channels: int, depth: int = HALVES.depth) -> int | None:
    """A multiple of what tensor cores sum over at once; None if most of the channels would be 0."""
    padded = -(-channels // depth) * depth
    return padded if padded <= MOST_WASTE * channels else None


def window_elements(launch: LaunchOp) -> int | None:
    """The elements of a launch's largest window; None if it has other loops, or vectors have no use for it.

    Neighbouring points of the innermost axis must read elements that are neighbours, or nearly so, or that
    `stage-windows` makes neighbours: those under a condition.
    """
    loops = ops_of(launch, ForOp)
    if not loops or not launch.axes:
        return None
    for loop in loops:
        steps = loop.extent.data
        if not loop.res or not isinstance(steps, int) or steps > MOST_STEPS:
            return None
    most = max(prod(_steps(loop, launch)) for loop in loops)
    column = launch.body.block.args[-1]
    loads = [op for op in ops_in(launch) if isinstance(op, LoadOp) and column in op.indices]
    along = all(_is_copied(o) or 0 < stride_along(o, column) <= MOST_STRIDE for o in loads)
    return most if most <= MOST_ELEMENTS and loads and along else None


def _is_copied(load: LoadOp) -> bool:
    """Whether a load is of what a window has in it under a condition, as at the border of an image."""
    branch = load.parent_op()
    return isinstance(branch, scf.IfOp) and bool(branch.output)


def rows_overlap(launch: LaunchOp) -> bool:
    """Whether windows of neighbouring rows, points of the second innermost axis, read the same elements."""
    if len(launch.axes) < 2:
        return False
    row = launch.body.block.args[-2]
    counters: set[SSAValue] = {op.induction_var for op in ops_in(launch) if isinstance(op, ForOp)}
    for load in ops_of(launch, LoadOp):
        for expr in load.map.data.results:
            used = {load.indices[d] for d in expr.used_dims()}
            if used & counters and _coefficient(load, expr, row) == 1:
                return True
    return False


def _coefficient(load: LoadOp | StoreOp, expr: AffineExpr, counter: SSAValue) -> int:
    """How often a counter is added up in an index of a load; 0 where the index is no sum."""
    parts = linear(expr)
    dims = [d for d, value in enumerate(load.indices) if value is counter]
    return 0 if parts is None else sum(parts.coefficients.get(d, 0) for d in dims)


def stride_along(op: LoadOp | StoreOp, column: SSAValue) -> int:
    """How far apart in memory neighbouring columns are accessed, if it does not leave the row; else 0."""
    columns = {d for d, value in enumerate(op.indices) if value is column}
    if not columns:
        return 0  # such as a number, which has no axes
    *outer, last = op.map.data.results
    if any(columns & expr.used_dims() for expr in outer):
        return 0
    return _coefficient(op, last, column)


def _steps(loop: ForOp, launch: LaunchOp) -> list[int]:
    """The steps of a loop and of those around it."""
    found: list[int] = []
    op: Operation | None = loop
    while op is not None and op is not launch:
        if isinstance(op, ForOp) and isinstance(op.extent.data, int):
            found.append(op.extent.data)
        op = op.parent_op()
    return found
