"""What the products of small matrices by a warp have in common, in `tile` and `kernel`.

    %d0, %d1, %d2, %d3 = tile.mma (%a0, ..., %a7) by (%b0, ..., %b3) : bf16

The instruction is the row of `machine/matrix_instructions.py` for the type and the number of elements that
each thread holds: above, 16 rows by 8 columns over 16 positions of a reduced axis (PTX ISA, "mma.m16n8k16").
Thread t of the warp is lane `t mod 4` of group `t floordiv 4`. It holds the elements of two rows, those
numbered by its group and by its group plus 8, at 4 positions: first the four of one row, then those of the
other; and the elements of one column, that of its group, at the same 4 positions. It gets the sums of its two
rows and of columns twice its lane and the one after: two of one row, then two of the other.

Which positions of the reduced axis are whose is up to the operands: all that counts is that the threads of
one lane hold the same ones. Threads that hold a multiple of an instruction's elements multiply by several, on
the same sums: 8 elements of rows and 4 of a column, of tf32, by two instructions of 8 positions each.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32, f64, i32
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

from ..machine.matrix_instructions import MatrixInstruction, find_mma

_SUM_TYPES = {"f32": f32, "f64": f64, "i32": i32}


class MmaBase(IRDLOperation):
    """A product of two small matrices by a warp, added to `sums` if there are any."""

    rows = var_operand_def()
    columns = var_operand_def()
    sums = var_operand_def()
    products = var_result_def()

    irdl_options = (AttrSizedOperandSegments(as_property=True),)

    def __init__(
        self,
        rows: Sequence[SSAValue],
        columns: Sequence[SSAValue],
        sums: Sequence[SSAValue] = (),
    ):
        types = _sum_types(rows[0].type if rows else f32, len(rows), len(columns))
        super().__init__(operands=[rows, columns, sums], result_types=[types])

    @property
    def element(self) -> Attribute:
        """The type of what is multiplied."""
        return self.rows[0].type

    @property
    def instruction(self) -> tuple[MatrixInstruction, int]:
        """The instruction, and how many of it follow each other on the same sums; raises if there is none."""
        found = find_mma(str(self.element), len(self.rows), len(self.columns))
        if found is None:
            raise VerifyException(
                f"no instruction multiplies {len(self.rows)} elements of rows by {len(self.columns)} of a "
                f"column, of {self.element}, in each thread"
            )
        return found

    def verify_(self) -> None:
        if not self.rows or not self.columns:
            held = f"{len(self.rows)} elements of rows and {len(self.columns)} of a column"
            raise VerifyException(f"multiplies at least one element of each, got {held}")
        types = {value.type for value in (*self.rows, *self.columns)}
        if len(types) != 1:
            raise VerifyException(f"multiplies elements of one type, got {', '.join(map(str, types))}")
        count = self.instruction[0].held[2]
        expected = _sum_types(self.element, len(self.rows), len(self.columns))
        sums = [value.type for value in self.sums]
        if [v.type for v in self.products] != expected or sums not in ([], expected):
            raise VerifyException(
                f"gives {count} sums of {expected[0]}, not {len(self.products)}, and adds to "
                f"as many or to none, got {len(sums)}"
            )

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
        types = _sum_types(element, len(rows), len(columns), len(sums))
        op = cls(
            [parser.resolve_operand(value, element) for value in rows],
            [parser.resolve_operand(value, element) for value in columns],
            parser.resolve_operands(sums, types, parser.pos) if sums else [],
        )
        op.attributes |= attributes
        return op


def _sum_types(element: Attribute, rows: int, columns: int, count: int = 4) -> list[Attribute]:
    """The types of a thread's sums; `count` of f32 if no instruction multiplies so."""
    if (found := find_mma(str(element), rows, columns)) is None:
        return [f32] * count
    return [_SUM_TYPES[found[0].sum_type]] * found[0].held[2]
