"""sin, cos of f32 or f64 and tan of f32, of what is not large, without branches or calls: within 2 ulp.

`test/python/test_expand_math.py` measures it. Those of f32 have the coefficients and parts of pi / 2 of
Norbert Juffa's `sinf` and `cosf`, which need a fused multiply-add and hold to 71476; the others' make the
greatest error about as small as can be.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, IntegerType, f32, f64
from xdsl.ir import SSAValue

from .float_constants import F64, constants_of
from .math_builder import MathBuilder

_TWO_OVER_PI = 0.6366197723675814


@dataclass(frozen=True)
class _Angles:
    """What is needed of a float type."""

    most: float
    """The greatest angle that is not large."""
    half_pi: tuple[float, float, float]
    """pi / 2, its highest bits first; all positive, so that nothing of them makes 0 of -0."""
    sin: tuple[float, ...]
    """(sin r - r) / r**3 in r**2, for |r| <= pi / 4."""
    cos: tuple[float, ...]
    """cos r in r**2."""


_ANGLES = {
    f32: _Angles(
        most=65536.0,
        half_pi=(1.57079601e00, 3.13916473e-07, 5.39030253e-15),
        sin=(2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1),
        cos=(2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -5.00000000e-1, 1.0),
    ),
    f64: _Angles(
        most=2.0**30,
        half_pi=(1.5707963267948966, 6.123233995736765e-17, 1.082856673921914e-32),
        sin=(
            -7.586691094197958e-13,
            1.6058531516797758e-10,
            -2.5052106231802837e-8,
            2.7557319219337312e-6,
            -1.9841269841265063e-4,
            8.333333333333331e-3,
            -1.6666666666666666e-1,
        ),
        cos=(
            -1.1353367957830792e-11,
            2.0875582146477433e-9,
            -2.755731309595641e-7,
            2.4801587283874084e-5,
            -1.3888888888861082e-3,
            4.166666666666645e-2,
            -0.5,
            1.0,
        ),
    ),
}

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
    assert isinstance(x.type, Float32Type | Float64Type)
    large = m.test(size, "ogt", _ANGLES[x.type].most)
    return m.insert(arith.AndIOp(large, m.test(size, "olt", inf)))


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
    shifted = m.fma(wide, m.float(_TWO_OVER_PI, f64), m.float(F64.round, f64))
    n = m.sub(shifted, m.float(F64.round, f64))
    rest = wide
    for part in _ANGLES[f64].half_pi[:2]:
        rest = m.fma(n, m.float(-part, f64), rest)
    square = m.mul(rest, rest)
    near = m.fma(m.mul(m.horner(square, _TAN), square), rest, rest)
    odd = _is_odd(m, m.bits(shifted))
    above, below = m.select(odd, m.float(-1.0, f64), near), m.select(odd, near, m.float(1.0, f64))
    return m.insert(arith.TruncFOp(m.div(above, below), f32))


def _reduce(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x - n pi / 2 and n + `round`, with n the integer nearest to x / (pi / 2)."""
    offset = m.float(constants_of(m).round)
    shifted = m.fma(x, m.float(_TWO_OVER_PI), offset)
    n = m.sub(shifted, offset)
    rest = x
    for part in _ANGLES[m.type].half_pi:
        rest = m.fma(n, m.float(-part), rest)
    return rest, shifted


def _in_quadrant(m: MathBuilder, x: SSAValue, quadrant: SSAValue) -> SSAValue:
    """sin(x + quadrant * pi / 2) for |x| <= pi / 4; the quadrant is in the two lowest bits."""
    angles, square = _ANGLES[m.type], m.mul(x, x)
    cube = m.fma(x, square, m.float(0.0))  # 0 for -0, so that the sum below is -0
    sine = m.fma(m.horner(square, angles.sin), cube, x)
    cosine = m.horner(square, angles.cos)
    half = m.insert(arith.AndIOp(quadrant, m.int(2)))
    sign = m.insert(arith.ShLIOp(half, m.int(m.type.bitwidth - 2)))
    value = m.bits(m.select(_is_odd(m, quadrant), cosine, sine))
    return m.from_bits(m.insert(arith.XOrIOp(value, sign)))


def _is_odd(m: MathBuilder, quadrant: SSAValue) -> SSAValue:
    type = quadrant.type
    assert isinstance(type, IntegerType)
    last = m.insert(arith.AndIOp(quadrant, m.int(1, type)))
    return m.test_int(last, "ne", m.int(0, type))
