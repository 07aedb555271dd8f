"""The epilogue of a contraction whose parts are added to the result atomically; a part of `split-matmul-k`.

    %t = arith.mulf %s, %scale : f32           %first = loop.test [%part == 0]
    %u = arith.addf %t, %bias : f32            %t = arith.mulf %s, %scale : f32
    loop.store %u, %y[%i, %j]        becomes   %b = arith.select %first, %bias, %zero : f32
                                               %u = arith.addf %t, %b : f32
                                               loop.accumulate %u, %y[%i, %j] onto %start

What multiplies the sum distributes over the parts; what is added to it the first part adds; after anything
else the parts' values could not be added.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.inside import ops_in
from ...dialects.kernel_atomic import ATOMIC
from ...dialects.loop import AccumulateOp, ForOp, KernelOp, StoreOp, TestOp
from ...dialects.scalars import Combiner
from ..loop.merging import add_input
from ..loop.scalar_code import emit_constant


def refusal(sweep: ForOp) -> str | None:
    """Why the parts of a sweep's results cannot be added to the output, or None."""
    if any(c.data is not Combiner.ADD for c in sweep.combiners):
        return "parts that are not added cannot be added to the result"
    sums = _dependent(sweep)
    assert sweep.parent is not None
    for op in sweep.parent.walk():
        if isinstance(op, StoreOp) and (op.value not in sums or op.parent is not sweep.parent):
            return "it stores what is no sum of the parts"
        if isinstance(op, StoreOp) and op.value.type not in ATOMIC:
            return f"{op.value.type} is not added atomically"
        inside = sweep.is_ancestor(op)
        reads = [value in sums for value in op.operands]
        if inside or not any(reads) or isinstance(op, StoreOp):
            continue
        if not _is_linear(op, reads):
            return f"the epilogue is not linear in the sum: {op.name}"
    return None


def _is_linear(op: Operation, reads: list[bool]) -> bool:
    match op:
        case arith.AddfOp() | arith.SubfOp() | arith.NegfOp():
            return True
        case arith.MulfOp():
            return reads != [True, True]
        case arith.DivfOp():
            return reads == [True, False]
        case _:
            return False


def _dependent(sweep: ForOp) -> set[SSAValue]:
    """The values that depend on what a sweep gives."""
    found: set[SSAValue] = set(sweep.res)
    following = sweep.next_op
    while following is not None:
        if any(v in found for inner in ops_in(following) for v in inner.operands):
            found.update(following.results)
        following = following.next_op
    return found


def accumulate(
    sweep: ForOp, part: SSAValue, kernel: KernelOp, starts: dict[SSAValue, SSAValue]
) -> None:
    """Let each part add what it makes of its sum; `starts` has what each output begins as."""
    sums = _dependent(sweep)
    after = Builder(InsertPoint.after(sweep))
    first = after.insert(TestOp([AffineExpr.dimension(0) * -1], [part]))
    first.result.name_hint = "first"
    following = first.next_op
    while following is not None:
        op, following = following, following.next_op
        if isinstance(op, arith.AddfOp | arith.SubfOp):
            _add_once(op, sums, first.result)
        elif isinstance(op, StoreOp):
            start = add_input(kernel, starts[op.memref], "start")
            index = (op.map.data.results, list(op.indices))
            new = AccumulateOp(op.value, op.memref, *index, start)
            new.location = op.location
            Builder(InsertPoint.before(op)).insert(new)
            op.detach()
            op.erase()


def _add_once(op: arith.AddfOp | arith.SubfOp, sums: set[SSAValue], first: SSAValue) -> None:
    """Let only the first part add what is no sum."""
    dependent = [value in sums for value in op.operands]
    if dependent.count(True) != 1:
        return
    position = dependent.index(False)
    before = Builder(InsertPoint.before(op))
    other = op.operands[position]
    zero = emit_constant(before, 0, other.type)
    chosen = before.insert(arith.SelectOp(first, other, zero))
    chosen.result.name_hint = other.name_hint
    op.operands[position] = chosen.result
