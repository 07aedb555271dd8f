"""What the products of slabs by warpgroups have in common, in `tile` and `kernel`.

    %d:32 = tile.wgmma %xs by %ws to 32 : memref<64x64xbf16, "shared"> by memref<64x64xbf16, "shared">
    %e:32 = tile.wgmma (%a0, ..., %a31) by %ws to 32 : bf16 by memref<64x64xbf16, "shared">
    %f:32 = tile.wgmma (%a0, ..., %a15) by %vs transposed to 32 : bf16 by memref<32x64xbf16, "shared">
    %g:64 = tile.wgmma %xs by %vs transposed to 64
      : memref<64x64xbf16, "shared"> by memref<64x128xbf16, "shared">

The 128 threads of a warpgroup multiply 64 rows of one slab by all rows of another, the columns of the
product; the reduced axis are the 64 positions of a row (PTX ISA, "wgmma.mma_async.m64nNk16"). The tensor
cores read both slabs from shared memory themselves, where they lie as the copy engine lays them, in rows of
128 bytes whose units are exchanged ("swizzle 128"). A slab that is `transposed` has the positions of the
reduced axis as its rows, and the columns of the product along them: 64, or several panels of 64, which lie
one after the other.

The warpgroups of a block stand one below the other. With W warps, warp w of the block has rows 16 w to
16 w + 15, and the same of every 16 W rows further down. Thread t of a warp is lane `t mod 4` of group
`t floordiv 4`. It gets the sums of two rows of each 16, those numbered by its group and by its group plus 8,
and of two columns of each 8, twice its lane and the one after: row by row.

What the threads hold may stand in the place of the first slab: 64 rows of each warpgroup. A thread holds
elements of the two rows whose sums it gets, at four of each 16 positions: twice its lane, the one after, and
the same of the other 8. First the four of one row, then those of the other, then the next 16 positions.
Which rows of a program these are is up to what is held.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import BFloat16Type, Float16Type, MemRefType
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..machine.matrix_instructions import WGMMA
from .scalars import storage_bytes
from .sizes import static_shape

WARPGROUP = WGMMA.threads
"""Threads that multiply together."""

GROUP_ROWS, MIN_COLUMNS, STEP = WGMMA.shape
"""Rows that a warpgroup multiplies at once, the least columns, and positions of the reduced axis."""

PAIR = 8
"""How far apart the two rows of a thread are among the 16 of its warp."""

ROW_BYTES = 128
"""The bytes of a row of a slab, the width of its swizzle."""

PANEL = ROW_BYTES // 2
"""Columns of a panel, bf16 or f16, of a transposed slab."""

MAX_COLUMNS = 256
"""Columns of an instruction, a multiple of the least."""


def verify_slab(type: MemRefType, axes: int) -> tuple[int, ...]:
    """The shape of a slab with so many axes in front of its rows; raises unless it can be multiplied."""
    shape = static_shape(type)
    if len(shape) != axes + 2:
        raise VerifyException(f"multiplies slabs of rows, got {type}")
    verify_element(type.element_type)
    if shape[-1] * storage_bytes(type.element_type) != ROW_BYTES:
        raise VerifyException(f"rows of a slab have {ROW_BYTES} bytes, not those of {type}")
    return shape


def verify_element(type: Attribute) -> None:
    """Raise unless this is what is multiplied."""
    if not isinstance(type, BFloat16Type | Float16Type):
        raise VerifyException(f"multiplies bf16 or f16, got {type}")


def verify_columns(type: MemRefType, axes: int, transposed: bool) -> tuple[int, int]:
    """The columns of the product that a slab gives, or a panel of it, and the positions of the reduced axis.

    `axes` are in front of its rows. Raises unless it can be multiplied by.
    """
    rows, row = verify_slab(type, axes)[-2:]
    if not transposed:
        return rows, row
    verify_depth(rows)
    return row, rows


def verify_whole_columns(type: MemRefType, transposed: bool) -> tuple[int, int]:
    """The same of a slab before it lies in panels, which a transposed one may have side by side."""
    if not transposed:
        return verify_columns(type, 0, False)
    verify_element(type.element_type)
    depth, width = shape if len(shape := static_shape(type)) == 2 else (0, 0)
    if not width or width % PANEL:
        raise VerifyException(f"multiplies panels of {PANEL} columns, got {type}")
    verify_depth(depth)
    return width, depth


def verify_depth(positions: int) -> None:
    """Raise unless so many positions of the reduced axis can be multiplied."""
    if not positions or positions % STEP:
        raise VerifyException(
            f"multiplies {STEP} positions at once, and {positions} are not that often"
        )


def verify_slabs(rows: MemRefType, columns: MemRefType, transposed: bool) -> tuple[int, int]:
    """The rows and columns of the product of two slabs before they lie in panels.

    Raises unless they can be multiplied.
    """
    height, depth = verify_slab(rows, 0)
    width, positions = verify_whole_columns(columns, transposed)
    if rows.element_type != columns.element_type:
        raise VerifyException(f"multiplies {rows.element_type} by {columns.element_type}")
    verify_same_depth(depth, positions)
    verify_extents(height, width)
    return height, width


def verify_same_depth(rows: int, columns: int) -> None:
    """Raise unless slabs of rows and of columns have the same positions of the reduced axis."""
    if rows != columns:
        raise VerifyException(f"multiplies {rows} positions of rows by {columns} of columns")


def verify_held(values: Sequence[SSAValue], element: Attribute, depth: int) -> None:
    """Raise unless these are what a thread holds of so many positions of the reduced axis."""
    types = {value.type for value in values}
    if types != {element}:
        raise VerifyException(f"multiplies {', '.join(map(str, types))} by {element}")
    if len(values) != depth // 2:
        raise VerifyException(
            f"of {depth} positions a thread holds {depth // 2} elements, not {len(values)}"
        )


def verify_extents(rows: int, columns: int) -> None:
    """Raise unless so many rows can be multiplied by so many columns."""
    if not rows or rows % GROUP_ROWS:
        raise VerifyException(
            f"multiplies {GROUP_ROWS} rows at once, and {rows} are not that often"
        )
    if columns % MIN_COLUMNS or not MIN_COLUMNS <= columns <= MAX_COLUMNS:
        raise VerifyException(
            f"multiplies {MIN_COLUMNS} to {MAX_COLUMNS} columns, a multiple of {MIN_COLUMNS}, not {columns}"
        )


def sums_of(rows: int, columns: int, threads: int) -> int | str:
    """The sums of each of so many threads that multiply rows by columns, or why they cannot."""
    if threads % WARPGROUP or rows % (threads // WARPGROUP * GROUP_ROWS):
        return f"{threads} threads are no warpgroups of {WARPGROUP} that share {rows} rows evenly"
    return prod((rows, columns)) // threads
