"""`clip-loops`: a loop all of whose body is under a condition on its counter ends where the condition does.

    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%block * 4 + %i < 197]
      scf.if %in { ... %x[%block * 4 + %i, %j] ... }
    }
becomes
    %place = ...                                 // 197 - %block * 4, at least 0 and at most 4
    scf.for %i = %c0 to %place step %c1 { ... %x[%block * 4 + %i, %j] ... }

So rows of the last block, of which there are fewer, can come side by side like all others (`jam-rows`). Of
several conditions, those that do not depend on the counter are asked in front of the loop, where they may be
the condition of the loop around it:

    scf.for %i = %c0 to %c4 step %c1 {
      scf.for %j = %c0 to %c64 step %c1 {
        %in = loop.test[%rows * 4 + %i < s0, %columns * 64 + %j < s1]
        scf.if %in { ... }
becomes
    %last_i = ...  %last_j = ...
    scf.for %i = %c0 to %last_i step %c1 {
      scf.for %j = %c0 to %last_j step %c1 { ... }
    }

Ends are computed in front of all loops that they do not depend on.

Declined are loops with more in them than what is under the condition, those that carry values, and conditions
that hold from a place on, or in which the counter has a factor or is divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects.loop import IndexOp, TestOp
from ..replacing import decide
from .cut_loops import Cut, place_of
from .kernel_loops import NOT_CONCERNED, change_loops


def _guard(loop: scf.ForOp) -> TestOp | str:
    """The condition that all of a loop's body is under, or why there is none."""
    test, branch, *others = loop.body.block.ops
    if not isinstance(test, TestOp) or not isinstance(branch, scf.IfOp):
        return NOT_CONCERNED
    if branch.cond is not test.result or len(others) > 1:
        return "there is more in it than what is under the condition"
    if loop.res or branch.output or branch.false_region.blocks:
        return "it does something where the condition does not hold"
    return test


def _change(loop: scf.ForOp) -> str | None:
    """Clip a loop; gives None, or why not."""
    if len(loop.body.block.ops) < 2:
        return NOT_CONCERNED
    guard = _guard(loop)
    if isinstance(guard, str):
        return guard
    parts = _parts(guard, loop)
    if isinstance(parts, str):
        return parts
    cuts, rest = parts
    for at in cuts:
        before = Builder(InsertPoint.before(_outermost(loop, [*at.operands, loop.lb, loop.ub])))
        place = before.insert(IndexOp(at.place, at.operands)).result
        least = before.insert(arith.MinSIOp(place, loop.ub)).result
        end = before.insert(arith.MaxSIOp(least, loop.lb)).result
        end.name_hint = "place"
        loop.operands[1] = end
    if rest:
        _put_under(TestOp(rest, list(guard.operands_)), loop)
    decide(guard, holds=True)
    return None


def _parts(guard: TestOp, loop: scf.ForOp) -> tuple[list[Cut], list[AffineExpr]] | str:
    """Where the conditions of a loop's counter end, and the others; or why it is not known."""
    counter = loop.body.block.args[0]
    cuts: list[Cut] = []
    rest: list[AffineExpr] = []
    for number, expr in enumerate(guard.exprs):
        if counter not in [guard.operands_[d] for d in expr.used_dims()]:
            rest.append(expr)
            continue
        at = place_of(guard, loop, number)
        if not isinstance(at, Cut):
            return at
        if not at.first:
            return "the condition holds from a place on"
        cuts.append(at)
    return cuts, rest


def _outermost(loop: scf.ForOp, values: Sequence[SSAValue]) -> Operation:
    """The outermost loop or branch around a loop, or itself, in front of which there are some values."""
    found: Operation = loop
    while isinstance(parent := found.parent_op(), scf.ForOp | scf.IfOp):
        blocks = {
            value.owner if isinstance(value.owner, Block) else value.owner.parent
            for value in values
        }
        if any(block is not None and parent.is_ancestor(block) for block in blocks):
            break
        found = parent
    return found


def _put_under(test: TestOp, loop: scf.ForOp) -> None:
    """Have a loop run only where a condition holds."""
    before = Builder(InsertPoint.before(loop))
    before.insert(test)
    block = Block()
    branch = scf.IfOp(test.result, [], Region(block))
    branch.location = loop.location
    before.insert(branch)
    loop.detach()
    block.add_ops([loop, scf.YieldOp()])


@dataclass(frozen=True)
class ClipLoopsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops that end where their conditions do."""

    name = "clip-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clip the loops of every kernel that are under a condition."""
        change_loops(self.name, op, _change, inner_first=True, none="no loop is under a condition")
