"""How far a result of f32 may be from the exact one, in roundings of f32."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, bf16, tf32
from xdsl.ir import Attribute

from ..dialects.inside import ops_in
from ..dialects.products import rounded_products
from .cost import longest_reduction

FRACTION_BITS: dict[Attribute, int] = {tf32: 10, bf16: 7}
"""Of the types that factors of products in f32 may be rounded to."""


def roundings(module: ModuleOp) -> int:
    """As many as the longest reduction of a module in Loop IR adds up contributions, at least one.

    A product of factors that are rounded, as `deplo.products` says, counts as what four units in the last
    place of its factors' type are in f32.
    """
    asked = set(rounded_products(module).values())
    made = {op.result.type for op in ops_in(module) if isinstance(op, arith.TruncFOp)}
    worth = [4 << (23 - FRACTION_BITS[element]) for element in asked & made]
    return longest_reduction(module) + max(worth, default=0)
