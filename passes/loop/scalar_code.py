"""Scalar code for the functions and casts of `tensor_ir`, in `arith` and `math`.

Shared by the passes that build loop bodies. Integer division cannot trap: a zero divisor stops the program
through `loop.assert`, and dividing the smallest integer by -1 wraps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    AnyFloat,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    f32,
    i8,
    i32,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.loop import AssertOp
from ...dialects.scalars import (
    COMPUTE_FLOATS,
    NO_PROBABILITY,
    STORAGE_FLOATS,
    Function,
    bits_of,
    is_bool,
    is_compute_float,
    ui8,
)
from ...dialects.syntax import scalar_attr
from .float_remainder import emit_fmod

_FLOAT_UNARY: dict[Function, type[Operation]] = {
    Function.NEG: arith.NegfOp,
    Function.ABS: math.AbsFOp,
    Function.EXP: math.ExpOp,
    Function.EXP2: math.Exp2Op,
    Function.EXPM1: math.ExpM1Op,
    Function.LOG: math.LogOp,
    Function.LOG2: math.Log2Op,
    Function.LOG1P: math.Log1pOp,
    Function.SQRT: math.SqrtOp,
    Function.RSQRT: math.RsqrtOp,
    Function.SIN: math.SinOp,
    Function.COS: math.CosOp,
    Function.TAN: math.TanOp,
    Function.TANH: math.TanhOp,
    Function.ASIN: math.AsinOp,
    Function.ACOS: math.AcosOp,
    Function.ATAN: math.AtanOp,
    Function.SINH: math.SinhOp,
    Function.COSH: math.CoshOp,
    Function.ASINH: math.AsinhOp,
    Function.ACOSH: math.AcoshOp,
    Function.ATANH: math.AtanhOp,
    Function.LOG10: math.Log10Op,
    Function.ERF: math.ErfOp,
    Function.FLOOR: math.FloorOp,
    Function.CEIL: math.CeilOp,
    Function.ROUND: math.RoundEvenOp,
    Function.TRUNC: math.TruncOp,
}
_FLOAT_BINARY: dict[Function, type[Operation]] = {
    Function.ADD: arith.AddfOp,
    Function.SUB: arith.SubfOp,
    Function.MUL: arith.MulfOp,
    Function.DIV: arith.DivfOp,
    Function.MAX: arith.MaximumfOp,
    Function.MIN: arith.MinimumfOp,
    Function.POW: math.PowFOp,
    Function.ATAN2: math.Atan2Op,
    Function.COPYSIGN: math.CopySignOp,
}
_INTEGER_BINARY: dict[Function, type[Operation]] = {
    Function.ADD: arith.AddiOp,
    Function.SUB: arith.SubiOp,
    Function.MUL: arith.MuliOp,
    Function.MAX: arith.MaxSIOp,
    Function.MIN: arith.MinSIOp,
    Function.AND: arith.AndIOp,
    Function.OR: arith.OrIOp,
    Function.XOR: arith.XOrIOp,
}
_BOOL_BINARY: dict[Function, type[Operation]] = {
    Function.MAX: arith.OrIOp,
    Function.MIN: arith.AndIOp,
    Function.AND: arith.AndIOp,
    Function.OR: arith.OrIOp,
    Function.XOR: arith.XOrIOp,
}
_FLOAT_COMPARE = {
    Function.EQ: "oeq",
    Function.NE: "une",
    Function.LT: "olt",
    Function.LE: "ole",
    Function.GT: "ogt",
    Function.GE: "oge",
}
_INTEGER_COMPARE = {
    Function.EQ: "eq",
    Function.NE: "ne",
    Function.LT: "slt",
    Function.LE: "sle",
    Function.GT: "sgt",
    Function.GE: "sge",
}


def emit_constant(builder: Builder, value: float | bool, element: Attribute) -> SSAValue:
    """Insert a constant of `element`."""
    return builder.insert(arith.ConstantOp(scalar_attr(value, element))).result


def emit_constant_attr(builder: Builder, value: IntegerAttr | FloatAttr) -> SSAValue:
    """Insert a constant that an attribute holds; one of ui8 as the i8 of its bits."""
    if value.type == ui8:
        assert isinstance(value, IntegerAttr)
        value = IntegerAttr(value.value.data, i8, truncate_bits=True)
    return builder.insert(arith.ConstantOp(value)).result


def _insert(builder: Builder, op: Operation) -> SSAValue:
    return builder.insert(op).results[0]


def emit_function(builder: Builder, function: Function, args: Sequence[SSAValue]) -> SSAValue:
    """Insert the code of a scalar function on values that its signature accepts."""
    if function is Function.SELECT:
        return _insert(builder, arith.SelectOp(args[0], args[1], args[2]))
    element = args[-1].type
    if is_compute_float(element):
        return _emit_float(builder, function, args)
    if is_bool(element):
        return _emit_bool(builder, function, args)
    return _emit_integer(builder, function, args)


def _emit_float(builder: Builder, function: Function, args: Sequence[SSAValue]) -> SSAValue:
    if function in _FLOAT_COMPARE:
        return _insert(builder, arith.CmpfOp(args[0], args[1], _FLOAT_COMPARE[function]))
    if function is Function.FMOD:
        return emit_fmod(builder, args[0], args[1])
    if function is Function.PROBABILITY:
        return _emit_probability(builder, args[0])
    make: Callable[..., Operation] = (_FLOAT_UNARY | _FLOAT_BINARY)[function]
    return _insert(builder, make(*args))


def _emit_probability(builder: Builder, value: SSAValue) -> SSAValue:
    zero, one = (emit_constant(builder, number, value.type) for number in (0.0, 1.0))
    above = _insert(builder, arith.CmpfOp(value, zero, "oge"))
    below = _insert(builder, arith.CmpfOp(value, one, "ole"))
    inside = _insert(builder, arith.AndIOp(above, below))
    builder.insert(AssertOp(inside, NO_PROBABILITY))
    return value


def _emit_bool(builder: Builder, function: Function, args: Sequence[SSAValue]) -> SSAValue:
    if function is Function.NOT:
        return _insert(builder, arith.XOrIOp(args[0], emit_constant(builder, True, args[0].type)))
    if function in _INTEGER_COMPARE:  # an i1 that is set counts as 1, so compare unsigned
        predicate = _INTEGER_COMPARE[function].replace("s", "u", 1)
        return _insert(builder, arith.CmpiOp(args[0], args[1], predicate))
    make: Callable[..., Operation] = _BOOL_BINARY[function]
    return _insert(builder, make(*args))


def _emit_integer(builder: Builder, function: Function, args: Sequence[SSAValue]) -> SSAValue:
    element = args[-1].type
    if function in _INTEGER_COMPARE:
        return _insert(builder, arith.CmpiOp(args[0], args[1], _INTEGER_COMPARE[function]))
    if function in _INTEGER_BINARY:
        make: Callable[..., Operation] = _INTEGER_BINARY[function]
        return _insert(builder, make(*args))
    if function is Function.NOT:
        return _insert(builder, arith.XOrIOp(args[0], emit_constant(builder, -1, element)))
    if function in (Function.SHL, Function.SHR):
        return _emit_shift(builder, function, args[0], args[1])
    zero = emit_constant(builder, 0, element)
    if function is Function.NEG:
        return _insert(builder, arith.SubiOp(zero, args[0]))
    if function is Function.ABS:
        negative = _insert(builder, arith.CmpiOp(args[0], zero, "slt"))
        negated = _insert(builder, arith.SubiOp(zero, args[0]))
        return _insert(builder, arith.SelectOp(negative, negated, args[0]))
    return _emit_division(builder, function, args[0], args[1])


def _emit_shift(
    builder: Builder, function: Function, value: SSAValue, amount: SSAValue
) -> SSAValue:
    """A shift by an amount that is made safe: one outside the width shifts everything out."""
    width = _width(value.type)
    inside = _insert(
        builder, arith.CmpiOp(amount, emit_constant(builder, width - 1, value.type), "ule")
    )
    most = emit_constant(builder, width - 1, value.type)
    safe = _insert(builder, arith.SelectOp(inside, amount, most))
    if function is Function.SHR:
        return _insert(builder, arith.ShRSIOp(value, safe))
    shifted = _insert(builder, arith.ShLIOp(value, safe))
    return _insert(builder, arith.SelectOp(inside, shifted, emit_constant(builder, 0, value.type)))


def _emit_division(
    builder: Builder, function: Function, dividend: SSAValue, divisor: SSAValue
) -> SSAValue:
    """Quotient or remainder of integers, by a divisor that is made safe first.

    Dividing by -1 negates and leaves no remainder, which also holds for the smallest integer.
    """
    element = divisor.type
    zero, one, minus_one = (emit_constant(builder, v, element) for v in (0, 1, -1))
    nonzero = _insert(builder, arith.CmpiOp(divisor, zero, "ne"))
    builder.insert(AssertOp(nonzero, "integer division by zero"))
    is_minus_one = _insert(builder, arith.CmpiOp(divisor, minus_one, "eq"))
    usable = _insert(builder, arith.SelectOp(nonzero, divisor, one))
    safe = _insert(builder, arith.SelectOp(is_minus_one, one, usable))
    quotient = _insert(builder, arith.DivSIOp(dividend, safe))
    remainder = _insert(builder, arith.RemSIOp(dividend, safe))
    inexact = _insert(builder, arith.CmpiOp(remainder, zero, "ne"))
    left = _insert(builder, arith.CmpiOp(remainder, zero, "slt"))
    right = _insert(builder, arith.CmpiOp(safe, zero, "slt"))
    signs_differ = _insert(builder, arith.XOrIOp(left, right))
    rounds = _insert(builder, arith.AndIOp(inexact, signs_differ))
    if function in (Function.REMAINDER, Function.FMOD):
        if function is Function.FMOD:
            return remainder
        moved = _insert(builder, arith.AddiOp(remainder, safe))
        return _insert(builder, arith.SelectOp(rounds, moved, remainder))
    if function is Function.FLOORDIV:
        lower = _insert(builder, arith.SubiOp(quotient, one))
        quotient = _insert(builder, arith.SelectOp(rounds, lower, quotient))
    negated = _insert(builder, arith.SubiOp(zero, quotient))
    return _insert(builder, arith.SelectOp(is_minus_one, negated, quotient))


# --------------------------------------------------------------------------- casts


def _width(element: Attribute) -> int:
    assert isinstance(element, IntegerType | AnyFloat)
    return element.bitwidth


def emit_cast(
    builder: Builder, value: SSAValue, target: Attribute, *, unsigned: bool = False
) -> SSAValue:
    """Insert the conversion of `value` to `target` as `tensor_ir.cast` defines it.

    `unsigned` says that an i8 is the bits of a ui8.
    """
    target = bits_of(target)
    source = value.type
    if source == target:
        return value
    if unsigned and not is_bool(target):
        wide = target if isinstance(target, IntegerType) else i32
        return emit_cast(builder, _insert(builder, arith.ExtUIOp(value, wide)), target)
    if isinstance(source, IndexType):
        return _insert(builder, arith.IndexCastOp(value, target))
    if isinstance(source, COMPUTE_FLOATS + STORAGE_FLOATS):
        if isinstance(target, COMPUTE_FLOATS + STORAGE_FLOATS):
            return _cast_float(builder, value, target)
        return _float_to_integer(builder, value, target)
    if isinstance(target, STORAGE_FLOATS):
        return _cast_float(builder, emit_cast(builder, value, f32), target)
    if isinstance(target, COMPUTE_FLOATS):
        make = arith.UIToFPOp if is_bool(source) else arith.SIToFPOp
        return _insert(builder, make(value, target))
    return _cast_integer(builder, value, target)


def _cast_float(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    source = value.type
    if source == target:
        return value
    if _width(source) == _width(target):  # between f16 and bf16
        value = _insert(builder, arith.ExtFOp(value, f32))
        return _insert(builder, arith.TruncFOp(value, target))  # pyright: ignore[reportArgumentType]
    make = arith.ExtFOp if _width(source) < _width(target) else arith.TruncFOp
    return _insert(builder, make(value, target))  # pyright: ignore[reportArgumentType]


def _float_to_integer(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    if isinstance(value.type, STORAGE_FLOATS):
        value = _insert(builder, arith.ExtFOp(value, f32))
    if is_bool(target):
        zero = emit_constant(builder, 0.0, value.type)
        return _insert(builder, arith.CmpfOp(value, zero, "une"))
    wide = target if _width(target) >= 32 else i32
    result = _insert(builder, arith.FPToSIOp(value, wide))  # pyright: ignore[reportArgumentType]
    return _cast_integer(builder, result, target)


def _cast_integer(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    source = value.type
    if source == target:
        return value
    assert isinstance(target, IntegerType)
    if is_bool(target):
        return _insert(builder, arith.CmpiOp(value, emit_constant(builder, 0, source), "ne"))
    if is_bool(source):
        return _insert(builder, arith.ExtUIOp(value, target))
    make = arith.ExtSIOp if _width(source) < _width(target) else arith.TruncIOp
    return _insert(builder, make(value, target))
