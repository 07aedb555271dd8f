"""`unroll-windows`: a reduction of a few steps becomes so many copies of its body.

    %s = scf.for %w = %c0 to %c3 step %c1 iter_args(%so_far = %zero) -> (f32) {
      %v = loop.load %x[%i, %j + %w]
      %next = arith.addf %so_far, %v
      scf.yield %next
    }
becomes
    %v_0 = loop.load %x[%i, %j + %c0]      %next_0 = arith.addf %zero, %v_0
    %v_1 = loop.load %x[%i, %j + %c1]      %next_1 = arith.addf %next_0, %v_1
    ...

So the loop around it, over the results of a window, is an innermost one that LLVM makes vectors of. By itself
it does not unroll, as it would unroll short rows too, and not make vectors of those.

Declined are loops that reduce nothing or have many steps, those in no loop, and what would be too much code.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import constant_of
from ...analysis.windows import MOST_STEPS
from ...dialects.inside import ops_in, ops_of
from .kernel_loops import NOT_CONCERNED, change_loops

MOST_OPERATIONS = 300
"""Operations of all copies."""


def is_window(loop: scf.ForOp) -> bool:
    """Whether a loop reduces something in a few steps, and so do all those in it, and it is unrolled."""
    loops = ops_of(loop, scf.ForOp)
    if not all(each.res and (constant_of(each.ub) or inf) <= MOST_STEPS for each in loops):
        return False
    return _operations(loop) <= MOST_OPERATIONS


def _operations(loop: scf.ForOp) -> int:
    """How many operations a loop becomes, those in it unrolled as well."""
    inner = [op for op in loop.body.block.ops if isinstance(op, scf.ForOp)]
    plain = _count(ops_in(loop.body)) - sum(_count(ops_in(op)) for op in inner)
    return (constant_of(loop.ub) or 1) * (plain + sum(map(_operations, inner)))


def _count(ops: Iterable[Operation]) -> int:
    """How many operations there are; a bf16 is widened for next to nothing, a factor once for all columns."""
    return sum(not isinstance(op, arith.ExtFOp) for op in ops)


def _reason(loop: scf.ForOp) -> str | None:
    """Why a reduction stays a loop."""
    steps = constant_of(loop.ub)
    if steps is None or (constant_of(loop.lb), constant_of(loop.step)) != (0, 1):
        return "the number of steps is not known"
    if steps > MOST_STEPS:
        return f"{steps} steps are more than {MOST_STEPS}"
    if any(isinstance(op, scf.ForOp) for op in ops_in(loop.body)):
        return "a loop is left inside"
    count = _count(ops_in(loop.body)) * steps
    if count > MOST_OPERATIONS:
        return f"{steps} copies are {count} operations"
    if not isinstance(loop.parent_op(), scf.ForOp):
        return "it is in no loop"
    return None


def _unroll(loop: scf.ForOp) -> str | None:
    """Unroll a reduction; gives None, or why not."""
    if not loop.res:
        return NOT_CONCERNED
    if (reason := _reason(loop)) is None:
        unroll(loop)
    return reason


def unroll(loop: scf.ForOp) -> None:
    """Replace a loop from 0 to a constant by copies of its body."""
    steps = constant_of(loop.ub)
    assert steps is not None
    before = Builder(InsertPoint.before(loop))
    values: list[SSAValue] = list(loop.iter_args)
    counter, *accumulators = loop.body.block.args
    for step in range(steps):
        number = before.insert(arith.ConstantOp(IntegerAttr(step, IndexType()))).result
        mapping: dict[SSAValue, SSAValue] = {counter: number}
        mapping |= dict(zip(accumulators, values, strict=True))
        for op in loop.body.block.ops:
            if isinstance(op, scf.YieldOp):
                values = [mapping.get(v, v) for v in op.operands]
            else:
                before.insert(op.clone(mapping))
    for old, new in zip(loop.res, values, strict=True):
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


@dataclass(frozen=True)
class UnrollWindowsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves no short reductions inside of loops."""

    name = "unroll-windows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unroll the short reductions of every kernel, inner ones first."""
        change_loops(self.name, op, _unroll, inner_first=True, none="nothing is reduced")
