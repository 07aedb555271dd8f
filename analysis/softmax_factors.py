"""What of a softmax between two contractions the warps of a GPU can multiply: loads of short floats."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.mma import COLUMNS, DEPTH
from ..dialects.scalars import STORAGE_FLOATS, storage_bytes
from .products import ONE_ROW
from .softmax import Softmax
from .terms import Term

MAX_ELEMENTS = 128
"""Elements of a row of factors or values, at most: a thread has a quarter of two rows in registers."""


def narrow(term: Term) -> Term | None:
    """The short float that a term is widened from, if that is loaded."""
    if term.name != "arith.extf" or term.type != f32:
        return None
    (inner,) = term.operands
    is_short = isinstance(inner.type, STORAGE_FLOATS) and storage_bytes(inner.type) == 2
    return inner if is_short and inner.name == "load" else None


@dataclass(frozen=True)
class Factors:
    """What is multiplied: loads of short floats."""

    left: Term
    right: Term
    value: Term


def find_factors(found: Softmax) -> Factors | str:
    """What warps would multiply, or why they cannot."""
    parts = [narrow(term) for term in (found.left, found.right, found.value)]
    left, right, value = parts
    if left is None or right is None or value is None:
        return "its factors are no bf16 or f16 that are loaded"
    if len({left.type, right.type, value.type}) > 1:
        return f"it multiplies {left.type}, {right.type} and {value.type}"
    if found.product.m == ONE_ROW or not all(isinstance(e, int) for e in found.extents):
        return "it has one row, or sizes that are dynamic"
    if not isinstance(found.columns, int):
        return "scores of a row are dynamic in number"
    if found.depth % DEPTH or found.width % COLUMNS or max(found.depth, found.width) > MAX_ELEMENTS:
        return (
            f"rows of {found.depth} and {found.width} elements are no {DEPTH}s and {COLUMNS}s "
            f"up to {MAX_ELEMENTS}"
        )
    bound = found.score.bound
    assert bound is not None
    for term, along in ((right, (found.sweep, bound)), (value, (found.sweep, found.product.n))):
        if not _is_slab(term, along):
            return "what a block shares is no box of rows"
    return Factors(left, right, value)


def _is_slab(term: Term, along: tuple[int, int]) -> bool:
    """Whether each of two dims goes along one axis of what a term loads, and along no other."""
    for dim in along:
        using = [e for e in term.exprs if dim in e.used_dims()]
        if using != [AffineExpr.dimension(dim)]:
            return False
    return isinstance(term.key, SSAValue)
