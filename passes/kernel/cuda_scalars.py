"""Scalar code of `arith` and `math` in C++ constructs, for `lower-to-cuda`.

Integer arithmetic wraps, so 32- and 64-bit sums and products are computed unsigned: C++ leaves signed
overflow undefined. Float to integer gives the smallest integer where the value does not fit. max and min
give NaN if either operand is NaN. A compiler may fuse a product with what is added to it, but not with what
is subtracted: `x * s - max(x * s)` is 0 for the largest `x`, as in PyTorch.
"""

from __future__ import annotations

import math as python_math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    FloatTF32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    Signedness,
    f32,
)
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.cuda import BinaryOp, CallOp, CastOp, LiteralOp, PtxOp, SelectOp, UnaryOp
from ...dialects.loop_access import LoadOp, StoreOp, in_registers
from ...dialects.scalars import is_bool
from ...errors import DeploError

_BINARY: dict[type[Operation], str] = {
    arith.AddfOp: "+",
    arith.MulfOp: "*",
    arith.DivSIOp: "/",
    arith.RemSIOp: "%",
    arith.AndIOp: "&",
    arith.OrIOp: "|",
    arith.XOrIOp: "^",
    arith.ShRSIOp: ">>",
}
_WRAPPING: dict[type[Operation], str] = {
    arith.AddiOp: "+",
    arith.SubiOp: "-",
    arith.MuliOp: "*",
    arith.ShLIOp: "<<",
}
_CALLS: dict[type[Operation], str] = {
    math.AbsFOp: "fabs",
    math.ExpOp: "exp",
    math.Exp2Op: "exp2",
    math.ExpM1Op: "expm1",
    math.LogOp: "log",
    math.Log2Op: "log2",
    math.Log1pOp: "log1p",
    math.SqrtOp: "sqrt",
    math.RsqrtOp: "rsqrt",
    math.SinOp: "sin",
    math.CosOp: "cos",
    math.TanOp: "tan",
    math.TanhOp: "tanh",
    math.AsinOp: "asin",
    math.AcosOp: "acos",
    math.AtanOp: "atan",
    math.SinhOp: "sinh",
    math.CoshOp: "cosh",
    math.AsinhOp: "asinh",
    math.AcoshOp: "acosh",
    math.AtanhOp: "atanh",
    math.Log10Op: "log10",
    math.ErfOp: "erf",
    math.FloorOp: "floor",
    math.CeilOp: "ceil",
    math.RoundEvenOp: "rint",
    math.TruncOp: "trunc",
    math.PowFOp: "pow",
    math.Atan2Op: "atan2",
    math.CopySignOp: "copysign",
    math.FmaOp: "fma",
}
_FLOAT_PREDICATES = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
_INTEGER_PREDICATES = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


def _insert(builder: Builder, op: Operation) -> SSAValue:
    return builder.insert(op).results[0]


def binary(builder: Builder, operator: str, a: SSAValue, b: SSAValue) -> SSAValue:
    """Insert an infix operator."""
    return _insert(builder, BinaryOp(operator, a, b))


def literal(builder: Builder, value: float, type: Attribute) -> SSAValue:
    """Insert a literal."""
    return _insert(builder, LiteralOp(value, type))


def cast(builder: Builder, value: SSAValue, type: Attribute) -> SSAValue:
    """Insert a C-style cast unless the type is right already."""
    return value if value.type == type else _insert(builder, CastOp(value, type))


def _unsigned(type: Attribute) -> IntegerType:
    assert isinstance(type, IntegerType)
    return IntegerType(type.width.data, Signedness.UNSIGNED)


def _wrapping(builder: Builder, operator: str, a: SSAValue, b: SSAValue) -> SSAValue:
    assert isinstance(a.type, IntegerType)
    if a.type.width.data < 32:  # computed as int, then cut to the type
        return binary(builder, operator, a, b)
    unsigned = _unsigned(a.type)
    result = binary(builder, operator, cast(builder, a, unsigned), cast(builder, b, unsigned))
    return cast(builder, result, a.type)


def _may_be_product(value: SSAValue, seen: set[SSAValue]) -> bool:
    """Whether a compiler may find that `value` is what a multiplication has just given."""
    sources: Sequence[SSAValue] = ()
    match value.owner:
        case arith.MulfOp():
            return True
        case arith.SelectOp() as op:
            sources = op.operands[1:]
        case scf.IfOp() as op:
            ends = (region.block.last_op for region in op.regions)
            position = op.results.index(value)
            sources = [end.operands[position] for end in ends if end is not None]
        case LoadOp(memref=array) if in_registers(array):
            sources = [u.operation.value for u in array.uses if isinstance(u.operation, StoreOp)]
        case _:
            return False
    new = [source for source in sources if source not in seen]
    seen.update(new)
    return any(_may_be_product(source, seen) for source in new)


def _subtract(builder: Builder, op: Operation, a: SSAValue, b: SSAValue) -> SSAValue:
    if not any(_may_be_product(value, set()) for value in op.operands):
        return binary(builder, "-", a, b)
    function = "__fsub_rn" if isinstance(a.type, Float32Type) else "__dsub_rn"
    return _insert(builder, CallOp(function, [a, b]))


def _divide(builder: Builder, op: Operation, a: SSAValue, b: SSAValue) -> SSAValue:
    """`a / b`; where b is the constant 0, a times an infinity, which is the same without a warning."""
    match op.operands[1].owner:
        case arith.ConstantOp(value=FloatAttr(value=number)) if number.data == 0:
            infinity = python_math.copysign(python_math.inf, number.data)
            return binary(builder, "*", a, literal(builder, infinity, a.type))
        case _:
            return binary(builder, "/", a, b)


def _float_extreme(builder: Builder, op: Operation, a: SSAValue, b: SSAValue) -> SSAValue:
    maximum = isinstance(op, arith.MaximumfOp)
    if isinstance(a.type, Float32Type):
        return _insert(builder, PtxOp("max.NaN.f32" if maximum else "min.NaN.f32", [a, b]))
    wins = binary(builder, ">" if maximum else "<", a, b)
    is_nan = binary(builder, "!=", a, a)
    return _insert(builder, SelectOp(binary(builder, "|", wins, is_nan), a, b))


def _compare_integers(builder: Builder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    if predicate >= 6 and not is_bool(a.type):
        a, b = cast(builder, a, _unsigned(a.type)), cast(builder, b, _unsigned(b.type))
    elif 2 <= predicate < 6 and is_bool(a.type):
        raise DeploError("lower-to-cuda: a signed comparison of i1 values has no C++ form")
    return binary(builder, _INTEGER_PREDICATES[predicate], a, b)


def _compare_floats(builder: Builder, predicate: int, a: SSAValue, b: SSAValue) -> SSAValue:
    if predicate in (7, 14):  # ordered, unordered
        equal = "==" if predicate == 7 else "!="
        both = "&" if predicate == 7 else "|"
        return binary(builder, both, binary(builder, equal, a, a), binary(builder, equal, b, b))
    if predicate not in _FLOAT_PREDICATES:
        raise DeploError(f"lower-to-cuda: arith.cmpf predicate {predicate} has no C++ operator")
    return binary(builder, _FLOAT_PREDICATES[predicate], a, b)


# --------------------------------------------------------------------------- conversions


def _convert_float(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    match value.type, target:
        case Float16Type(), Float32Type():
            return _insert(builder, PtxOp("cvt.f32.f16", [value]))
        case Float16Type(), Float64Type():
            return _insert(builder, PtxOp("cvt.f64.f16", [value]))
        case BFloat16Type(), Float32Type():
            return _insert(builder, PtxOp("cvt.f32.bf16", [value]))
        case BFloat16Type(), Float64Type():
            return cast(builder, _convert_float(builder, value, f32), target)
        case Float32Type(), Float16Type():
            return _insert(builder, PtxOp("cvt.rn.f16.f32", [value]))
        case Float64Type(), Float16Type():
            return _insert(builder, PtxOp("cvt.rn.f16.f64", [value]))
        case Float32Type(), BFloat16Type():
            return _insert(builder, PtxOp("cvt.rn.bf16.f32", [value]))
        case Float32Type(), FloatTF32Type():
            return _insert(builder, PtxOp("cvt.rna.tf32.f32", [value]))
        case FloatTF32Type(), Float32Type():
            return _insert(builder, PtxOp("mov.b32", [value]))
        case Float64Type(), BFloat16Type():
            raise DeploError("lower-to-cuda: no instruction rounds f64 to bf16; go through f32")
        case _:
            return cast(builder, value, target)


def _float_to_integer(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    assert isinstance(target, IntegerType)
    bound = float(1 << (target.width.data - 1))
    low = binary(builder, ">=", value, literal(builder, -bound, value.type))
    high = binary(builder, "<", value, literal(builder, bound, value.type))
    smallest = literal(builder, -(1 << (target.width.data - 1)), target)
    converted = cast(builder, value, target)
    return _insert(builder, SelectOp(binary(builder, "&", low, high), converted, smallest))


def _to_wider(builder: Builder, value: SSAValue, target: Attribute, *, signed: bool) -> SSAValue:
    if signed and is_bool(value.type):
        raise DeploError(
            "lower-to-cuda: an i1 value has no sign to extend; use arith.extui or uitofp"
        )
    if not signed and not is_bool(value.type):
        value = cast(builder, value, _unsigned(value.type))
    return cast(builder, value, target)


def _truncate(builder: Builder, value: SSAValue, target: Attribute) -> SSAValue:
    if not is_bool(target):
        return cast(builder, value, target)
    low = binary(builder, "&", value, literal(builder, 1, value.type))
    return binary(builder, "!=", low, literal(builder, 0, value.type))


_Arguments = Sequence[SSAValue]

_FORMS: dict[type[Operation], Callable[[Builder, Any, _Arguments], SSAValue]] = {
    arith.SubfOp: lambda b, op, args: _subtract(b, op, *args),
    arith.DivfOp: lambda b, op, args: _divide(b, op, *args),
    arith.NegfOp: lambda b, op, args: _insert(b, UnaryOp("-", args[0])),
    arith.MaximumfOp: lambda b, op, args: _float_extreme(b, op, *args),
    arith.MinimumfOp: lambda b, op, args: _float_extreme(b, op, *args),
    arith.MaxSIOp: lambda b, op, args: _insert(b, SelectOp(binary(b, ">", *args), *args)),
    arith.MinSIOp: lambda b, op, args: _insert(b, SelectOp(binary(b, "<", *args), *args)),
    arith.SelectOp: lambda b, op, args: _insert(b, SelectOp(*args)),
    arith.CmpiOp: lambda b, op, args: _compare_integers(b, op.predicate.value.data, *args),
    arith.CmpfOp: lambda b, op, args: _compare_floats(b, op.predicate.value.data, *args),
    arith.ExtFOp: lambda b, op, args: _convert_float(b, args[0], op.result.type),
    arith.TruncFOp: lambda b, op, args: _convert_float(b, args[0], op.result.type),
    arith.FPToSIOp: lambda b, op, args: _float_to_integer(b, args[0], op.result.type),
    arith.SIToFPOp: lambda b, op, args: _to_wider(b, args[0], op.result.type, signed=True),
    arith.IndexCastOp: lambda b, op, args: cast(b, args[0], op.result.type),
    arith.UIToFPOp: lambda b, op, args: _to_wider(b, args[0], op.result.type, signed=False),
    arith.ExtUIOp: lambda b, op, args: _to_wider(b, args[0], op.result.type, signed=False),
    arith.ExtSIOp: lambda b, op, args: _to_wider(b, args[0], op.result.type, signed=True),
    arith.TruncIOp: lambda b, op, args: _truncate(b, args[0], op.result.type),
}
"""Operations whose C++ form is not one operator or one call."""


def _may_approximate(op: math.Exp2Op) -> bool:
    """Whether the instruction will do: right to 2 units in the last place, 0 for what is subnormal."""
    return FastMathFlag.APPROX_FUNC in op.fastmath.data and op.result.type == f32


def emit_scalar(builder: Builder, op: Operation, args: Sequence[SSAValue]) -> SSAValue | None:
    """Insert the C++ form of a scalar operation on `args`; None if `op` is not one."""
    if (operator := _BINARY.get(type(op))) is not None:
        return binary(builder, operator, *args)
    if (operator := _WRAPPING.get(type(op))) is not None:
        return _wrapping(builder, operator, *args)
    if isinstance(op, math.Exp2Op) and _may_approximate(op):
        return _insert(builder, PtxOp("ex2.approx.ftz.f32", args))
    if (function := _CALLS.get(type(op))) is not None:
        suffix = "f" if isinstance(args[0].type, Float32Type) else ""
        return _insert(builder, CallOp(function + suffix, args))
    if (form := _FORMS.get(type(op))) is not None:
        return form(builder, op, args)
    if isinstance(op, arith.ConstantOp) and not isinstance(op.result.type, IndexType):
        value = op.value
        assert isinstance(value, IntegerAttr | FloatAttr)
        return literal(builder, value.value.data, op.result.type)
    return None
