"""Integer division that cannot trap: by zero it gives zero, and the smallest integer by -1 wraps."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from .math_builder import MathBuilder
from .scalars import integer_type


def truncdiv(m: MathBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b rounded towards zero."""
    quotient, _ = _divide(m, a, b)
    return quotient


def remainder(m: MathBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """a - (a / b) * b with the quotient rounded towards zero; the sign of a."""
    _, rest = _divide(m, a, b)
    return rest


def floordiv(m: MathBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
    """a / b rounded down: one less than towards zero if the division is inexact and signs differ."""
    quotient, rest = _divide(m, a, b)
    zero = _constant(m, 0, a)
    inexact = m.test_int(rest, "ne", zero)
    differ = m.test_int(m.insert(arith.XOrIOp(rest, b)), "slt", zero)
    lower = m.insert(arith.AndIOp(inexact, differ))
    return m.select(lower, m.insert(arith.SubiOp(quotient, _constant(m, 1, a))), quotient)


def _divide(m: MathBuilder, a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """Quotient and remainder; the machine divides by 1 in place of 0 and -1."""
    zero, one, minus_one = _constant(m, 0, a), _constant(m, 1, a), _constant(m, -1, a)
    by_zero = m.test_int(b, "eq", zero)
    by_minus_one = m.test_int(b, "eq", minus_one)
    unsafe = m.insert(arith.OrIOp(by_zero, by_minus_one))
    safe = m.select(unsafe, one, b)
    quotient = m.insert(arith.DivSIOp(a, safe))
    negated = m.insert(arith.SubiOp(zero, a))
    quotient = m.select(by_minus_one, negated, m.select(by_zero, zero, quotient))
    rest = m.select(unsafe, zero, m.insert(arith.RemSIOp(a, safe)))
    return quotient, m.select(by_zero, a, rest)


def _constant(m: MathBuilder, value: int, like: SSAValue) -> SSAValue:
    return m.int(value, integer_type(like.type))
