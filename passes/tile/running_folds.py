"""Running folds in a launch: at each place of an axis, what is folded of the terms at or before it.

    tile.launch (%j = 4096 : thread) {
      %s = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %until = loop.test[%j mod 16 - %k >= 0]
        %v = scf.if %until -> (f32) { ... %x[%j floordiv 16 * 16 + %k] ... } else { ... 0.0 ... }
        loop.yield %v : f32
      }
      ...

`share_prefixes.py` and `scan_rows.py` let places share what they fold.
"""

from __future__ import annotations

from xdsl.dialects import arith, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...analysis.running import is_until
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, TestOp
from ...dialects.scalars import identity, is_weighted
from ...dialects.syntax import scalar_attr
from ...dialects.tile import LaunchOp


def runs(launch: LaunchOp) -> list[tuple[int, int]]:
    """The axes on which the condition of a reduction depends, each with the reduction's length."""
    found: dict[tuple[int, int], None] = {}
    for loop in launch.body.block.ops:
        if not isinstance(loop, ForOp) or not loop.res or not isinstance(loop.extent.data, int):
            continue
        for test in (op for op in ops_in(loop.body) if isinstance(op, TestOp)):
            axes = [v for v in test.operands_ if launch.axis_of(v) is not None]
            if loop.induction_var in test.operands_ and len(axes) == 1 and loop.extent.data > 0:
                assert isinstance(axes[0], BlockArgument)
                found[axes[0].index, loop.extent.data] = None
    return list(found)


def varying_ops(block: Block, place: SSAValue) -> set[Operation]:
    """The operations of a block that depend on a place, or write."""
    values, found = {place}, set[Operation]()
    for op in block.ops:
        inside = ops_in(op)
        if not op.results or any(v in values for each in inside for v in each.operands):
            found.add(op)
            values.update(op.results)
    return found


def misfit(loop: ForOp, place: SSAValue, varying: set[Operation]) -> str | None:
    """Why a reduction is no running fold whose place is `place`."""
    combiners = [combiner.data for combiner in loop.combiners]
    if is_weighted(combiners):
        return "it folds weights"
    for combiner, value in zip(combiners, loop.yielded, strict=True):
        choice = value.owner
        if not isinstance(value, OpResult) or not isinstance(choice, scf.IfOp):
            return "a term has no condition"
        test = choice.cond.owner
        if not isinstance(test, TestOp) or not is_until(test, place, loop.induction_var):
            return "a condition is not that a term is at or before the place"
        end = choice.false_region.block.last_op
        assert end is not None
        other = end.operands[value.index].owner
        none = scalar_attr(identity(combiner, value.type), value.type)
        if not isinstance(other, arith.ConstantOp) or other.value != none:
            return "what is past the place is not the identity"
    changing = {place, *(result for op in varying for result in op.results)}
    for op in ops_in(loop.body):
        if any(v in changing for v in op.operands) and not (
            isinstance(op, TestOp) and is_until(op, place, loop.induction_var)
        ):
            return "a term depends on the place"
    return None
