"""sin and cos of f32 that is not large, without branches or calls: within 2 units in the last place.

`test/python/test_expand_math.py` measures it. Coefficients and the parts of pi / 2 are those of Norbert
Juffa's `sinf` and `cosf`, which need a fused multiply-add and hold to 71476.
"""

from __future__ import annotations

from math import inf

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from .math_builder import MathBuilder
from .polynomials import ROUND

MOST = 65536.0

_TWO_OVER_PI = 6.36619747e-1
_HALF_PI = (1.57079601e00, 3.13916473e-07, 5.39030253e-15)
"""pi / 2, its highest bits first."""

_SIN = (2.86567956e-6, -1.98559923e-4, 8.33338592e-3, -1.66666672e-1)
_COS = (2.44677067e-5, -1.38877297e-3, 4.16666567e-2, -5.00000000e-1, 1.0)


def is_large(m: MathBuilder, x: SSAValue) -> SSAValue:
    """Whether `sin` and `cos` are not right for `x`; they are for what has none, infinities and NaN."""
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


def _reduce(m: MathBuilder, x: SSAValue) -> tuple[SSAValue, SSAValue]:
    """x - n pi / 2 and n + `ROUND`, with n the integer nearest to x / (pi / 2)."""
    shifted = m.fma(x, m.float(_TWO_OVER_PI), m.float(ROUND))
    n = m.sub(shifted, m.float(ROUND))
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
    odd = m.test_int(m.insert(arith.AndIOp(quadrant, m.int(1))), "ne", m.int(0))
    sign = m.insert(arith.ShLIOp(m.insert(arith.AndIOp(quadrant, m.int(2))), m.int(30)))
    value = m.bits(m.select(odd, cosine, sine))
    return m.from_bits(m.insert(arith.XOrIOp(value, sign)))
