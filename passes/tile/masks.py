"""Masks: what is past the end of an axis does not run, or contributes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.loop import ForOp, TestOp, YieldOp
from ...dialects.scalars import identity
from ..loop.scalar_code import emit_constant


def mask_contributions(
    loop: ForOp, inside: Sequence[AffineExpr], operands: Sequence[SSAValue]
) -> None:
    """Run the body of a loop only where all of `inside` are at least zero; else contribute identities."""
    block = loop.body.block
    end = block.last_op
    assert isinstance(end, YieldOp)
    moved = [op for op in block.ops if op is not end]
    then, otherwise = Block(), Block()
    for op in moved:
        op.detach()
        then.add_op(op)
    then.add_op(scf.YieldOp(*end.arguments))
    builder = Builder(InsertPoint.at_end(otherwise))
    neutral = [
        emit_constant(builder, identity(c.data, result.type), result.type)
        for c, result in zip(loop.combiners, loop.res, strict=True)
    ]
    builder.insert(scf.YieldOp(*neutral))
    before = Builder(InsertPoint.before(end))
    test = before.insert(TestOp(inside, operands))
    guard = before.insert(
        scf.IfOp(test.result, list(loop.res.types), Region(then), Region(otherwise))
    )
    end.operands = guard.output
