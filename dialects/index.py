"""Index expressions: the syntax and attributes shared by every operation that indexes.

An index is an affine map held as an attribute over SSA `index` operands; text shows the operands inline:

    loop.load %x[%row, %k * 256 + %lane] : memref<32x2048xf32>
    %inside = loop.test [%i >= 4, %j < 8]

A condition is a conjunction of constraints `expression >= 0`, held as an integer set; text shows the
comparison a person would write. Symbols are the program's dynamic sizes (`sizes.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xdsl.dialects.builtin import AffineMapAttr, AffineSetAttr, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
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
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from ..index.affine import (
    ZERO,
    affine_map,
    condition,
    condition_exprs,
    count_symbols,
    product,
    quotient,
    remainder,
    replace_dims,
)
from ..index.text import parse_constraint, parse_index_expr, print_condition, print_index_expr
from .sizes import Extent, ExtentAttr, extent_expr, parse_extent, print_extent

Index = tuple[Sequence[AffineExpr], Sequence[SSAValue]]
"""Index expressions and their operands."""


class Indexed(NamedTuple):
    """An index that an operation has: the names of its operands, of its map, and of the memory it is in."""

    operands: str
    map: str
    memory: str | None = None


# --------------------------------------------------------------------------- building


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
    return tuple(replace_dims(e, replacements) for e in exprs), list(order)


def index_properties(index: Index) -> tuple[AffineMapAttr, list[SSAValue]]:
    """An index as an operation holds it."""
    exprs, operands = normalize_operands(*index)
    return AffineMapAttr(affine_map(len(operands), exprs)), operands


def verify_one_index(map: AffineMapAttr, operands: Sequence[SSAValue], what: str) -> None:
    """Raise unless a map is one expression over `operands`."""
    verify_operand_count(map.data, operands)
    if len(map.data.results) != 1:
        raise VerifyException(f"{what} is one expression, got {len(map.data.results)}")


def linearize(indices: Sequence[AffineExpr], shape: Sequence[Extent]) -> AffineExpr:
    """The row-major offset, in elements, of `indices` in an array of `shape`."""
    offset = ZERO
    for index, extent in zip(indices, shape, strict=True):
        offset = product(offset, extent_expr(extent)) + index
    return offset


def delinearize(offset: AffineExpr, shape: Sequence[Extent]) -> list[AffineExpr]:
    """The indices in an array of `shape` whose row-major offset is `offset`; inverse of `linearize`."""
    indices: list[AffineExpr] = []
    stride: Extent = 1
    for position in range(len(shape) - 1, -1, -1):
        extent = 1 if shape[position] == 0 else shape[position]  # an empty array has no index
        index = offset if stride == 1 else quotient(offset, extent_expr(stride))
        if position > 0:
            index = remainder(index, extent_expr(extent))
        indices.append(index)
        stride *= extent
    return indices[::-1]


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


def parse_index(parser: Parser) -> tuple[list[UnresolvedOperand], list[AffineExpr]]:
    """Parse `[%i, %j + 1]`: the operands in order of first use, and the expressions over them."""
    names = OperandNames(parser)
    exprs = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_index_expr(parser, names.parse_dim)
    )
    return names.operands, exprs


def print_index(printer: Printer, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> None:
    """Print `[%i, %j + 1]`."""

    def dim(position: int) -> None:
        printer.print_ssa_value(operands[position])

    with printer.in_square_brackets():
        printer.print_list(exprs, lambda expr: print_index_expr(printer, expr, dim))


# --------------------------------------------------------------------------- directives


@irdl_custom_directive
class AffineIndex(CustomDirective):
    """`[%i, %j + 1]`: an affine map over SSA `index` values, held as (operands, map)."""

    operands: VariadicOperandVariable
    map: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        names, exprs = parse_index(parser)
        self.operands.set(state, names)
        self.map.set(state, AffineMapAttr(affine_map(len(names), exprs)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        map_attr = self.map.get(op)
        assert isinstance(map_attr, AffineMapAttr)
        print_index(printer, map_attr.data.results, self.operands.get(op))
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


@irdl_custom_directive
class ExtentText(CustomDirective):
    """`32` or `s0 * 4`: one extent, held as an attribute."""

    extent: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        self.extent.set(state, ExtentAttr(parse_extent(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        extent = self.extent.get(op)
        assert isinstance(extent, ExtentAttr)
        state.print_whitespace(printer)
        print_extent(printer, extent.data)
        state.last_was_punctuation = False
        state.should_emit_space = True


# --------------------------------------------------------------------------- verifying


def verify_operand_count(indexing: AffineMap | AffineSet, operands: Sequence[SSAValue]) -> None:
    """Raise unless the map or set reads exactly `operands` and declares the sizes it uses."""
    if indexing.num_dims != len(operands):
        raise VerifyException(
            f"index over {indexing.num_dims} dims does not match its {len(operands)} operands"
        )
    verify_symbols(indexing)


def verify_symbols(indexing: AffineMap | AffineSet) -> None:
    """Raise unless the map or set declares as many symbols as the largest it uses asks for."""
    is_map = isinstance(indexing, AffineMap)
    used = count_symbols(indexing.results if is_map else condition_exprs(indexing))
    if indexing.num_symbols != used:
        raise VerifyException(
            f"index declares {indexing.num_symbols} symbols, its largest makes that {used}"
        )


def verify_access(
    index_map: AffineMap, operands: Sequence[SSAValue], memref_type: Attribute
) -> None:
    """Raise unless `index_map` over `operands` has one result per dimension of `memref_type`."""
    verify_operand_count(index_map, operands)
    assert isinstance(memref_type, MemRefType)
    if len(index_map.results) != memref_type.get_num_dims():
        raise VerifyException(
            f"{len(index_map.results)} indices into rank-{memref_type.get_num_dims()} {memref_type}"
        )
