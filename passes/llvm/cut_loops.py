"""`cut-loops`: a loop whose condition changes at a place that an outer counter decides is cut there.

    scf.for %j = %c0 to %c256 step %c1 {
      %in = loop.test[%i - %j >= 0]
      %v = scf.if %in -> (f32) { ... %x[%i, %j] ... } else { ... 0xff800000 ... }
      ...
    }
becomes
    %place = ...                                 // (%i + 64) floordiv 64 * 64, at least 0 and at most 256
    scf.for %j = %c0 to %place step %c1 { ... }                                     // as before
    scf.for %j = %place to %c256 step %c1 { %v = ... 0xff800000 ... }

So of a causal softmax little more is computed than what is not masked: the other loop computes the same in
each iteration, which LLVM does once in front of it. The part with the condition is some whole vectors long.
Where the place is known, `split-loops` has cut the loop exactly there.

Declined are short loops and large ones, conditions that choose no value, and those in which the counter has a
factor or is divided, or that need what the loop computes.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import slope_along
from ...analysis.index import constant_of, operand_ranges, simplify
from ...dialects.index import normalize_operands
from ...dialects.inside import ops_in
from ...dialects.loop import IndexOp, TestOp
from ...index.affine import ZERO, replace_dims
from ..replacing import decide
from .kernel_loops import NOT_CONCERNED, change_loops

PART = 64
"""What the part with the condition is a multiple of: four vectors of 16 elements."""
SHORTEST = 2 * PART
MOST_OPERATIONS = 100
"""Operations of a loop that is worth a copy."""


@dataclass(frozen=True)
class Cut:
    """A condition of a loop's counter: it changes once the counter is `place` of `operands`."""

    test: TestOp
    place: AffineExpr
    operands: tuple[SSAValue, ...]
    first: bool
    """What it is before."""


def _cut(loop: scf.ForOp) -> Cut | str:
    """Where to cut a loop, or why not."""
    length = constant_of(loop.ub)
    if length is None or (constant_of(loop.lb), constant_of(loop.step)) != (0, 1):
        return "its length is not known"
    tests = [op for op in loop.body.block.ops if isinstance(op, TestOp)]
    tests = [op for op in tests if loop.body.block.args[0] in op.operands_]
    if not tests:
        return "no condition is one of its counter"
    if length < SHORTEST:
        return f"it has less than {SHORTEST} iterations"
    if len(ops_in(loop.body)) > MOST_OPERATIONS:
        return f"it has more than {MOST_OPERATIONS} operations"
    chosen = [test for test in tests if _chooses(test)]
    if not chosen:
        return "a condition chooses no value"
    found = [
        place_of(test, loop) if len(test.exprs) == 1 else "there are several conditions"
        for test in chosen
    ]
    known = [each for each in found if isinstance(each, Cut)]
    return known[0] if known else str(found[0])


def _chooses(test: TestOp) -> bool:
    """Whether a condition says which of two values there is."""
    branches = [use.operation for use in test.result.uses]
    return any(isinstance(branch, scf.IfOp) and branch.output for branch in branches)


def place_of(test: TestOp, loop: scf.ForOp, number: int = 0) -> Cut | str:
    """Where a condition of a loop's counter changes, or why that is not known.

    It is the one of that number that a test asks.
    """
    operands, counter = tuple(test.operands_), loop.body.block.args[0]
    slope = slope_along(test.exprs[number], operands, counter)
    if slope is None:
        return "a condition is not linear"
    if slope not in (1, -1):
        return "the counter has a factor"
    inside = {loop.body.block, *ops_in(loop.body)}
    if any(value is not counter and value.owner in inside for value in operands):
        return "a condition is computed in the loop"
    dims = [ZERO if v is counter else AffineExpr.dimension(i) for i, v in enumerate(operands)]
    rest = simplify(replace_dims(test.exprs[number], dims), operand_ranges(operands))
    place = rest + 1 if slope < 0 else rest * -1
    exprs, used = normalize_operands([place], operands)
    return Cut(test, exprs[0], tuple(used), first=slope < 0)


def cut(loop: scf.ForOp, at: Cut) -> None:
    """Replace a loop by the part in which the condition may hold and the part in which it does not."""
    before = Builder(InsertPoint.before(loop))
    up = PART - 1 if at.first else 0
    whole = before.insert(IndexOp((at.place + up) // PART * PART, at.operands)).result
    least = before.insert(arith.MinSIOp(whole, loop.ub)).result
    place = before.insert(arith.MaxSIOp(least, loop.lb)).result
    place.name_hint = "place"
    values: list[SSAValue] = list(loop.iter_args)
    for start, end, never in ((loop.lb, place, not at.first), (place, loop.ub, at.first)):
        copied: dict[Operation, Operation] = {}
        piece = piece_of(loop, start, end, values, copied)
        before.insert(piece)
        values = list(piece.res)
        if never:
            test = copied[at.test]
            assert isinstance(test, TestOp)
            decide(test, holds=False)
    for old, new in zip(loop.res, values, strict=True):
        old.replace_all_uses_with(new)
    loop.detach()
    loop.erase()


def piece_of(
    loop: scf.ForOp,
    start: SSAValue,
    end: SSAValue,
    values: list[SSAValue],
    copied: dict[Operation, Operation],
) -> scf.ForOp:
    """The loop over another range, with other values to begin with; `copied` gets its operations."""
    body = loop.body.clone()
    copied.update(zip(ops_in(loop.body), ops_in(body), strict=True))
    for old, new in zip(loop.body.block.args, body.block.args, strict=True):
        new.name_hint = old.name_hint
    piece = scf.ForOp(start, end, loop.step, values, body)
    piece.location = loop.location
    for old, new in zip(loop.res, piece.res, strict=True):
        new.name_hint = old.name_hint
    return piece


def _change(loop: scf.ForOp) -> str | None:
    """Cut a loop; gives None, or why not."""
    if any(isinstance(inner, scf.ForOp) for inner in ops_in(loop.body)):
        return NOT_CONCERNED
    at = _cut(loop)
    if isinstance(at, str):
        return at
    cut(loop, at)
    return None


@dataclass(frozen=True)
class CutLoopsPass(ModulePass):
    """Needs kernels as `scf` functions; leaves shorter loops with conditions, and loops without."""

    name = "cut-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Cut the loops of every kernel that have a condition and no loop in them."""
        change_loops(self.name, op, _change)
