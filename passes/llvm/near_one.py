"""1 + erf(x) and 1 + tanh(x), as GELU and the normal distribution have them: right where they are nearly 0.

    %e = math.erf %x : f32
    %s = arith.addf %e, %one : f32      becomes e**(-x**2) * polynomial where x is negative, else 2 less that

Of the sum of 1 and a rounded erf(x), the digits below the last one of 1 are lost: at x = -3.9, all of them.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from .math_builder import MathBuilder
from .polynomials import moderate_exp

_ERFC = (
    *(5.6659239e-5, 3.0292453e-5, -5.9446803e-4, 7.147016e-4, 4.2685876e-3, -2.4393961e-2),
    *(7.1665935e-2, -1.5011582e-1, 2.456038e-1, -3.2623357e-1, 1.7900115e-1),
)
"""(1 - erf x) e**(x**2) in (x - c) / (x + c), c `_ERFC_CENTRE`, for x from 0 to 10; off by 1.7e-8 of it
(least squares of relative errors at 400 Chebyshev points, found with mpmath)."""
_ERFC_CENTRE = 3.0
_ERFC_IS_ZERO = 9.27
"""Where 1 - erf x is no normal f32, and `moderate_exp` ends."""
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
    """e**(-x**2) times a polynomial, and 2 less that: NaN stays in the polynomial.

    The square is rounded, which counts x**2 times, as the rounding of x itself does twice.
    """
    size = m.abs(x)
    is_zero = m.test(size, "ogt", _ERFC_IS_ZERO)
    held = m.select(is_zero, m.float(_ERFC_IS_ZERO), size)
    power = moderate_exp(m, m.negative(m.mul(held, held)))
    place = m.div(m.sub(held, m.float(_ERFC_CENTRE)), m.add(held, m.float(_ERFC_CENTRE)))
    rest = m.select(is_zero, m.float(0.0), m.mul(power, m.horner(place, _ERFC)))
    return m.select(m.test(x, "olt", 0.0), rest, m.sub(m.float(2.0), rest))


def _tanh_plus_one(m: MathBuilder, x: SSAValue) -> SSAValue:
    """2 / (1 + e**(-2x))"""
    held = m.clamp(x, -_TANH_IS_MINUS_ONE, _TANH_IS_MINUS_ONE)
    grown = moderate_exp(m, m.mul(held, m.float(-2.0)))
    total = m.div(m.float(2.0), m.add(grown, m.float(1.0)))
    total = m.select(m.test(x, "olt", -_TANH_IS_MINUS_ONE), m.float(0.0), total)
    return m.select(m.test(x, "uno", x), x, total)
