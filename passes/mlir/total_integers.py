"""Integer operations that are undefined upstream for some operands, with code that sees to those."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    f32,
    i32,
)
from xdsl.ir import Operation, SSAValue

from ...dialects.syntax import scalar_attr
from ..llvm import integer_division
from ..llvm.math_builder import MathBuilder

_DIVISIONS = {
    arith.DivSIOp: integer_division.truncdiv,
    arith.RemSIOp: integer_division.remainder,
    arith.FloorDivSIOp: integer_division.floordiv,
}


def make_total(op: Operation) -> None:
    """Replace an operation that is undefined for some operands; all others stay as they are."""
    match op:
        case arith.DivSIOp() | arith.RemSIOp() | arith.FloorDivSIOp() if not _is_safe(op):
            result = _DIVISIONS[type(op)](MathBuilder(op), op.lhs, op.rhs)
        case arith.FPToSIOp():
            result = _to_integer(MathBuilder(op), op)
        case _:
            return
    result.name_hint = result.name_hint or op.results[0].name_hint
    op.results[0].replace_all_uses_with(result)
    op.detach()
    op.erase()


def _is_safe(op: Operation) -> bool:
    """Whether a division is of indices, or by a constant that all numbers can be divided by."""
    divisor = op.operands[1]
    if isinstance(divisor.type, IndexType):
        return True
    owner = divisor.owner
    if not isinstance(owner, arith.ConstantOp) or not isinstance(owner.value, IntegerAttr):
        return False
    return owner.value.value.data not in (0, -1)


def _to_integer(m: MathBuilder, op: arith.FPToSIOp) -> SSAValue:
    """Where the value does not fit, the smallest integer; fewer than 32 bits are cut off from 32."""
    value, target = op.input, op.result.type
    assert isinstance(target, IntegerType)
    if isinstance(value.type, Float16Type | BFloat16Type):
        value = m.insert(arith.ExtFOp(value, f32))
    width = max(target.bitwidth, i32.bitwidth)
    wide = IntegerType(width)
    limit = 2.0 ** (width - 1)
    low = m.insert(arith.ConstantOp(scalar_attr(-limit, value.type)))
    high = m.insert(arith.ConstantOp(scalar_attr(limit, value.type)))
    fits = m.insert(arith.AndIOp(m.test(value, "oge", low), m.test(value, "olt", high)))
    safe = m.select(fits, value, low)  # which is the smallest integer, exactly
    converted = m.insert(arith.FPToSIOp(safe, wide))
    return converted if width == target.bitwidth else m.insert(arith.TruncIOp(converted, target))
