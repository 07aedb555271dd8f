"""erf and tanh where they are added to 1: quotients of polynomials.

GELU, and what else has `1 + erf(x)` or `1 + tanh(x)`, rounds what these are off to the last bit of 1. So what
counts is how far off they are, not by how many of their own units. These take half the time of those of
`polynomials.py`; 1 + f(x) is right to 3 units of 1.

The quotients are minimax in x**2 (by Lawson's weights, in f64), scaled so that rounding their coefficients
costs little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import Operation, SSAValue

from .math_builder import MathBuilder


@dataclass(frozen=True)
class _Quotient:
    """x * above(x**2) / below(x**2), for |x| up to `is_one`, where it is 1."""

    above: Sequence[float]
    below: Sequence[float]
    is_one: float


_QUOTIENTS: dict[type[Operation], _Quotient] = {
    math.ErfOp: _Quotient(
        (2.8186737e-6, 3.9168904e-4, 5.177435e-3, 7.252485e-2, 2.617928e-1, 1.5514184),
        (5.23726e-5, 1.5983937e-3, 2.0581419e-2, 1.5689015e-1, 6.9030994e-1, 1.3749088),
        3.92,
    ),
    math.TanhOp: _Quotient(
        (2.5773403e-8, 3.980219e-5, 6.7537017e-3, 2.5857484e-1, 1.9324937),
        (1.5014102e-6, 6.3470134e-4, 5.0001398e-2, 9.0273905e-1, 1.9324937),
        9.01,
    ),
}


def is_added_to_one(op: Operation) -> bool:
    """Whether `op` is erf or tanh and every use of it adds a constant of 1 or more."""
    if type(op) not in _QUOTIENTS or not op.results[0].uses:
        return False
    return all(_adds_one(use.operation) for use in op.results[0].uses)


def _adds_one(user: Operation) -> bool:
    if not isinstance(user, arith.AddfOp):
        return False
    constants = [
        value.owner for value in user.operands if isinstance(value.owner, arith.ConstantOp)
    ]
    values = [c.value.value.data for c in constants if isinstance(c.value, FloatAttr)]
    return any(abs(value) >= 1 for value in values)


def near_one(m: MathBuilder, op: Operation) -> SSAValue:
    """erf or tanh of f32, for `is_added_to_one`; NaN stays, and so does the sign of zero."""
    quotient, (x,) = _QUOTIENTS[type(op)], op.operands
    square, largest = m.mul(x, x), quotient.is_one**2
    held = m.select(m.test(square, "ogt", largest), m.float(largest), square)
    above = m.mul(x, m.horner(held, quotient.above))
    return m.clamp(m.div(above, m.horner(held, quotient.below)), -1.0, 1.0)
