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

Declined are loops with others in them, short ones and those that carry values, conditions that choose between
values alone, places that no size decides, and what would become too many loops or too much code.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import always_holds, operand_ranges, simplify
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp
from ...index.affine import count_symbols
from ..replacing import decide, replace
from .cut_loops import Cut, piece_of, place_of
from .interchange_columns import constant_of
from .kernel_loops import NOT_CONCERNED, change_loops

MOST_PIECES = 6
"""Loops that one loop may become."""
LEAST = 64
"""Iterations of a loop that is worth a cut: fewer are some vectors under a mask."""
MOST_OPERATIONS = 100
"""Operations of a loop that is worth a copy."""


def _places(loop: scf.ForOp) -> list[Cut] | str:
    """Where conditions of a loop's counter change, if sizes decide; or why not."""
    if constant_of(loop.step) != 1:
        return "it does not go one by one"
    counter = loop.body.block.args[0]
    tests = [op for op in ops_in(loop.body) if isinstance(op, TestOp) and counter in op.operands_]
    if not tests:
        return "no condition is one of its counter"
    if not any(_chooses_memory(test) for test in tests):
        return "conditions choose between values alone"
    places = [
        place_of(test, loop, number)
        for test in tests
        for number, expr in enumerate(test.exprs)
        if counter in [test.operands_[d] for d in expr.used_dims()]
    ]
    known = [at for at in places if isinstance(at, Cut)]
    if not known:
        return next(at for at in places if isinstance(at, str))
    if (length := constant_of(loop.ub)) is None:
        return known
    if length < LEAST:
        return f"it has less than {LEAST} iterations"
    return known if any(count_symbols([at.place]) for at in known) else "numbers decide its places"


def _chooses_memory(test: TestOp) -> bool:
    """Whether a condition says what is loaded or stored."""
    branches = [use.operation for use in test.result.uses]
    return any(
        isinstance(branch, scf.IfOp)
        and any(isinstance(o, LoadOp | StoreOp) for o in ops_in(branch))
        for branch in branches
    )


def _split(loop: scf.ForOp, at: Cut) -> list[scf.ForOp]:
    """Replace a loop by the part before a place and the part from there on; gives them."""
    before = Builder(InsertPoint.before(loop))
    exact = before.insert(IndexOp(at.place, at.operands)).result
    least = before.insert(arith.MinSIOp(exact, loop.ub)).result
    place = before.insert(arith.MaxSIOp(least, loop.lb)).result
    place.name_hint = "place"
    parts: list[scf.ForOp] = []
    for start, end in ((loop.lb, place), (place, loop.ub)):
        part = piece_of(loop, start, end, [], {})
        before.insert(part)
        _decide(part, at, before=not parts)
        parts.append(part)
    loop.detach()
    loop.erase()
    return parts


def _decide(part: scf.ForOp, at: Cut, *, before: bool) -> None:
    """Take out of a part of a loop the conditions that say the same before a place, or from there on."""
    for test in ops_of(part.body, TestOp):
        if test.parent is None:
            continue  # it stood in a branch that is not taken
        known: dict[int, bool] = {}
        for number, expr in enumerate(test.exprs):
            if part.body.block.args[0] not in [test.operands_[d] for d in expr.used_dims()]:
                continue
            other = place_of(test, part, number)
            if isinstance(other, Cut) and _comes_first(*((at, other) if before else (other, at))):
                known[number] = other.first == before
        left = [expr for number, expr in enumerate(test.exprs) if number not in known]
        if not all(known.values()) or not left:
            decide(test, holds=all(known.values()))
        elif known:
            replace(test, TestOp(left, list(test.operands_)))


def _comes_first(one: Cut, other: Cut) -> bool:
    """Whether a place is surely none behind another one."""
    if one.operands != other.operands:
        return False
    ranges = operand_ranges(one.operands)
    return always_holds(simplify(other.place + one.place * -1, ranges), ranges)


def _change(loop: scf.ForOp) -> str | None:
    """Split a loop; gives None, or why not."""
    if any(isinstance(inner, scf.ForOp) for inner in ops_in(loop.body)):
        return NOT_CONCERNED
    if loop.res:
        return "it carries a value"
    if len(ops_in(loop.body)) > MOST_OPERATIONS:
        return f"it has more than {MOST_OPERATIONS} operations"
    places = _places(loop)
    if isinstance(places, str):
        return places
    todo, count = [loop], 1
    while todo and count < MOST_PIECES:
        each = todo.pop(0)
        if not isinstance(places := _places(each), str):
            todo += _split(each, places[0])
            count += 1
    return None


@dataclass(frozen=True)
class SplitAtSizesPass(ModulePass):
    """Needs kernels as `scf` functions; leaves loops without the conditions that sizes decide."""

    name = "split-at-sizes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Split the innermost loops of every kernel."""
        change_loops(self.name, op, _change)
