"""The text of index expressions and conditions.

    %row * 64 + %k          i * s0 + j          (i + 1) floordiv s1          j < s0 - 4

A name is a dim; `s0`, `s1`, … are the program's dynamic sizes, in every context. A product has at most one
factor with dims. Division and remainder are `floordiv` and `mod` by positive divisors without dims.
"""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSet,
    AffineSymExpr,
)
from xdsl.parser import AttrParser
from xdsl.utils.base_printer import BasePrinter

from .affine import (
    ZERO,
    binary,
    condition_exprs,
    count_symbols,
    leaves,
    product,
    quotient,
    remainder,
    summands,
)
from .ranges import UNKNOWN
from .simplify import simplify

# --------------------------------------------------------------------------- printing

_ADD_PRECEDENCE = 10
_MUL_PRECEDENCE = 20
_MAX_READINGS = 8
"""How often an expression is replaced by what reading its text gives; of 6,000 random ones none needed
more than two."""


def print_index_expr(
    printer: BasePrinter, expr: AffineExpr, print_dim: Callable[[int], object]
) -> None:
    """Print `expr`, with `print_dim(i)` in place of `d<i>` and no parentheses it does not need.

    The text is that of the expression which reading it gives: constants of a sum are added up.
    """
    _print(printer, _settled(expr, _as_read), print_dim, 0)


def _settled(expr: AffineExpr, reread: Callable[[AffineExpr], AffineExpr]) -> AffineExpr:
    """`expr`, replaced by what reading its text gives until that changes nothing."""
    for _ in range(_MAX_READINGS):
        if (read := reread(expr)) == expr:
            break
        expr = read
    return expr


def _as_read(expr: AffineExpr, before: AffineExpr | None = None) -> AffineExpr:
    """The expression that parsing the text of `expr` gives, added to the terms `before` it."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            lhs, rhs = _in_order(lhs, rhs)
            left = _as_read(lhs, before)
            negated = _negated(rhs)
            if negated is None:
                return _as_read(rhs, left)
            return left + product(_as_read(negated), -1)
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            right = _as_read(rhs)
            if kind != AffineBinaryOpKind.Mul:
                right = _simple_divisor(right)
            expr = binary(kind, _as_read(lhs), right)
        case _:
            pass
    return expr if before is None else before + expr


def _in_order(lhs: AffineExpr, rhs: AffineExpr) -> tuple[AffineExpr, AffineExpr]:
    """The two sides of a sum as they are printed: 3 - i reads better than -i + 3."""
    if isinstance(rhs, AffineConstantExpr) and rhs.value > 0 and _negated(lhs) is not None:
        return rhs, lhs
    return lhs, rhs


def _print(
    printer: BasePrinter, expr: AffineExpr, print_dim: Callable[[int], object], outer: int
) -> None:
    match expr:
        case AffineConstantExpr(value=value):
            printer.print_string(str(value))
        case AffineDimExpr(position=position):
            print_dim(position)
        case AffineSymExpr(position=position):
            printer.print_string(f"s{position}")
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            lhs, rhs = _in_order(lhs, rhs)
            negated = _negated(rhs)
            if outer > _ADD_PRECEDENCE:
                printer.print_string("(")
            _print(printer, lhs, print_dim, _ADD_PRECEDENCE)
            printer.print_string(" + " if negated is None else " - ")
            right = _ADD_PRECEDENCE if negated is None else _MUL_PRECEDENCE
            _print(printer, negated or rhs, print_dim, right)
            if outer > _ADD_PRECEDENCE:
                printer.print_string(")")
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            if outer > _MUL_PRECEDENCE:
                printer.print_string("(")
            _print(printer, lhs, print_dim, _MUL_PRECEDENCE)
            printer.print_string(f" {kind.get_token()} ")
            _print(printer, rhs, print_dim, _MUL_PRECEDENCE + 1)
            if outer > _MUL_PRECEDENCE:
                printer.print_string(")")
        case _:
            raise ValueError(f"not an index expression: {expr!r}")


def index_text(expr: AffineExpr, dim: Callable[[int], str] = lambda i: f"d{i}") -> str:
    """`expr` as text; `dim(i)` names dim `i`."""
    stream = StringIO()
    printer = BasePrinter(stream)
    print_index_expr(printer, expr, lambda i: printer.print_string(dim(i)))
    return stream.getvalue()


def _negated(expr: AffineExpr) -> AffineExpr | None:
    """`-expr` if `expr` is written with a leading minus (a negative constant or factor)."""
    match expr:
        case AffineConstantExpr(value=value) if value < 0:
            return AffineExpr.constant(-value)
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=AffineConstantExpr(value=value)
        ) if value < 0:
            return lhs * -value
        case _:
            return None


def print_condition(
    printer: BasePrinter, affine_set: AffineSet, print_dim: Callable[[int], object], separator: str
) -> None:
    """Print each constraint as the comparison that a person would write: dims with a constant or size."""
    for i, expr in enumerate(condition_exprs(affine_set)):
        if i:
            printer.print_string(separator)
        left, strict, right = _sides(_settled(expr, _constraint_as_read))
        print_index_expr(printer, left, print_dim)
        printer.print_string(" < " if strict else " >= ")
        print_index_expr(printer, right, print_dim)


def _sides(expr: AffineExpr) -> tuple[AffineExpr, bool, AffineExpr]:
    """`expr >= 0` as `(left, strict, right)`: left < right if strict, else left >= right."""
    left, right = _split_size(expr)
    if left is None:  # a condition on sizes alone
        left, constant = _split_constant(expr)
        right = AffineExpr.constant(constant)
    flipped = _all_negative(left)
    if flipped is not None:  # -i + 3 >= 0 reads i < 4
        return flipped, True, right + 1
    return left, False, product(right, -1)


def _split_size(expr: AffineExpr) -> tuple[AffineExpr | None, AffineExpr]:
    """The terms of a sum that have dims, None if there are none, and the others."""
    dims, sizes = None, ZERO
    for term in summands(expr):
        if any(isinstance(leaf, AffineDimExpr) for leaf in leaves(term)):
            dims = term if dims is None else dims + term
        else:
            sizes = sizes + term
    return dims, sizes


def _split_constant(expr: AffineExpr) -> tuple[AffineExpr, int]:
    match expr:
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=AffineConstantExpr(value=value)
        ):
            return lhs, value
        case _:
            return expr, 0


def _all_negative(expr: AffineExpr) -> AffineExpr | None:
    """`-expr` if every term of the sum `expr` has a negative factor."""
    match expr:
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            left, right = _all_negative(lhs), _all_negative(rhs)
            return None if left is None or right is None else left + right
        case AffineConstantExpr():
            return None
        case _:
            return _negated(expr)


# --------------------------------------------------------------------------- parsing


def parse_index_expr(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    """Parse a sum of products; `parse_dim` reads a name and gives its dim, or None if there is none."""
    expr = _parse_product(parser, parse_dim)
    while True:
        if parser.parse_optional_punctuation("+"):
            expr = expr + _parse_product(parser, parse_dim)
        elif parser.parse_optional_punctuation("-"):
            expr = expr + product(_parse_product(parser, parse_dim), -1)
        else:
            return expr


def _parse_product(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    expr = _parse_factor(parser, parse_dim)
    while True:
        pos = parser.pos
        if parser.parse_optional_punctuation("*"):
            right = _parse_factor(parser, parse_dim)
            if _has_dims(right) and _has_dims(expr):
                parser.raise_error("an index multiplies by constants and sizes only", pos)
            expr = product(expr, right)
        elif parser.parse_optional_keyword("floordiv"):
            expr = quotient(expr, _parse_divisor(parser, parse_dim))
        elif parser.parse_optional_keyword("mod"):
            expr = remainder(expr, _parse_divisor(parser, parse_dim))
        else:
            return expr


def _parse_divisor(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    pos = parser.pos
    divisor = _simple_divisor(_parse_factor(parser, parse_dim))
    if _has_dims(divisor) or (isinstance(divisor, AffineConstantExpr) and divisor.value < 1):
        parser.raise_error("an index divides by positive constants and sizes only", pos)
    return divisor


def _simple_divisor(divisor: AffineExpr) -> AffineExpr:
    """A divisor as it is kept: simple, unless it has dims and is refused."""
    return divisor if _has_dims(divisor) else simplify(divisor, ())


def _has_dims(expr: AffineExpr) -> bool:
    return any(isinstance(leaf, AffineDimExpr) for leaf in leaves(expr))


def _parse_factor(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    if parser.parse_optional_punctuation("("):
        expr = parse_index_expr(parser, parse_dim)
        parser.parse_punctuation(")")
        return expr
    if parser.parse_optional_punctuation("-"):
        return product(_parse_factor(parser, parse_dim), -1)
    if (value := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return AffineExpr.constant(value)
    if (dim := parse_dim()) is not None:
        return dim
    pos = parser.pos
    name = parser.parse_optional_identifier()
    if name is not None and (position := symbol_of(name)) is not None:
        return AffineExpr.symbol(position)
    parser.raise_error("expected an index expression: a name, a size, an integer or `(`", pos)


def symbol_of(name: str) -> int | None:
    """The number of the symbol that `name` is (`s0`, `s1`, …), or None if it is another name."""
    digits = name[1:]
    if name[:1] != "s" or not digits.isdecimal() or not digits.isascii():
        return None
    return int(digits) if digits == "0" or (digits[0] != "0" and len(digits) < 4) else None


def parse_constraint(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    """Parse `a < b`, `a <= b`, `a > b` or `a >= b` to the expression that must be at least zero."""
    left = parse_index_expr(parser, parse_dim)
    if parser.parse_optional_punctuation("<"):
        strict = parser.parse_optional_punctuation("=") is None
        right = parse_index_expr(parser, parse_dim)
        low, high = left, right
    else:
        parser.parse_punctuation(">", " or `<` in a condition")
        strict = parser.parse_optional_punctuation("=") is None
        right = parse_index_expr(parser, parse_dim)
        low, high = right, left
    return _at_least_zero(high, low, strict)


def _constraint_as_read(expr: AffineExpr) -> AffineExpr:
    """The expression that parsing the text of `expr >= 0` gives."""
    left, strict, right = _sides(expr)
    high, low = (right, left) if strict else (left, right)
    return _at_least_zero(_as_read(high), _as_read(low), strict)


def _at_least_zero(high: AffineExpr, low: AffineExpr, strict: bool) -> AffineExpr:
    """What is at least zero if low < high, or, unless `strict`, if low <= high."""
    expr = high + product(low, -1) + (-1 if strict else 0)
    if not count_symbols([expr]):
        return _constant_last(expr)
    dims = [leaf.position for leaf in leaves(expr) if isinstance(leaf, AffineDimExpr)]
    return simplify(expr, [UNKNOWN] * (max(dims, default=-1) + 1))


def _constant_last(expr: AffineExpr) -> AffineExpr:
    """Move the constant of a sum to its end, where printing looks for it."""
    terms: list[AffineExpr] = []
    constant = 0

    def visit(e: AffineExpr) -> None:
        nonlocal constant
        match e:
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
                visit(lhs)
                visit(rhs)
            case AffineConstantExpr(value=value):
                constant += value
            case _:
                terms.append(e)

    visit(expr)
    total = ZERO
    for term in terms:
        total = total + term
    return total + constant
