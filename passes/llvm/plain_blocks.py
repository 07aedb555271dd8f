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

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.tile_pack import PackOp
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode
from .pack_loops import PackLoops
from .packed_blocks import PackedBlock
from .register_tiles import PlainTile

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


class PlainCode(LoopCode):
    """Inserts loops that keep nothing from who compiles them."""

    for_llvm = False

    def opaque(self, value: SSAValue) -> SSAValue:
        """The index itself."""
        return value


class PlainPackLoops(PackLoops):
    """Fills panels element by element."""

    vectors = False

    def _turn_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        self._fill_strip(panel, strip, height)

    def _clear_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        code, lanes = self.code, self.lanes
        zero = emit_constant(code.builder, 0, self.pack.element.type)
        with (
            code.loop(self.length, "k") as position,
            code.loop(code.constants.get(lanes), "r") as each,
        ):
            row = code.index(D0 * lanes + D1, [strip, each])
            code.store(zero, self.buffer, self._place(panel, position, row, height))


class PlainBlock(PackedBlock):
    """Lowers the body of a launch into a block whose counters have values already."""

    code_class = PlainCode
    pack_loops_class = PlainPackLoops
    tile_class = PlainTile
    pair_classes = PlainPackLoops, PlainTile
    matrix_classes = pair_classes

    def _clear(self, sums: Sequence[SSAValue], limits: dict[SSAValue, SSAValue]) -> None:
        code = self.code
        rows = code.index((D0 + (self.tile_m - 1)) // self.tile_m * self.tile_m, [limits[self.m]])
        columns = code.constants.get(self.size_n)
        zero = emit_constant(code.builder, 0, self.element)
        with code.loop(rows, "r") as row, code.loop(columns, "c") as column:
            for buffer in sums:
                code.store(zero, buffer, (D0 * self.size_n + D1, [row, column]))

    def _turn(self, sums: SSAValue, limits: dict[SSAValue, SSAValue]) -> SSAValue:
        code, stride = self.code, self.turned_stride
        made = self._scratch(self.element, self.size_n * stride)
        with code.loop(limits[self.m], "r") as row, code.loop(limits[self.n], "c") as column:
            value = code.load(sums, (D0 * self.size_n + D1, [row, column]))
            code.store(value, made, (D1 * stride + D0, [row, column]))
        return made

    def _name(self, buffers: dict[PackOp, SSAValue], sums: Sequence[SSAValue]) -> None:
        """Give the scratch buffers the names of what they hold."""
        for pack, buffer in buffers.items():
            buffer.name_hint = pack.packed.name_hint
        for result, buffer in zip(self.outer.res, sums, strict=True):
            buffer.name_hint = f"{result.name_hint or 'product'}_sums"
