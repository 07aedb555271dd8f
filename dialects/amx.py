"""`amx`: matrix tiles of x86 CPUs, which multiply matrices of bf16, by the names of their instructions.

    amx.ldtilecfg [16, 16, 16, 16, 16, 16, 16, 16]
    amx.tilezero 0
    amx.tileload 4, %x[%i * 16, %k] pitch 2048 : memref<64x2048xbf16>
    amx.tileload 6, %ws[%k * 32] pitch 64 : memref<65536xbf16>
    amx.tdpbf16ps 0, 4, 6
    amx.tilestore 0, %sums[%i * 512] pitch 32 : memref<2048xf32>
    amx.tilerelease

There are 8 registers of at most 16 rows of 64 bytes. `ldtilecfg` says how many rows each has, from then on
until `tilerelease`; here all rows are whole. A product adds to 16 by 16 sums of f32: of the rows, 32 bf16
each, and of the columns, 16 rows of the register, each with two positions of 16 columns, in pairs. Sums are
rounded after each product, subnormal numbers count as 0 (Intel, Architecture Instruction Set Extensions
Programming Reference, "TDPBF16PS").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    AffineMapAttr,
    BFloat16Type,
    DenseArrayBase,
    Float32Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    i64,
)
from xdsl.ir import Dialect, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .index import AffineIndex, index_properties, verify_access

REGISTERS = 8
"""Tile registers."""

ROWS = 16
"""Rows of a register, at most."""

ROW_BYTES = 64
"""Bytes of a row."""

COLUMNS = 16
"""Columns of sums, of f32."""

DEPTH = 32
"""Positions of the reduced axis, of bf16, that one instruction multiplies."""


def _verify_register(*numbers: IntegerAttr) -> None:
    for number in numbers:
        if not 0 <= number.value.data < REGISTERS:
            raise VerifyException(f"there are {REGISTERS} registers, no number {number.value.data}")


@irdl_op_definition
class TileConfigOp(IRDLOperation):
    """Say how many rows each register has, all of 64 bytes, and clear them: `amx.ldtilecfg [16, 8]`."""

    name = "amx.ldtilecfg"

    rows = prop_def(DenseArrayBase)

    traits = traits_def(MemoryWriteEffect())

    def __init__(self, rows: Sequence[int]):
        super().__init__(properties={"rows": DenseArrayBase.from_list(i64, rows)})

    @property
    def counts(self) -> list[int]:
        """The rows of each register."""
        return list(cast("DenseArrayBase[IntegerType]", self.rows).get_values())

    def print(self, printer: Printer) -> None:
        printer.print_string(f" {self.counts}")
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> TileConfigOp:
        op = cls(parser.parse_comma_separated_list(Parser.Delimiter.SQUARE, parser.parse_integer))
        op.attributes |= parser.parse_optional_attr_dict()
        return op

    def verify_(self) -> None:
        rows = self.counts
        if len(rows) > REGISTERS or not all(1 <= each <= ROWS for each in rows):
            raise VerifyException(
                f"expected the rows of up to {REGISTERS} registers, 1 to {ROWS} each, got {rows}"
            )


@irdl_op_definition
class TileReleaseOp(IRDLOperation):
    """Give all registers back; whoever needs them next configures them."""

    name = "amx.tilerelease"

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "attr-dict"


@irdl_op_definition
class TileZeroOp(IRDLOperation):
    """Clear a register: `amx.tilezero 0`."""

    name = "amx.tilezero"

    tile = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$tile attr-dict"

    def __init__(self, tile: int):
        super().__init__(properties={"tile": IntegerAttr(tile, i64)})

    def verify_(self) -> None:
        _verify_register(self.tile)


class TileAccess(IRDLOperation):
    """A register and rows of memory, the first at an index, each `pitch` elements after the one before."""

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    tile = prop_def(IntegerAttr.constr(i64))
    map = prop_def(AffineMapAttr)
    pitch = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$tile `,` $memref `` custom<AffineIndex>($indices, $map) `pitch` $pitch attr-dict "
        "`:` type($memref)"
    )

    def __init__(
        self,
        tile: int,
        memref: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        pitch: int,
    ):
        map_attr, operands = index_properties((exprs, operands))
        super().__init__(
            operands=[memref, operands],
            properties={
                "tile": IntegerAttr(tile, i64),
                "map": map_attr,
                "pitch": IntegerAttr(pitch, i64),
            },
        )

    def verify_(self) -> None:
        _verify_register(self.tile)
        verify_access(self.map.data, self.indices, self.memref.type)
        assert isinstance(self.memref.type, MemRefType)
        element = self.memref.type.element_type
        if not isinstance(element, BFloat16Type | Float32Type):
            raise VerifyException(f"a tile has elements of bf16 or f32, not {element}")


@irdl_op_definition
class TileLoadOp(TileAccess):
    """Read the rows of a register: `amx.tileload 4, %x[%i, %k] pitch 2048 : memref<64x2048xbf16>`."""

    name = "amx.tileload"


@irdl_op_definition
class TileStoreOp(TileAccess):
    """Write them: `amx.tilestore 0, %sums[%i] pitch 32 : memref<2048xf32>`."""

    name = "amx.tilestore"


@irdl_op_definition
class TileDotOp(IRDLOperation):
    """Add the products of rows and columns of bf16 to sums of f32: `amx.tdpbf16ps 0, 4, 6`."""

    name = "amx.tdpbf16ps"

    sums = prop_def(IntegerAttr.constr(i64))
    rows = prop_def(IntegerAttr.constr(i64))
    columns = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$sums `,` $rows `,` $columns attr-dict"

    def __init__(self, sums: int, rows: int, columns: int):
        numbers = {"sums": sums, "rows": rows, "columns": columns}
        super().__init__(properties={k: IntegerAttr(v, i64) for k, v in numbers.items()})

    def verify_(self) -> None:
        numbers = self.sums, self.rows, self.columns
        _verify_register(*numbers)
        if len({number.value.data for number in numbers}) < len(numbers):
            raise VerifyException("sums, rows and columns must be three registers")


Amx = Dialect(
    "amx",
    [TileConfigOp, TileReleaseOp, TileZeroOp, TileLoadOp, TileStoreOp, TileDotOp],
)
