"""The remainder of two f32 values, exactly as C's `fmodf`, in straight-line f64 arithmetic.

    r = |x|;  for k in 250, 200, .., 0:  r = fma(-round(r * (1 / |y|) / 2**k), |y| * 2**k, r)
    if r < 0:  r = r + |y|

Each step finds 50 bits of the quotient, to the nearest integer or one off by less than a half, so that it
leaves |r| < 3/4 |y| 2**k. That is a multiple of half the last place of `y` (or of `x`, where `x` is smaller),
so it has few bits, and a fused multiply-add, which rounds once, gives it exactly. The six steps cover the
largest quotient of two f32 values, 2**277. `x - trunc(x / y) * y` is not exact.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import SSAValue

STEP = 50
LARGEST = 250


def emit_fmod(builder: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """Insert the remainder of f32 values, with the sign of `x`; NaN for a zero `y` or infinite `x`."""
    x_size, y_size = (builder.insert(math.AbsFOp(value)).result for value in (x, y))
    remainder, divisor = (builder.insert(arith.ExtFOp(v, f64)).result for v in (x_size, y_size))
    inverse = builder.insert(arith.DivfOp(_constant(builder, 1.0), divisor)).result
    for exponent in range(LARGEST, -1, -STEP):
        remainder = _step(builder, remainder, divisor, inverse, 2.0**exponent)
    raised = builder.insert(arith.AddfOp(remainder, divisor)).result
    below = builder.insert(arith.CmpfOp(remainder, _constant(builder, 0.0), "olt")).result
    remainder = builder.insert(arith.SelectOp(below, raised, remainder)).result
    narrow = builder.insert(arith.TruncFOp(remainder, f32)).result
    # The arithmetic gives NaN for an infinite divisor.
    infinity = builder.insert(arith.ConstantOp(FloatAttr(float("inf"), f32))).result
    finite = builder.insert(arith.CmpfOp(x_size, infinity, "olt")).result
    infinite = builder.insert(arith.CmpfOp(y_size, infinity, "oeq")).result
    both = builder.insert(arith.AndIOp(finite, infinite)).result
    size = builder.insert(arith.SelectOp(both, x_size, narrow)).result
    return builder.insert(math.CopySignOp(size, x)).result


def _step(
    builder: Builder, remainder: SSAValue, divisor: SSAValue, inverse: SSAValue, scale: float
) -> SSAValue:
    """Take from the remainder the multiple of `divisor * scale` that is nearest, or nearly."""
    factor = builder.insert(arith.MulfOp(inverse, _constant(builder, 1.0 / scale))).result
    quotient = builder.insert(arith.MulfOp(remainder, factor)).result
    whole = builder.insert(math.RoundEvenOp(quotient)).result
    lowered = builder.insert(arith.MulfOp(divisor, _constant(builder, -scale))).result
    return builder.insert(math.FmaOp(whole, lowered, remainder)).result


def _constant(builder: Builder, value: float) -> SSAValue:
    return builder.insert(arith.ConstantOp(FloatAttr(value, f64))).result
