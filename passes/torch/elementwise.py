"""Element-wise operations: arithmetic and comparisons.

torch.add %x, %y {alpha = 2}  ->  tensor_ir.elementwise mul(%y, 2), then add(%x, …)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects.builtin import f16, f64
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function, is_bool, is_float
from ...dialects.torch_base import ScalarValue, TorchOp, value_of
from ...dialects.torch_promotion import common_element
from .lowering import Lowering, Refusal, Rule, compute_element, element_of

# --------------------------------------------------------------------------- arithmetic


def _unary(function: Function) -> Rule:
    def rule(e: Lowering, op: Any) -> SSAValue:
        return e.apply(function, e.argument(op.input))

    return rule


def _binary(function: Function, on_bools: Function | None = None) -> Rule:
    """A function of two operands; bools go through `on_bools`."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        chosen = on_bools if on_bools is not None and is_bool(e.element) else function
        return e.apply(chosen, e.argument(op.input), e.argument(op.other))

    return rule


def _sum(function: Function) -> Rule:
    """input ± alpha * other; `rsub` has the operands the other way round."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        left, right, alpha = e.argument(op.input), e.argument(op.other), op.number("alpha")
        if isinstance(op, t.RsubOp):
            left, right = right, left
        if is_bool(e.element):
            if function is not Function.ADD or alpha not in (1, True):
                raise Refusal("bools are only added, with alpha = 1")
            return e.apply(Function.OR, left, right)
        if alpha != 1:
            right = e.with_number(Function.MUL, right, alpha)
        return e.apply(function, left, right)

    return rule


def _divide(e: Lowering, op: Any) -> SSAValue:
    left, right = e.argument(op.input), e.argument(op.other)
    mode = op.string("rounding_mode")
    if mode not in (None, "trunc", "floor"):
        raise Refusal(f"rounding_mode = {mode!r}")
    if mode is None:
        return e.apply(Function.DIV, left, right)
    if not is_float(e.element):
        return e.apply(Function.TRUNCDIV if mode == "trunc" else Function.FLOORDIV, left, right)
    if mode == "floor":
        return _floor_divide(e, left, right)
    return e.apply(Function.TRUNC, e.apply(Function.DIV, left, right))


def _float_modulus(e: Lowering, left: SSAValue, right: SSAValue) -> SSAValue:
    """The exact remainder with the sign of `left`."""
    if e.element == f64:
        raise Refusal("the remainder of f64 values, which deplo cannot give exactly")
    return e.apply(Function.FMOD, left, right)


def _float_remainder(e: Lowering, left: SSAValue, right: SSAValue) -> SSAValue:
    """The remainder with the sign of `right`: `right` is added to one of the other sign."""
    modulus = _float_modulus(e, left, right)
    negative = (e.with_number(Function.LT, v, 0.0) for v in (modulus, right))
    differ = e.apply(Function.NE, *negative)
    nonzero = e.with_number(Function.NE, modulus, 0.0)
    moved = e.apply(Function.AND, differ, nonzero)
    return e.select(moved, e.apply(Function.ADD, modulus, right), modulus)


def _floor_divide(e: Lowering, left: SSAValue, right: SSAValue) -> SSAValue:
    """floor(left / right) of floats, as PyTorch and Python find it: from the exact remainder.

    The floor of the rounded quotient is wrong where that rounds up to an integer.
    """
    modulus = _float_modulus(e, left, right)
    quotient = e.apply(Function.DIV, e.apply(Function.SUB, left, modulus), right)
    negative = (e.with_number(Function.LT, v, 0.0) for v in (modulus, right))
    differ = e.apply(Function.NE, *negative)
    nonzero = e.with_number(Function.NE, modulus, 0.0)
    below = e.with_number(Function.SUB, quotient, 1.0)
    quotient = e.select(e.apply(Function.AND, differ, nonzero), below, quotient)
    floor = e.apply(Function.FLOOR, quotient)
    above = e.with_number(Function.GT, e.apply(Function.SUB, quotient, floor), 0.5)
    rounded = e.select(above, e.with_number(Function.ADD, floor, 1.0), floor)
    exact = e.apply(Function.DIV, left, right)
    zero = e.apply(Function.COPYSIGN, e.fill_like(exact, 0.0), exact)
    result = e.select(e.with_number(Function.NE, quotient, 0.0), rounded, zero)
    return e.select(e.with_number(Function.EQ, right, 0.0), exact, result)


def _modulo(
    on_floats: Callable[[Lowering, SSAValue, SSAValue], SSAValue], on_integers: Function
) -> Rule:
    def rule(e: Lowering, op: Any) -> SSAValue:
        left, right = e.argument(op.input), e.argument(op.other)
        if is_float(e.element):
            return on_floats(e, left, right)
        return e.apply(on_integers, left, right)

    return rule


def _larger_number(function: Function) -> Rule:
    """The extremum; where one operand is NaN, the other."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        left, right = e.argument(op.input), e.argument(op.other)
        both = e.apply(function, left, right)
        if not is_float(e.element):
            return both
        left_is_nan, right_is_nan = (e.apply(Function.NE, v, v) for v in (left, right))
        return e.select(left_is_nan, right, e.select(right_is_nan, left, both))

    return rule


def _sign_bit(e: Lowering, op: t.SignbitOp) -> SSAValue:
    """Whether the sign is negative, of -0.0 and NaN too."""
    element = compute_element(element_of(op.input))
    if is_bool(element):
        return e.constant(False, e.result_element, e.shape)
    value = e.argument(op.input, element)
    if is_float(element):
        value = e.apply(Function.COPYSIGN, e.fill_like(value, 1.0), value)
    return e.with_number(Function.LT, value, 0)


def _copied(e: Lowering, op: t.CopyOp) -> SSAValue:
    """The source in the type and shape of what it is copied to."""
    return e.broadcast(e.cast(op.src, e.result_element), e.shape)


def _power(e: Lowering, op: Any) -> SSAValue:
    """input ** exponent, or for a known small exponent the products that PyTorch uses."""
    exponent = op.optional_number("exponent")
    base = e.argument(op.input)
    if exponent is not None and (short := _short_power(e, base, exponent)) is not None:
        return short
    if not is_float(e.element):
        raise Refusal("integers are only raised to a known exponent from 0 to 64")
    return e.apply(Function.POW, base, e.argument(op.exponent))


def _short_power(e: Lowering, base: SSAValue, exponent: ScalarValue) -> SSAValue | None:
    if not is_float(e.element):
        return _integer_power(e, base, int(exponent)) if 0 <= exponent <= 64 else None
    match float(exponent):
        case 0.0:
            return e.fill_like(base, 1.0)
        case 1.0:
            return base
        case 2.0 | 3.0:
            return _integer_power(e, base, int(exponent))
        case 0.5 | -0.5 if e.result_element == f16 and not e.on_gpu:
            return None  # eager asks C for f16, which says that -inf to the 0.5 is inf, and -0.0 is 0.0
        case 0.5:
            return e.apply(Function.SQRT, base)
        case -0.5:
            return e.apply(Function.RSQRT, base)
        case -1.0:
            return reciprocal(e, base)
        case -2.0:
            return reciprocal(e, e.apply(Function.MUL, base, base))
        case _:
            return None


def _integer_power(e: Lowering, base: SSAValue, exponent: int) -> SSAValue:
    result = e.fill_like(base, 1) if exponent == 0 else base
    for _ in range(exponent - 1):
        result = e.apply(Function.MUL, result, base)
    return result


def reciprocal(e: Lowering, value: SSAValue) -> SSAValue:
    """1 / value"""
    return e.apply(Function.DIV, e.fill_like(value, 1.0), value)


def _sign(e: Lowering, op: t.SignOp) -> SSAValue:
    value = e.argument(op.input)
    zero, one = e.fill_like(value, 0), e.fill_like(value, 1)
    above = e.select(e.apply(Function.GT, value, zero), one, zero)
    return e.select(e.apply(Function.LT, value, zero), e.fill_like(value, -1), above)


def _clamp(e: Lowering, op: Any) -> SSAValue:
    """min(max(input, low), high); NaN stays NaN. A number is rounded to the result's type first."""
    value = e.argument(op.input)
    for function, bound in ((Function.MAX, op.min), (Function.MIN, op.max)):
        if bound is not None:
            if isinstance(bound, SSAValue):
                limit = e.argument(bound, e.result_element)
            else:
                limit = e.constant(value_of(bound), e.result_element, e.shape)
            rounded = e.cast(limit, e.element)
            value = e.apply(function, value, rounded)
    return value


# --------------------------------------------------------------------------- truth


def _compare(function: Function) -> Rule:
    """A comparison, in the type that its operands promote to."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        common = common_element([op.input, op.other])
        element = compute_element(common)
        left, right = (e.cast(e.argument(v, common), element) for v in (op.input, op.other))
        return e.apply(function, left, right)

    return rule


def _logical(function: Function) -> Rule:
    def rule(e: Lowering, op: TorchOp) -> SSAValue:
        return e.apply(function, *(e.broadcast(e.truth(v), e.shape) for v in op.operands))

    return rule


def _is_nan(e: Lowering, op: t.IsnanOp) -> SSAValue:
    if not is_float(element_of(op.input)):
        return e.constant(False, e.result_element, e.shape)
    value = e.argument(op.input, compute_element(element_of(op.input)))
    return e.apply(Function.NE, value, value)


def _is_infinite(e: Lowering, op: t.IsinfOp) -> SSAValue:
    if not is_float(element_of(op.input)):
        return e.constant(False, e.result_element, e.shape)
    value = e.argument(op.input, compute_element(element_of(op.input)))
    return e.with_number(Function.EQ, e.apply(Function.ABS, value), math.inf)


def _where(e: Lowering, op: t.WhereOp) -> SSAValue:
    if not is_bool(element_of(op.condition)):
        raise Refusal(f"condition holds {element_of(op.condition)}, not i1")
    chosen = e.broadcast(op.condition, e.shape)
    then, otherwise = (e.argument(v, e.result_element) for v in (op.input, op.other))
    return e.select(chosen, then, otherwise)


# --------------------------------------------------------------------------- rules


def _copy(e: Lowering, op: Any) -> SSAValue:
    return e.cast(op.input, e.result_element)


_UNARY_FLOAT: Sequence[tuple[type[TorchOp], Function]] = (
    (t.ExpOp, Function.EXP),
    (t.Exp2Op, Function.EXP2),
    (t.Expm1Op, Function.EXPM1),
    (t.LogOp, Function.LOG),
    (t.Log2Op, Function.LOG2),
    (t.Log1pOp, Function.LOG1P),
    (t.SqrtOp, Function.SQRT),
    (t.RsqrtOp, Function.RSQRT),
    (t.SinOp, Function.SIN),
    (t.CosOp, Function.COS),
    (t.TanOp, Function.TAN),
    (t.TanhOp, Function.TANH),
    (t.AsinOp, Function.ASIN),
    (t.AcosOp, Function.ACOS),
    (t.AtanOp, Function.ATAN),
    (t.SinhOp, Function.SINH),
    (t.CoshOp, Function.COSH),
    (t.AsinhOp, Function.ASINH),
    (t.AcoshOp, Function.ACOSH),
    (t.AtanhOp, Function.ATANH),
    (t.Log10Op, Function.LOG10),
    (t.ErfOp, Function.ERF),
    (t.NegOp, Function.NEG),
    (t.AbsOp, Function.ABS),
    (t.BitwiseNotOp, Function.NOT),
)


def _rounding(function: Function) -> Rule:
    """Integers are whole already."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        value = e.argument(op.input)
        return e.apply(function, value) if is_float(e.element) else value

    return rule


RULES: dict[type[TorchOp], Rule] = {
    **{op: _unary(function) for op, function in _UNARY_FLOAT},
    t.FloorOp: _rounding(Function.FLOOR),
    t.CeilOp: _rounding(Function.CEIL),
    t.RoundOp: _rounding(Function.ROUND),
    t.TruncOp: _rounding(Function.TRUNC),
    t.AddOp: _sum(Function.ADD),
    t.AddScalarOp: _sum(Function.ADD),
    t.SubOp: _sum(Function.SUB),
    t.SubScalarOp: _sum(Function.SUB),
    t.RsubOp: _sum(Function.SUB),
    t.MulOp: _binary(Function.MUL, Function.AND),
    t.MulScalarOp: _binary(Function.MUL, Function.AND),
    t.DivOp: _divide,
    t.DivScalarOp: _divide,
    t.DivTensorModeOp: _divide,
    t.DivScalarModeOp: _divide,
    t.RemainderOp: _modulo(_float_remainder, Function.REMAINDER),
    t.RemainderScalarOp: _modulo(_float_remainder, Function.REMAINDER),
    t.FmodOp: _modulo(_float_modulus, Function.FMOD),
    t.FmodScalarOp: _modulo(_float_modulus, Function.FMOD),
    t.Atan2Op: _binary(Function.ATAN2),
    t.CopysignOp: _binary(Function.COPYSIGN),
    t.FmaxOp: _larger_number(Function.MAX),
    t.FminOp: _larger_number(Function.MIN),
    t.SignbitOp: _sign_bit,
    t.BitwiseLeftShiftOp: _binary(Function.SHL),
    t.BitwiseRightShiftOp: _binary(Function.SHR),
    t.CopyOp: _copied,
    t.PowOp: _power,
    t.PowTensorTensorOp: _power,
    t.PowScalarOp: _power,
    t.MaximumOp: _binary(Function.MAX),
    t.MinimumOp: _binary(Function.MIN),
    t.ClampOp: _clamp,
    t.ClampTensorOp: _clamp,
    t.SignOp: _sign,
    t.ReciprocalOp: lambda e, op: reciprocal(e, e.argument(op.input)),
    t.BitwiseAndOp: _binary(Function.AND),
    t.BitwiseAndScalarOp: _binary(Function.AND),
    t.BitwiseOrOp: _binary(Function.OR),
    t.BitwiseOrScalarOp: _binary(Function.OR),
    t.BitwiseXorOp: _binary(Function.XOR),
    t.BitwiseXorScalarOp: _binary(Function.XOR),
    t.EqOp: _compare(Function.EQ),
    t.EqScalarOp: _compare(Function.EQ),
    t.NeOp: _compare(Function.NE),
    t.NeScalarOp: _compare(Function.NE),
    t.LtOp: _compare(Function.LT),
    t.LtScalarOp: _compare(Function.LT),
    t.LeOp: _compare(Function.LE),
    t.LeScalarOp: _compare(Function.LE),
    t.GtOp: _compare(Function.GT),
    t.GtScalarOp: _compare(Function.GT),
    t.GeOp: _compare(Function.GE),
    t.GeScalarOp: _compare(Function.GE),
    t.LogicalNotOp: _logical(Function.NOT),
    t.LogicalAndOp: _logical(Function.AND),
    t.LogicalOrOp: _logical(Function.OR),
    t.LogicalXorOp: _logical(Function.XOR),
    t.IsnanOp: _is_nan,
    t.IsinfOp: _is_infinite,
    t.WhereOp: _where,
    t.InternalToCopyOp: _copy,
    t.CloneOp: _copy,
    t.AliasOp: _copy,
    t.LiftFreshCopyOp: _copy,
}
"""The rule for each element-wise operation but activation functions."""
