"""What sums of products multiply, where an instruction of warps or warpgroups could."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ..dialects.loop import ForOp
from ..dialects.scalars import Combiner
from ..machine.matrix_instructions import MMA, MatrixInstruction
from ..machine.targets import Target, has_instruction

PRODUCTS = arith.MulfOp | arith.MuliOp
WIDENINGS = arith.ExtFOp | arith.ExtSIOp


@dataclass(frozen=True)
class Factors:
    """What a loop multiplies for each of its sums, before it is widened, and the instructions that could."""

    pairs: Sequence[tuple[SSAValue, SSAValue]]
    rows: Sequence[MatrixInstruction]


def find_factors(sweep: ForOp, rows: Sequence[MatrixInstruction]) -> Factors | str:
    """The factors of a loop's sums, and which of some instructions multiply them; or why none does."""
    if any(combiner.data is not Combiner.ADD for combiner in sweep.combiners):
        return "it folds by something else than sums"
    pairs: list[tuple[SSAValue, SSAValue]] = []
    for value in sweep.yielded:
        product = value.owner
        if not isinstance(product, PRODUCTS):
            return "what it adds up are no products"
        left, right = _narrow(product.lhs), _narrow(product.rhs)
        if left.type != right.type:
            return f"it multiplies {left.type} by {right.type}"
        rows = [row for row in rows if row.multiplies(str(left.type), str(value.type))]
        if not rows:
            return f"no instruction multiplies {left.type} and adds up {value.type}"
        pairs.append((left, right))
    return Factors(pairs, rows)


def _narrow(value: SSAValue) -> SSAValue:
    """What a factor is widened from, or itself."""
    return value.owner.input if isinstance(value.owner, WIDENINGS) else value


def choose_instruction(sweep: ForOp, target: Target) -> MatrixInstruction | None:
    """The instruction of a target's warps for a sum of products: the first of known cost, or None."""
    known = [row for row in MMA if row.cost is not None and has_instruction(target.name, row)]
    factors = find_factors(sweep, known if target.mma_per_cycle else [])
    return None if isinstance(factors, str) else next(iter(factors.rows), None)
