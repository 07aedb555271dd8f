"""`split-at-sizes`: a loop in which a condition changes at a place that sizes decide becomes two.

    scf.for %j = %c0 to %length step %c1 {
      %first = loop.test[%j < s1]
      %v = scf.if %first -> (f32) { ... %a[%i, %j] ... } else { ... %b[%i, %j - s1] ... }
      loop.store %v, %y[%i, %j]
    }
becomes
    %place = ...                                 // s1, at least 0 and at most %length
    scf.for %j = %c0 to %place step %c1 { %v = loop.load %a[%i, %j]  loop.store %v, %y[%i, %j] }
    scf.for %j = %place to %length step %c1 { %v = loop.load %b[%i, %j - s1]  ... }

So what concatenates, pads or rotates is made of loops that copy, as `split-loops` makes it of numbers.

Declined are loops with others in them and those that carry values, conditions that choose between values
alone, places that no size decides, and what would become too many loops or too much code.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...dialects.affine import count_symbols
from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp
from ..replacing import decide, replace
from .cut_loops import Cut, piece_of, place_of
from .interchange_columns import constant_of
from .kernel_loops import NOT_CONCERNED, change_loops

MOST_PIECES = 6
"""Loops that one loop may become."""
MOST_OPERATIONS = 100
"""Operations of a loop that is worth a copy."""


@dataclass(frozen=True)
class Place(Cut):
    """A place where a loop is to be split."""

    number: int
    """Which of the conditions that the test asks changes there."""


def _find(loop: scf.ForOp) -> Place | str:
    """Where to split a loop, or why not."""
    if constant_of(loop.step) != 1:
        return "it does not go one by one"
    counter = loop.body.block.args[0]
    tests = [op for op in loop.body.block.ops if isinstance(op, TestOp)]
    tests = [op for op in tests if counter in op.operands_]
    if not tests:
        return "no condition is one of its counter"
    tests = [op for op in tests if _chooses_memory(op)]
    if not tests:
        return "conditions choose between values alone"
    why = ""
    for test in tests:
        for number, expr in enumerate(test.exprs):
            if counter not in [test.operands_[d] for d in expr.used_dims()]:
                continue
            at = place_of(test, loop, number)
            if not isinstance(at, Cut):
                why = why or at
            elif constant_of(loop.ub) is None or count_symbols([at.place]):
                return Place(at.test, at.place, at.operands, at.first, number)
    return why or "numbers decide its places"


def _chooses_memory(test: TestOp) -> bool:
    """Whether a condition says what is loaded or stored."""
    branches = [use.operation for use in test.result.uses]
    return any(
        isinstance(branch, scf.IfOp) and any(isinstance(o, LoadOp | StoreOp) for o in branch.walk())
        for branch in branches
    )


def _split(loop: scf.ForOp, at: Place) -> tuple[scf.ForOp, scf.ForOp]:
    """Replace a loop by the part before a place and the part from there on; gives them."""
    before = Builder(InsertPoint.before(loop))
    exact = before.insert(IndexOp(at.place, at.operands)).result
    least = before.insert(arith.MinSIOp(exact, loop.ub)).result
    place = before.insert(arith.MaxSIOp(least, loop.lb)).result
    place.name_hint = "place"
    first = _part(loop, loop.lb, place, at, holds=at.first)
    second = _part(loop, place, loop.ub, at, holds=not at.first)
    before.insert(first)
    before.insert(second)
    loop.detach()
    loop.erase()
    return first, second


def _part(loop: scf.ForOp, start: SSAValue, end: SSAValue, at: Place, *, holds: bool) -> scf.ForOp:
    """The loop over a range in which the condition holds, or in which it does not."""
    copied: dict[Operation, Operation] = {}
    part = piece_of(loop, start, end, [], copied)
    test = copied[at.test]
    assert isinstance(test, TestOp)
    others = [expr for number, expr in enumerate(test.exprs) if number != at.number]
    if holds and others:
        replace(test, TestOp(others, list(test.operands_)))
    else:
        decide(test, holds=holds)
    return part


def _change(loop: scf.ForOp) -> str | None:
    """Split a loop; gives None, or why not."""
    if any(isinstance(inner, scf.ForOp) for inner in loop.body.walk()):
        return NOT_CONCERNED
    if loop.res:
        return "it carries a value"
    if sum(1 for _ in loop.body.walk()) > MOST_OPERATIONS:
        return f"it has more than {MOST_OPERATIONS} operations"
    at = _find(loop)
    if isinstance(at, str):
        return at
    todo, count = [(loop, at)], 1
    while todo and count < MOST_PIECES:
        parts = _split(*todo.pop(0))
        todo += [(part, found) for part in parts if isinstance(found := _find(part), Place)]
        count += 1
    return None


@dataclass(frozen=True)
class SplitAtSizesPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops without the conditions that sizes decide."""

    name = "split-at-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the innermost loops of every kernel."""
        change_loops(self.name, op, _change)
