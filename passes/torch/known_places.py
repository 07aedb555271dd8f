"""What a tensor of indices holds, where that is an expression over its axes: `arange` reads no data.

    %i = tensor_ir.iota 0 : tensor<7xi64>      %j = tensor_ir.elementwise add(%i, 2)
    tensor_ir.gather %x[%j] along 0       ->   tensor_ir.index_map (i, k) -> %x[i + 2, k]

Position embeddings are such gathers. What is read where an expression says needs no check at run time, and
can be merged into a contraction, which a check cannot.
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ...analysis.index import always_holds, bounds, extent_range, simplify
from ...dialects.index_map import IndexMapOp
from ...dialects.scalars import Function, is_integer
from ...dialects.sizes import Extent, extent_expr, shape_of
from ...dialects.syntax import tensor_type
from ...dialects.tensor_ir import CastOp, ConstantOp, ElementwiseOp, IotaOp
from ...index.affine import product, replace_dims

WIDE = 32
"""Bits of integers that hold any index."""

DEEPEST = 8
"""Operations between what is known and a place; each may double what there is to look at."""


def known_place(indices: SSAValue, extent: Extent) -> AffineExpr | None:
    """What each index of a tensor is, over its axes, if that is known and inside of an axis."""
    expr = _value(indices)
    if expr is None:
        return None
    ranges = [extent_range(each) for each in shape_of(tensor_type(indices))]
    expr = simplify(expr, ranges)
    inside = always_holds(expr, ranges) and always_holds(extent_expr(extent) - expr - 1, ranges)
    return expr if inside else None


def _value(value: SSAValue, depth: int = 0) -> AffineExpr | None:
    """What a tensor of integers holds at a position."""
    element = tensor_type(value).element_type
    if not is_integer(element) or (isinstance(element, IntegerType) and element.width.data < WIDE):
        return None
    match value.owner:
        case IotaOp() as op:
            return AffineExpr.dimension(op.axis.value.data)
        case ConstantOp(value=IntegerAttr() as number):
            return AffineExpr.constant(number.value.data)
        case CastOp() as op:
            return _narrow(op.operands[0], depth)
        case IndexMapOp() as op if len(op.sources) == 1 and op.fill is None:
            inner = _value(op.sources[0], depth)
            return None if inner is None else replace_dims(inner, op.maps.data[0].data.results)
        case ElementwiseOp() as op if depth < DEEPEST:
            return _combined(op, depth + 1)
        case _:
            return None


def _narrow(value: SSAValue, depth: int) -> AffineExpr | None:
    """The same where it has not wrapped around, so that an integer of another width holds it too."""
    expr = _value(value, depth)
    if expr is None:
        return None
    low, high = bounds(expr, [extent_range(each) for each in shape_of(tensor_type(value))])
    return expr if -(2 ** (WIDE - 1)) <= low and high < 2 ** (WIDE - 1) else None


def _combined(op: ElementwiseOp, depth: int) -> AffineExpr | None:
    """A sum, a difference, or a multiple by a number; operands of other functions are not looked at."""
    function = op.function.data
    if function not in (Function.ADD, Function.SUB, Function.MUL):
        return None
    left, right = op.operands
    second = _value(right, depth)
    wanted = AffineConstantExpr if function is Function.MUL else AffineExpr
    if not isinstance(second, wanted) or (first := _value(left, depth)) is None:
        return None
    match function:
        case Function.ADD:
            return first + second
        case Function.SUB:
            return first + product(second, -1)
        case _:
            return product(first, second)
