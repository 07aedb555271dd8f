"""Register tiles of bf16: two positions of K at once, by an instruction that adds both products to a sum.

    %x = vector.load %input[%i, %k * 2] : vector<2xbf16>          // of each row; spread over a vector
    %w = vector.load %ws[...] : vector<32xbf16>                   // 16 columns, a pair of each
    %s = vdpbf16ps %s, %x, %w                                     // 16 sums, in f32

Sums are rounded after each product, as PyTorch's are that use the same instruction; what is subnormal counts
as 0. Columns lie in panels with the elements of two positions together (`panels.py`): where they are halves,
a shuffle makes them pairs. Rows are in place, or packed as they lie along K.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import llvm
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...errors import DeploError
from .pair_loops import load_some
from .panels import PAIR
from .register_tiles import InPlace, Packed, Reader, RegisterTile

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


@dataclass(frozen=True)
class PairTile(RegisterTile):
    """Tiles of rows by packed columns, both of bf16; sums are f32."""

    together: ClassVar = PAIR

    def multiply(self, tile: tuple[SSAValue, SSAValue], length: SSAValue) -> None:
        """Add the products of `length` positions to the sums of a tile; after an odd number there is a 0."""
        super().multiply(tile, self.code.index((D0 + (PAIR - 1)) // PAIR, [length]))

    def _reader(self, rows: Packed | InPlace, tile: SSAValue) -> Reader:
        code = self.code
        if isinstance(rows, Packed):
            return self._packed_reader(rows, tile)
        load, lines = rows.load, self._lines(rows, tile)

        def read(row: int, position: SSAValue, step: int) -> SSAValue:
            known = {rows.row: lines[row]}
            known[rows.position] = code.index((D0 + step) * PAIR, [position])
            pair = load_some(code, load, [known.get(v, v) for v in load.indices], PAIR)
            return code.insert(llvm.BitcastOp(pair, i32))

        return read

    def _packed_reader(self, rows: Packed, tile: SSAValue) -> Reader:
        """What reads rows that are packed as they lie along K."""
        code = self.code
        if rows.panel is not None:
            raise DeploError("pairs of rows lie along K, not in panels")
        first = D0 * (self.height * rows.stride)

        def read(row: int, position: SSAValue, step: int) -> SSAValue:
            place = first + row * rows.stride + (D1 + step) * PAIR
            pair = code.load_vector(rows.buffer, (place, [tile, position]), PAIR)
            return code.insert(llvm.BitcastOp(pair, i32))

        return read

    def _vectors(
        self, columns: Packed, tile_n: SSAValue, position: SSAValue, step: int
    ) -> list[SSAValue]:
        """Pairs of the columns of a tile, so many pairs after another one."""
        first = D0 * (self.pitch * columns.stride) + (D1 + step) * (self.pitch * PAIR)
        code, count = self.code, self.lanes * PAIR
        places = [first + column * PAIR for column in range(0, self.width, self.lanes)]
        loaded = [code.load_vector(columns.buffer, (p, [tile_n, position]), count) for p in places]
        if not columns.halves:
            return loaded
        mask = [lane + half for lane in range(self.lanes) for half in (0, self.lanes)]
        return [code.shuffle(each, each, mask) for each in loaded]

    def _multiply_add(self, a: SSAValue, b: SSAValue, so_far: SSAValue) -> SSAValue:
        """A vector of sums and the two products of a pair of each."""
        op = llvm.InlineAsmOp(
            "vdpbf16ps $3, $2, $0", "=v,0,v,v", [so_far, a, b], [so_far.type], asm_dialect=0
        )
        return self.code.insert(op)
