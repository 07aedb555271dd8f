"""Where the conditions of a loop change as its counter grows.

A condition is an index expression that is at least zero or not. With a counter `i` from 0 to 1024

    511 - i               holds below 512
    i + k - 1             always holds from 1 on, for an inner k from 0 to 2, and never below -1
    511 - 256 * b - i     is 1 - b >= 0 below 256, and 0 - b >= 0 from there to 512, whatever the outer b is

Between two such places it says the same in all iterations, or needs no counter to say it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..index.affine import replace_dims
from .index import Range, bounds, operand_ranges, simplify


@dataclass(frozen=True)
class Linear:
    """The sum of a constant and of multiples of dims."""

    coefficients: dict[int, int]
    constant: int

    def plus(self, other: Linear, scale: int = 1) -> Linear:
        """This plus a multiple of another."""
        dims = {*self.coefficients, *other.coefficients}
        sums = {d: self.coefficients.get(d, 0) + scale * other.coefficients.get(d, 0) for d in dims}
        kept = {d: c for d, c in sums.items() if c}
        return Linear(kept, self.constant + scale * other.constant)

    @property
    def expr(self) -> AffineExpr:
        """It as an expression."""
        total: AffineExpr = AffineExpr.constant(self.constant)
        for dim, coefficient in sorted(self.coefficients.items(), reverse=True):
            total = AffineExpr.dimension(dim) * coefficient + total
        return total


def linear(expr: AffineExpr) -> Linear | None:
    """An expression as a sum of multiples of dims, or None if it is none."""
    match expr:
        case AffineConstantExpr(value=value):
            return Linear({}, value)
        case AffineDimExpr(position=position):
            return Linear({position: 1}, 0)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = linear(lhs), linear(rhs)
            return left.plus(right) if left is not None and right is not None else None
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            left, right = linear(lhs), linear(rhs)
            if left is None or right is None:
                return None
            if right.coefficients:
                left, right = right, left
            return None if right.coefficients else Linear({}, 0).plus(left, right.constant)
        case _:
            return None


Term = SSAValue | AffineExpr
"""What a sum adds up: a value, or a size as an expression over symbols."""


def terms(expr: AffineExpr, operands: Sequence[SSAValue]) -> tuple[dict[Term, int], int] | None:
    """How often a sum adds up each value and each size, and its constant; None if it is no sum.

    A size may be any expression without dims, such as a quotient.
    """
    found: dict[Term, int] = {}
    constant = 0
    for part, factor in _addends(expr, 1):
        if isinstance(part, AffineConstantExpr):
            constant += factor * part.value
        elif isinstance(part, AffineDimExpr):
            value = operands[part.position]
            found[value] = found.get(value, 0) + factor
        elif not part.used_dims():
            found[part] = found.get(part, 0) + factor
        else:
            return None
    return {term: factor for term, factor in found.items() if factor}, constant


def _addends(expr: AffineExpr, factor: int) -> Iterator[tuple[AffineExpr, int]]:
    """What a multiple of an expression adds up, and how often."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            yield from _addends(lhs, factor)
            yield from _addends(rhs, factor)
        case (
            AffineBinaryOpExpr(
                kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=value)
            )
            | AffineBinaryOpExpr(
                kind=AffineBinaryOpKind.Mul, lhs=AffineConstantExpr(value=value), rhs=lhs
            )
        ):
            yield from _addends(lhs, factor * value)
        case _:
            yield expr, factor


def slope_along(expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue) -> int | None:
    """How much more an expression is where a counter is one further; None if that differs, or is not known.

    All else in it may be sizes and quotients.
    """
    moved = {i for i, value in enumerate(operands) if value is counter}
    return slope(expr, moved, operand_ranges(operands))


def slope(expr: AffineExpr, moved: Collection[int], ranges: Sequence[Range]) -> int | None:
    """How much more an expression is where some dims are one further; None if that differs."""
    later = [AffineExpr.dimension(i) + int(i in moved) for i in range(len(ranges))]
    step = simplify(replace_dims(expr, later) + expr * -1, ranges)
    return step.value if isinstance(step, AffineConstantExpr) else None


@dataclass(frozen=True)
class Condition:
    """A condition as one of a loop's counter: `slope * counter + inner + constant + outer >= 0`.

    `inner` are the counters of loops inside of the loop, `outer` those around it.
    """

    slope: int
    inner: tuple[int, int]
    """Bounds of what inner counters add, with the constant."""
    outer: Linear

    @property
    def step(self) -> int:
        """What all that outer counters add is a multiple of; 0 if they add nothing."""
        return gcd(*self.outer.coefficients.values())

    def holds(self, counter: int, value: int) -> bool:
        """Whether slope * counter + value >= 0."""
        return self.slope * counter + value >= 0

    def places(self, extent: int) -> list[int]:
        """The counters, above 0 and below `extent`, from which on it says something else."""
        low, high = self.inner
        if not self.step:
            levels = {low, high}
        else:
            first, last = (self.quotient(c) for c in (0, extent - 1))
            ahead = range(min(first, last) + 1, max(first, last) + 1)
            levels = {low - self.step * k for k in ahead}
        found = {_turn(self.slope, level) for level in levels}
        return sorted(place for place in found if 0 < place < extent)

    def quotient(self, counter: int) -> int:
        """How often `step` goes into all but the outer counters, rounded down."""
        return (self.slope * counter + self.inner[0]) // self.step

    def within(self, first: int) -> AffineExpr | None:
        """What says the same without the counter, from the place `first` to the next one, if it can."""
        if not self.step:
            return None
        scaled = {d: c // self.step for d, c in self.outer.coefficients.items()}
        return Linear(scaled, self.quotient(first)).expr


def _turn(slope: int, value: int) -> int:
    """The first counter at which slope * counter + value >= 0 is not what it is at minus infinity."""
    return -(value // slope) if slope > 0 else value // -slope + 1


def condition(
    expr: AffineExpr, operands: Sequence[SSAValue], counter: SSAValue, inner: Sequence[SSAValue]
) -> Condition | None:
    """`expr` as a condition on a counter, or None if it does not depend on it, or in another way."""
    parts = linear(expr)
    if parts is None or counter not in operands:
        return None
    slope, inside, outside = 0, Linear({}, parts.constant), Linear({}, 0)
    for dim, coefficient in parts.coefficients.items():
        value = operands[dim]
        term = Linear({dim: coefficient}, 0)
        if value is counter:
            slope = coefficient
        elif value in inner:
            inside = inside.plus(term)
        else:
            outside = outside.plus(term)
    if not slope or (inside.coefficients and outside.coefficients):
        return None
    low, high = bounds(inside.expr, operand_ranges(operands))
    return Condition(slope, (low, high), outside)
