"""The one simplifier of index expressions.

Division and remainder disappear where the ranges of the dims prove it:

    (d0 * 4 + d1) floordiv 4   ->  d0             for d1 in [0, 3]
    (d0 * 64 + d1) mod 64      ->  d1             for d1 in [0, 63]
    d0 floordiv 4 * 4 + d0 mod 4  ->  d0
    (d0 floordiv 3) floordiv 5 ->  d0 floordiv 15
    (d0 floordiv 3 + d1) floordiv 5 -> (d0 + d1 * 3) floordiv 15
    (d0 * s0 + d1) mod s0      ->  d1             for d1 in [0, s0 - 1]

Results are canonical sums (`terms.py`). `floordiv` and `mod` are floor division and its remainder, as
in Python; their divisors are positive: constants, or expressions over symbols.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import gcd

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from .affine import product, quotient, remainder, replace_dims
from .ranges import (
    UNKNOWN,
    Range,
    bounds,
    expand,
    is_bounded,
    limits_of_symbols,
    proven_nonnegative,
)
from .terms import (
    Monomial,
    Polynomial,
    Terms,
    add,
    add_terms,
    atom_of,
    build,
    common_factor,
    divide,
    exact_quotient,
    factors,
    intersection,
    multiply,
    order,
    polynomial,
    sum_of,
    without,
)

Sum = tuple[Terms, int]


def simplify(expr: AffineExpr, ranges: Sequence[Range]) -> AffineExpr:
    """The canonical form of `expr`, equal to it for every value of the dims within `ranges`."""
    return _simplify(expr, tuple(ranges), limits_of_symbols())


@lru_cache(4096)
def _simplify(
    expr: AffineExpr, ranges: tuple[Range, ...], limits: tuple[tuple[int, int], ...]
) -> AffineExpr:
    """The steps of an unrolled loop ask the same again and again; `limits` are what `bounds` reckons with."""
    return build(*_terms(expr, ranges))


def substitute(expr: AffineExpr, dims: Sequence[AffineExpr], ranges: Sequence[Range]) -> AffineExpr:
    """`expr` with its dims replaced, simplified over the `ranges` of the new dims."""
    return simplify(replace_dims(expr, dims), ranges)


def always_holds(expr: AffineExpr, ranges: Sequence[Range]) -> bool:
    """Whether `expr >= 0` is proven."""
    low, high = bounds(expr, ranges)
    return low >= 0 or (not is_bounded(low, high) and proven_nonnegative(expand(expr), ranges))


def never_holds(expr: AffineExpr, ranges: Sequence[Range]) -> bool:
    """Whether `expr >= 0` is disproven."""
    low, high = bounds(expr, ranges)
    if high < 0:
        return True
    negated = expand(product(expr, -1) + -1)
    return not is_bounded(low, high) and proven_nonnegative(negated, ranges)


# --------------------------------------------------------------------------- sums


def _terms(expr: AffineExpr, ranges: Sequence[Range]) -> Sum:
    match expr:
        case AffineConstantExpr(value=value):
            return {}, value
        case AffineDimExpr(position=position):
            low, high = ranges[position]
            return ({}, low) if isinstance(low, int) and low == high else ({expr: 1}, 0)
        case AffineSymExpr():
            return {expr: 1}, 0
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = _terms(lhs, ranges), _terms(rhs, ranges)
            return _recombine(add_terms(left[0], right[0]), left[1] + right[1], ranges)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=AffineConstantExpr(value=number)):
            terms, constant = _terms(lhs, ranges)
            match kind:
                case AffineBinaryOpKind.Mul:
                    scaled = {a: c * number for a, c in terms.items() if c * number}
                    return scaled, constant * number
                case AffineBinaryOpKind.FloorDiv:
                    return _floordiv(terms, constant, number, ranges)
                case AffineBinaryOpKind.Mod:
                    return _mod(terms, constant, number, ranges)
                case _:
                    return _floordiv(terms, constant + number - 1, number, ranges)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            return _terms_of_two(kind, _terms(lhs, ranges), _terms(rhs, ranges), ranges)
        case _:
            raise ValueError(f"not an index expression: {expr!r}")


def _terms_of_two(kind: AffineBinaryOpKind, left: Sum, right: Sum, ranges: Sequence[Range]) -> Sum:
    divisor = polynomial(*right)
    match kind:
        case AffineBinaryOpKind.Mul:
            return _recombine(*sum_of(multiply(polynomial(*left), divisor)), ranges)
        case AffineBinaryOpKind.Mod:
            return _mod_by(left, divisor, ranges)
        case AffineBinaryOpKind.FloorDiv:
            return _floordiv_by(left, divisor, ranges)
        case _:
            raised = add(add(polynomial(*left), divisor), {(): -1})
            return _floordiv_by(sum_of(raised), divisor, ranges)


def _recombine(terms: Terms, constant: int, ranges: Sequence[Range]) -> Sum:
    """Undo splits: `x floordiv n * n + x mod n` is `x`, also as a factor of a product."""
    if not any(_holds(AffineBinaryOpKind.FloorDiv, atom) for atom in terms):
        return terms, constant
    for atom, coefficient in terms.items():
        if not _holds(AffineBinaryOpKind.Mod, atom):
            continue
        monomial = factors(atom)
        for rest in monomial:
            if not isinstance(rest, AffineBinaryOpExpr) or rest.kind is not AffineBinaryOpKind.Mod:
                continue
            others = without(monomial, (rest,))
            assert others is not None
            scale: Polynomial = {others: coefficient}
            quotient_of_lhs = _floordiv_by(sum_of(expand(rest.lhs)), expand(rest.rhs), ranges)
            upper = multiply(polynomial(*quotient_of_lhs), expand(rest.rhs))
            split = multiply(scale, add(upper, {(rest,): 1}))
            # What is split may have a constant part, which is none of the terms.
            if () not in split and all(terms.get(atom_of(m), 0) == c for m, c in split.items()):
                left = {a: c for a, c in terms.items() if factors(a) not in split}
                whole, more = sum_of(multiply(scale, expand(rest.lhs)))
                return _recombine(add_terms(left, whole), constant + more, ranges)
    return terms, constant


def _holds(kind: AffineBinaryOpKind, atom: AffineExpr) -> bool:
    """Whether one of the atom's factors is of `kind`."""
    while isinstance(atom, AffineBinaryOpExpr):
        if atom.kind is not AffineBinaryOpKind.Mul:
            return atom.kind is kind
        if isinstance(atom.rhs, AffineBinaryOpExpr) and atom.rhs.kind is kind:
            return True
        atom = atom.lhs
    return False


# --------------------------------------------------------------------------- division by a constant


def _split(
    terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]
) -> tuple[Terms, int, Terms, int]:
    """Write a sum as `divisor * quotient + rest`, moving all whole multiples into the quotient."""
    whole = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
    rest = {a: c for a, c in terms.items() if c % divisor}
    # Whatever multiple of the divisor `rest` exceeds at its smallest can leave it too.
    low = bounds(build(rest, constant), ranges)[0] if rest else constant
    shift = low // divisor if abs(low) < UNKNOWN[1] // 2 else constant // divisor
    return whole, shift, rest, constant - shift * divisor


def _floordiv(terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]) -> Sum:
    if divisor == 1:
        return terms, constant
    whole, shift, rest, rest_constant = _split(terms, constant, divisor, ranges)
    dividend = build(rest, rest_constant)
    low, high = bounds(dividend, ranges)
    if low // divisor == high // divisor:
        return whole, shift + low // divisor
    if not is_bounded(low, high) and _within(expand(dividend), {(): divisor}, ranges):
        return whole, shift
    if (joined := _joined(rest, rest_constant, divisor)) is not None:
        atom, more = _floordiv_by(*joined, ranges)
        return _recombine(add_terms(whole, atom), shift + more, ranges)
    match dividend:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs):
            number = exact_quotient(expand(rhs), {(): divisor})
            if number is not None and rest_constant == 0:
                inner = _floordiv(*_terms(lhs, ranges), divisor, ranges)
                inner, inner_constant = _mod_by(inner, number, ranges)
                return _recombine(add_terms(whole, inner), shift + inner_constant, ranges)
        case _:
            pass
    if (factored := _factor(rest, rest_constant, divisor, ranges)) is not None:
        factor, group, group_constant, _, _ = factored
        inner, inner_constant = _floordiv(group, group_constant, divisor // factor, ranges)
        return _recombine(add_terms(whole, inner), shift + inner_constant, ranges)
    return _recombine(add_terms(whole, {quotient(dividend, divisor): 1}), shift, ranges)


def _joined(terms: Terms, constant: int, divisor: int) -> tuple[Sum, Polynomial] | None:
    """`(x floordiv a + y) floordiv n` as `x + a * y` and `a * n`, by which that is divided."""
    for atom, coefficient in terms.items():
        if coefficient != 1 or not isinstance(atom, AffineBinaryOpExpr):
            continue
        if atom.kind is AffineBinaryOpKind.FloorDiv:
            others = polynomial({a: c for a, c in terms.items() if a is not atom}, constant)
            whole = add(expand(atom.lhs), multiply(expand(atom.rhs), others))
            return sum_of(whole), multiply(expand(atom.rhs), {(): divisor})
    return None


def _factor(
    terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]
) -> tuple[int, Terms, int, Terms, int] | None:
    """Write a sum as `factor * group + rest` with factor | divisor and rest in [0, factor).

    Then `sum floordiv n` is `group floordiv (n / factor)`, and
    `sum mod n` is `factor * (group mod (n / factor)) + rest`.
    """
    candidates = {gcd(coefficient, divisor) for coefficient in terms.values()}
    for factor in sorted(candidates - {1}, reverse=True):
        group = {a: c // factor for a, c in terms.items() if c % factor == 0}
        rest = {a: c for a, c in terms.items() if c % factor}
        rest_constant = constant % factor
        low, high = bounds(build(rest, rest_constant), ranges)
        if low >= 0 and high < factor:
            return factor, group, constant // factor, rest, rest_constant
    return None


def _mod(terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]) -> Sum:
    if divisor == 1:
        return {}, 0
    _, _, rest, rest_constant = _split(terms, constant, divisor, ranges)
    dividend = build(rest, rest_constant)
    low, high = bounds(dividend, ranges)
    if low // divisor == high // divisor:
        return rest, rest_constant - low // divisor * divisor
    if not is_bounded(low, high) and _within(expand(dividend), {(): divisor}, ranges):
        return rest, rest_constant
    match dividend:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs):
            if exact_quotient(expand(rhs), {(): divisor}) is not None:
                return _mod(*_terms(lhs, ranges), divisor, ranges)
        case _:
            pass
    if (factored := _factor(rest, rest_constant, divisor, ranges)) is not None:
        factor, group, group_constant, low_terms, low_constant = factored
        inner, inner_constant = _mod(group, group_constant, divisor // factor, ranges)
        scaled = {a: c * factor for a, c in inner.items()}
        return _recombine(
            add_terms(scaled, low_terms), inner_constant * factor + low_constant, ranges
        )
    return {remainder(dividend, divisor): 1}, 0


# --------------------------------------------------------------------------- division by sizes


def _floordiv_by(dividend: Sum, divisor: Polynomial, ranges: Sequence[Range]) -> Sum:
    """`dividend floordiv divisor` for a positive divisor of any form."""
    if set(divisor) <= {()}:
        return _floordiv(*dividend, divisor.get((), 0), ranges)
    whole, rest = divide(polynomial(*dividend), divisor)
    if not rest:  # no matter how small a positive divisor is
        return sum_of(whole)
    for shift in (0, 1):  # the rest may be proven one divisor too low
        if _within(add(rest, divisor, shift), divisor, ranges):
            return sum_of(add(whole, {(): -shift} if shift else {}))
    inner = _floordiv_of_atom(rest, divisor, ranges)
    if inner is None and (factored := _factor_by(rest, divisor, ranges)) is not None:
        _, group, smaller, _ = factored
        inner = _floordiv_by(sum_of(group), smaller, ranges)
    if inner is None:
        inner = {quotient(build(*sum_of(rest)), build(*sum_of(divisor))): 1}, 0
    terms, constant = sum_of(whole)
    return _recombine(add_terms(terms, inner[0]), constant + inner[1], ranges)


def _mod_by(dividend: Sum, divisor: Polynomial, ranges: Sequence[Range]) -> Sum:
    """`dividend mod divisor` for a positive divisor of any form."""
    if set(divisor) <= {()}:
        return _mod(*dividend, divisor.get((), 0), ranges)
    _, rest = divide(polynomial(*dividend), divisor)
    if not rest:
        return {}, 0
    for shift in (0, 1):
        if _within(moved := add(rest, divisor, shift), divisor, ranges):
            return sum_of(moved)
    atom = _single_atom(rest)
    if atom is not None and atom.kind is AffineBinaryOpKind.Mod:
        if exact_quotient(expand(atom.rhs), divisor) is not None:
            return _mod_by(_terms(atom.lhs, ranges), divisor, ranges)
    if (factored := _factor_by(rest, divisor, ranges)) is not None:
        factor, group, smaller, low = factored
        inner = _mod_by(sum_of(group), smaller, ranges)
        return _recombine(*sum_of(add(multiply(factor, polynomial(*inner)), low)), ranges)
    return {remainder(build(*sum_of(rest)), build(*sum_of(divisor))): 1}, 0


def _within(poly: Polynomial, divisor: Polynomial, ranges: Sequence[Range]) -> bool:
    """Whether `poly` is proven to lie in `[0, divisor - 1]`."""
    below = add(add(divisor, poly, -1), {(): -1})
    return proven_nonnegative(poly, ranges) and proven_nonnegative(below, ranges)


def _single_atom(poly: Polynomial) -> AffineBinaryOpExpr | None:
    """The division that `poly` is, if it is nothing else."""
    if len(poly) != 1:
        return None
    ((monomial, coefficient),) = poly.items()
    if coefficient != 1 or len(monomial) != 1 or not isinstance(monomial[0], AffineBinaryOpExpr):
        return None
    return monomial[0]


def _floordiv_of_atom(rest: Polynomial, divisor: Polynomial, ranges: Sequence[Range]) -> Sum | None:
    """`(x floordiv a) floordiv n` and `(x mod (a * n)) floordiv n`, joined."""
    atom = _single_atom(rest)
    if atom is None:
        return None
    if atom.kind is AffineBinaryOpKind.FloorDiv:
        return _floordiv_by(_terms(atom.lhs, ranges), multiply(expand(atom.rhs), divisor), ranges)
    smaller = exact_quotient(expand(atom.rhs), divisor)
    if atom.kind is not AffineBinaryOpKind.Mod or smaller is None:
        return None
    return _mod_by(_floordiv_by(_terms(atom.lhs, ranges), divisor, ranges), smaller, ranges)


def _factor_by(
    poly: Polynomial, divisor: Polynomial, ranges: Sequence[Range]
) -> tuple[Polynomial, Polynomial, Polynomial, Polynomial] | None:
    """`factor`, `group`, `divisor / factor` and `rest`, as `_factor` for a divisor of any form."""
    symbols, number = common_factor([divisor])
    candidates: dict[tuple[Monomial, int], None] = {}
    for monomial, coefficient in poly.items():
        shared = intersection(symbols, monomial), gcd(number, coefficient)
        if shared != ((), 1):
            candidates.setdefault(shared)
    largest_first = sorted(candidates, key=lambda c: (len(c[0]), c[1], [order(f) for f in c[0]]))
    for monomial, coefficient in reversed(largest_first):
        factor: Polynomial = {monomial: coefficient}
        group, rest = divide(poly, factor)
        smaller = exact_quotient(divisor, factor)
        if smaller is not None and _within(rest, factor, ranges):
            return factor, group, smaller, rest
    return None
