"""Index expressions: the syntax and attributes shared by every operation that indexes.

An index is an affine map held as an attribute over SSA `index` operands; text shows the operands inline:

    loop.load %x[%row, %k * 256 + %lane] : memref<32x2048xf32>
    %inside = loop.test [%i >= 4, %j < 8]

A condition is a conjunction of constraints `expression >= 0`, held as an integer set; text shows the
comparison a person would write. Division and remainder are `floordiv` and `mod` by positive constants.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
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
)
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import AttrParser, Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.base_printer import BasePrinter
from xdsl.utils.exceptions import VerifyException

ZERO = AffineExpr.constant(0)

# --------------------------------------------------------------------------- building


def at_least_zero(*exprs: AffineExpr) -> tuple[AffineConstraintExpr, ...]:
    """Constraints `expr >= 0`, the only kind a condition holds."""
    return tuple(
        AffineConstraintExpr(AffineConstraintKind.ge, e, ZERO, canonicalize=False) for e in exprs
    )


def condition(num_dims: int, exprs: Sequence[AffineExpr]) -> AffineSet:
    """The conjunction of `expr >= 0` over `num_dims` dims; no expressions means always true."""
    return AffineSet(num_dims, 0, at_least_zero(*exprs))


def condition_exprs(affine_set: AffineSet) -> tuple[AffineExpr, ...]:
    """The expressions that a condition says are at least zero."""
    return tuple(c.lhs for c in affine_set.constraints)


def dims_in_order(exprs: Sequence[AffineExpr]) -> list[int]:
    """Positions of the dims used by `exprs`, in order of first use and without repeats."""
    seen: dict[int, None] = {}

    def visit(expr: AffineExpr) -> None:
        match expr:
            case AffineDimExpr(position=position):
                seen.setdefault(position)
            case AffineBinaryOpExpr(lhs=lhs, rhs=rhs):
                visit(lhs)
                visit(rhs)
            case _:
                pass

    for expr in exprs:
        visit(expr)
    return list(seen)


def normalize_operands(
    exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]
) -> tuple[tuple[AffineExpr, ...], list[SSAValue]]:
    """Renumber dims by first use and drop unused or repeated operands, as parsing would."""
    order: dict[SSAValue, int] = {}
    for position in dims_in_order(exprs):
        order.setdefault(operands[position], len(order))
    replacements = [
        AffineExpr.dimension(order[value]) if value in order else ZERO for value in operands
    ]
    if replacements == [AffineExpr.dimension(i) for i in range(len(order))]:
        return tuple(exprs), list(order)
    return tuple(e.replace_dims_and_symbols(replacements, ()) for e in exprs), list(order)


def linearize(indices: Sequence[AffineExpr], shape: Sequence[int]) -> AffineExpr:
    """The row-major offset, in elements, of `indices` in an array of `shape`."""
    offset = ZERO
    for index, extent in zip(indices, shape, strict=True):
        offset = offset * extent + index
    return offset


def delinearize(offset: AffineExpr, shape: Sequence[int]) -> list[AffineExpr]:
    """The indices in an array of `shape` whose row-major offset is `offset`; inverse of `linearize`."""
    indices: list[AffineExpr] = []
    stride = 1
    for position in range(len(shape) - 1, -1, -1):
        index = offset if stride == 1 else offset // stride
        if position > 0:
            index = index % max(shape[position], 1)
        indices.append(index)
        stride *= max(shape[position], 1)
    return indices[::-1]


# --------------------------------------------------------------------------- printing

_ADD_PRECEDENCE = 10
_MUL_PRECEDENCE = 20


def print_index_expr(
    printer: BasePrinter, expr: AffineExpr, print_dim: Callable[[int], object], outer: int = 0
) -> None:
    """Print `expr`, with `print_dim(i)` in place of `d<i>` and no parentheses it does not need."""
    match expr:
        case AffineConstantExpr(value=value):
            printer.print_string(str(value))
        case AffineDimExpr(position=position):
            print_dim(position)
        case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
            if isinstance(rhs, AffineConstantExpr) and rhs.value > 0 and _negated(lhs) is not None:
                lhs, rhs = rhs, lhs  # 3 - i reads better than -i + 3
            negated = _negated(rhs)
            if outer > _ADD_PRECEDENCE:
                printer.print_string("(")
            print_index_expr(printer, lhs, print_dim, _ADD_PRECEDENCE)
            printer.print_string(" + " if negated is None else " - ")
            right = _ADD_PRECEDENCE if negated is None else _MUL_PRECEDENCE
            print_index_expr(printer, negated or rhs, print_dim, right)
            if outer > _ADD_PRECEDENCE:
                printer.print_string(")")
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            if outer > _MUL_PRECEDENCE:
                printer.print_string("(")
            print_index_expr(printer, lhs, print_dim, _MUL_PRECEDENCE)
            printer.print_string(f" {kind.get_token()} ")
            print_index_expr(printer, rhs, print_dim, _MUL_PRECEDENCE + 1)
            if outer > _MUL_PRECEDENCE:
                printer.print_string(")")
        case _:
            raise ValueError(f"an index has no symbols: {expr}")


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
    """Print each constraint as the comparison with a constant that a person would write."""
    for i, expr in enumerate(condition_exprs(affine_set)):
        if i:
            printer.print_string(separator)
        left, right = _split_constant(expr)
        if (flipped := _all_negative(left)) is not None:  # -i + 3 >= 0 reads i < 4
            print_index_expr(printer, flipped, print_dim)
            printer.print_string(f" < {right + 1}")
        else:
            print_index_expr(printer, left, print_dim)
            printer.print_string(f" >= {-right}")


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
            expr = expr + _parse_product(parser, parse_dim) * -1
        else:
            return expr


def _parse_product(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    expr = _parse_factor(parser, parse_dim)
    while True:
        pos = parser.pos
        if parser.parse_optional_punctuation("*"):
            right = _parse_factor(parser, parse_dim)
            if not isinstance(right, AffineConstantExpr) and not isinstance(
                expr, AffineConstantExpr
            ):
                parser.raise_error("an index multiplies by constants only", pos)
            expr = expr * right
        elif parser.parse_optional_keyword("floordiv"):
            expr = expr // _parse_divisor(parser)
        elif parser.parse_optional_keyword("mod"):
            expr = expr % _parse_divisor(parser)
        else:
            return expr


def _parse_divisor(parser: AttrParser) -> int:
    pos = parser.pos
    divisor = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if divisor == 0:
        parser.raise_error("an index divides by positive constants only", pos)
    return divisor


def _parse_factor(parser: AttrParser, parse_dim: Callable[[], AffineExpr | None]) -> AffineExpr:
    if parser.parse_optional_punctuation("("):
        expr = parse_index_expr(parser, parse_dim)
        parser.parse_punctuation(")")
        return expr
    if parser.parse_optional_punctuation("-"):
        return _parse_factor(parser, parse_dim) * -1
    if (value := parser.parse_optional_integer(allow_boolean=False)) is not None:
        return AffineExpr.constant(value)
    if (dim := parse_dim()) is not None:
        return dim
    parser.raise_error("expected an index expression: a name, an integer or `(`")


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
    return _constant_last(high + low * -1 + (-1 if strict else 0))


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


class OperandNames:
    """Collects the SSA names an index uses, giving each its dim in order of first use."""

    def __init__(self, parser: Parser):
        self.parser = parser
        self.operands: list[UnresolvedOperand] = []
        self._dims: dict[tuple[str, int], AffineExpr] = {}

    def parse_dim(self) -> AffineExpr | None:
        operand = self.parser.parse_optional_unresolved_operand()
        if operand is None:
            return None
        key = (operand.operand_name, operand.index)
        if key not in self._dims:
            self._dims[key] = AffineExpr.dimension(len(self.operands))
            self.operands.append(operand)
        return self._dims[key]


# --------------------------------------------------------------------------- directives


@irdl_custom_directive
class AffineIndex(CustomDirective):
    """`[%i, %j + 1]`: an affine map over SSA `index` values, held as (operands, map)."""

    operands: VariadicOperandVariable
    map: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names = OperandNames(parser)
        exprs = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_index_expr(parser, names.parse_dim)
        )
        self.operands.set(state, names.operands)
        self.map.set(state, AffineMapAttr(AffineMap(len(names.operands), 0, tuple(exprs))))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        map_attr = self.map.get(op)
        assert isinstance(map_attr, AffineMapAttr)
        operands = self.operands.get(op)
        with printer.in_square_brackets():
            printer.print_list(
                map_attr.data.results,
                lambda expr: print_index_expr(
                    printer, expr, lambda i: printer.print_ssa_value(operands[i])
                ),
            )
        state.last_was_punctuation = False
        state.should_emit_space = True


@irdl_custom_directive
class Conditions(CustomDirective):
    """`[%i >= 4, %j < 8]`: a conjunction over SSA `index` values, held as (operands, set)."""

    operands: VariadicOperandVariable
    set: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names = OperandNames(parser)
        exprs = parser.parse_comma_separated_list(
            parser.Delimiter.SQUARE, lambda: parse_constraint(parser, names.parse_dim)
        )
        self.operands.set(state, names.operands)
        self.set.set(state, AffineSetAttr(condition(len(names.operands), exprs)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        set_attr = self.set.get(op)
        assert isinstance(set_attr, AffineSetAttr)
        operands = self.operands.get(op)
        with printer.in_square_brackets():
            print_condition(
                printer, set_attr.data, lambda i: printer.print_ssa_value(operands[i]), ", "
            )
        state.last_was_punctuation = False
        state.should_emit_space = True


# --------------------------------------------------------------------------- verifying


def verify_operand_count(num_dims: int, num_symbols: int, operands: Sequence[SSAValue]) -> None:
    """Raise unless the map or set reads exactly `operands`."""
    if num_symbols or num_dims != len(operands):
        raise VerifyException(
            f"index over {num_dims} dims and {num_symbols} symbols does not match its "
            f"{len(operands)} operands"
        )


def verify_access(
    index_map: AffineMap, operands: Sequence[SSAValue], memref_type: Attribute
) -> None:
    """Raise unless `index_map` over `operands` has one result per dimension of `memref_type`."""
    verify_operand_count(index_map.num_dims, index_map.num_symbols, operands)
    assert isinstance(memref_type, MemRefType)
    if len(index_map.results) != memref_type.get_num_dims():
        raise VerifyException(
            f"{len(index_map.results)} indices into rank-{memref_type.get_num_dims()} {memref_type}"
        )
