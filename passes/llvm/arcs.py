"""atan, atan2, asin and acos of f32 without branches or calls: within 2 units in the last place.

`test/python/test_expand_math.py` measures it. Coefficients make the greatest relative error about as small as
can be. Results that are some pi / 2 plus an arc have the last bits of pi in the arc's small part.
"""

from __future__ import annotations

from math import pi

from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from .math_builder import MathBuilder

_PI_REST = -2.78275344e-8
"""(pi - its nearest f32) / pi."""

_ATAN = (
    -1.79362111e-3,
    1.09146032e-2,
    -3.11778411e-2,
    5.79575896e-2,
    -8.40345025e-2,
    1.09521858e-1,
    -1.42642424e-1,
    1.99985489e-1,
    -3.33332986e-1,
)
"""(atan t - t) / t**3 in t**2, for |t| <= 1."""
_ASIN = (4.21662442e-2, 2.41795499e-2, 4.54703718e-2, 7.49529749e-2, 1.66667521e-1)
"""(asin s - s) / s**3 in s**2, for |s| <= 1/2."""


def atan(m: MathBuilder, x: SSAValue) -> SSAValue:
    """atan x: that of |x| up to 1, else pi / 2 less that of 1 / |x|; with the sign of x."""
    size = m.abs(x)
    far = m.test(size, "ogt", 1.0)
    t = m.div(m.select(far, m.float(-1.0), size), m.select(far, size, m.float(1.0)))
    base = m.select(far, m.float(pi / 2), m.float(0.0))
    square = m.mul(t, t)
    tail = m.mul(m.mul(m.horner(square, _ATAN), square), t)
    return m.copysign(_from(m, base, t, tail), x)


def atan2(m: MathBuilder, y: SSAValue, x: SSAValue) -> SSAValue:
    """The angle of (x, y): the arc of the smaller over the larger size, in the octant of (x, y)."""
    height, width = m.abs(y), m.abs(x)
    steep = m.test(height, "ogt", width)
    small, large = m.select(steep, width, height), m.select(steep, height, width)
    # Of two zeros or infinities there is no quotient.
    same = m.select(m.test(large, "oeq", 0.0), m.float(0.0), m.float(1.0))
    t = m.select(m.test(small, "oeq", large), same, m.div(small, large))
    left = m.test_int(m.bits(x), "slt", m.int(0))  # -0, too
    base = m.select(left, m.float(pi), m.float(0.0))
    base = m.select(steep, m.float(pi / 2), base)
    back = m.insert(arith.XOrIOp(steep, left))
    t = m.select(back, m.negative(t), t)
    square = m.mul(t, t)
    tail = m.mul(m.mul(m.horner(square, _ATAN), square), t)
    return m.copysign(_from(m, base, t, tail), y)


def asin(m: MathBuilder, x: SSAValue) -> SSAValue:
    """asin x: that of |x| up to 1/2, else pi / 2 - 2 asin sqrt((1 - |x|) / 2); with the sign of x."""
    far, s, tail = _arc_sine(m, m.abs(x))
    factor = m.select(far, m.float(-2.0), m.float(1.0))
    base = m.select(far, m.float(pi / 2), m.float(0.0))
    return m.copysign(_from(m, base, m.mul(factor, s), m.mul(factor, tail)), x)


def acos(m: MathBuilder, x: SSAValue) -> SSAValue:
    """acos x: pi / 2 - asin x for |x| up to 1/2, else 2 asin sqrt((1 - |x|) / 2) or pi less that."""
    far, s, tail = _arc_sine(m, m.abs(x))
    factor = m.copysign(m.select(far, m.float(2.0), m.float(1.0)), x)
    factor = m.select(far, factor, m.negative(factor))
    left = m.select(m.test(x, "olt", 0.0), m.float(pi), m.float(0.0))
    base = m.select(far, left, m.float(pi / 2))
    return _from(m, base, m.mul(factor, s), m.mul(factor, tail))


def _arc_sine(m: MathBuilder, size: SSAValue) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Whether `size` is above 1/2; s, which is `size` or then sqrt((1 - size) / 2); and asin s - s."""
    far = m.test(size, "ogt", 0.5)
    halved = m.mul(m.sub(m.float(1.0), size), m.float(0.5))
    square = m.select(far, halved, m.mul(size, size))
    s = m.select(far, m.insert(math.SqrtOp(square)), size)
    return far, s, m.mul(m.mul(m.horner(square, _ASIN), square), s)


def _from(m: MathBuilder, base: SSAValue, arc: SSAValue, tail: SSAValue) -> SSAValue:
    """base + arc + tail, for an f32 that is nearest to a multiple of pi / 2, and a small tail."""
    return m.add(base, m.add(arc, m.fma(base, m.float(_PI_REST), tail)))
