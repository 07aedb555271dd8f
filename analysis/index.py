"""The one simplifier of index expressions, and what else passes ask about them.

Division and remainder disappear where the ranges of the dims prove it:

    (d0 * 4 + d1) floordiv 4   ->  d0             for d1 in [0, 3]
    (d0 * 64 + d1) mod 64      ->  d1             for d1 in [0, 63]
    d0 floordiv 4 * 4 + d0 mod 4  ->  d0
    (d0 floordiv 3) floordiv 5 ->  d0 floordiv 15

Results are canonical sums: terms by falling coefficient, the constant last. `floordiv` and `mod` are
floor division and its remainder, as in Python; their divisors are positive constants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..dialects import cuda, kernel
from ..dialects.index import ZERO
from ..dialects.loop import CheckedIndexOp, ForOp, IndexOp
from ..dialects.tile import LaunchOp

Range = tuple[int, int]
"""Smallest and largest value, both included."""

UNKNOWN: Range = (-(1 << 62), 1 << 62)
"""The range of an index that nothing is known of."""


_UNSIGNED_LESS = 6
"""The number of `ult` in `arith.cmpi`."""


def extent_range(extent: int) -> Range:
    """The range of a counter from 0 to `extent`; a loop that never runs counts as running once."""
    return (0, max(extent - 1, 0))


# --------------------------------------------------------------------------- ranges


def bounds(expr: AffineExpr, ranges: Sequence[Range]) -> Range:
    """Smallest and largest value that interval arithmetic proves for `expr`."""
    match expr:
        case AffineConstantExpr(value=value):
            return value, value
        case AffineDimExpr(position=position):
            return ranges[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            low, high = bounds(lhs, ranges)
            match kind:
                case AffineBinaryOpKind.Add:
                    right = bounds(rhs, ranges)
                    return low + right[0], high + right[1]
                case AffineBinaryOpKind.Mul:
                    ends = low * _constant(rhs), high * _constant(rhs)
                    return min(ends), max(ends)
                case AffineBinaryOpKind.FloorDiv:
                    return low // _constant(rhs), high // _constant(rhs)
                case AffineBinaryOpKind.CeilDiv:
                    return -(-low // _constant(rhs)), -(-high // _constant(rhs))
                case AffineBinaryOpKind.Mod:
                    divisor = _constant(rhs)
                    if low // divisor == high // divisor:
                        return low % divisor, high % divisor
                    return 0, divisor - 1
        case _:
            return UNKNOWN


def _constant(expr: AffineExpr) -> int:
    assert isinstance(expr, AffineConstantExpr), f"semi-affine index {expr}"
    return expr.value


def value_range(value: SSAValue) -> Range:
    """The range of an SSA `index`, from the operation that makes it."""
    if isinstance(value, BlockArgument):
        parent = value.block.parent_op()
        if isinstance(parent, ForOp) and parent.static_extent is not None:
            return extent_range(parent.static_extent)
        if isinstance(parent, cuda.ForOp):
            return extent_range(parent.extent.value.data)
        if isinstance(parent, scf.ForOp) and value is parent.body.block.args[0]:
            return _scf_range(parent)
        if isinstance(parent, LaunchOp) and (axis := parent.axis_of(value)) is not None:
            return extent_range(axis.extent.data)
        return UNKNOWN
    match value.owner:
        case CheckedIndexOp(extent=extent):
            return extent_range(extent.value.data)
        case IndexOp() | cuda.IndexOp() as op:
            return bounds(op.map.data.results[0], operand_ranges(op.operands_))
        case arith.IndexCastOp(input=value):
            return _selected_range(value)
        case kernel.BlockIdOp() | cuda.BlockIdxOp() as op:
            return _launch_range(op, threads=False)
        case kernel.ThreadIdOp() | cuda.ThreadIdxOp() as op:
            return _launch_range(op, threads=True)
        case _:
            return UNKNOWN


def _launch_range(op: Operation, *, threads: bool) -> Range:
    """The range of a block's or thread's number, from the function that `op` stands in."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kernel.FuncOp | cuda.FuncOp):
        parent = parent.parent_op()
    if parent is None:
        return (0, UNKNOWN[1])
    return extent_range((parent.threads if threads else parent.blocks).value.data)


def _scf_range(loop: scf.ForOp) -> Range:
    """The range of an `scf.for` counter whose bounds are constants."""
    bounds_ = [_constant_index(v) for v in (loop.lb, loop.ub)]
    low, high = bounds_
    return UNKNOWN if low is None or high is None else (low, max(high - 1, low))


def _selected_range(value: SSAValue) -> Range:
    """The range of `x if x <u n else 0`, which `loop.checked_index` becomes."""
    select = value.owner
    if not isinstance(select, arith.SelectOp) or _constant_index(select.rhs) != 0:
        return UNKNOWN
    compare = select.cond.owner
    if not isinstance(compare, arith.CmpiOp) or compare.lhs is not select.lhs:
        return UNKNOWN
    limit = _constant_index(compare.rhs)
    if limit is None or limit < 0 or compare.predicate.value.data != _UNSIGNED_LESS:
        return UNKNOWN
    return extent_range(limit)


def _constant_index(value: SSAValue) -> int | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None


def operand_ranges(operands: Sequence[SSAValue]) -> list[Range]:
    """The ranges of an index's operands."""
    return [value_range(value) for value in operands]


def always_holds(expr: AffineExpr, ranges: Sequence[Range]) -> bool:
    """Whether `expr >= 0` is proven."""
    return bounds(expr, ranges)[0] >= 0


def never_holds(expr: AffineExpr, ranges: Sequence[Range]) -> bool:
    """Whether `expr >= 0` is disproven."""
    return bounds(expr, ranges)[1] < 0


# --------------------------------------------------------------------------- simplification

Terms = dict[AffineExpr, int]
"""A sum: each atom (a dim, a `floordiv` or a `mod`) with its coefficient."""


def simplify(expr: AffineExpr, ranges: Sequence[Range]) -> AffineExpr:
    """The canonical form of `expr`, equal to it for every value of the dims within `ranges`."""
    return _build(*_terms(expr, ranges))


def substitute(expr: AffineExpr, dims: Sequence[AffineExpr], ranges: Sequence[Range]) -> AffineExpr:
    """`expr` with its dims replaced, simplified over the `ranges` of the new dims."""
    return simplify(expr.replace_dims_and_symbols(dims, ()), ranges)


def _terms(expr: AffineExpr, ranges: Sequence[Range]) -> tuple[Terms, int]:
    match expr:
        case AffineConstantExpr(value=value):
            return {}, value
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = _terms(lhs, ranges), _terms(rhs, ranges)
            return _recombine(_sum(left[0], right[0])), left[1] + right[1]
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            factor = _constant(rhs)
            terms, constant = _terms(lhs, ranges)
            return {a: c * factor for a, c in terms.items() if c * factor}, constant * factor
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, lhs=lhs, rhs=rhs):
            return _floordiv(*_terms(lhs, ranges), _constant(rhs), ranges)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs):
            return _mod(*_terms(lhs, ranges), _constant(rhs), ranges)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.CeilDiv, lhs=lhs, rhs=rhs):
            divisor = _constant(rhs)
            return _terms((lhs + (divisor - 1)) // divisor, ranges)
        case AffineDimExpr(position=position) if ranges[position][0] == ranges[position][1]:
            return {}, ranges[position][0]
        case _:
            return {expr: 1}, 0


def _sum(left: Terms, right: Terms) -> Terms:
    total = dict(left)
    for atom, coefficient in right.items():
        total[atom] = total.get(atom, 0) + coefficient
    return {a: c for a, c in total.items() if c}


def _recombine(terms: Terms) -> Terms:
    """Undo a split: `x floordiv n * n + x mod n` is `x`."""
    for atom, coefficient in terms.items():
        if not isinstance(atom, AffineBinaryOpExpr) or atom.kind is not AffineBinaryOpKind.Mod:
            continue
        divisor = _constant(atom.rhs)
        quotient = _quotient_atom(atom.lhs, divisor)
        if terms.get(quotient, 0) == coefficient * divisor:
            rest = {a: c for a, c in terms.items() if a not in (atom, quotient)}
            whole = {a: c * coefficient for a, c in _linear(atom.lhs).items()}
            return _recombine(_sum(rest, whole))
    return terms


def _quotient_atom(dividend: AffineExpr, divisor: int) -> AffineExpr:
    """The atom that stands for `dividend floordiv divisor`, with nested divisions joined."""
    if isinstance(dividend, AffineBinaryOpExpr) and dividend.kind is AffineBinaryOpKind.FloorDiv:
        return _binary(AffineBinaryOpKind.FloorDiv, dividend.lhs, divisor * _constant(dividend.rhs))
    return _binary(AffineBinaryOpKind.FloorDiv, dividend, divisor)


def _linear(expr: AffineExpr) -> Terms:
    """The terms of a canonical sum that has no constant."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            return _sum(_linear(lhs), _linear(rhs))
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
            return {lhs: _constant(rhs)}
        case _:
            return {expr: 1}


def _split(
    terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]
) -> tuple[Terms, int, Terms, int]:
    """Write a sum as `divisor * quotient + rest`, moving all whole multiples into the quotient."""
    quotient = {a: c // divisor for a, c in terms.items() if c % divisor == 0}
    rest = {a: c for a, c in terms.items() if c % divisor}
    # Whatever multiple of the divisor `rest` exceeds at its smallest can leave it too.
    low = bounds(_build(rest, constant), ranges)[0] if rest else constant
    shift = low // divisor if abs(low) < UNKNOWN[1] // 2 else constant // divisor
    return quotient, shift, rest, constant - shift * divisor


def _floordiv(
    terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]
) -> tuple[Terms, int]:
    if divisor == 1:
        return terms, constant
    quotient, shift, rest, rest_constant = _split(terms, constant, divisor, ranges)
    remainder = _build(rest, rest_constant)
    low, high = bounds(remainder, ranges)
    if low // divisor == high // divisor:
        return quotient, shift + low // divisor
    match remainder:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, lhs=lhs, rhs=rhs):
            return _sum(
                quotient, {_binary(AffineBinaryOpKind.FloorDiv, lhs, divisor * _constant(rhs)): 1}
            ), shift
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs) if (
            _constant(rhs) % divisor == 0
        ):
            inner, inner_constant = _floordiv(*_terms(lhs, ranges), divisor, ranges)
            inner, inner_constant = _mod(inner, inner_constant, _constant(rhs) // divisor, ranges)
            return _recombine(_sum(quotient, inner)), shift + inner_constant
        case _:
            pass
    if (factored := _factor(rest, rest_constant, divisor, ranges)) is not None:
        factor, group, group_constant, _, _ = factored
        inner, inner_constant = _floordiv(group, group_constant, divisor // factor, ranges)
        return _recombine(_sum(quotient, inner)), shift + inner_constant
    atom = _binary(AffineBinaryOpKind.FloorDiv, remainder, divisor)
    return _recombine(_sum(quotient, {atom: 1})), shift


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
        low, high = bounds(_build(rest, rest_constant), ranges)
        if low >= 0 and high < factor:
            return factor, group, constant // factor, rest, rest_constant
    return None


def _mod(terms: Terms, constant: int, divisor: int, ranges: Sequence[Range]) -> tuple[Terms, int]:
    if divisor == 1:
        return {}, 0
    _, _, rest, rest_constant = _split(terms, constant, divisor, ranges)
    remainder = _build(rest, rest_constant)
    low, high = bounds(remainder, ranges)
    if low // divisor == high // divisor:
        return rest, rest_constant - low // divisor * divisor
    match remainder:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs) if (
            _constant(rhs) % divisor == 0
        ):
            return _mod(*_terms(lhs, ranges), divisor, ranges)
        case _:
            pass
    if (factored := _factor(rest, rest_constant, divisor, ranges)) is not None:
        factor, group, group_constant, low_terms, low_constant = factored
        inner, inner_constant = _mod(group, group_constant, divisor // factor, ranges)
        scaled = {a: c * factor for a, c in inner.items()}
        return _recombine(_sum(scaled, low_terms)), inner_constant * factor + low_constant
    return {_binary(AffineBinaryOpKind.Mod, remainder, divisor): 1}, 0


def _binary(kind: AffineBinaryOpKind, lhs: AffineExpr, divisor: int) -> AffineExpr:
    return AffineBinaryOpExpr(kind, lhs, AffineExpr.constant(divisor))


def _build(terms: Mapping[AffineExpr, int], constant: int) -> AffineExpr:
    expr = ZERO
    for atom, coefficient in sorted(
        terms.items(), key=lambda t: (t[1] < 0, -abs(t[1]), _order(t[0]))
    ):
        expr = expr + atom * coefficient
    return expr + constant


def _order(expr: AffineExpr) -> tuple[int, ...]:
    """A total order of atoms that does not depend on hashing: dims by position, then the rest."""
    match expr:
        case AffineDimExpr(position=position):
            return (0, position)
        case AffineConstantExpr(value=value):
            return (1, value)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            code = list(AffineBinaryOpKind).index(kind)
            return (2, *_order(lhs), code, *_order(rhs))
        case _:
            raise ValueError(f"an index has no symbols: {expr}")
