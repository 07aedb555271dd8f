"""Helpers of passes that put operations in the place of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ..dialects.loop import TestOp


def rename(old: Sequence[SSAValue], new: Sequence[SSAValue]) -> None:
    """Have all that reads some values read others, which take their names."""
    for before, after in zip(old, new, strict=True):
        after.name_hint = before.name_hint
        before.replace_all_uses_with(after)


def builder_at(op: Operation) -> Builder:
    """What inserts operations in front of one, with its location."""
    return Builder(InsertPoint.before(op), operation_insertion_handler=[placed_like(op)])


def placed_like(op: Operation) -> Callable[[Operation], None]:
    """What gives an operation the location of another."""

    def place(made: Operation) -> None:
        made.location = op.location

    return place


def replace(op: Operation, by: Operation) -> None:
    """Put `by` in the place of `op`, with its location, its attributes and the names of its results."""
    block = op.parent
    assert block is not None
    by.location = op.location
    by.attributes |= op.attributes
    block.insert_op_before(by, op)
    rename(op.results, by.results)
    op.detach()
    op.erase()


def decide(test: TestOp, *, holds: bool) -> None:
    """Replace a test whose result is known, and the branches that it chooses."""
    # One that is taken may erase another, which stood in its other branch.
    while branches := [
        use.operation for use in test.result.uses if isinstance(use.operation, scf.IfOp)
    ]:
        take(branches[0], holds)
    assert test.parent is not None
    if test.result.first_use is not None:
        constant = arith.ConstantOp(IntegerAttr(int(holds), i1))
        test.parent.insert_op_before(constant, test)
        test.result.replace_all_uses_with(constant.result)
    test.detach()
    test.erase()


def take(op: scf.IfOp, holds: bool) -> None:
    """Put the branch that is taken in the place of an `scf.if`."""
    region = op.true_region if holds else op.false_region
    parent = op.parent
    assert parent is not None
    if region.blocks:
        end = region.block.last_op
        assert isinstance(end, scf.YieldOp)
        results = list(end.operands)
        for inner in list(region.block.ops):
            inner.detach()
            if inner is end:
                inner.erase()
            else:
                parent.insert_op_before(inner, op)
        for old, new in zip(op.results, results, strict=True):
            old.replace_all_uses_with(new)
    op.detach()
    op.erase()
