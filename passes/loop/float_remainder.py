"""The remainder of two f32 values, exactly as C's `fmodf`, in straight-line f64 arithmetic.

    r = x;  for k in 252, 224, .., 0:  d = y * 2**k;  r = r - trunc(r / d) * d

f64 holds `y * 2**k` and every remainder of an f32 by it exactly. Each step finds 28 bits of the quotient:
28 bits times the 24 bits of `y` need 52, and f64 has 53, so product and difference are exact too. The ten
steps cover the largest quotient of two f32 values, 2**277. `x - trunc(x / y) * y` is not exact.
"""

from __future__ import annotations

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr, f32, f64
from xdsl.ir import SSAValue

STEP = 28
LARGEST = 252


def emit_fmod(builder: Builder, x: SSAValue, y: SSAValue) -> SSAValue:
    """Insert the remainder of f32 values, with the sign of `x`; NaN for a zero `y` or infinite `x`."""
    remainder = builder.insert(arith.ExtFOp(x, f64)).result
    divisor = builder.insert(arith.ExtFOp(y, f64)).result
    for exponent in range(LARGEST, -1, -STEP):
        scale = builder.insert(arith.ConstantOp(FloatAttr(2.0**exponent, f64))).result
        scaled = builder.insert(arith.MulfOp(divisor, scale)).result if exponent else divisor
        quotient = builder.insert(arith.DivfOp(remainder, scaled)).result
        whole = builder.insert(math.TruncOp(quotient)).result
        product = builder.insert(arith.MulfOp(whole, scaled)).result
        remainder = builder.insert(arith.SubfOp(remainder, product)).result
    narrow = builder.insert(arith.TruncFOp(remainder, f32)).result
    signed = builder.insert(math.CopySignOp(narrow, x)).result
    return _unless_divisor_is_infinite(builder, x, y, signed)


def _unless_divisor_is_infinite(
    builder: Builder, x: SSAValue, y: SSAValue, remainder: SSAValue
) -> SSAValue:
    """`x` itself where `x` is finite and `y` is infinite: there the arithmetic gives NaN."""
    infinity = builder.insert(arith.ConstantOp(FloatAttr(float("inf"), f32))).result
    x_size = builder.insert(math.AbsFOp(x)).result
    y_size = builder.insert(math.AbsFOp(y)).result
    finite = builder.insert(arith.CmpfOp(x_size, infinity, "olt")).result
    infinite = builder.insert(arith.CmpfOp(y_size, infinity, "oeq")).result
    both = builder.insert(arith.AndIOp(finite, infinite)).result
    return builder.insert(arith.SelectOp(both, x, remainder)).result
