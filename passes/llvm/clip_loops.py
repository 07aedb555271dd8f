"""`clip-loops`: a loop all of whose body is under a condition on its counter ends where the condition does.

    scf.for %i = %c0 to %c4 step %c1 {
      %in = loop.test[%block * 4 + %i < 197]
      scf.if %in { ... %x[%block * 4 + %i, %j] ... }
    }
becomes
    %place = ...                                 // 197 - %block * 4, at least 0 and at most 4
    scf.for %i = %c0 to %place step %c1 { ... %x[%block * 4 + %i, %j] ... }

So rows of the last block, of which there are fewer, can come side by side like all others (`jam-rows`).

Declined are loops with more in them than what is under the condition, those that carry values, and conditions
that more than one counter of this loop or of one inside decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
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
    at = place_of(guard, loop)
    if not isinstance(at, Cut):
        return at
    if not at.first:
        return "the condition holds from a place on"
    before = Builder(InsertPoint.before(loop))
    place = before.insert(IndexOp(at.place, at.operands)).result
    least = before.insert(arith.MinSIOp(place, loop.ub)).result
    end = before.insert(arith.MaxSIOp(least, loop.lb)).result
    end.name_hint = "place"
    loop.operands[1] = end
    decide(guard, holds=True)
    return None


@dataclass(frozen=True)
class ClipLoopsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops that end where their conditions do."""

    name = "clip-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Clip the loops of every kernel that are under a condition."""
        change_loops(self.name, op, _change, none="no loop is under a condition")
