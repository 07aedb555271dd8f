"""`tile.mma` and `tile.wgmma`: the warps of a launch multiply small matrices, warpgroups slabs.

    tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(...) {
      ...
      %d0, %d1, %d2, %d3 = tile.mma (%a0, ..., %a7) by (%b0, ..., %b3) : bf16

The threads of a block are numbered row by row over the launch's thread axes; 32 that follow each other are a
warp (`mma.py`).
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType, f32
from xdsl.ir import SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    traits_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, Pure
from xdsl.utils.exceptions import VerifyException

from .mma import MmaBase
from .wgmma import verify_extents, verify_slab


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each thread by one column of each; see `mma.py`."""

    name = "tile.mma"

    traits = traits_def(Pure())


@irdl_op_definition
class WgmmaOp(IRDLOperation):
    """Multiply the rows of one slab by those of another; see `wgmma.py`."""

    name = "tile.wgmma"

    rows = operand_def(MemRefType)
    columns = operand_def(MemRefType)
    products = var_result_def(f32)

    traits = traits_def(MemoryReadEffect())

    def __init__(self, rows: SSAValue, columns: SSAValue, count: int):
        super().__init__(operands=[rows, columns], result_types=[[f32] * count])

    def verify_(self) -> None:
        rows, columns = self.rows.type, self.columns.type
        assert isinstance(rows, MemRefType) and isinstance(columns, MemRefType)
        if rows.element_type != columns.element_type:
            raise VerifyException(f"multiplies {rows.element_type} by {columns.element_type}")
        verify_extents(verify_slab(rows, 0)[0], verify_slab(columns, 0)[0])

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_ssa_value(self.rows)
        printer.print_string(" by ")
        printer.print_ssa_value(self.columns)
        printer.print_string(f" to {len(self.products)}")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.rows.type)
        printer.print_string(" by ")
        printer.print_attribute(self.columns.type)

    @classmethod
    def parse(cls, parser: Parser) -> WgmmaOp:
        rows = parser.parse_unresolved_operand()
        parser.parse_keyword("by")
        columns = parser.parse_unresolved_operand()
        parser.parse_keyword("to")
        count = parser.parse_integer(allow_boolean=False, allow_negative=False)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        row_type = parser.parse_type()
        parser.parse_keyword("by")
        column_type = parser.parse_type()
        slabs = parser.resolve_operand(rows, row_type), parser.resolve_operand(columns, column_type)
        op = cls(*slabs, count)
        op.attributes |= attributes
        return op
