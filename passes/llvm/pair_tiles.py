"""Register tiles of bf16: two positions of K at once, by an instruction that adds both products to a sum.

    %x = vector.load %input[%i, %k * 2] : vector<2xbf16>          // of each row; spread over a vector
    %w = vector.load %ws[...] : vector<32xbf16>                   // 16 columns, a pair of each
    %s = vdpbf16ps %s, %x, %w                                     // 16 sums, in f32

Sums are rounded after each product, as PyTorch's are that use the same instruction; what is subnormal counts
as 0. Columns lie in panels as others do, but with the elements of two positions side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import ClassVar

from xdsl.dialects import llvm, vector
from xdsl.dialects.builtin import VectorType, i32
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.vectors import is_unit_stride
from ...dialects.loop import LoadOp
from ...errors import DeploError
from .loop_code import LoopCode, Place
from .pack_loops import PackLoops
from .register_tiles import InPlace, Packed, Reader, RegisterTile

PAIR = 2

Values = dict[SSAValue, SSAValue]

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))


def load_some(code: LoopCode, load: LoadOp, operands: Sequence[SSAValue], count: int) -> SSAValue:
    """So many neighbours of an array."""
    indices = [code.index(expr, operands) for expr in load.map.data.results]
    kind = VectorType(load.result.type, [count])
    return code.insert(vector.LoadOp(load.memref, indices, kind))


@dataclass(frozen=True)
class PairTile(RegisterTile):
    """Tiles of rows in place by packed columns, both of bf16; sums are f32."""

    together: ClassVar = PAIR

    def multiply(self, tile: tuple[SSAValue, SSAValue], length: SSAValue) -> None:
        """Add the products of `length` positions, an even number, to the sums of a tile."""
        super().multiply(tile, self.code.index(D0 // PAIR, [length]))

    def _reader(self, rows: object, tile: SSAValue) -> Reader:
        if not isinstance(rows, InPlace):
            raise DeploError("pairs are of rows in place")
        code, load = self.code, rows.load
        lines = self._lines(rows, tile)

        def read(row: int, position: SSAValue, step: int) -> SSAValue:
            known = {rows.row: lines[row]}
            known[rows.position] = code.index((D0 + step) * PAIR, [position])
            pair = load_some(code, load, [known.get(v, v) for v in load.indices], PAIR)
            return code.insert(llvm.BitcastOp(pair, i32))

        return read

    def _vectors(
        self, columns: Packed, tile_n: SSAValue, position: SSAValue, step: int
    ) -> list[SSAValue]:
        """Pairs of the columns of a tile, so many pairs after another one."""
        first = D0 * (self.pitch * columns.stride) + (D1 + step) * (self.pitch * PAIR)
        places = [first + column * PAIR for column in range(0, self.width, self.lanes)]
        return [
            self.code.load_vector(columns.buffer, (place, [tile_n, position]), self.lanes * PAIR)
            for place in places
        ]

    def _multiply_add(self, a: SSAValue, b: SSAValue, so_far: SSAValue) -> SSAValue:
        """A vector of sums and the two products of a pair of each."""
        op = llvm.InlineAsmOp(
            "vdpbf16ps $3, $2, $0", "=v,0,v,v", [so_far, a, b], [so_far.type], asm_dialect=0
        )
        return self.code.insert(op)


class PairLoops(PackLoops):
    """Fills panels with pairs of positions; what is past the end of the result is left as it is.

    Squares of a line of the cache of each of so many rows come one after the other. Where rows are neighbours
    in the array, vectors of them at two positions are shuffled into one.
    """

    def _fill_panels(self, height: int) -> None:
        code, lanes = self.code, self.lanes
        count = code.index(D0 // PAIR, [self.length])
        blocks = code.index((D0 + (lanes - 1)) // lanes, [self.rows])
        load = self._neighbours()
        if load is not None:
            whole = code.index(D0 // lanes, [self.rows])
            with code.loop(count, "pair") as pair, code.loop(whole, "rows") as some:
                self._interleave(load, some, pair, height)
        else:
            whole = code.constants.get(0)
        with (
            code.loop(blocks, "rows", whole) as some,
            code.loop(code.index((D0 + (lanes - 1)) // lanes, [count]), "pairs") as few,
            self._part(some, self.rows, "r") as line,
            self._part(few, count, "pair") as pair,
        ):
            self._fill_pair(line, pair, height)

    def _fill_pair(self, line: SSAValue, pair: SSAValue, height: int) -> None:
        """Two positions of a row."""
        code, where = self.code, self._pair_place(line, pair, height)
        row, position = self.pack.body.block.args
        match self.body.ops:
            case (LoadOp() as load,) if self._is_pair(load):
                at: Values = {row: line, position: code.index(D0 * PAIR, [pair])}
                value = load_some(code, load, [at.get(v, v) for v in load.indices], PAIR)
                code.store_vector(value, self.buffer, where)
            case _:
                for number in range(PAIR):
                    there = code.index(D0 * PAIR + number, [pair])
                    place = where[0] + number, where[1]
                    code.store(self._element(line, there), self.buffer, place)

    def _interleave(self, load: LoadOp, some: SSAValue, pair: SSAValue, height: int) -> None:
        """Two positions of as many rows as a vector of sums has, which are neighbours in the array."""
        code, lanes = self.code, self.lanes
        row, position = self.pack.body.block.args
        first = code.index(D0 * lanes, [some])
        vectors: list[SSAValue] = []
        for number in range(PAIR):
            at: Values = {row: first, position: code.index(D0 * PAIR + number, [pair])}
            vectors.append(load_some(code, load, [at.get(v, v) for v in load.indices], lanes))
        mask = [lane + lanes * number for lane in range(lanes) for number in range(PAIR)]
        pairs = code.shuffle(vectors[0], vectors[1], mask)
        code.store_vector(pairs, self.buffer, self._pair_place(first, pair, height))

    def _neighbours(self) -> LoadOp | None:
        """The load that is all that a pack does, if it reads neighbours at as many rows as a vector has."""
        match self.body.ops:
            case (LoadOp() as load,) if load.result is self.body.element:
                row = self.pack.body.block.args[0]
                return load if is_unit_stride(load, row, self.lanes) else None
            case _:
                return None

    def _is_pair(self, load: LoadOp) -> bool:
        """Whether a load is all that a pack does, and reads neighbours at two positions."""
        position = self.pack.body.block.args[1]
        return load.result is self.body.element and is_unit_stride(load, position)

    def _part(self, number: SSAValue, end: SSAValue, hint: str) -> AbstractContextManager[SSAValue]:
        """A loop over a part of a range, as many as a line of the cache has pairs."""
        code = self.code
        first = code.index(D0 * self.lanes, [number])
        return code.loop(code.smaller(code.index(D0 + self.lanes, [first]), end), hint, first)

    def _pair_place(self, line: SSAValue, pair: SSAValue, height: int) -> Place:
        """Where a pair of a row lies in its panel."""
        panel = D0 // height * (height * self.pack.shape[1])
        return panel + D1 * (height * PAIR) + D0 % height * PAIR, [line, pair]
