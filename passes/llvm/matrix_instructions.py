"""The operations of `amx` as LLVM's intrinsics of the same names, whose registers are numbers.

    amx.tileload 4, %x[%i, %k] pitch 2048 : memref<64x2048xbf16>

becomes

    call void @llvm.x86.tileloadd64(i8 4, ptr %there, i64 4096)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import i8, i64
from xdsl.ir import Operation, SSAValue

from ...dialects.amx import (
    ROW_BYTES,
    TileAccess,
    TileConfigOp,
    TileDotOp,
    TileLoadOp,
    TileReleaseOp,
    TileZeroOp,
)
from .accesses import constant

PALETTE = 1
"""8 registers of 16 rows of 64 bytes."""

CONFIG_BYTES, WIDTHS, HEIGHTS = 64, 16, 48
"""Of what `ldtilecfg` reads: its size, and where the bytes of a row of each register are, two bytes each, and
its rows, one byte each. The first byte is the palette (Intel, "LDTILECFG")."""


def lower_tile_access(
    builder: Builder, op: TileAccess, address: SSAValue, element_bytes: int
) -> None:
    """Read or write the rows of a register, the first at an address."""
    instruction = "tileloadd64" if isinstance(op, TileLoadOp) else "tilestored64"
    pitch = constant(builder, op.pitch.value.data * element_bytes)
    _call(builder, instruction, [constant(builder, op.tile.value.data, i8), address, pitch])


def _zero(builder: Builder, op: TileZeroOp) -> Sequence[SSAValue]:
    return _call(builder, "tilezero", [constant(builder, op.tile.value.data, i8)])


def _dot(builder: Builder, op: TileDotOp) -> Sequence[SSAValue]:
    numbers = (op.sums, op.rows, op.columns)
    registers = [constant(builder, each.value.data, i8) for each in numbers]
    return _call(builder, "tdpbf16ps", registers)


def _release(builder: Builder, op: TileReleaseOp) -> Sequence[SSAValue]:
    return _call(builder, "tilerelease", [])


def _configure(builder: Builder, op: TileConfigOp) -> Sequence[SSAValue]:
    """Write what the instruction reads to the stack, in words of 64 bits."""
    config = bytearray(CONFIG_BYTES)
    config[0] = PALETTE
    for number, rows in enumerate(op.counts):
        config[WIDTHS + 2 * number] = ROW_BYTES
        config[HEIGHTS + number] = rows
    words = CONFIG_BYTES // 8
    place = builder.insert(llvm.AllocaOp(constant(builder, words), i64, CONFIG_BYTES)).res
    for number in range(words):
        word = int.from_bytes(config[8 * number : 8 * number + 8], "little")
        there = llvm.GEPOp(place, [number], i64)
        builder.insert(llvm.StoreOp(constant(builder, word), builder.insert(there).result))
    return _call(builder, "ldtilecfg", [place])


def _call(builder: Builder, name: str, arguments: Sequence[SSAValue]) -> Sequence[SSAValue]:
    builder.insert(llvm.CallIntrinsicOp(f"llvm.x86.{name}", arguments, []))
    return ()


TILE_LOWERINGS: dict[type[Operation], Callable[..., Sequence[SSAValue]]] = {
    TileZeroOp: _zero,
    TileDotOp: _dot,
    TileReleaseOp: _release,
    TileConfigOp: _configure,
}
"""What becomes of the operations that read and write no arrays."""
