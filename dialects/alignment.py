"""What divides an index: the proof that an access of several elements is aligned."""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntAttr, IntegerAttr, MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)
from xdsl.utils.exceptions import VerifyException

from .index import linearize
from .loop_access import IndexOp
from .sizes import shape_of


def divisor(expr: AffineExpr, operands: Sequence[SSAValue]) -> int:
    """A number that divides `expr` whatever its operands are; 0 if it is always zero.

    An operand that is a constant, or that `loop.index` computes, counts as what it is.
    """
    match expr:
        case AffineConstantExpr(value=value):
            return abs(value)
        case AffineDimExpr(position=position):
            match operands[position].owner:
                case IndexOp() as index:
                    return divisor(index.map.data.results[0], index.operands_)
                case arith.ConstantOp(value=IntegerAttr(value=IntAttr(data=number))):
                    return abs(number)
                case _:
                    return 1
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = divisor(lhs, operands), divisor(rhs, operands)
            match kind:
                case AffineBinaryOpKind.Add | AffineBinaryOpKind.Mod:
                    return gcd(left, right)
                case AffineBinaryOpKind.Mul:
                    return left * right
                case _:  # a quotient, exact if the divisor divides the dividend
                    exact = isinstance(rhs, AffineConstantExpr) and left % rhs.value == 0
                    return left // right if exact else 1
        case _:
            return 1


def verify_aligned(
    exprs: Sequence[AffineExpr], operands: Sequence[SSAValue], memref: MemRefType, elements: int
) -> None:
    """Raise unless `elements` neighbours from an index on are aligned and lie in one row."""
    shape = shape_of(memref)
    if not shape or (isinstance(shape[-1], int) and shape[-1] < elements):
        raise VerifyException(f"{memref} has no row of {elements} elements")
    flat = divisor(linearize(exprs, shape), operands)
    if flat % elements or divisor(exprs[-1], operands) % elements:
        raise VerifyException(
            f"the index into {memref} is not proven to be a multiple of {elements} elements; "
            "accesses of several elements must be aligned"
        )
