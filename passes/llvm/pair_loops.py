"""Fills panels with two positions of K together, for tiles that multiply pairs of bf16 (`pair_tiles.py`).

    for %pair = 0 to 256, %rows = 0 to 8 {
      %a = vector.load %x[%pair * 2, %rows * 16]                 // rows are neighbours in the array: shuffled
      %b = vector.load %x[%pair * 2 + 1, %rows * 16]
      vector.store (vector.shuffle %a, %b [0, 16, 1, 17, ...]), %panel[...]
    }

Where positions are neighbours in the array, squares of 16 pairs of 16 rows are turned by shuffles; so is what
is computed from neighbours along K, by way of a small buffer. All other columns, windows of an image among
them, are written as `pack_loops.py` has them, 16 rows at one position, and lie as halves of pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects import arith, llvm, vector
from xdsl.dialects.builtin import IntegerAttr, VectorType, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.vectors import is_unit_stride
from ...dialects.loop import LoadOp
from ..loop.scalar_code import emit_constant
from .loop_code import LoopCode, Place
from .pack_loops import PackLoops, lies_along_rows, turned
from .panels import PAIR, Panels

Values = dict[SSAValue, SSAValue]

D0, D1, D2, D3 = (AffineExpr.dimension(i) for i in range(4))


def load_some(code: LoopCode, load: LoadOp, operands: Sequence[SSAValue], count: int) -> SSAValue:
    """So many neighbours of an array."""
    indices = [code.index(expr, operands) for expr in load.map.data.results]
    kind = VectorType(load.result.type, [count])
    return code.insert(vector.LoadOp(load.memref, indices, kind))


class PairLoops(PackLoops):
    """Fills panels with pairs of positions; what is past the end of the result may be left as it is."""

    depth: ClassVar[int] = PAIR
    """Positions of a step of the tiles: a chunk that does not end with one is followed by zeros."""

    @property
    def in_halves(self) -> bool:
        """Whether elements are written along rows, and lie as halves of pairs."""
        along = self.pack.panel_rows is None or lies_along_rows(self.pack)
        return not along and self._neighbours() is None

    def emit(self) -> None:
        """Fill the buffer, up to the end of a step."""
        super().emit()
        if self._comes_in(self.depth):
            return
        code, depth = self.code, self.depth
        end = code.index((D0 + (depth - 1)) // depth * depth, [self.length])
        with code.loop(self.total, "r") as row, code.loop(end, "k", self.length) as position:
            height = self.pack.panel_rows
            if height is None:
                place = D0 * self.pack.row_stride + D1
            else:
                place = self._layout(height).place(D0 // height, D1, D0 % height)
            zero = emit_constant(code.builder, 0, self.pack.element.type)
            code.store(zero, self.buffer, (place, [row, position]))

    def _comes_in(self, number: int) -> bool:
        """Whether each chunk has a multiple of so many positions; a whole one has."""
        match self.length.owner:
            case arith.ConstantOp(value=IntegerAttr() as length):
                return length.value.data % number == 0
            case _:
                bounds = self.body.positions
                return bool(bounds) and all(each.is_multiple_of(number) for each in bounds)

    def _layout(self, height: int) -> Panels:
        return Panels(height, self.pack.shape[1], self.lanes if self.in_halves else 1)

    def _fill_panels(self, height: int) -> None:
        if self.in_halves:
            super()._fill_panels(height)
        elif (load := self._neighbours()) is not None:
            self._fill_interleaved(load, height)
        else:
            self._turn(height)

    def _fill_interleaved(self, load: LoadOp, height: int) -> None:
        """Rows that are neighbours in the array, in vectors; the last few one by one."""
        code = self.code
        count, whole = (
            code.index(D0 // n, [v]) for n, v in ((PAIR, self.length), (self.lanes, self.rows))
        )
        with code.loop(count, "pair") as pair, code.loop(whole, "rows") as some:
            self._interleave(load, some, pair, height)
        first = code.index(D0 * self.lanes, [whole])
        with code.loop(count, "pair") as pair, code.loop(self.rows, "r", first) as line:
            for number in range(PAIR):
                there = code.index(D0 * PAIR + number, [pair])
                place, operands = self._pair_place(line, pair, height)
                code.store(self._element(line, there), self.buffer, (place + number, operands))

    def _interleave(self, load: LoadOp, some: SSAValue, pair: SSAValue, height: int) -> None:
        """Fill a strip's pairs at two positions."""
        first = self.code.index(D0 * self.lanes, [some])
        pairs = self._pairs(load, first, pair)
        self.code.store_vector(pairs, self.buffer, self._pair_place(first, pair, height))

    def _pairs(self, load: LoadOp, first: SSAValue, pair: SSAValue) -> SSAValue:
        """Two positions of as many rows as a vector of sums has, which are neighbours in the array."""
        code, lanes = self.code, self.lanes
        row, position = self.pack.body.block.args
        vectors: list[SSAValue] = []
        for number in range(PAIR):
            at: Values = {row: first, position: code.index(D0 * PAIR + number, [pair])}
            vectors.append(load_some(code, load, [at.get(v, v) for v in load.indices], lanes))
        mask = [lane + lanes * number for lane in range(lanes) for number in range(PAIR)]
        return code.shuffle(vectors[0], vectors[1], mask)

    def _neighbours(self) -> LoadOp | None:
        """The load that is all that a pack does, if it reads neighbours at as many rows as a vector has."""
        row, _ = self.pack.body.block.args
        load = self._load()
        return load if load and is_unit_stride(load, row, self.lanes) else None

    def _line_load(self) -> LoadOp | None:
        """The same if it reads neighbours at as many positions as a vector has pairs."""
        _, position = self.pack.body.block.args
        load = self._load()
        return load if load and is_unit_stride(load, position, self.lanes * PAIR) else None

    def _load(self) -> LoadOp | None:
        """The load that is all that a pack does, in chunks of whole pairs."""
        match self.body.ops:
            case (LoadOp() as load,) if load.result is self.body.element and self._comes_in(PAIR):
                return load
            case _:
                return None

    def _pair_place(self, line: SSAValue, pair: SSAValue, height: int) -> Place:
        """Where a pair of a row lies in its panel."""
        panel = D0 // height * (height * self.pack.shape[1])
        return panel + D1 * (height * PAIR) + D0 % height * PAIR, [line, pair]

    # ------------------------------------------------------------------ along rows, and along K

    def _fill_column(self, panel: SSAValue, position: SSAValue, height: int) -> None:
        """Rows at one position, in as many strips as halves of pairs have."""
        code, lanes = self.code, self.lanes
        with (
            code.loop(code.constants.get(height // lanes), "strip") as strip,
            code.loop(code.constants.get(lanes), "r") as each,
        ):
            line = code.index(D0 * height + D1 * lanes + D2, [panel, strip, each])
            place = self._layout(height).strip(D0, D1, D2, lanes) + D3
            where = place, [panel, position, strip, each]
            code.store(self._element(line, position), self.buffer, where)

    def _turn_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        """Fill a strip without rows past the end, in squares of pairs."""
        code, edge = self.code, self.lanes * PAIR
        with code.loop(code.index(D0 // edge, [self.length]), "square") as square:
            self._turn_square(panel, strip, square, height)
        self._fill_strip(panel, strip, height, code.index(D0 // edge * edge, [self.length]))

    def _turn_square(self, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int) -> None:
        """As many pairs of a row as there are rows."""
        code, lanes = self.code, self.lanes
        edge = lanes * PAIR
        loaded = self._square_lines(panel, strip, square, height)
        lines = [code.insert(llvm.BitcastOp(each, VectorType(i32, [lanes]))) for each in loaded]
        for number, line in enumerate(turned(code, lines, lanes)):
            pairs = code.insert(llvm.BitcastOp(line, VectorType(self.pack.element.type, [edge])))
            place = self._layout(height).strip(D0, (D1 * lanes + number) * PAIR, D2, lanes)
            code.store_vector(pairs, self.buffer, (place, [panel, square, strip]))

    def _square_lines(
        self, panel: SSAValue, strip: SSAValue, square: SSAValue, height: int
    ) -> list[SSAValue]:
        """The rows of a square: of an array, or computed in a small buffer."""
        code, lanes = self.code, self.lanes
        edge = lanes * PAIR
        if (load := self._line_load()) is not None:
            row, position = self.pack.body.block.args
            lines: list[SSAValue] = []
            for number in range(lanes):
                line = code.index(D0 * height + D1 * lanes + number, [panel, strip])
                at: Values = {row: line, position: code.index(D0 * edge, [square])}
                lines.append(load_some(code, load, [at.get(v, v) for v in load.indices], edge))
            return lines
        with (
            code.loop(code.constants.get(lanes), "r") as each,
            code.loop(code.constants.get(edge), "k") as column,
        ):
            line = code.index(D0 * height + D1 * lanes + D2, [panel, strip, each])
            element = self._element(line, code.index(D0 * edge + D1, [square, column]))
            code.store(element, self.square, (D0 * edge + D1, [each, column]))
        places = [AffineExpr.constant(number * edge) for number in range(lanes)]
        return [code.load_vector(self.square, (place, []), edge) for place in places]

    def _clear_strip(self, panel: SSAValue, strip: SSAValue, height: int) -> None:
        """Make a strip zeros."""
        code, edge = self.code, self.lanes * PAIR
        zero = code.broadcast(emit_constant(code.builder, 0, self.pack.element.type), edge)
        with code.loop(code.index((D0 + (PAIR - 1)) // PAIR, [self.length]), "pair") as pair:
            place = self._layout(height).strip(D0, D1 * PAIR, D2, self.lanes)
            code.store_vector(zero, self.buffer, (place, [panel, pair, strip]))
