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
from .wgmma import (
    GROUP_ROWS,
    verify_extents,
    verify_held,
    verify_slabs,
    verify_whole_columns,
)


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply the rows that each thread holds by its column; see `mma.py`."""

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

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns; held rows are those of one warpgroup. Raises if there is no such product."""
        columns, transposed = _slab_type(self.columns), self.transposed is not None
        if self.rows is not None:
            return verify_slabs(_slab_type(self.rows), columns, transposed)
        width, depth = verify_whole_columns(columns, transposed)
        verify_held(self.held, columns.element_type, depth)
        verify_extents(GROUP_ROWS, width)
        return GROUP_ROWS, width

    def verify_(self) -> None:
        if self.rows is not None and self.held:
            raise VerifyException("multiplies a slab of rows or what the threads hold")
        _ = self.shape

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


def _slab_type(slab: SSAValue) -> MemRefType:
    assert isinstance(slab.type, MemRefType)
    return slab.type
