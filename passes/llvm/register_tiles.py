"""Register tiles: sums of products of packed rows and columns that stay in vector registers for a sweep.

    %0, ..., %15 = scf.for %k = %c0 to %length iter_args(...) -> (vector<16xf32>, ...) {
      %w0, %w1 = vector.load %ws[...]                              // a row of a panel of 32 columns
      %x0 = vector.broadcast (loop.load %xs[...])                  // an element of each of 8 rows
      vector.fma %x0, %w0, %s0   ...
    }
    vector.store %0, %sums[...]

Rows may also be read where they lie (`InPlace`). Then a tile that would reach past the last row begins so
much earlier, and its sums, which are of these rows, are to be moved up (`first_row`).

With `ahead`, a round of the loop is a line of the cache of each row, and asks for later ones first
(`asking_ahead.py`).

`PlainTile` does the same in plain loops, where no vector registers are named.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import arith, scf, vector
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.loop import LoadOp
from ...dialects.scalars import is_integer, storage_bytes
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ...index.affine import ZERO
from ...machine.cpus import Cpu
from ..loop.scalar_code import emit_constant
from .asking_ahead import LINE_BYTES, Later
from .loop_code import LoopCode, Place

D0, D1, D2, D3 = (AffineExpr.dimension(i) for i in range(4))


@dataclass(frozen=True)
class Packed:
    """A packed operand: a flat buffer, and how its elements lie there.

    Without `panel`, rows lie `stride` elements apart; with it, panels of so many rows of `stride` positions.
    `halves` says that two positions of a vector of rows lie one after the other, not as pairs (`panels.py`).
    """

    buffer: SSAValue
    stride: int
    panel: int | None = None
    halves: bool = False

    @staticmethod
    def of(pack: PackOp, buffer: SSAValue, *, halves: bool = False) -> Packed:
        """What a pack has filled."""
        panel = pack.panel_rows
        stride = pack.row_stride if panel is None else pack.shape[1]
        return Packed(buffer, stride, panel, halves)


@dataclass(frozen=True)
class InPlace:
    """Rows that nobody packed: the load of an element, and the values that stand for its row and position.

    There are `count` of them, or None if they end where a tile does.
    """

    load: LoadOp
    row: SSAValue
    position: SSAValue
    count: SSAValue | None

    def element(self, code: LoopCode, row: SSAValue, position: SSAValue) -> SSAValue:
        """An element of the array."""
        known = {self.row: row, self.position: position}
        operands = [known.get(value, value) for value in self.load.indices]
        return code.insert(LoadOp(self.load.memref, self.load.map.data.results, operands))

    def first_row(self, code: LoopCode, tile: SSAValue, height: int) -> SSAValue:
        """Where a tile begins: none reaches past the last row."""
        first = code.index(D0 * height, [tile])
        if self.count is None:
            return first
        return code.smaller(first, code.index(D0 - height, [self.count]))


Reader = Callable[[int, SSAValue, int], SSAValue]
"""What reads an element of a row of a tile, so many steps after a position."""

Readers = dict[Packed | InPlace, Reader]


@dataclass(frozen=True)
class Term:
    """One sum of products."""

    rows: Packed | InPlace
    columns: Packed
    sums: SSAValue


@dataclass(frozen=True)
class RegisterTile:
    """Tiles of `height` rows by `width` columns of sums, whose rows lie `stride` elements apart.

    If they are `fresh`, sums begin as 0 and only those of one row of tiles are kept. With `strip`, only the
    factors of one row of tiles are there.
    """

    code: LoopCode
    terms: Sequence[Term]
    element: Attribute
    cpu: Cpu
    height: int
    width: int
    stride: int
    fresh: bool
    hint: str = "k"
    strip: bool = False
    apart: int | None = None
    """Columns from one tile to the next, if not the `width`: a narrow tile is the beginning of a panel."""
    ahead: int = 0
    """Positions of K before its turn that a line of rows in place is asked for; 0 if none is."""

    together: ClassVar = 1
    """Elements of a row that a position stands for."""

    @property
    def pitch(self) -> int:
        """Columns from one tile to the next."""
        return self.apart or self.width

    @property
    def lanes(self) -> int:
        """Elements of a vector."""
        return self.cpu.lanes(storage_bytes(self.element))

    def prepare(self, entry: Block) -> None:
        """Do what is done once, where a function starts and ends: nothing, for vectors."""

    def multiply(self, tile: tuple[SSAValue, SSAValue], length: SSAValue) -> None:
        """Add the products of `length` positions to the sums of a tile: which one by rows, by columns."""
        code = self.code
        code.free_registers(self.cpu.register_names)
        places = self._places(*tile)
        if self.fresh:
            zero = code.broadcast(emit_constant(code.builder, 0, self.element), self.lanes)
            start = [zero] * (len(self.terms) * len(places))
        else:
            start = [
                code.load_vector(term.sums, place, self.lanes)
                for term in self.terms
                for place in places
            ]
        steps = self.cpu.steps
        whole = code.index(D0 // steps * steps, [length]) if steps > 1 else length
        readers = {term.rows: self._reader(term.rows, tile[0]) for term in self.terms}
        first, sums = self._sweep_lines(tile, readers, length, start)
        sums = self._sweep(tile[1], readers, (first, whole), steps, sums)
        if steps > 1:
            sums = self._sweep(tile[1], readers, (whole, length), 1, sums)
        for number, value in enumerate(sums):
            term, place = self.terms[number // len(places)], places[number % len(places)]
            code.store_vector(value, term.sums, place)

    def _sweep_lines(
        self,
        tile: tuple[SSAValue, SSAValue],
        readers: Readers,
        length: SSAValue,
        sums: Sequence[SSAValue],
    ) -> tuple[SSAValue, Sequence[SSAValue]]:
        """Where the whole lines of what is asked for early end, and the sums after them."""
        code = self.code
        asked = {r: self._lines(r, tile[0]) for r in readers if isinstance(r, InPlace)}
        if not asked or not self.ahead:
            return code.constants.get(0), sums
        line = LINE_BYTES // storage_bytes(self.element)
        whole = code.index(D0 // line * line, [length])
        body, loop = code.sweep(whole, "line", sums, None, line)
        with code.into(body):
            position, *made = body.args
            later = Later.after(code, position, self.ahead // self.together, whole)
            element = code.index(D0 * self.together, [later.position])
            for rows, lines in asked.items():
                for row in lines:
                    place = {rows.row: later.line(row, self.height), rows.position: element}
                    later.ask(rows.load, place)
            end = code.index(D0 + line, [position])
            made = self._sweep(tile[1], readers, (position, end), self.cpu.steps, made)
            code.builder.insert(scf.YieldOp(*made))
        return whole, loop.results

    def _lines(self, rows: InPlace, tile: SSAValue) -> list[SSAValue]:
        """The rows of a tile."""
        first = rows.first_row(self.code, tile, self.height)
        return [self.code.index(D0 + row, [first]) for row in range(self.height)]

    def _sweep(
        self,
        tile_n: SSAValue,
        readers: Readers,
        positions: tuple[SSAValue, SSAValue],
        steps: int,
        sums: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """The sums after the positions from one to another, so many of them in each round of a loop."""
        code, (first, end) = self.code, positions
        body, loop = code.sweep(end, self.hint, sums, first, steps)
        with code.into(body):
            position, *made = body.args
            for step in range(steps):
                made = self._step(tile_n, readers, position, step, made)
            code.builder.insert(scf.YieldOp(*made))
        return loop.results

    def _places(self, tile_m: SSAValue, tile_n: SSAValue) -> list[Place]:
        """Where the vectors of a tile lie among the sums."""
        above = ZERO if self.fresh else D0 * (self.height * self.stride)
        first = above + D1 * self.pitch
        return [
            (first + (row * self.stride + column), [tile_m, tile_n])
            for row in range(self.height)
            for column in range(0, self.width, self.lanes)
        ]

    def _step(
        self,
        tile_n: SSAValue,
        readers: Readers,
        position: SSAValue,
        step: int,
        sums: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """The sums after one more position, so many steps after `position`."""
        code, lanes = self.code, self.lanes
        vectors = {
            columns: self._vectors(columns, tile_n, position, step)
            for columns in {term.columns: None for term in self.terms}
        }
        made: dict[int, SSAValue] = {}
        width = self.width // lanes
        for row in range(self.height):
            spread = {
                rows: code.broadcast(reader(row, position, step), lanes)
                for rows, reader in readers.items()
            }
            for number, term in enumerate(self.terms):
                for column in range(width):
                    at = (number * self.height + row) * width + column
                    factors = spread[term.rows], vectors[term.columns][column]
                    made[at] = self._multiply_add(*factors, sums[at])
        return [made[at] for at in range(len(sums))]

    def _vectors(
        self, columns: Packed, tile_n: SSAValue, position: SSAValue, step: int
    ) -> list[SSAValue]:
        """The columns of a tile at a position, so many steps after another one."""
        first = D0 * (self.pitch * columns.stride) + (D1 + step) * self.pitch
        return [
            self.code.load_vector(columns.buffer, (first + column, [tile_n, position]), self.lanes)
            for column in range(0, self.width, self.lanes)
        ]

    def _multiply_add(self, a: SSAValue, b: SSAValue, so_far: SSAValue) -> SSAValue:
        """A vector of sums and one more product of each."""
        return multiply_add(self.code, self.element, a, b, so_far)

    def _reader(self, rows: Packed | InPlace, tile: SSAValue) -> Reader:
        """What reads the rows of a tile."""
        code = self.code
        if isinstance(rows, Packed):
            return lambda row, position, step: code.load(
                rows.buffer, (self._row_place(rows, row, step), [tile, position])
            )
        lines = self._lines(rows, tile)
        return lambda row, position, step: rows.element(
            code, lines[row], code.index(D0 + step, [position])
        )

    def _row_place(self, rows: Packed, row: int, step: int) -> AffineExpr:
        """Where an element of a row of a tile lies, so many steps after a position: a function of the two."""
        first = ZERO if self.strip else D0 * (self.height * rows.stride)
        if rows.panel is None:
            return first + (row * rows.stride) + (D1 + step)
        self._check(rows)
        return first + (D1 + step) * self.height + row

    def _check(self, rows: Packed) -> None:
        if rows.panel != self.height:
            raise DeploError(
                f"panels of {rows.panel} rows do not fit register tiles of {self.height}"
            )


class PlainTile(RegisterTile):
    """The same sums in plain loops; who compiles the loops finds the vectors."""

    def multiply(self, tile: tuple[SSAValue, SSAValue], length: SSAValue) -> None:
        """Add the products of `length` positions to the sums of a tile."""
        code = self.code
        rows, columns = code.constants.get(self.height), code.constants.get(self.width)
        if self.fresh:
            zero = emit_constant(code.builder, 0, self.element)
            with code.loop(rows, "row") as row, code.loop(columns, "column") as column:
                for term in self.terms:
                    code.store(zero, term.sums, self._sum_place(tile, row, column))
        with (
            code.loop(length, self.hint) as k,
            code.loop(rows, "row") as row,
            code.loop(columns, "column") as column,
        ):
            for term in self.terms:
                left = widen(code, self._row_element(term.rows, tile[0], row, k), self.element)
                inside = D0 * (self.pitch * term.columns.stride) + D2 * self.pitch + D1
                right = code.load(term.columns.buffer, (inside, [tile[1], column, k]))
                right = widen(code, right, self.element)
                place = self._sum_place(tile, row, column)
                so_far = code.load(term.sums, place)
                code.store(fold_plain(code, self.element, left, right, so_far), term.sums, place)

    def _sum_place(self, tile: tuple[SSAValue, SSAValue], row: SSAValue, column: SSAValue) -> Place:
        inside = D2 * self.stride + D1 * self.pitch + D3
        above = D0 * (self.height * self.stride)
        return inside if self.fresh else above + inside, [*tile, row, column]

    def _row_element(
        self, rows: Packed | InPlace, tile: SSAValue, row: SSAValue, k: SSAValue
    ) -> SSAValue:
        code, height = self.code, self.height
        if isinstance(rows, InPlace):
            first = rows.first_row(code, tile, height)
            return rows.element(code, code.index(D0 + D1, [first, row]), k)
        if rows.panel is None:
            above = ZERO if self.strip else D0 * height
            return code.load(rows.buffer, ((above + D1) * rows.stride + D2, [tile, row, k]))
        self._check(rows)
        return code.load(
            rows.buffer, (D0 * (height * rows.stride) + D2 * height + D1, [tile, row, k])
        )


def widen(code: LoopCode, value: SSAValue, element: Attribute) -> SSAValue:
    """A factor, as the type of the sums."""
    if value.type == element:
        return value
    return code.insert(arith.ExtFOp(value, element))  # pyright: ignore[reportArgumentType]


def multiply_add(
    code: LoopCode, element: Attribute, a: SSAValue, b: SSAValue, so_far: SSAValue
) -> SSAValue:
    """A sum of vectors and one more product."""
    if is_integer(element):
        return fold_plain(code, element, a, b, so_far)
    return code.insert(vector.FMAOp.create(operands=(a, b, so_far), result_types=(a.type,)))


def fold_plain(
    code: LoopCode, element: Attribute, a: SSAValue, b: SSAValue, so_far: SSAValue
) -> SSAValue:
    """A sum and one more product."""
    if is_integer(element):
        return code.insert(arith.AddiOp(so_far, code.insert(arith.MuliOp(a, b))))
    return code.insert(arith.AddfOp(so_far, code.insert(arith.MulfOp(a, b))))
