"""Powers of f32 without branches or calls, by polynomials of f64: half a unit in the last place, and a bit.

A power x**y is 2**(y log2 x), whose exponent has up to seven bits in front of the point and so needs as many
more behind it than f32 has. In f64 these are there, subnormal numbers are none, and rounding to f32 at the
end makes infinities, zeros and subnormal results. `test/python/test_expand_math.py` measures it.
Coefficients make the greatest relative error about as small as can be: 2**-33 of the logarithm, 2**-29 of
the power.
"""

from __future__ import annotations

from math import inf, nan

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from .math_builder import MathBuilder

_EXPONENT_BITS = 52
_BIAS = 1023
_ONE_BITS = _BIAS << _EXPONENT_BITS
_MANTISSA = (1 << _EXPONENT_BITS) - 1
_SQRT_HALF_BITS = 0x3FE6A09E667F3BCD
_INTEGER_BITS = 0x4330000000000000
"""2**52: an integer below, put into its low bits, is added to it."""
ROUND_WIDE = 6755399441055744.0
"""1.5 * 2**52: adding it leaves a float's nearest integer in the low bits of the sum."""
_MOST = 256.0
"""2**256 is infinite in f32 and 2**-256 is 0."""
_FINITE = 1e40
"""More than any f32: an infinite exponent is held to it, for 1**infinity is 1."""

_LOG2 = (
    -0.08634579896641562,
    0.1548573960483733,
    -0.15698228666457548,
    0.1590015273649325,
    -0.17904695244697458,
    0.20609625378394675,
    -0.2405041740115494,
    0.28854064364717674,
    -0.36067280055045664,
    0.480898320728277,
    -0.7213475252131859,
    1.4426950409393495,
)
"""log2(1 + f) / f in f, for 1 + f in [sqrt 1/2, sqrt 2)."""
_EXP2 = (
    1.534581148663382e-4,
    1.3399931212740059e-3,
    9.618488959035457e-3,
    5.550328776986048e-2,
    2.402264689061681e-1,
    6.93147205737255e-1,
    1.0000000005541678,
)
"""2**r, for |r| <= 1/2."""


def power(m: MathBuilder, x: SSAValue, y: SSAValue) -> SSAValue:
    """x**y, at every edge what the C library's `powf` gives."""
    exponent = _between(m, m.insert(arith.ExtFOp(y, f64)), -_FINITE, _FINITE)
    logarithm = log2(m, m.insert(arith.ExtFOp(m.abs(x), f64)))
    size = m.insert(arith.TruncFOp(exp2(m, m.mul(exponent, logarithm)), f32))
    one = m.insert(
        arith.OrIOp(m.test(y, "oeq", 0.0), m.test(x, "oeq", 1.0))
    )  # though the other is NaN
    return _of_any_sign(m, m.select(one, m.float(1.0), size), x, y)


def cbrt(m: MathBuilder, x: SSAValue) -> SSAValue:
    """The cube root of x: 2**(log2 |x| / 3) with the sign of x."""
    logarithm = log2(m, m.insert(arith.ExtFOp(m.abs(x), f64)))
    size = m.insert(arith.TruncFOp(exp2(m, m.mul(logarithm, m.float(1 / 3, f64))), f32))
    return m.copysign(size, x)


def _of_any_sign(m: MathBuilder, size: SSAValue, x: SSAValue, y: SSAValue) -> SSAValue:
    """x**y from |x|**y: of a negative number, only powers with an integer are numbers; infinity has all."""
    half = m.mul(y, m.float(0.5))
    below = m.insert(math.FloorOp(y))
    odd = m.test(m.insert(math.FloorOp(half)), "one", half)
    odd = m.insert(arith.AndIOp(odd, m.test(below, "oeq", y)))
    negative = m.insert(arith.AndIOp(m.test(x, "olt", 0.0), m.test(x, "ogt", -inf)))
    none = m.insert(arith.AndIOp(negative, m.test(below, "one", y)))
    return m.select(none, m.float(nan), m.select(odd, m.copysign(size, x), size))


def log2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """log2 x of an f64 from 2**-1000 up, 0, infinity or NaN; see `polynomials.log`."""
    raised = m.insert(arith.AddiOp(m.bits(x), m.int(_ONE_BITS - _SQRT_HALF_BITS, i64)))
    exponent = m.insert(arith.ShRUIOp(raised, m.int(_EXPONENT_BITS, i64)))
    n = m.from_bits(m.insert(arith.OrIOp(exponent, m.int(_INTEGER_BITS, i64))))
    n = m.sub(n, m.float(2.0**_EXPONENT_BITS + _BIAS, f64))
    mantissa = m.insert(arith.AndIOp(raised, m.int(_MANTISSA, i64)))
    f = m.from_bits(m.insert(arith.AddiOp(mantissa, m.int(_SQRT_HALF_BITS, i64))))
    f = m.sub(f, m.float(1.0, f64))
    result = m.fma(m.horner(f, _LOG2), f, n)
    result = m.select(m.test(x, "oeq", 0.0), m.float(-inf, f64), result)
    return m.select(m.test(x, "olt", inf), result, x)


def exp2(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2**x, as far as f32 has it; see `polynomials.exp2`."""
    held = _between(m, x, -_MOST, _MOST)
    shifted = m.add(held, m.float(ROUND_WIDE, f64))
    near = m.horner(m.sub(held, m.sub(shifted, m.float(ROUND_WIDE, f64))), _EXP2)
    raised = m.insert(arith.ShLIOp(m.bits(shifted), m.int(_EXPONENT_BITS, i64)))
    return m.mul(near, m.from_bits(m.insert(arith.AddiOp(raised, m.int(_ONE_BITS, i64)))))


def _between(m: MathBuilder, x: SSAValue, low: float, high: float) -> SSAValue:
    """`x` or the nearer bound; NaN stays."""
    least, most = m.float(low, f64), m.float(high, f64)
    x = m.select(m.test(x, "olt", least), least, x)
    return m.select(m.test(x, "ogt", most), most, x)
