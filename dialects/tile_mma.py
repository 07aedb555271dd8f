"""`tile.mma` and `tile.wgmma`: the warps of a launch multiply small matrices, warpgroups slabs.

    tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(...) {
      ...
      %d0, %d1, %d2, %d3 = tile.mma (%a0, ..., %a7) by (%b0, ..., %b3) : bf16

The threads of a block are numbered row by row over the launch's thread axes; 32 that follow each other are a
warp (`mma.py`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, UnitAttr, f32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .mma import MmaBase
from .wgmma import GROUP_ROWS, verify_columns, verify_extents, verify_held, verify_slab


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each thread by one column of each; see `mma.py`."""

    name = "tile.mma"

    traits = traits_def(Pure())


@irdl_op_definition
class WgmmaOp(IRDLOperation):
    """Multiply the rows of one slab, or those that the threads hold, by another slab; see `wgmma.py`."""

    name = "tile.wgmma"

    rows = opt_operand_def(MemRefType)
    held = var_operand_def()
    columns = operand_def(MemRefType)
    transposed = opt_prop_def(UnitAttr)
    products = var_result_def(f32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect())

    def __init__(
        self,
        rows: SSAValue | Sequence[SSAValue],
        columns: SSAValue,
        count: int,
        *,
        transposed: bool = False,
    ):
        slab, held = (rows, []) if isinstance(rows, SSAValue) else (None, list(rows))
        super().__init__(
            operands=[slab, held, columns],
            properties={"transposed": UnitAttr() if transposed else None},
            result_types=[[f32] * count],
        )

    def verify_(self) -> None:
        columns = self.columns.type
        assert isinstance(columns, MemRefType)
        width, depth = verify_columns(columns, 0, self.transposed is not None)
        height = GROUP_ROWS
        if self.rows is None:
            verify_held(self.held, columns.element_type, depth)
        else:
            rows = self.rows.type
            assert isinstance(rows, MemRefType)
            if self.held or self.transposed:
                raise VerifyException("multiplies two slabs only by rows of both")
            if rows.element_type != columns.element_type:
                raise VerifyException(f"multiplies {rows.element_type} by {columns.element_type}")
            height = verify_slab(rows, 0)[0]
        verify_extents(height, width)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        if self.rows is None:
            with printer.in_parens():
                printer.print_list(self.held, printer.print_ssa_value)
        else:
            printer.print_ssa_value(self.rows)
        printer.print_string(" by ")
        printer.print_ssa_value(self.columns)
        if self.transposed is not None:
            printer.print_string(" transposed")
        printer.print_string(f" to {len(self.products)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute((self.rows or self.held[0]).type)
        printer.print_string(" by ")
        printer.print_attribute(self.columns.type)

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaOp:
        held = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        rows = parser.parse_unresolved_operand() if held is None else None
        parser.parse_keyword("by")
        columns = parser.parse_unresolved_operand()
        transposed = parser.parse_optional_keyword("transposed") is not None
        parser.parse_keyword("to")
        count = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        row_type = parser.parse_type()
        parser.parse_keyword("by")
        column_type = parser.parse_type()
        op = cls(
            [parser.resolve_operand(each, row_type) for each in held or ()]
            if rows is None
            else parser.resolve_operand(rows, row_type),
            parser.resolve_operand(columns, column_type),
            count,
            transposed=transposed,
        )
        op.attributes |= attributes
        return op
