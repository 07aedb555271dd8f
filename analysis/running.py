"""Running folds: at each place of an axis, what is folded of the terms at or before it."""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.inside import ops_in
from ..dialects.loop import ForOp, KernelOp, TestOp
from .conditions import Linear, linear
from .index import bounds, operand_ranges, simplify

FEWEST = 8
"""Places below which each folds alone."""


def is_until(test: TestOp, place: SSAValue, counter: SSAValue) -> bool:
    """Whether a test says `place - counter >= 0`."""
    operands = list(test.operands_)
    if len(test.exprs) != 1 or place not in operands or counter not in operands:
        return False
    difference = {operands.index(place): 1, operands.index(counter): -1}
    return linear(test.exprs[0]) == Linear(difference, 0)


def has_running_fold(kernel: KernelOp) -> bool:
    """Whether a reduction folds at each place the terms at or before it, all of them at the last place."""
    loops = [op for op in ops_in(kernel) if isinstance(op, ForOp) and op.res]
    return any(_ends_at_places(loop, value) for loop in loops for value in loop.yielded)


def _ends_at_places(loop: ForOp, term: SSAValue) -> bool:
    """Whether a term is chosen by `place - counter >= 0`, for places from 0 to the end of the loop."""
    extent = loop.extent.data
    test = term.owner.cond.owner if isinstance(term.owner, scf.IfOp) else None
    if (
        not isinstance(test, TestOp)
        or len(test.exprs) != 1
        or not isinstance(extent, int)
        or extent < FEWEST
    ):
        return False
    operands = list(test.operands_)
    if loop.induction_var not in operands:
        return False
    counter = operands.index(loop.induction_var)
    ranges = operand_ranges(operands)
    place = simplify(test.exprs[0] + AffineExpr.dimension(counter), ranges)
    return counter not in place.used_dims() and bounds(place, ranges) == (0, extent - 1)
