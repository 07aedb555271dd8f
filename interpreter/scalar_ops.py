"""What the scalar operations of `arith` and `math` compute, element-wise on numpy arrays.

One table serves every interpreter; `FUNCTION_OPS` gives the same meaning to `tensor_ir` functions.
"""

from __future__ import annotations

import math as pymath
from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Operation

from ..dialects.scalars import Combiner, Function
from .numpy_types import Array, NotExecutable, convert, numpy_dtype

_erf = np.vectorize(pymath.erf, otypes=[np.float64])


def erf(x: Array) -> Array:
    """The error function, computed in float64 and rounded once."""
    return _erf(x.astype(np.float64)).astype(x.dtype) if x.size else x


_SPLITTER = 2.0**27 + 1


def fma(a: Array, b: Array, c: Array) -> Array:
    """a * b + c, rounded once; a result of f64 that is not exact may be one place off (Dekker, 1971)."""
    if a.dtype != np.float64:
        return (a.astype(np.float64) * b + c).astype(a.dtype)
    product = a * b
    high_a, high_b = (v * _SPLITTER - (v * _SPLITTER - v) for v in (a, b))
    low_a, low_b = a - high_a, b - high_b
    left = ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b
    total = product + c
    rest = total - product
    left = left + ((product - (total - rest)) + (c - rest))
    return np.where(np.isfinite(left) & (left != 0), total + left, total)


def _truncdiv(a: Array, b: Array) -> Array:
    """Integer quotient towards zero; what C leaves undefined (b = 0) gives 0, and it wraps."""
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    floor = np.floor_divide(a, safe)
    inexact = (floor * safe != a) & ((a < 0) != (safe < 0))
    return np.where(b == 0, 0, floor + inexact).astype(a.dtype)


def _truncrem(a: Array, b: Array) -> Array:
    return (a - _truncdiv(a, b) * b).astype(a.dtype)


def _floordiv(a: Array, b: Array) -> Array:
    safe = np.where(b == 0, 1, b).astype(a.dtype)
    return np.where(b == 0, 0, np.floor_divide(a, safe)).astype(a.dtype)


def _maximum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 maximum: NaN if either is NaN, +0 above -0."""
    result = np.maximum(a, b)
    if a.dtype.kind == "f":
        result = np.where((a == 0) & (b == 0), np.where(np.signbit(a), b, a), result)
    return result


def _minimum(a: Array, b: Array) -> Array:
    """IEEE 754-2019 minimum: NaN if either is NaN, -0 below +0."""
    result = np.minimum(a, b)
    if a.dtype.kind == "f":
        result = np.where((a == 0) & (b == 0), np.where(np.signbit(a), a, b), result)
    return result


def _rsqrt(x: Array) -> Array:
    return (1.0 / np.sqrt(x.astype(np.float64))).astype(x.dtype)


_UNARY: dict[type[Operation], Callable[[Array], Array]] = {
    arith.NegfOp: np.negative,
    math.AbsFOp: np.abs,
    math.AbsIOp: np.abs,
    math.ExpOp: np.exp,
    math.Exp2Op: np.exp2,
    math.ExpM1Op: np.expm1,
    math.LogOp: np.log,
    math.Log2Op: np.log2,
    math.Log1pOp: np.log1p,
    math.SqrtOp: np.sqrt,
    math.RsqrtOp: _rsqrt,
    math.SinOp: np.sin,
    math.CosOp: np.cos,
    math.TanOp: np.tan,
    math.TanhOp: np.tanh,
    math.AsinOp: np.arcsin,
    math.AcosOp: np.arccos,
    math.AtanOp: np.arctan,
    math.SinhOp: np.sinh,
    math.CoshOp: np.cosh,
    math.AsinhOp: np.arcsinh,
    math.AcoshOp: np.arccosh,
    math.AtanhOp: np.arctanh,
    math.Log10Op: np.log10,
    math.ErfOp: erf,
    math.FloorOp: np.floor,
    math.CeilOp: np.ceil,
    math.RoundEvenOp: np.rint,
    math.TruncOp: np.trunc,
}

_BINARY: dict[type[Operation], Callable[[Array, Array], Array]] = {
    arith.AddfOp: np.add,
    arith.SubfOp: np.subtract,
    arith.MulfOp: np.multiply,
    arith.DivfOp: np.divide,
    arith.MaximumfOp: _maximum,
    arith.MinimumfOp: _minimum,
    math.PowFOp: np.power,
    math.Atan2Op: np.arctan2,
    math.CopySignOp: np.copysign,
    arith.AddiOp: np.add,
    arith.SubiOp: np.subtract,
    arith.MuliOp: np.multiply,
    arith.DivSIOp: _truncdiv,
    arith.RemSIOp: _truncrem,
    arith.FloorDivSIOp: _floordiv,
    arith.MaxSIOp: np.maximum,
    arith.MinSIOp: np.minimum,
    arith.AndIOp: np.bitwise_and,
    arith.OrIOp: np.bitwise_or,
    arith.XOrIOp: np.bitwise_xor,
    arith.ShLIOp: np.left_shift,
    arith.ShRSIOp: np.right_shift,
}

_CASTS = (
    arith.ExtFOp,
    arith.TruncFOp,
    arith.SIToFPOp,
    arith.FPToSIOp,
    arith.TruncIOp,
    arith.ExtSIOp,
    arith.IndexCastOp,
)

_COMPARE: list[Callable[[Array, Array], Array]] = [
    np.equal,
    np.not_equal,
    np.less,
    np.less_equal,
    np.greater,
    np.greater_equal,
]


def _compare_integers(predicate: int, a: Array, b: Array) -> Array:
    if predicate >= 6:  # unsigned less, less-or-equal, greater, greater-or-equal
        unsigned = np.dtype(f"u{a.dtype.itemsize}")
        a, b = a.astype(unsigned), b.astype(unsigned)
        predicate -= 4
    elif a.dtype == np.bool_:  # an i1 that is set is -1 to a signed comparison
        a, b = -a.astype(np.int8), -b.astype(np.int8)
    return _COMPARE[predicate](a, b)


def _compare_floats(predicate: int, a: Array, b: Array) -> Array:
    """arith.cmpf: 1-6 ordered (oeq ogt oge olt ole one), 7 ord, 8-13 unordered, 14 uno."""
    unordered = np.isnan(a) | np.isnan(b)
    order = [np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal]
    if predicate in (0, 15):
        return np.full(np.broadcast(a, b).shape, predicate == 15)
    if predicate in (7, 14):
        return unordered if predicate == 14 else ~unordered
    if predicate < 7:
        return order[predicate - 1](a, b) & ~unordered
    return order[predicate - 8](a, b) | unordered


def constant_value(op: arith.ConstantOp) -> Array:
    """The value of an `arith.constant` as a 0-d array."""
    match op.value:
        case IntegerAttr() | FloatAttr() as value:
            return np.asarray(value.value.data).astype(numpy_dtype(op.result.type))
        case DenseIntOrFPElementsAttr() | _:
            raise NotExecutable(f"'{op.name}' of {op.result.type}")


def evaluate(op: Operation, args: list[Array]) -> Array | None:
    """The result of a scalar operation on arrays, or None if `op` is not one of them."""
    with np.errstate(all="ignore"):
        return evaluate_silently(op, args)


def evaluate_silently(op: Operation, args: list[Array]) -> Array | None:
    """The same where numpy is told to ignore overflows and the like, which takes time to tell."""
    if (unary := _UNARY.get(type(op))) is not None:
        return unary(args[0])
    if (binary := _BINARY.get(type(op))) is not None:
        return binary(args[0], args[1])
    match op:
        case arith.ConstantOp():
            return constant_value(op)
        case arith.SelectOp():
            return np.where(args[0], args[1], args[2])
        case arith.CmpiOp():
            return _compare_integers(op.predicate.value.data, args[0], args[1])
        case arith.CmpfOp():
            return _compare_floats(op.predicate.value.data, args[0], args[1])
        case arith.UIToFPOp() | arith.ExtUIOp():
            return convert(_unsigned(args[0]), op.results[0].type)
        case math.FmaOp():
            return fma(*args)
        case arith.TruncIOp() if numpy_dtype(op.results[0].type) == np.bool_:
            return (args[0] & 1).astype(np.bool_)
        case arith.SIToFPOp() | arith.ExtSIOp() if args[0].dtype == np.bool_:
            return convert(-args[0].astype(np.int8), op.results[0].type)  # an i1 that is set is -1
        case _ if isinstance(op, _CASTS):
            return convert(args[0], op.results[0].type)
        case _:
            return None


def _unsigned(a: Array) -> Array:
    return a if a.dtype == np.bool_ else a.view(np.dtype(f"u{a.dtype.itemsize}"))


def _remainder(a: Array, b: Array) -> Array:
    return (a - _floordiv(a, b) * b).astype(a.dtype)


def _fmod(a: Array, b: Array) -> Array:
    return np.fmod(a, b) if a.dtype.kind == "f" else _truncrem(a, b)


def _shift_left(a: Array, b: Array) -> Array:
    width = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < width)
    return np.where(inside, np.left_shift(a, np.where(inside, b, 0)), 0).astype(a.dtype)


def _shift_right(a: Array, b: Array) -> Array:
    width = a.dtype.itemsize * 8
    inside = (b >= 0) & (b < width)
    return np.right_shift(a, np.where(inside, b, width - 1)).astype(a.dtype)


def _not(a: Array) -> Array:
    return np.logical_not(a) if a.dtype == np.bool_ else np.invert(a)


FUNCTION_OPS: dict[Function, Callable[..., Array]] = {
    Function.ADD: np.add,
    Function.SUB: np.subtract,
    Function.MUL: np.multiply,
    Function.DIV: np.divide,
    Function.FLOORDIV: _floordiv,
    Function.TRUNCDIV: _truncdiv,
    Function.REMAINDER: _remainder,
    Function.FMOD: _fmod,
    Function.MAX: _maximum,
    Function.MIN: _minimum,
    Function.POW: np.power,
    Function.ATAN2: np.arctan2,
    Function.COPYSIGN: np.copysign,
    Function.NEG: np.negative,
    Function.ABS: np.abs,
    Function.EXP: np.exp,
    Function.EXP2: np.exp2,
    Function.EXPM1: np.expm1,
    Function.LOG: np.log,
    Function.LOG2: np.log2,
    Function.LOG1P: np.log1p,
    Function.SQRT: np.sqrt,
    Function.RSQRT: _rsqrt,
    Function.SIN: np.sin,
    Function.COS: np.cos,
    Function.TAN: np.tan,
    Function.TANH: np.tanh,
    Function.ASIN: np.arcsin,
    Function.ACOS: np.arccos,
    Function.ATAN: np.arctan,
    Function.SINH: np.sinh,
    Function.COSH: np.cosh,
    Function.ASINH: np.arcsinh,
    Function.ACOSH: np.arccosh,
    Function.ATANH: np.arctanh,
    Function.LOG10: np.log10,
    Function.ERF: erf,
    Function.FLOOR: np.floor,
    Function.CEIL: np.ceil,
    Function.ROUND: np.rint,
    Function.TRUNC: np.trunc,
    Function.PROBABILITY: np.positive,
    Function.AND: np.bitwise_and,
    Function.OR: np.bitwise_or,
    Function.XOR: np.bitwise_xor,
    Function.NOT: _not,
    Function.SHL: _shift_left,
    Function.SHR: _shift_right,
    Function.EQ: np.equal,
    Function.NE: np.not_equal,
    Function.LT: np.less,
    Function.LE: np.less_equal,
    Function.GT: np.greater,
    Function.GE: np.greater_equal,
    Function.SELECT: np.where,
}

COMBINER_OPS: dict[Combiner, np.ufunc] = {
    Combiner.ADD: np.add,
    Combiner.MUL: np.multiply,
    Combiner.MAX: np.maximum,
    Combiner.MIN: np.minimum,
    Combiner.ANY: np.logical_or,
    Combiner.ALL: np.logical_and,
}


def fold(combiner: Combiner, values: Array, axis: int, *, keepdims: bool, empty: float) -> Array:
    """Fold one axis with a combiner, in the dtype of `values`; `empty` is the identity."""
    if values.shape[axis] == 0:
        shape = list(values.shape)
        shape[axis : axis + 1] = [1] if keepdims else []
        return np.full(shape, empty, values.dtype)
    with np.errstate(all="ignore"):
        ufunc = COMBINER_OPS[combiner]
        return ufunc.reduce(values, axis=axis, dtype=values.dtype, keepdims=keepdims)
