"""Register tiles of bf16 on a CPU with matrix tiles (AMX): 32 positions of K at once.

    amx.tilezero 0 ... amx.tilezero 3
    scf.for %k = 0 to %length step 32 {
      amx.tileload 4, %x[%i * 32, %k]              // 16 rows, and 16 more
      amx.tileload 6, %ws[...]                     // 16 columns, of each a pair, at 16 pairs of positions
      amx.tdpbf16ps 0, 4, 6                        // 16 by 16 sums of f32
      ...
    }
    amx.tilestore 0, %sums[...] ...

Rows are in place, or packed as they lie along K; columns lie in panels of pairs (`panels.py`). Where a chunk
of K does not end with 32 positions, there are zeros after it, in both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import llvm, scf
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.cpu_tiles import parts
from ...analysis.products import pitch_along
from ...dialects.amx import (
    COLUMNS,
    DEPTH,
    REGISTERS,
    ROWS,
    TileConfigOp,
    TileDotOp,
    TileLoadOp,
    TileReleaseOp,
    TileStoreOp,
    TileZeroOp,
)
from ...dialects.loop import LoadOp
from ...errors import DeploError
from ...index.affine import ZERO
from .pack_loops import turned
from .pair_loops import PairLoops
from .pair_tiles import PairTile
from .panels import PAIR
from .register_tiles import InPlace, Packed

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))

Tile = tuple[SSAValue, SSAValue]
"""Which tile, by rows and by columns."""


class MatrixLoops(PairLoops):
    """Fills panels with pairs of positions, and whole steps of 32."""

    depth: ClassVar[int] = DEPTH

    def emit(self) -> None:
        """Fill the buffer; what was written as halves of pairs becomes pairs."""
        super().emit()
        if not self.in_halves or self.pack.panel_rows is None:
            return
        code, lanes, height = self.code, self.lanes, self.pack.panel_rows
        mask = [lane + half for lane in range(lanes) for half in (0, lanes)]
        with (
            code.loop(code.index(D0 // height, [self.total]), "panel") as panel,
            code.loop(code.index((D0 + (PAIR - 1)) // PAIR, [self.length]), "pair") as pair,
            code.loop(code.constants.get(height // lanes), "strip") as strip,
        ):
            place = self._layout(height).strip(D0, D1 * PAIR, D2, lanes), [panel, pair, strip]
            both = code.load_vector(self.buffer, place, lanes * PAIR)
            code.store_vector(code.shuffle(both, both, mask), self.buffer, place)

    def _copy_rows(self) -> None:
        """Rows that are neighbours in the array: squares of 16 rows and 32 positions are turned, as pairs."""
        load = self._neighbours()
        if load is None:
            super()._copy_rows()
            return
        code, lanes = self.code, self.lanes
        whole = code.index(D0 // lanes, [self.rows])
        squares = code.index(D0 // DEPTH, [self.length])
        with code.loop(whole, "rows") as some, code.loop(squares, "square") as square:
            self._turn_pairs(load, some, square)
        rows, positions = (code.index(D0 * n, [v]) for n, v in ((lanes, whole), (DEPTH, squares)))
        self._copy_elements(rows, None, positions)
        self._copy_elements(self.rows, rows)

    def _turn_pairs(self, load: LoadOp, some: SSAValue, square: SSAValue) -> None:
        code, lanes = self.code, self.lanes
        kinds = VectorType(i32, [lanes]), VectorType(self.pack.element.type, [lanes * PAIR])
        lines: list[SSAValue] = []
        for number in range(DEPTH // PAIR):
            pair = code.index(D0 * (DEPTH // PAIR) + number, [square])
            first = code.index(D0 * lanes, [some])
            lines.append(code.insert(llvm.BitcastOp(self._pairs(load, first, pair), kinds[0])))
        for number, line in enumerate(turned(code, lines, lanes)):
            pairs = code.insert(llvm.BitcastOp(line, kinds[1]))
            place = (D0 * lanes + number) * self.pack.row_stride + D1 * DEPTH, [some, square]
            code.store_vector(pairs, self.buffer, place)


@dataclass(frozen=True)
class MatrixTile(PairTile):
    """Tiles of rows by packed columns, both of bf16; sums are f32.

    Sums and rows have the first registers, columns the last ones, which always have 16 rows.
    """

    def prepare(self, entry: Block) -> None:
        """Configure the registers when the function starts, and give them back when it ends."""
        of_columns = len(self._columns) * self._across
        of_rows = (len(self.terms) * self._across + len(self._rows)) * self._parts
        if of_rows + of_columns > REGISTERS:
            raise DeploError(
                f"a tile of {self.height} by {self.width} does not fit {REGISTERS} tile registers"
            )
        rows = [self._part_rows] * (REGISTERS - of_columns) + [ROWS] * of_columns
        self.code.constants.insert(TileConfigOp(rows))
        assert entry.last_op is not None
        entry.insert_op_before(TileReleaseOp(), entry.last_op)

    def multiply(self, tile: Tile, length: SSAValue) -> None:
        """Add the products of `length` positions to the sums of a tile; zeros make up whole steps."""
        code = self.code
        for register, buffer, place in self._sums():
            if self.fresh:
                code.builder.insert(TileZeroOp(register))
            else:
                code.builder.insert(TileLoadOp(register, buffer, [place], tile, self.stride))
        whole = code.index((D0 + (DEPTH - 1)) // DEPTH * DEPTH, [length])
        body, _ = code.sweep(whole, self.hint, [], None, DEPTH)
        with code.into(body):
            (position,) = body.args
            self._multiply(tile, position)
            code.builder.insert(scf.YieldOp())
        for register, buffer, place in self._sums():
            code.builder.insert(TileStoreOp(register, buffer, [place], tile, self.stride))

    def _multiply(self, tile: Tile, position: SSAValue) -> None:
        """Add the products of a step; a part of a factor is loaded when it is first needed."""
        loaded: set[int] = set()
        for part in range(self._parts):
            for vector in range(self._across):
                for number, term in enumerate(self.terms):
                    rows = self._row_register(term.rows, part)
                    if rows not in loaded:
                        self._load_rows(rows, term.rows, part, tile[0], position)
                    columns = self._column_register(term.columns, vector)
                    if columns not in loaded:
                        self._load_columns(columns, term.columns, vector, tile[1], position)
                    loaded |= {rows, columns}
                    sums = self._sum_register(number, part, vector)
                    self.code.builder.insert(TileDotOp(sums, rows, columns))

    def _load_rows(
        self, register: int, rows: Packed | InPlace, part: int, tile: SSAValue, position: SSAValue
    ) -> None:
        code, first = self.code, part * self._part_rows
        if isinstance(rows, InPlace):
            line = code.index(D0 + first, [rows.first_row(code, tile, self.height)])
            known = {rows.row: line, rows.position: position}
            operands = [known.get(value, value) for value in rows.load.indices]
            pitch = pitch_along(rows.load, rows.row)
            if pitch is None:
                raise DeploError("rows of a matrix tile in place lie at even distances")
            array, exprs = rows.load.memref, rows.load.map.data.results
        elif rows.panel is None:
            above = ZERO if self.strip else D0 * (self.height * rows.stride)
            exprs, operands = [above + first * rows.stride + D1], [tile, position]
            array, pitch = rows.buffer, rows.stride
        else:
            raise DeploError("rows of a matrix tile lie along K, not in panels")
        code.builder.insert(TileLoadOp(register, array, exprs, operands, pitch))

    def _load_columns(
        self, register: int, columns: Packed, vector: int, tile: SSAValue, position: SSAValue
    ) -> None:
        """16 pairs of positions, one below the other; a panel is as wide as the tile."""
        place = D0 * (self.pitch * columns.stride) + D1 * self.pitch + vector * COLUMNS * PAIR
        operands = [tile, position]
        load = TileLoadOp(register, columns.buffer, [place], operands, self.pitch * PAIR)
        self.code.builder.insert(load)

    # ------------------------------------------------------------------ registers

    @property
    def _rows(self) -> list[Packed | InPlace]:
        """The different rows."""
        return list(dict.fromkeys(term.rows for term in self.terms))

    @property
    def _columns(self) -> list[Packed]:
        """The different columns."""
        return list(dict.fromkeys(term.columns for term in self.terms))

    @property
    def _parts(self) -> int:
        """Registers that the rows of a tile take."""
        return parts(self.height, ROWS)

    @property
    def _part_rows(self) -> int:
        if self.height % self._parts:
            raise DeploError(f"{self.height} rows are not {self._parts} equal matrix tiles")
        return self.height // self._parts

    @property
    def _across(self) -> int:
        """Registers that its columns take."""
        return self.width // COLUMNS

    def _sums(self) -> Iterator[tuple[int, SSAValue, AffineExpr]]:
        """The registers of sums, and where they lie in memory, by the numbers of a tile."""
        above = ZERO if self.fresh else D0 * (self.height * self.stride)
        for number, term in enumerate(self.terms):
            for part in range(self._parts):
                for vector in range(self._across):
                    inside = part * self._part_rows * self.stride + vector * COLUMNS
                    place = above + D1 * self.pitch + inside
                    yield self._sum_register(number, part, vector), term.sums, place

    def _sum_register(self, term: int, part: int, vector: int) -> int:
        return (term * self._parts + part) * self._across + vector

    def _row_register(self, rows: Packed | InPlace, part: int) -> int:
        first = self._sum_register(len(self.terms), 0, 0)
        return first + self._rows.index(rows) * self._parts + part

    def _column_register(self, columns: Packed, vector: int) -> int:
        return REGISTERS - 1 - self._columns.index(columns) * self._across - vector
