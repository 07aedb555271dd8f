"""What sums of products multiply, where tensor cores could: bf16, f16 or tf32, added up in f32."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from ..dialects.loop import ForOp
from ..dialects.scalars import STORAGE_FLOATS, Combiner


def find_factors(sweep: ForOp) -> list[tuple[SSAValue, SSAValue]] | str:
    """The short floats that a loop multiplies for each of its sums in f32, or why it does something else."""
    if any(combiner.data is not Combiner.ADD for combiner in sweep.combiners):
        return "it folds by something else than sums"
    found: list[tuple[SSAValue, SSAValue]] = []
    for value in sweep.yielded:
        product = value.owner
        if not isinstance(product, arith.MulfOp) or not isinstance(value.type, Float32Type):
            return "what it adds up are no products in f32"
        left, right = product.lhs.owner, product.rhs.owner
        if not isinstance(left, arith.ExtFOp) or not isinstance(right, arith.ExtFOp):
            return "what it multiplies is no bf16, f16 or tf32"
        types = left.input.type, right.input.type
        if types[0] != types[1] or not isinstance(types[0], STORAGE_FLOATS):
            return f"it multiplies {types[0]} by {types[1]}"
        found.append((left.input, right.input))
    return found
