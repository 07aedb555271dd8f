"""sin, cos, tan of f32 that is not large, without branches or calls: within 2 units in the last place.

`test/python/test_expand_math.py` measures it. Coefficients and the parts of pi / 2 are those of Norbert
Juffa's `sinf` and `cosf`, which need a fused multiply-add and hold to 71476; those of tan make its greatest
error about as small as can be.
"""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, f32, f64
from xdsl.ir import SSAValue

from .float_constants import F32, F64
from .math_builder import MathBuilder

MOST = 65536.0

_TWO_OVER_PI = 6.36619747e-1
_HALF_PI = (1.57079601e00, 3.13916473e-07, 5.39030253e-15)
"""pi / 2, its highest bits first."""

_TWO_OVER_PI_WIDE = 0.6366197723675814
_HALF_PI_WIDE = (1.5707963267948966, 6.123233995736766e-17)
"""In f64."""

_SIN = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_COS = (2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -5.00000000e-1, 1.0)
_TAN = (
    4.376828266213974e-3,
    8.843294815839083e-5,
    1.0836668156047113e-2,
    2.1281863521483962e-2,
    5.405997799257647e-2,
    1.3332662805506018e-1,
    3.3333349770148235e-1,
)
"""(tan r - r) / r**3 in r**2, for |r| <= pi / 4, in f64."""


def is_large(m: MathBuilder, x: SSAValue) -> SSAValue:
    """Whether `sin`, `cos`, `tan` are not right for `x`; they are for what has none, infinities and NaN."""
    size = m.abs(x)
    return m.insert(arith.AndIOp(m.test(size, "ogt", MOST), m.test(size, "olt", inf)))


def sin(m: MathBuilder, x: SSAValue) -> SSAValue:
    """sin x: with n the integer nearest to x / (pi / 2), that of x - n pi / 2 in quadrant n."""
    rest, shifted = _reduce(m, x)
    return _in_quadrant(m, rest, m.bits(shifted))


def cos(m: MathBuilder, x: SSAValue) -> SSAValue:
    """cos x: a sine one quadrant on."""
    rest, shifted = _reduce(m, x)
    return _in_quadrant(m, rest, m.insert(arith.AddiOp(m.bits(shifted), m.int(1))))


def tan(m: MathBuilder, x: SSAValue) -> SSAValue:
    """tan x: with n and r = x - n pi / 2 as above, tan r, or -1 / tan r if n is odd.

    In f64, because rounding r, tan r and the quotient to f32 is three units off.
    """
    wide = m.insert(arith.ExtFOp(x, f64))
    shifted = m.fma(wide, m.float(_TWO_OVER_PI_WIDE, f64), m.float(F64.round, f64))
    n = m.sub(shifted, m.float(F64.round, f64))
    rest = wide
    for part in _HALF_PI_WIDE:
        rest = m.fma(n, m.float(-part, f64), rest)
    square = m.mul(rest, rest)
    near = m.fma(m.mul(m.horner(square, _TAN), square), rest, rest)
    odd = _is_odd(m, m.bits(shifted))
    above, below = m.select(odd, m.float(-1.0, f64), near), m.select(odd, near, m.float(1.0, f64))
    return m.insert(arith.TruncFOp(m.div(above, below), f32))


def _reduce(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x - n pi / 2 and n + `round`, with n the integer nearest to x / (pi / 2)."""
    shifted = m.fma(x, m.float(_TWO_OVER_PI), m.float(F32.round))
    n = m.sub(shifted, m.float(F32.round))
    rest = x
    for part in _HALF_PI:
        rest = m.fma(n, m.float(-part), rest)
    return rest, shifted


def _in_quadrant(m: MathBuilder, x: SSAValue, quadrant: SSAValue) -> SSAValue:
    """sin(x + quadrant * pi / 2) for |x| <= pi / 4; the quadrant is in the two lowest bits."""
    square = m.mul(x, x)
    cube = m.fma(x, square, m.float(0.0))  # 0 for -0, so that the sum below is -0
    sine = m.fma(m.horner(square, _SIN), cube, x)
    cosine = m.horner(square, _COS)
    sign = m.insert(arith.ShLIOp(m.insert(arith.AndIOp(quadrant, m.int(2))), m.int(30)))
    value = m.bits(m.select(_is_odd(m, quadrant), cosine, sine))
    return m.from_bits(m.insert(arith.XOrIOp(value, sign)))


def _is_odd(m: MathBuilder, quadrant: SSAValue) -> SSAValue:
    type = quadrant.type
    assert isinstance(type, IntegerType)
    last = m.insert(arith.AndIOp(quadrant, m.int(1, type)))
    return m.test_int(last, "ne", m.int(0, type))
