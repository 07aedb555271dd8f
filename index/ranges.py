"""What is proven about the values of index expressions.

Two kinds of proof. `bounds` is interval arithmetic in numbers, where a size counts as 1 or more, or as what
`symbols_within` says.
`proven_nonnegative` knows sizes as sizes: it puts each dim at the end of its range that makes the
expression smallest, writes each symbol as `1 + t` with `t >= 0`, and looks at the signs:

    s0 * 4 - 1 - d0   is at least 0 for d0 in [0, s0 * 4 - 1]

A symbol counts as at least 1: a program is refused at the call if one of its sizes is 0.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from .terms import Polynomial, add, multiply, order

Bound: TypeAlias = int | AffineExpr
"""An end of a range: a number, or an expression over symbols only."""

Range: TypeAlias = tuple[Bound, Bound]
"""Smallest and largest value, both included."""

UNKNOWN: tuple[int, int] = (-(1 << 62), 1 << 62)
"""The range of an index that nothing is known of."""

_FAR = 1 << 61
"""A bound this far from 0 stands for none."""

SYMBOL_RANGE: tuple[int, int] = (1, UNKNOWN[1])
"""The range of a size that nothing is said of, in numbers."""

_LIMITS: ContextVar[Sequence[tuple[int, int]]] = ContextVar("limits of symbols", default=())


@contextmanager
def symbols_within(limits: Sequence[tuple[int, int]]) -> Generator[None]:
    """Let `bounds` reckon with symbol `i` in `limits[i]`."""
    token = _LIMITS.set(limits)
    try:
        yield
    finally:
        _LIMITS.reset(token)


def limits_of_symbols() -> tuple[tuple[int, int], ...]:
    """What `bounds` reckons with for each symbol that something is said of."""
    return tuple(_LIMITS.get())


def is_bounded(low: int, high: int) -> bool:
    """Whether both ends say something."""
    return -_FAR < low and high < _FAR


def bounds(expr: AffineExpr, ranges: Sequence[Range]) -> tuple[int, int]:
    """Smallest and largest value that interval arithmetic proves for `expr`."""
    match expr:
        case AffineConstantExpr(value=value):
            return value, value
        case AffineDimExpr(position=position):
            return numbers(ranges[position])
        case AffineSymExpr(position=position):
            limits = _LIMITS.get()
            return limits[position] if position < len(limits) else SYMBOL_RANGE
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            low, high = bounds(lhs, ranges)
            if not isinstance(rhs, AffineConstantExpr):
                return _bounds_of_two(kind, (low, high), bounds(rhs, ranges))
            number = rhs.value
            match kind:
                case AffineBinaryOpKind.Add:
                    return low + number, high + number
                case AffineBinaryOpKind.Mul:
                    ends = low * number, high * number
                    return min(ends), max(ends)
                case AffineBinaryOpKind.FloorDiv:
                    return _divided(low, number), _divided(high, number)
                case AffineBinaryOpKind.CeilDiv:
                    return -_divided(-low, number), -_divided(-high, number)
                case AffineBinaryOpKind.Mod:
                    if low // number == high // number:
                        return low % number, high % number
                    return 0, number - 1
        case _:
            raise ValueError(f"not an index expression: {expr!r}")


def _divided(end: int, number: int) -> int:
    """The quotient of an end of a range; what stands for no bound still does."""
    return end // number if abs(end) < _FAR else end


def numbers(limits: Range) -> tuple[int, int]:
    """A range whose ends may be sizes, in numbers."""
    low, high = limits
    return (
        low if isinstance(low, int) else bounds(low, ())[0],
        high if isinstance(high, int) else bounds(high, ())[1],
    )


def _bounds_of_two(
    kind: AffineBinaryOpKind, left: tuple[int, int], right: tuple[int, int]
) -> tuple[int, int]:
    match kind:
        case AffineBinaryOpKind.Add:
            return left[0] + right[0], left[1] + right[1]
        case AffineBinaryOpKind.Mul:
            ends = [a * b for a in left for b in right]
            return min(ends), max(ends)
        case _ if right[0] < 1:
            return UNKNOWN
        case AffineBinaryOpKind.FloorDiv:
            ends = [a // b for a in left for b in right]
            return min(ends), max(ends)
        case AffineBinaryOpKind.CeilDiv:
            ends = [-(-a // b) for a in left for b in right]
            return min(ends), max(ends)
        case AffineBinaryOpKind.Mod:
            if left[0] < 0:
                return 0, right[1] - 1
            if left[1] < right[0]:
                return left
            return 0, min(left[1], right[1] - 1)


# --------------------------------------------------------------------------- sizes as sizes


def proven_nonnegative(poly: Polynomial, ranges: Sequence[Range]) -> bool:
    """Whether the polynomial is at least 0 wherever dims are in `ranges` and symbols at least 1."""
    atom = _outermost(poly)
    if atom is None:
        return all(c >= 0 for c in _shifted(poly).values())
    slope, rest = _linear_in(poly, atom)
    if slope is None:
        return False
    rising = proven_nonnegative(slope, ranges)
    if not rising and not proven_nonnegative(_negated(slope), ranges):
        return False
    return any(
        proven_nonnegative(lower, ranges)
        for lower in _with_extreme(atom, slope, rest, ranges, rising=rising)
    )


def _outermost(poly: Polynomial) -> AffineExpr | None:
    """The factor to remove first: a division before the dims it may hold; None if only symbols are left."""
    candidates = {f for m in poly for f in m if not isinstance(f, AffineSymExpr)}
    return max(candidates, key=lambda f: (_depth(f), order(f)), default=None)


def _depth(expr: AffineExpr) -> int:
    if isinstance(expr, AffineBinaryOpExpr):
        return 1 + max(_depth(expr.lhs), _depth(expr.rhs))
    return 0


def _linear_in(poly: Polynomial, atom: AffineExpr) -> tuple[Polynomial | None, Polynomial]:
    """`slope` and `rest` with `poly = slope * atom + rest`; no slope if `atom` occurs in higher powers."""
    slope: Polynomial = {}
    rest: Polynomial = {}
    for monomial, coefficient in poly.items():
        count = monomial.count(atom)
        if count > 1:
            return None, rest
        if count:
            slope[tuple(f for f in monomial if f != atom)] = coefficient
        else:
            rest[monomial] = coefficient
    return slope, rest


def _with_extreme(
    atom: AffineExpr,
    slope: Polynomial,
    rest: Polynomial,
    ranges: Sequence[Range],
    *,
    rising: bool,
) -> Iterator[Polynomial]:
    """Polynomials without `atom` that are at least 0 only if `slope * atom + rest` is."""
    match atom:
        case AffineDimExpr(position=position):
            end = ranges[position][0 if rising else 1]
            if not isinstance(end, int) or abs(end) < _FAR:
                yield add(multiply(slope, expand(end)), rest)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, rhs=divisor):
            yield add(multiply(slope, {} if rising else add(expand(divisor), {(): -1})), rest)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, lhs=lhs, rhs=rhs):
            dividend, divisor = expand(lhs), expand(rhs)
            if rising and proven_nonnegative(dividend, ranges):
                yield rest
            # n * (x floordiv n) lies in [x - n + 1, x]. All is multiplied by n, which is positive; as
            # the value is an integer, it is at least 0 if n times it is more than -n.
            slack = add(divisor, {(): -1})
            end = add(dividend, slack, -1) if rising else dividend
            yield add(add(multiply(slope, end), multiply(rest, divisor)), slack)
        case _:
            return


def expand(expr: Bound) -> Polynomial:
    """`expr` as a polynomial whose factors are dims, symbols and divisions."""
    match expr:
        case int():
            return {(): expr} if expr else {}
        case AffineConstantExpr(value=value):
            return {(): value} if value else {}
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            return add(expand(lhs), expand(rhs))
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            return multiply(expand(lhs), expand(rhs))
        case _:
            return {(expr,): 1}


def _negated(poly: Polynomial) -> Polynomial:
    return {m: -c for m, c in poly.items()}


def _shifted(poly: Polynomial) -> Polynomial:
    """The polynomial in `t` that `poly` becomes with `1 + t` for each symbol; `t` is named as its symbol."""
    total: Polynomial = {}
    for monomial, coefficient in poly.items():
        term: Polynomial = {(): coefficient}
        for symbol in monomial:
            term = multiply(term, {(symbol,): 1, (): 1})
        total = add(total, term)
    return total
