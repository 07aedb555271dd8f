"""The algebra of index expressions: sums of products, in one canonical form.

A canonical expression is a sum of atoms with coefficients and a constant. An atom is a dim, a symbol, a
`floordiv` or `mod`, or a product of these. Terms stand by falling number of symbols, then by falling
coefficient, the negative ones and the constant last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd
from typing import TypeAlias

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from .affine import ZERO, product

Terms: TypeAlias = dict[AffineExpr, int]
"""A sum without its constant: each atom with its coefficient."""

Monomial: TypeAlias = tuple[AffineExpr, ...]
"""The factors of an atom, in canonical order; of a constant, none."""

Polynomial: TypeAlias = dict[Monomial, int]
"""A sum with its constant: each monomial with its coefficient, which is not 0."""

_MAX_DIVISION_STEPS = 64
"""Terms a division moves before it stops; what is left stays in the rest."""


def order(expr: AffineExpr) -> tuple[int, ...]:
    """A total order of atoms that does not depend on hashing: dims by position, then the rest."""
    match expr:
        case AffineDimExpr(position=position):
            return (0, position)
        case AffineConstantExpr(value=value):
            return (1, value)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            code = list(AffineBinaryOpKind).index(kind)
            return (2, *order(lhs), code, *order(rhs))
        case AffineSymExpr(position=position):
            return (3, position)
        case _:
            raise ValueError(f"not an index expression: {expr!r}")


def _symbol_factors(atom: AffineExpr) -> int:
    match atom:
        case AffineSymExpr():
            return 1
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            return _symbol_factors(lhs) + _symbol_factors(rhs)
        case _:
            return 0


def build(terms: Mapping[AffineExpr, int], constant: int) -> AffineExpr:
    """The canonical expression of a sum."""
    expr = ZERO
    for atom, coefficient in sorted(
        terms.items(), key=lambda t: (t[1] < 0, -_symbol_factors(t[0]), -abs(t[1]), order(t[0]))
    ):
        expr = expr + atom * coefficient
    return expr + constant


def add_terms(left: Terms, right: Terms) -> Terms:
    """The sum of two sums without their constants."""
    total = dict(left)
    for atom, coefficient in right.items():
        total[atom] = total.get(atom, 0) + coefficient
    return {a: c for a, c in total.items() if c}


# --------------------------------------------------------------------------- polynomials


def factors(atom: AffineExpr) -> Monomial:
    """The factors of an atom."""
    if isinstance(atom, AffineBinaryOpExpr) and atom.kind is AffineBinaryOpKind.Mul:
        return factors(atom.lhs) + factors(atom.rhs)
    return (atom,)


def atom_of(monomial: Monomial) -> AffineExpr:
    """The atom that is the product of factors, at least one."""
    first, *others = monomial
    for factor in others:
        first = product(first, factor)
    return first


def polynomial(terms: Mapping[AffineExpr, int], constant: int) -> Polynomial:
    """A sum as a polynomial."""
    result = {factors(atom): coefficient for atom, coefficient in terms.items()}
    if constant:
        result[()] = constant
    return result


def sum_of(poly: Polynomial) -> tuple[Terms, int]:
    """A polynomial as a sum: its terms and its constant."""
    return {atom_of(m): c for m, c in poly.items() if m}, poly.get((), 0)


def add(left: Polynomial, right: Polynomial, scale: int = 1) -> Polynomial:
    """`left + scale * right`."""
    total = dict(left)
    for monomial, coefficient in right.items():
        total[monomial] = total.get(monomial, 0) + scale * coefficient
    return {m: c for m, c in total.items() if c}


def multiply(left: Polynomial, right: Polynomial) -> Polynomial:
    """`left * right`."""
    total: Polynomial = {}
    for first, a in left.items():
        for second, b in right.items():
            monomial = tuple(sorted(first + second, key=order))
            total[monomial] = total.get(monomial, 0) + a * b
    return {m: c for m, c in total.items() if c}


def without(monomial: Monomial, divisor: Monomial) -> Monomial | None:
    """The factors of `monomial` that are left after those of `divisor`, or None if some are missing."""
    left = list(monomial)
    for factor in divisor:
        if factor not in left:
            return None
        left.remove(factor)
    return tuple(left)


def divide(dividend: Polynomial, divisor: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Polynomials such that `dividend = quotient * divisor + rest`.

    Division by the leading term in graded lexicographic order, as long as a coefficient divides.
    """
    lead = max(divisor, key=_graded)
    quotient: Polynomial = {}
    rest = dividend
    for _ in range(_MAX_DIVISION_STEPS):
        for monomial in sorted(rest, key=_graded, reverse=True):
            left = without(monomial, lead)
            if left is not None and rest[monomial] % divisor[lead] == 0:
                step = {left: rest[monomial] // divisor[lead]}
                quotient = add(quotient, step)
                rest = add(rest, multiply(step, divisor), -1)
                break
        else:
            break
    return quotient, rest


def _graded(monomial: Monomial) -> tuple[int, list[tuple[int, ...]]]:
    return len(monomial), sorted((order(f) for f in monomial), reverse=True)


def exact_quotient(dividend: Polynomial, divisor: Polynomial) -> Polynomial | None:
    """`dividend / divisor` if that is a polynomial."""
    result, rest = divide(dividend, divisor)
    return None if rest else result


def common_factor(polys: Sequence[Polynomial]) -> tuple[Monomial, int]:
    """The largest monomial and number that divide every term of every polynomial."""
    number = 0
    shared: Monomial | None = None
    for poly in polys:
        for monomial, coefficient in poly.items():
            number = gcd(number, coefficient)
            shared = monomial if shared is None else intersection(shared, monomial)
    return shared or (), number


def intersection(left: Monomial, right: Monomial) -> Monomial:
    """The factors that two monomials share."""
    remaining = list(right)
    shared: list[AffineExpr] = []
    for factor in left:
        if factor in remaining:
            remaining.remove(factor)
            shared.append(factor)
    return tuple(shared)
