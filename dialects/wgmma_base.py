"""What `kernel.wgmma` holds and how it is written; `kernel_wgmma.py` says what is refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    AffineMapAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect

from .index import Index, Indexed, index_properties, parse_index, print_index
from .loop_access import stays_in_registers
from .wgmma import ROW_BYTES


@dataclass(frozen=True)
class SlabAt:
    """A slab that begins at an index of what lies in shared memory."""

    memory: SSAValue
    index: Index


class WgmmaBase(IRDLOperation):
    """A product of two slabs that lie somewhere in shared memory, added to `sums`.

    Or of what the threads hold by one.
    """

    INDEXED: ClassVar = (
        Indexed("row_indices", "row_map", "rows"),
        Indexed("column_indices", "column_map", "columns"),
    )

    rows = opt_operand_def()
    row_indices = var_operand_def(IndexType)
    row_map = opt_prop_def(AffineMapAttr)
    held = var_operand_def()
    columns = operand_def()
    column_indices = var_operand_def(IndexType)
    column_map = prop_def(AffineMapAttr)
    transposed = opt_prop_def(UnitAttr)
    sums = var_operand_def(f32)
    extents = opt_prop_def(DenseArrayBase.constr(i64))
    """Rows and columns, where the slabs' types do not say them, as those of panels; of held rows, those of a
    warpgroup."""
    leaving = opt_prop_def(IntegerAttr.constr(i64))
    """Products that may be on their way when the operation ends, the last ones; without it none."""
    joined = opt_prop_def(UnitAttr)
    """Whether the next product is begun with it, at one time."""
    products = var_result_def(f32)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        rows: SlabAt | Sequence[SSAValue],
        columns: SlabAt,
        sums: Sequence[SSAValue],
        extents: tuple[int, int] | None = None,
        *,
        transposed: bool = False,
        leaving: int | None = None,
        joined: bool = False,
    ):
        slab, held = (rows, []) if isinstance(rows, SlabAt) else (None, list(rows))
        row_map, row_operands = index_properties(slab.index) if slab else (None, [])
        column_map, column_operands = index_properties(columns.index)
        super().__init__(
            operands=[
                slab and slab.memory,
                row_operands,
                held,
                columns.memory,
                column_operands,
                list(sums),
            ],
            properties={
                "row_map": row_map,
                "column_map": column_map,
                "transposed": UnitAttr() if transposed else None,
                "extents": None if extents is None else DenseArrayBase.from_list(i64, extents),
                "leaving": None if leaving is None else IntegerAttr(leaving, i64),
                "joined": UnitAttr() if joined else None,
            },
            result_types=[[f32] * len(sums)],
        )

    @property
    def joined_to_it(self) -> int:
        """How many products in front of it are begun with it."""
        count, before = 0, self.prev_op
        while before is not None:
            if isinstance(before, WgmmaBase):
                if before.joined is None:
                    break
                count += 1
            elif not stays_in_registers(before):
                break
            before = before.prev_op
        return count

    @property
    def pending(self) -> int:
        """Products that may be on their way when it ends."""
        return 0 if self.leaving is None else self.leaving.value.data

    @property
    def element(self) -> Attribute:
        """The type of what is multiplied."""
        assert isinstance(self.columns.type, MemRefType)
        return self.columns.type.element_type

    @property
    def depth(self) -> int:
        """Positions of the reduced axis."""
        return len(self.held) * 2 if self.held and self.transposed else ROW_BYTES // 2

    @property
    def slabs(self) -> list[tuple[SSAValue, AffineMapAttr, Sequence[SSAValue]]]:
        """Where the slabs of rows, if there is one, and of columns begin."""
        columns = (self.columns, self.column_map, self.column_indices)
        if self.rows is None:
            return [columns]
        assert self.row_map is not None
        return [(self.rows, self.row_map, self.row_indices), columns]

    def _print_slab(
        self, printer: Printer, slab: SSAValue, map: AffineMapAttr, indices: Sequence[SSAValue]
    ) -> None:
        printer.print_ssa_value(slab)
        print_index(printer, map.data.results, indices)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        *rows, columns = self.slabs
        if rows:
            self._print_slab(printer, *rows[0])
        else:
            with printer.in_parens():
                printer.print_list(self.held, printer.print_ssa_value)
        printer.print_string(" by ")
        self._print_slab(printer, *columns)
        if self.transposed is not None:
            printer.print_string(" transposed")
        printer.print_string(" plus ")
        with printer.in_parens():
            printer.print_list(self.sums, printer.print_ssa_value)
        if self.extents is not None:
            printer.print_string(" of {} by {}".format(*self.extents.get_values()))
        if self.leaving is not None:
            printer.print_string(f" leaving {self.pending}")
        if self.joined is not None:
            printer.print_string(" joined")
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute((self.rows or self.held[0]).type)
        printer.print_string(" by ")
        printer.print_attribute(self.columns.type)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        held = parser.parse_optional_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        row_slab = _parse_slab(parser) if held is None else None
        parser.parse_keyword("by")
        column_slab = _parse_slab(parser)
        transposed = parser.parse_optional_keyword("transposed") is not None
        parser.parse_keyword("plus")
        sums = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        extents = None
        if parser.parse_optional_keyword("of"):
            height = parser.parse_integer(allow_boolean=False)
            parser.parse_keyword("by")
            extents = height, parser.parse_integer(allow_boolean=False)
        leaving = None
        if parser.parse_optional_keyword("leaving"):
            leaving = parser.parse_integer(allow_boolean=False, allow_negative=False)
        joined = parser.parse_optional_keyword("joined") is not None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        row_type = parser.parse_type()
        parser.parse_keyword("by")
        column_type = parser.parse_type()

        def slab(parsed: _ParsedSlab, type: Attribute) -> SlabAt:
            memory, (names, exprs) = parsed
            indices = [parser.resolve_operand(name, IndexType()) for name in names]
            return SlabAt(parser.resolve_operand(memory, type), (exprs, indices))

        op = cls(
            [parser.resolve_operand(value, row_type) for value in held or ()]
            if row_slab is None
            else slab(row_slab, row_type),
            slab(column_slab, column_type),
            [parser.resolve_operand(value, f32) for value in sums],
            extents,
            transposed=transposed,
            leaving=leaving,
            joined=joined,
        )
        op.attributes |= attributes
        return op


_ParsedSlab = tuple[UnresolvedOperand, tuple[list[UnresolvedOperand], list[AffineExpr]]]


def _parse_slab(parser: Parser) -> _ParsedSlab:
    return parser.parse_unresolved_operand(), parse_index(parser)
