"""What passes ask about index expressions: their ranges, their canonical form, what always holds.

The arithmetic itself is in `index/simplify.py`, as types use it too; here are the ranges that
operations give their counters.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntAttr, IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..dialects import cuda, kernel
from ..dialects.loop import CheckedIndexOp, ForOp, IndexOp
from ..dialects.sizes import Extent, Size, extent_of
from ..dialects.tile import LaunchOp
from ..dialects.tile_pack import PackOp
from ..index.ranges import UNKNOWN, Range, bounds, is_bounded, numbers
from ..index.simplify import always_holds, never_holds, simplify, substitute

__all__ = [
    "UNKNOWN",
    "Range",
    "always_holds",
    "bounds",
    "constant_of",
    "extent_range",
    "known_extent",
    "never_holds",
    "operand_ranges",
    "simplify",
    "substitute",
    "value_range",
]

_UNSIGNED_LESS = 6
"""The number of `ult` in `arith.cmpi`."""


def extent_range(extent: Extent) -> Range:
    """The range of a counter from 0 to `extent`; a loop that never runs counts as running once."""
    if isinstance(extent, Size):
        return (0, extent.expr + -1)
    return (0, max(extent - 1, 0))


def value_range(value: SSAValue) -> Range:
    """The range of an SSA `index`, from the operation that makes it."""
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        if isinstance(parent, ForOp):
            return extent_range(parent.extent.data)
        if isinstance(parent, scf.ForOp) and value is parent.body.block.args[0]:
            return _scf_range(parent)
        if isinstance(parent, LaunchOp) and (axis := parent.axis_of(value)) is not None:
            return extent_range(axis.extent.data)
        if isinstance(parent, PackOp):
            return extent_range(parent.shape[value.index])
        return UNKNOWN
    match value.owner:
        case CheckedIndexOp(extent=extent):
            return extent_range(extent.data)
        case IndexOp() as op:
            return bounds(op.map.data.results[0], operand_ranges(op.operands_))
        case arith.IndexCastOp(input=value):
            return _selected_range(value)
        case kernel.BlockIdOp() as op:
            return _launch_range(op, threads=False)
        case kernel.ThreadIdOp() as op:
            return _launch_range(op, threads=True)
        case _:
            return UNKNOWN


def _launch_range(op: Operation, *, threads: bool) -> Range:
    """The range of a block's or thread's number, from the function that `op` stands in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kernel.FuncOp | cuda.FuncOp):
        parent = parent.parent_op()
    if parent is None:
        return (0, UNKNOWN[1])
    return extent_range(parent.threads.value.data if threads else parent.blocks.data)


def _scf_range(loop: scf.ForOp) -> Range:
    """The range of an `scf.for` counter from 0 to an end of which the extent or a range is known.

    The end may be the lesser of two, the second of them the extent.
    """
    if constant_of(loop.lb) != 0:
        return UNKNOWN
    end = loop.ub.owner.rhs if isinstance(loop.ub.owner, arith.MinSIOp) else loop.ub
    if (extent := known_extent(end)) is not None:
        return extent_range(extent)
    low, high = numbers(value_range(end))
    return extent_range(high) if is_bounded(low, high) else UNKNOWN


def _selected_range(value: SSAValue) -> Range:
    """The range of `x if x <u n else 0`, which `loop.checked_index` becomes."""
    select = value.owner
    if not isinstance(select, arith.SelectOp) or constant_of(select.rhs) != 0:
        return UNKNOWN
    compare = select.cond.owner
    if not isinstance(compare, arith.CmpiOp) or compare.lhs is not select.lhs:
        return UNKNOWN
    limit = known_extent(compare.rhs)
    if limit is None or compare.predicate.value.data != _UNSIGNED_LESS:
        return UNKNOWN
    return extent_range(limit)


def known_extent(value: SSAValue) -> Extent | None:
    """The extent that an integer is: a constant, or a size of the program."""
    match value.owner:
        case arith.ConstantOp(value=IntegerAttr(value=IntAttr(data=number))) if number >= 0:
            return number
        case arith.IndexCastOp(input=index):
            return known_extent(index)
        case IndexOp() as op if not op.operands_:
            return extent_of(op.map.data.results[0])
        case _:
            return None


def constant_of(value: SSAValue) -> int | None:
    """The number that an index is, if it is a constant."""
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def operand_ranges(operands: Sequence[SSAValue]) -> list[Range]:
    """The ranges of an index's operands."""
    return [value_range(value) for value in operands]
