"""sinh and cosh of f32 without branches or calls: within 2 units in the last place.

`test/python/test_expand_math.py` measures it. With n the integer nearest to |x| / ln 2 and r = |x| - n ln 2,

    sinh |x| = sinh(n ln 2) cosh r + cosh(n ln 2) sinh r
    cosh x   = cosh(n ln 2) cosh r + sinh(n ln 2) sinh r

where sinh and cosh of n ln 2 are (2**n -+ 2**-n) / 2, and those of r are short polynomials. All is halved
until the end, because 2**128 is no float. Coefficients make the greatest error about as small as can be.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from .math_builder import MathBuilder
from .polynomials import raise_exponent, reduce

_MOST = 89.5
"""An |x| for which both are infinite."""

_SINH = (1.99048853e-4, 8.33328906e-3, 1.66666672e-1)
"""(sinh r - r) / r**3 in r**2, for |r| <= ln 2 / 2."""
_COSH = (1.39462296e-3, 4.16662656e-2, 5.0e-1)
"""(cosh r - 1) / r**2 in r**2."""


def sinh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """sinh x"""
    of = _parts(m, x)
    tail = m.fma(of.sinh_n, of.cosh_tail, m.mul(of.cosh_n, of.sinh_tail))
    half = m.add(of.sinh_n, m.fma(of.cosh_n, of.rest, tail))
    whole = m.test(m.abs(x), "olt", 2.0**-12)  # also what half of would lose a bit
    return m.select(whole, x, m.copysign(m.add(half, half), x))


def cosh(m: MathBuilder, x: SSAValue) -> SSAValue:
    """cosh x"""
    of = _parts(m, x)
    tail = m.fma(of.cosh_n, of.cosh_tail, m.mul(of.sinh_n, of.sinh_tail))
    half = m.add(of.cosh_n, m.fma(of.sinh_n, of.rest, tail))
    return m.add(half, half)


@dataclass(frozen=True)
class _Parts:
    sinh_n: SSAValue
    """sinh(n ln 2) / 2"""
    cosh_n: SSAValue
    """cosh(n ln 2) / 2"""
    rest: SSAValue
    """r = |x| - n ln 2"""
    sinh_tail: SSAValue
    """sinh r - r"""
    cosh_tail: SSAValue
    """cosh r - 1"""


def _parts(m: MathBuilder, x: SSAValue) -> _Parts:
    size = m.abs(x)
    held = m.select(m.test(size, "ogt", _MOST), m.float(_MOST), size)
    rest, shifted = reduce(m, held)
    grown = m.from_bits(raise_exponent(m, m.float(0.25), shifted))
    shrunk = m.div(m.float(1.0 / 16), grown)
    square = m.mul(rest, rest)
    return _Parts(
        m.sub(grown, shrunk),
        m.add(grown, shrunk),
        rest,
        m.mul(m.mul(m.horner(square, _SINH), square), rest),
        m.mul(m.horner(square, _COSH), square),
    )
