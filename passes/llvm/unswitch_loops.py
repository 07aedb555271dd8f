"""`unswitch-loops`: a condition that is the same in each iteration of a loop is asked once, in front of it.

    scf.for %k = %c0 to %c96 step %c1 {
      %v = scf.if %first_row -> (f32) { ... %token[%k] ... } else { ... %patches[%row, %k] ... }
      ...
    }
becomes
    scf.if %first_row {
      scf.for %k = ... { %v = loop.load %token[%k] ... }
    } else {
      scf.for %k = ... { %v = loop.load %patches[%row, %k] ... }
    }

So rows that are put together from several arrays, or rolled around, are loops without branches, of which LLVM
makes vectors. Conditions that choose between values alone stay: these are selected without a branch.

Declined are loops with others in them, and those that would become too much code.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp, TestOp
from ..replacing import replace, take
from .kernel_loops import NOT_CONCERNED, change_loops

MOST_LOOPS = 4
"""That one becomes."""

MOST_OPERATIONS = 400
"""In all of them."""


def _comes_from(value: SSAValue, loop: scf.ForOp) -> bool:
    """Whether a value is computed in a loop, or is its counter or what it carries."""
    if isinstance(value, BlockArgument):
        return loop.body.block is value.block or loop.is_ancestor(value.block)
    return isinstance(value.owner, Operation) and loop.is_ancestor(value.owner)


def _condition(loop: scf.ForOp) -> SSAValue | None:
    """A condition that is the same each time, of a branch in the loop's body that accesses memory."""
    for op in loop.body.block.ops:
        if isinstance(op, scf.IfOp) and any(isinstance(o, LoadOp | StoreOp) for o in ops_in(op)):
            test = op.cond.owner
            if not _comes_from(op.cond, loop):
                return op.cond
            if isinstance(test, TestOp) and not any(_comes_from(v, loop) for v in test.operands_):
                return op.cond
    return None


def _says_the_same(one: SSAValue, other: SSAValue) -> bool:
    """Whether conditions are the same value, or ask the same of the same values."""
    a, b = one.owner, other.owner
    if not isinstance(a, TestOp) or not isinstance(b, TestOp):
        return one is other
    return a.set == b.set and tuple(a.operands_) == tuple(b.operands_)


def _unswitch(loop: scf.ForOp, condition: SSAValue) -> list[scf.ForOp]:
    """Put two loops, one for each answer, in the place of one; gives them."""
    test = condition.owner
    if isinstance(test, TestOp) and _comes_from(condition, loop):
        assert loop.parent is not None
        test.detach()
        loop.parent.insert_op_before(test, loop)
    inside = ops_in(loop)
    branches = [
        i
        for i, op in enumerate(inside)
        if isinstance(op, scf.IfOp) and _says_the_same(op.cond, condition)
    ]
    loops: list[scf.ForOp] = []
    regions: list[Region] = []
    for holds in (True, False):
        copy = loop.clone()
        copied = ops_in(copy)
        for branch in [copied[i] for i in reversed(branches)]:
            assert isinstance(branch, scf.IfOp)
            take(branch, holds)
        loops.append(copy)
        regions.append(Region(Block([copy, scf.YieldOp(*copy.results)])))
    replace(loop, scf.IfOp(condition, list(loop.res.types), regions[0], regions[1]))
    return loops


def _change(loop: scf.ForOp) -> str | None:
    """Unswitch a loop; gives None, or why not."""
    if any(isinstance(op, scf.ForOp) for op in ops_in(loop.body)):
        return NOT_CONCERNED
    size, count, todo = len(ops_in(loop.body)), 1, [loop]
    if _condition(loop) is None:
        return "no branch in it is decided in front of it"
    if 2 * size > MOST_OPERATIONS:
        return f"two copies are {2 * size} operations"
    while todo and count < MOST_LOOPS and (count + 1) * size <= MOST_OPERATIONS:
        each = todo.pop(0)
        if (condition := _condition(each)) is not None:
            todo += _unswitch(each, condition)
            count += 1
    return None


@dataclass(frozen=True)
class UnswitchLoopsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves innermost loops without branches decided before them."""

    name = "unswitch-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Unswitch the innermost loops of every kernel."""
        change_loops(self.name, op, _change)
