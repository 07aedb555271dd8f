"""Scratch rows: a buffer with room for a value of each iteration of a loop over columns."""

from __future__ import annotations

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, i64
from xdsl.ir import Attribute, Block, SSAValue

from ...analysis.index import constant_of
from .loop_code import ALIGNMENT


def most_of(value: SSAValue) -> int | None:
    """The largest number that an index can be, if it is known: that of a loop's end which may be clipped."""
    match value.owner:
        case arith.MinSIOp(lhs=lhs, rhs=rhs):
            return min((n for n in map(most_of, (lhs, rhs)) if n is not None), default=None)
        case arith.MaxSIOp(lhs=lhs, rhs=rhs):
            most = [most_of(lhs), most_of(rhs)]
            return None if None in most else max(n for n in most if n is not None)
        case _:
            return constant_of(value)


def row_of(
    value: SSAValue, loop: scf.ForOp, entry: Block, name: str, element: Attribute | None = None
) -> SSAValue:
    """A buffer with room for a value of each iteration, for the time that the function of `entry` runs.

    Its elements are of the type of `value`, or as `element` says.
    """
    length = most_of(loop.ub)
    assert length is not None
    alloc = memref.AllocOp([], [], MemRefType(element or value.type, [length]), IntegerAttr(ALIGNMENT, i64))
    first, last = entry.first_op, entry.last_op
    assert first is not None and last is not None
    entry.insert_op_before(alloc, first)
    entry.insert_op_before(memref.DeallocOp.get(alloc.memref), last)
    alloc.memref.name_hint = f"{value.name_hint or 'value'}_{name}"
    return alloc.memref
