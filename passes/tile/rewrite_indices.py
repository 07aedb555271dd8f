"""Rewriting the index expressions of a nest when its counters change; shared by the tile passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.index import operand_ranges, simplify
from ...dialects.loop import AccumulateOp, IndexOp, LoadOp, StoreOp, TestOp
from ...index.affine import replace_dims

Index: TypeAlias = tuple[Sequence[AffineExpr], list[SSAValue]]
"""Expressions, and the values that they are over."""


def index_of(op: Operation) -> Index | None:
    """The index expressions of an operation and what they read, or None if it has none."""
    match op:
        case LoadOp() | StoreOp() | AccumulateOp():
            return op.map.data.results, list(op.indices)
        case IndexOp():
            return op.map.data.results, list(op.operands_)
        case TestOp():
            return op.exprs, list(op.operands_)
        case _:
            return None


def rewrite_index(op: Operation, old: dict[SSAValue, AffineExpr], counters: list[SSAValue]) -> None:
    """Rewrite the index expressions of `op` from old counters to new ones, in place.

    An operation that reads an old counter as a value gets a `loop.index` to read.
    """
    index = index_of(op)
    if index is None:
        _rewrite_operands(op, old, counters)
        return
    exprs, operands = index
    if any(value in old for value in operands):
        set_index(op, *rewritten(exprs, operands, old, counters))


def rewritten(
    exprs: Sequence[AffineExpr],
    operands: Sequence[SSAValue],
    old: Mapping[SSAValue, AffineExpr],
    counters: Sequence[SSAValue],
) -> Index:
    """Expressions over `operands` with the `old` counters as they are over new ones."""
    space = [*counters, *(v for v in operands if v not in old)]
    dims = [old[v] if v in old else AffineExpr.dimension(space.index(v)) for v in operands]
    ranges = operand_ranges(space)
    return [simplify(replace_dims(e, dims), ranges) for e in exprs], space


def set_index(op: Operation, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> None:
    """Replace an operation that has index expressions by one with others."""
    new: Operation
    match op:
        case LoadOp():
            new = LoadOp(op.memref, exprs, operands)
        case StoreOp():
            new = StoreOp(op.value, op.memref, exprs, operands)
        case AccumulateOp():
            new = AccumulateOp(op.value, op.memref, exprs, operands, op.start)
        case IndexOp():
            new = IndexOp(exprs[0], operands)
        case _:
            new = TestOp(exprs, operands)
    new.location = op.location
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    for mine, theirs in zip(op.results, new.results, strict=True):
        theirs.name_hint = mine.name_hint
        mine.replace_all_uses_with(theirs)
    op.detach()
    op.erase()


def _rewrite_operands(
    op: Operation, old: dict[SSAValue, AffineExpr], counters: list[SSAValue]
) -> None:
    for position, value in enumerate(op.operands):
        if value not in old:
            continue
        index = IndexOp(simplify(old[value], operand_ranges(counters)), counters)
        index.location = op.location
        index.result.name_hint = value.name_hint
        assert op.parent is not None
        op.parent.insert_op_before(index, op)
        op.operands[position] = index.result
