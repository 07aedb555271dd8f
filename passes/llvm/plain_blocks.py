"""A CPU block of a packed contraction as plain loops, where no vector registers are named.

    for %tile_m, for %tile_n {
      for %i = 0 to 8, for %j = 0 to 48 { %sums[...] = 0 }
      for %k = 0 to 512, for %i = 0 to 8, for %j = 0 to 48 { %sums[...] += %xs[...] * %ws[...] }
    }

The blocks, the packed copies and the order in which sums are folded are those of `packed_blocks.py`; who
compiles the loops finds the vectors.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.scalars import is_integer
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode, Place
from .pack_loops import PackLoops
from .packed_blocks import PackedBlock

D0, D1, D2, D3 = (AffineExpr.dimension(i) for i in range(4))


class PlainCode(LoopCode):
    """Inserts loops that keep nothing from who compiles them."""

    def opaque(self, value: SSAValue) -> SSAValue:
        """The index itself."""
        return value


class PlainPackLoops(PackLoops):
    """Fills panels element by element."""

    def _turn(self, panel: SSAValue, height: int) -> None:
        with self.code.loop(self.length, "k") as position:
            self._fill_column(panel, position, height)


class PlainBlock(PackedBlock):
    """Lowers the body of a launch into a block whose counters have values already."""

    code_class = PlainCode
    pack_loops_class = PlainPackLoops

    def _clear(self, sums: Sequence[SSAValue], limits: dict[SSAValue, SSAValue]) -> None:
        code = self.code
        rows = code.index((D0 + (self.tile_m - 1)) // self.tile_m * self.tile_m, [limits[self.m]])
        columns = code.constants.get(self.size_n)
        zero = emit_constant(code.builder, 0, self.element)
        with code.loop(rows, "r") as row, code.loop(columns, "c") as column:
            for buffer in sums:
                code.store(zero, buffer, (D0 * self.size_n + D1, [row, column]))

    def _multiply(
        self,
        buffers: dict[PackOp, SSAValue],
        sums: Sequence[SSAValue],
        tile: tuple[SSAValue, SSAValue],
        length: SSAValue,
    ) -> None:
        self._name(buffers, sums)
        code = self.code
        rows, columns = code.constants.get(self.tile_m), code.constants.get(self.tile_n)
        if self.single:
            zero = emit_constant(code.builder, 0, self.element)
            with code.loop(rows, "row") as row, code.loop(columns, "column") as column:
                for buffer in sums:
                    code.store(zero, buffer, self._sum_place(tile, row, column))
        hint = self.inner.induction_var.name_hint or "k"
        with (
            code.loop(length, hint) as k,
            code.loop(rows, "row") as row,
            code.loop(columns, "column") as column,
        ):
            for buffer, term in zip(sums, self.terms, strict=True):
                left = code.load(buffers[term.rows], self._row_element(term.rows, tile[0], row, k))
                right = code.load(
                    buffers[term.columns], self._column_element(term.columns, tile[1], column, k)
                )
                place = self._sum_place(tile, row, column)
                code.store(self._fold(code.load(buffer, place), left, right), buffer, place)

    def _name(self, buffers: dict[PackOp, SSAValue], sums: Sequence[SSAValue]) -> None:
        """Give the scratch buffers the names of what they hold."""
        for pack, buffer in buffers.items():
            buffer.name_hint = pack.packed.name_hint
        for result, buffer in zip(self.outer.res, sums, strict=True):
            buffer.name_hint = f"{result.name_hint or 'product'}_sums"

    def _sum_place(self, tile: tuple[SSAValue, SSAValue], row: SSAValue, column: SSAValue) -> Place:
        inside = D2 * self.size_n + D1 * self.tile_n + D3
        above = D0 * (self.tile_m * self.size_n)
        return inside if self.single else above + inside, [*tile, row, column]

    def _row_element(self, pack: PackOp, tile: SSAValue, row: SSAValue, k: SSAValue) -> Place:
        height = self.tile_m
        if pack.panel_rows is None:
            return (D0 * height + D1) * pack.row_stride + D2, [tile, row, k]
        if pack.panel_rows != height:
            raise DeploError(
                f"panels of {pack.panel_rows} rows do not fit register tiles of {height}"
            )
        return D0 * (height * pack.shape[1]) + D2 * height + D1, [tile, row, k]

    def _column_element(self, pack: PackOp, tile: SSAValue, column: SSAValue, k: SSAValue) -> Place:
        width = self.tile_n
        return D0 * (width * pack.shape[1]) + D2 * width + D1, [tile, column, k]

    def _fold(self, so_far: SSAValue, left: SSAValue, right: SSAValue) -> SSAValue:
        code = self.code
        if is_integer(self.element):
            return code.insert(arith.AddiOp(so_far, code.insert(arith.MuliOp(left, right))))
        return code.insert(arith.AddfOp(so_far, code.insert(arith.MulfOp(left, right))))
