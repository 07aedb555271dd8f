"""Index expressions as C++ computes them: offsets of one dimension, no negative dividend."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineBinaryOpExpr, AffineBinaryOpKind, AffineConstantExpr, AffineExpr

from ...analysis.index import UNKNOWN, Range, always_holds, bounds, simplify
from ...dialects.index import linearize
from ...dialects.sizes import shape_of
from ...errors import DeploError
from ...index.affine import binary


def nonnegative(expr: AffineExpr, ranges: Sequence[Range]) -> AffineExpr:
    """`expr` with every dividend proven not negative, as C++ division needs.

    A dividend whose smallest value is known is shifted up by a multiple of the divisor.
    Raises DeploError if nothing bounds it.
    """
    if not isinstance(expr, AffineBinaryOpExpr):
        return expr
    lhs, rhs = nonnegative(expr.lhs, ranges), nonnegative(expr.rhs, ranges)
    if expr.kind not in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod):
        return binary(expr.kind, lhs, rhs)
    if always_holds(lhs, ranges):
        return binary(expr.kind, lhs, rhs)
    low, _ = bounds(lhs, ranges)
    if not isinstance(rhs, AffineConstantExpr) or low <= UNKNOWN[0] // 2:
        raise DeploError(f"lower-to-cuda: cannot bound the dividend of {expr} from below")
    shift = -(low // rhs.value)
    moved = binary(expr.kind, lhs + shift * rhs.value, rhs)
    return moved if expr.kind is AffineBinaryOpKind.Mod else moved + -shift


def magnitude(expr: AffineExpr, ranges: Sequence[Range]) -> int:
    """No part of `expr` exceeds this in absolute value, in whatever order its sums are computed."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            return magnitude(lhs, ranges) + magnitude(rhs, ranges)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            return magnitude(lhs, ranges) * magnitude(rhs, ranges)
        case AffineBinaryOpExpr(lhs=lhs, rhs=rhs):
            return max(magnitude(lhs, ranges), magnitude(rhs, ranges))
        case _:
            low, high = bounds(expr, ranges)
            return max(-low, high)


def flat_offset(
    memref: SSAValue, exprs: Sequence[AffineExpr], ranges: Sequence[Range]
) -> AffineExpr:
    """The offset of an element in its buffer."""
    assert isinstance(memref.type, MemRefType)
    return nonnegative(simplify(linearize(exprs, shape_of(memref.type)), ranges), ranges)
