"""1 + erf(x) and 1 + tanh(x), as GELU and the normal distribution have them: right where they are nearly 0.

    %e = math.erf %x : f32
    %s = arith.addf %e, %one : f32      becomes 2**polynomial(|x|) where x is negative, else 2 less that

Of the sum of 1 and a rounded erf(x), the digits below the last one of 1 are lost: at x = -3.9, all of them.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from .float_constants import constants_of
from .math_builder import MathBuilder
from .polynomials import moderate_exp, power_of_two

_LOG2_ERFC = (
    (1.14550739e-5, -1.2943298e-8),
    (-1.50056774e-4, 2.79781432e-7),
    (8.31936428e-4, -2.79209985e-6),
    (-2.23300257e-3, 1.930691e-5),
    (2.89063428e-5, -1.21261779e-4),
    (2.7764529e-2, 7.78665824e-4),
    (-0.148322642, -5.16336225e-3),
    (-0.918440461, -1.40589356),
    (-1.6279074, -12.1487904),
    (0.0, -27.089080810546875),
)
"""Coefficients of log2(1 - erf x), highest power first: in x up to `_ERFC_SPLIT`, else x - `_ERFC_CENTRE`.

Their greatest error is least (Lawson's algorithm at 800 Chebyshev points, where each coefficient is rounded
before the next is fitted), relative to the lesser of 0.35 * 2**-24 and (5 + x**2 / 2) * 2**-25 of 1 - erf x.
The last ones are multiples of 2**-16: the difference from an integer of up to 127 is exact.
"""
_ERFC_SPLIT = 2.375
_ERFC_CENTRE = 4.0947265625
_ERFC_IS_ZERO = 9.2319485
"""Where 1 - erf x is 2**-127, no normal f32."""
_TANH_IS_MINUS_ONE = 43.0
"""The same of 1 - tanh x."""


def is_added_to_one(op: Operation) -> bool:
    """Whether `op` is erf or tanh and every use of it adds 1."""
    uses = list(op.results[0].uses) if isinstance(op, math.ErfOp | math.TanhOp) else []
    return bool(uses) and all(_adds_one(use.operation) for use in uses)


def _adds_one(user: Operation) -> bool:
    return isinstance(user, arith.AddfOp) and any(
        isinstance(value.owner, arith.ConstantOp)
        and isinstance(value.owner.value, FloatAttr)
        and value.owner.value.value.data == 1.0
        for value in user.operands
    )


def plus_one(m: MathBuilder, op: Operation) -> SSAValue:
    """1 + erf or 1 + tanh of f32, for `is_added_to_one`, in the place of each sum."""
    (x,) = op.operands
    total = (_erf_plus_one if isinstance(op, math.ErfOp) else _tanh_plus_one)(m, x)
    for sum in [use.operation for use in op.results[0].uses]:
        sum.results[0].replace_all_uses_with(total)
        sum.detach()
        sum.erase()
    return total


def _erf_plus_one(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2**log2(1 - erf |x|), and for positive x 2 less that: NaN stays.

    The integer nearest to the logarithm is subtracted from the polynomial's last coefficient: a sum of both
    would lose digits of large logarithms.
    """
    c, size = constants_of(m), m.abs(x)
    held = m.select(m.test(size, "ogt", _ERFC_IS_ZERO), m.float(_ERFC_IS_ZERO), size)
    is_far = m.test(held, "ogt", _ERFC_SPLIT)
    *upper, last = (m.select(is_far, m.float(far), m.float(near)) for near, far in _LOG2_ERFC)
    place = m.select(is_far, m.sub(held, m.float(_ERFC_CENTRE)), held)
    slope, round = m.horner(place, upper), m.float(c.round + c.bias)
    shifted = m.add(m.fma(slope, place, last), round)
    near = m.fma(slope, place, m.sub(last, m.sub(shifted, round)))
    power = power_of_two(m, shifted)
    rest = m.fma(m.mul(m.horner(near, c.exp2[:-1]), near), power, power)
    return m.select(m.test(x, "olt", 0.0), rest, m.sub(m.float(2.0), rest))


def _tanh_plus_one(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2 / (1 + e**(-2x))"""
    held = m.clamp(x, -_TANH_IS_MINUS_ONE, _TANH_IS_MINUS_ONE)
    grown = moderate_exp(m, m.mul(held, m.float(-2.0)))
    total = m.div(m.float(2.0), m.add(grown, m.float(1.0)))
    total = m.select(m.test(x, "olt", -_TANH_IS_MINUS_ONE), m.float(0.0), total)
    return m.select(m.test(x, "uno", x), x, total)
