"""What the products of small matrices by a warp have in common, in `tile`, `kernel` and `cuda`.

    %d0, %d1, %d2, %d3 = tile.mma (%a0, ..., %a7) by (%b0, ..., %b3) : bf16

A warp multiplies 16 rows by 8 columns over 16 positions of a reduced axis (PTX ISA, "mma.m16n8k16"). Thread
t of the warp is lane `t mod 4` of group `t floordiv 4`. It holds the elements of two rows, those numbered by
its group and by its group plus 8, at 4 positions: first the four of one row, then those of the other; and
the elements of one column, that of its group, at the same 4 positions. It gets the sums of its two rows and
of columns twice its lane and the one after: two of one row, then two of the other.

Which positions of the reduced axis are whose is up to the operands: all that counts is that the threads of
one lane hold the same ones. Elements are bf16, f16 or tf32; of the last, two instructions multiply 8
positions each ("mma.m16n8k8").
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from .scalars import STORAGE_FLOATS

ROWS, COLUMNS, DEPTH = 16, 8, 16
"""Rows, columns and positions of the reduced axis that a warp multiplies at once."""

LANES = 4
"""Threads that share a row; `WARP / LANES` groups of them share a column."""

SLOTS = DEPTH // LANES
"""Positions of the reduced axis that one thread holds."""


class MmaBase(IRDLOperation):
    """A product of two small matrices by a warp, added to `sums` if there are any."""

    rows = var_operand_def()
    columns = var_operand_def()
    sums = var_operand_def(f32)
    products = var_result_def(f32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        rows: Sequence[SSAValue],
        columns: Sequence[SSAValue],
        sums: Sequence[SSAValue] = (),
    ):
        super().__init__(operands=[rows, columns, sums], result_types=[[f32] * 4])

    @property
    def element(self) -> Attribute:
        """The type of what is multiplied."""
        return self.rows[0].type

    def verify_(self) -> None:
        counts = len(self.rows), len(self.columns), len(self.products)
        if counts != (2 * SLOTS, SLOTS, 4) or len(self.sums) not in (0, 4):
            raise VerifyException(
                f"multiplies {2 * SLOTS} elements of rows by {SLOTS} of a column to 4 sums, got "
                f"{counts[0]} by {counts[1]} to {counts[2]}, and {len(self.sums)} to add to"
            )
        types = {value.type for value in (*self.rows, *self.columns)}
        if len(types) != 1 or not isinstance(self.element, STORAGE_FLOATS):
            raise VerifyException(f"multiplies bf16, f16 or tf32, got {', '.join(map(str, types))}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        with printer.in_parens():
            printer.print_list(self.rows, printer.print_ssa_value)
        printer.print_string(" by ")
        with printer.in_parens():
            printer.print_list(self.columns, printer.print_ssa_value)
        if self.sums:
            printer.print_string(" plus ")
            with printer.in_parens():
                printer.print_list(self.sums, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.element)

    @classmethod
    def parse(cls, parser: Parser) -> MmaBase:
        def parse_values() -> list[UnresolvedOperand]:
            return parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )

        rows = parse_values()
        parser.parse_keyword("by")
        columns = parse_values()
        sums = parse_values() if parser.parse_optional_keyword("plus") else []
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        element = parser.parse_type()
        op = cls(
            [parser.resolve_operand(value, element) for value in rows],
            [parser.resolve_operand(value, element) for value in columns],
            [parser.resolve_operand(value, f32) for value in sums],
        )
        op.attributes |= attributes
        return op
