"""What `kernel.wgmma` and `cuda.wgmma` have in common: products of slabs somewhere in shared memory.

    %d:32 = kernel.wgmma %xs[%buffer, 0, 0] by %ws[%buffer, 0, 0] plus (%c0, ..., %c31)
      : memref<3x64x64xbf16, "shared"> by memref<3x64x64xbf16, "shared">

`wgmma.py` says whose elements are where.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AffineMapAttr, DenseArrayBase, IndexType, f32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from .index import OperandNames
from .index_text import parse_index_expr, print_index_expr
from .mbarriers import Index, index_properties


class WgmmaBase(IRDLOperation):
    """A product of two slabs that lie somewhere in shared memory, added to `sums`.

    It is done, and the sums are there, when the operation is. All threads of the block must take part.
    """

    rows = operand_def()
    row_indices = var_operand_def(IndexType)
    row_map = prop_def(AffineMapAttr)
    columns = operand_def()
    column_indices = var_operand_def(IndexType)
    column_map = prop_def(AffineMapAttr)
    sums = var_operand_def(f32)
    extents = opt_prop_def(DenseArrayBase.constr(i64))
    """Rows and columns, where the slabs' types do not say them."""
    products = var_result_def(f32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        rows: SSAValue,
        row: Index,
        columns: SSAValue,
        column: Index,
        sums: Sequence[SSAValue],
        extents: tuple[int, int] | None = None,
    ):
        row_map, row_operands = index_properties(row)
        column_map, column_operands = index_properties(column)
        super().__init__(
            operands=[rows, row_operands, columns, column_operands, list(sums)],
            properties={
                "row_map": row_map,
                "column_map": column_map,
                "extents": None if extents is None else DenseArrayBase.from_list(i64, extents),
            },
            result_types=[[f32] * len(sums)],
        )

    def _print_slab(
        self, printer: Printer, slab: SSAValue, map: AffineMapAttr, indices: Sequence[SSAValue]
    ) -> None:
        printer.print_ssa_value(slab)
        with printer.in_square_brackets():
            printer.print_list(
                map.data.results,
                lambda expr: print_index_expr(
                    printer, expr, lambda i: printer.print_ssa_value(indices[i])
                ),
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        self._print_slab(printer, self.rows, self.row_map, self.row_indices)
        printer.print_string(" by ")
        self._print_slab(printer, self.columns, self.column_map, self.column_indices)
        printer.print_string(" plus ")
        with printer.in_parens():
            printer.print_list(self.sums, printer.print_ssa_value)
        if self.extents is not None:
            printer.print_string(" of {} by {}".format(*self.extents.get_values()))
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.rows.type)
        printer.print_string(" by ")
        printer.print_attribute(self.columns.type)

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaBase:
        rows, row = _parse_slab(parser)
        parser.parse_keyword("by")
        columns, column = _parse_slab(parser)
        parser.parse_keyword("plus")
        sums = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        extents = None
        if parser.parse_optional_keyword("of"):
            height = parser.parse_integer(allow_boolean=False)
            parser.parse_keyword("by")
            extents = height, parser.parse_integer(allow_boolean=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        row_type = parser.parse_type()
        parser.parse_keyword("by")
        column_type = parser.parse_type()

        def index(names: OperandNames, exprs: Sequence[AffineExpr]) -> Index:
            return exprs, [parser.resolve_operand(o, IndexType()) for o in names.operands]

        op = cls(
            parser.resolve_operand(rows, row_type),
            index(*row),
            parser.resolve_operand(columns, column_type),
            index(*column),
            [parser.resolve_operand(value, f32) for value in sums],
            extents,
        )
        op.attributes |= attributes
        return op


def _parse_slab(
    parser: Parser,
) -> tuple[UnresolvedOperand, tuple[OperandNames, list[AffineExpr]]]:
    slab, names = parser.parse_unresolved_operand(), OperandNames(parser)
    exprs = parser.parse_comma_separated_list(
        parser.Delimiter.SQUARE, lambda: parse_index_expr(parser, names.parse_dim)
    )
    return slab, (names, exprs)
