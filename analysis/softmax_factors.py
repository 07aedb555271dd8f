"""What of a softmax between two contractions the warps of a GPU can multiply: loads of short floats."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.scalars import STORAGE_FLOATS, storage_bytes
from ..machine.matrix_instructions import HALVES
from .conditions import slope
from .index import UNKNOWN
from .products import ONE_ROW
from .softmax import Softmax
from .terms import DIMS, Term

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


def find_factors(found: Softmax, columns: int) -> Factors | str:
    """What warps would multiply with so many scores of a row at once, or why they cannot."""
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
    _, width, depth = HALVES.shape
    if found.depth % depth or found.width % width or max(found.depth, found.width) > MAX_ELEMENTS:
        return (
            f"rows of {found.depth} and {found.width} elements are no {depth}s and {width}s "
            f"up to {MAX_ELEMENTS}"
        )
    bound = found.score.bound
    assert bound is not None
    whole = found.columns % columns == 0
    for term, other in ((right, bound), (value, found.product.n)):
        if not _is_slab(term, found.product.m, other, found.sweep, whole):
            return "what a block shares is no box of rows"
    return Factors(left, right, value)


def _is_slab(term: Term, row: int, other: int, sweep: int, whole: bool) -> bool:
    """Whether the scores' columns and another dim each go along one axis of what a term loads, one by one.

    Other dims may say where that begins, but the row of scores. If the last columns are no `whole` part, what
    lies after them must be out of bounds: no other values, which may be infinite, are loaded there.
    """
    if any(row in e.used_dims() for e in term.exprs) or not isinstance(term.key, SSAValue):
        return False
    axes: list[int] = []
    for dim in (sweep, other):
        using = [axis for axis, e in enumerate(term.exprs) if dim in e.used_dims()]
        if len(using) != 1 or slope(term.exprs[using[0]], {dim}, [UNKNOWN] * DIMS) != 1:
            return False
        axes += using
    begins = term.exprs[axes[0]] == AffineExpr.dimension(sweep)
    return axes[0] != axes[1] and (whole or begins)
