"""Building index expressions, products and quotients by sizes included.

An index expression is an xDSL `AffineExpr` over dims (counters) and symbols (the program's dynamic sizes).
xDSL's own operators refuse a product with a symbol; these functions are used in their place wherever an
extent may be a size.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Sequence

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineConstraintExpr,
    AffineConstraintKind,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
    AffineSet,
    AffineSymExpr,
)

ZERO = AffineExpr.constant(0)


def as_expr(value: AffineExpr | int) -> AffineExpr:
    """`value` as an expression."""
    return AffineExpr.constant(value) if isinstance(value, int) else value


def product(left: AffineExpr, right: AffineExpr | int) -> AffineExpr:
    """`left * right`."""
    right = as_expr(right)
    if isinstance(left, AffineConstantExpr) or isinstance(right, AffineConstantExpr):
        return left * right
    return AffineBinaryOpExpr(AffineBinaryOpKind.Mul, left, right)


def quotient(dividend: AffineExpr, divisor: AffineExpr | int) -> AffineExpr:
    """`dividend floordiv divisor`; the divisor is positive."""
    divisor = as_expr(divisor)
    if isinstance(divisor, AffineConstantExpr):
        return dividend // divisor
    return AffineBinaryOpExpr(AffineBinaryOpKind.FloorDiv, dividend, divisor)


def remainder(dividend: AffineExpr, divisor: AffineExpr | int) -> AffineExpr:
    """`dividend mod divisor`; the divisor is positive."""
    divisor = as_expr(divisor)
    if isinstance(divisor, AffineConstantExpr):
        return dividend % divisor
    return AffineBinaryOpExpr(AffineBinaryOpKind.Mod, dividend, divisor)


def replace_dims(expr: AffineExpr, dims: Sequence[AffineExpr]) -> AffineExpr:
    """`expr` with `dims[i]` in place of dim `i`; symbols stay."""
    match expr:
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            return binary(kind, replace_dims(lhs, dims), replace_dims(rhs, dims))
        case _:
            return expr


def replace_symbols(expr: AffineExpr, symbols: Sequence[AffineExpr]) -> AffineExpr:
    """`expr` with `symbols[i]` in place of symbol `i`; dims stay."""
    match expr:
        case AffineSymExpr(position=position):
            return symbols[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            return binary(kind, replace_symbols(lhs, symbols), replace_symbols(rhs, symbols))
        case _:
            return expr


def binary(kind: AffineBinaryOpKind, left: AffineExpr, right: AffineExpr) -> AffineExpr:
    """The expression of `kind` over two others."""
    match kind:
        case AffineBinaryOpKind.Add:
            return left + right
        case AffineBinaryOpKind.Mul:
            return product(left, right)
        case AffineBinaryOpKind.FloorDiv:
            return quotient(left, right)
        case AffineBinaryOpKind.Mod:
            return remainder(left, right)
        case AffineBinaryOpKind.CeilDiv:
            if isinstance(right, AffineConstantExpr):
                return left.ceil_div(right)
            return AffineBinaryOpExpr(kind, left, right)


_ARITHMETIC: dict[AffineBinaryOpKind, Callable[[int, int], int]] = {
    AffineBinaryOpKind.Add: operator.add,
    AffineBinaryOpKind.Mul: operator.mul,
    AffineBinaryOpKind.FloorDiv: operator.floordiv,
    AffineBinaryOpKind.CeilDiv: lambda dividend, divisor: -(-dividend // divisor),
    AffineBinaryOpKind.Mod: operator.mod,
}


def values_at(
    expr: AffineExpr, count: int, dims: Sequence[Sequence[int]], symbols: Sequence[int] = ()
) -> Sequence[int]:
    """The values of `expr` at `count` points; dim `i` of point `p` is `dims[i][p]`.

    The expression is gone through once, not for each point, as by xDSL's `eval`.
    """
    match expr:
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineSymExpr(position=position):
            return [symbols[position]] * count
        case AffineConstantExpr(value=value):
            return [value] * count
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = (values_at(each, count, dims, symbols) for each in (lhs, rhs))
            return list(map(_ARITHMETIC[kind], left, right))
        case _:
            raise ValueError(f"no index expression: {expr}")


def leaves(expr: AffineExpr) -> Iterator[AffineExpr]:
    """The dims, symbols and constants of `expr`, from left to right."""
    if isinstance(expr, AffineBinaryOpExpr):
        yield from leaves(expr.lhs)
        yield from leaves(expr.rhs)
    else:
        yield expr


def divisions(expr: AffineExpr) -> Iterator[AffineBinaryOpExpr]:
    """The outermost quotients and remainders of an expression."""
    if not isinstance(expr, AffineBinaryOpExpr):
        return
    if expr.kind in (AffineBinaryOpKind.FloorDiv, AffineBinaryOpKind.Mod):
        yield expr
        return
    yield from divisions(expr.lhs)
    yield from divisions(expr.rhs)


def count_symbols(exprs: Iterable[AffineExpr]) -> int:
    """One more than the largest symbol in `exprs`, or 0; what a map over them declares."""
    positions = (e.position for x in exprs for e in leaves(x) if isinstance(e, AffineSymExpr))
    return max(positions, default=-1) + 1


def affine_map(num_dims: int, exprs: Iterable[AffineExpr]) -> AffineMap:
    """The map from `num_dims` dims to `exprs`, with as many symbols as they need."""
    results = tuple(exprs)
    return AffineMap(num_dims, count_symbols(results), results)


def at_least_zero(*exprs: AffineExpr) -> tuple[AffineConstraintExpr, ...]:
    """Constraints `expr >= 0`, the only kind a condition holds."""
    return tuple(
        AffineConstraintExpr(AffineConstraintKind.ge, e, ZERO, canonicalize=False) for e in exprs
    )


def condition(num_dims: int, exprs: Sequence[AffineExpr]) -> AffineSet:
    """The conjunction of `expr >= 0` over `num_dims` dims; no expressions means always true."""
    return AffineSet(num_dims, count_symbols(exprs), at_least_zero(*exprs))


def condition_exprs(affine_set: AffineSet) -> tuple[AffineExpr, ...]:
    """The expressions that a condition says are at least zero."""
    return tuple(c.lhs for c in affine_set.constraints)


def summands(expr: AffineExpr) -> list[AffineExpr]:
    """The terms of a sum; what is none is its own term."""
    if isinstance(expr, AffineBinaryOpExpr) and expr.kind is AffineBinaryOpKind.Add:
        return [*summands(expr.lhs), *summands(expr.rhs)]
    return [expr]


def split_constant(expr: AffineExpr) -> tuple[AffineExpr, int]:
    """A simplified index without its constant, which is its last term, and that."""
    match expr:
        case AffineConstantExpr(value=value):
            return ZERO, value
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=AffineConstantExpr(value=value)
        ):
            return lhs, value
        case _:
            return expr, 0
