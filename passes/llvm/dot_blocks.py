"""A CPU block of a contraction whose operands lie along K: vectors of both, and nothing is packed.

    tile.launch (..., %i = 32 : thread, %j = 258 : thread) schedule(..., dot = 1) {
      %s = loop.for %k = 0 to 2048 reduce(add) -> f32 { ... %x[..., %k] * %w[..., %k] ... }
      loop.store %s, %y[...]
    }

becomes

    scf.for %tile_n {                                       // 6 columns
      %partial = 0
      scf.for %k_block, scf.for %tile_m {                   // chunks of K, 4 rows
        %0, ..., %23 = scf.for %k step 16 iter_args(%partial) -> (vector<16xf32>, ...) {
          %x0 = vector.load %x[...]  ...  %w0 = vector.load %w[...]  ...  vector.fma %x0, %w0, ...
        }
      }
      scf.for %i { %sums[%i, ...] = the elements of a vector of %partial, added up }
    }
    scf.for %i, scf.for %j { %s = loop.load %sums[...]    loop.store %s, %y[...] }

A tile that stands over the edge reads the last row or column again, and what it makes of it is not kept.
Sums are folded in the same order whatever the blocks: K in steps of a vector, then the vector.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf, vector
from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.inside import ops_of
from ...dialects.loop import ForOp, LoadOp
from ...dialects.scalars import Combiner
from ...dialects.tile import LaunchOp
from ...errors import DeploError
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine
from .asking_ahead import Later
from .contraction_blocks import ContractionBlock
from .loop_code import Place
from .plain_blocks import PlainCode
from .register_tiles import fold_plain, multiply_add
from .softmax_rows import REASSOCIATE

D0, D1, D2 = (AffineExpr.dimension(i) for i in range(3))

STEPS = 2
"""Vectors along K in a round of the loop."""

Tile = tuple[SSAValue, SSAValue]
"""Which tile, by rows and by columns."""


def is_dot(launch: LaunchOp) -> bool:
    """Whether a block computes from operands as they lie in memory."""
    return launch.schedule is not None and launch.schedule.get("dot") == 1


class DotBlock(ContractionBlock):
    """Lowers the body of a launch into a block whose counters have values already."""

    @property
    def width(self) -> int:
        """Columns are counted one by one."""
        return 1

    def sweeps(self) -> tuple[ForOp, ForOp]:
        """The one loop over K."""
        loops = ops_of(self.launch, ForOp)
        if len(loops) != 1 or not loops[0].res or not isinstance(loops[0].extent.data, int):
            raise DeploError("a dot tile folds one loop of a constant length")
        return loops[0], loops[0]

    def read(self) -> None:
        """Find the factors of each sum."""
        self.factors = [self._pair(value) for value in self.inner.yielded]

    def _pair(self, value: SSAValue) -> tuple[LoadOp, LoadOp]:
        """The loads of a row and of a column that a sum multiplies."""
        op = value.owner
        if isinstance(op, arith.MulfOp | arith.MuliOp):
            loads = [each.owner for each in (op.lhs, op.rhs) if isinstance(each.owner, LoadOp)]
            rows = [each for each in loads if self.m in each.indices]
            columns = [each for each in loads if self.n in each.indices]
            if len(rows) == len(columns) == 1 and rows != columns:
                return rows[0], columns[0]
        raise DeploError("a dot tile sums products of an element of a row and one of a column")

    # ------------------------------------------------------------------ the block

    def lower(self, block: Block) -> None:
        """Write the block's code; the launch's body is taken apart."""
        if self._length % self.lanes:
            raise DeploError(f"{self._length} positions are not vectors of {self.lanes}")
        self.code = code = self.code_class(block, self.constants)
        rest, tests = self._after()
        self.bounds = {counter: self._bounds(counter, tests) for counter in (self.m, self.n)}
        self.rows, self.columns = (
            self._least(self.constants.get(size), self.bounds[counter])
            for counter, size in ((self.m, self.size_m), (self.n, self.size_n))
        )
        sums = [self._scratch(self.element, self.size_m * self.size_n) for _ in self.factors]
        strip = self.size_m * self.tile_n * self.lanes
        self.partial = [self._scratch(self.element, strip) for _ in self.factors]
        with code.loop(self._tiles(self.columns, self.tile_n), "tile_n") as tile_n:
            self._clear_strip()
            with code.loop(self.constants.get(self._chunks()), "chunk") as chunk:
                ends = self._positions(chunk)
                with code.loop(self._tiles(self.rows, self.tile_m), "tile_m") as tile_m:
                    self._multiply((tile_m, tile_n), ends)
            self._add_up(tile_n, sums)
        rows = self.m, self.constants.get(0), self.rows
        self._finish(rest, sums, rows, (self.n, self.columns))
        code.builder.insert(scf.YieldOp())

    def _chunks(self) -> int:
        size = self.launch.schedule and self.launch.schedule.get("block_k")
        self.chunk = size or self._length
        return -(-self._length // self.chunk)

    @property
    def _length(self) -> int:
        length = self.outer.extent.data
        assert isinstance(length, int)
        return length

    def _positions(self, chunk: SSAValue) -> tuple[SSAValue, SSAValue]:
        """Where a chunk of K begins and ends."""
        first = self.code.index(D0 * self.chunk, [chunk])
        end = self.code.index(D0 + self.chunk, [first])
        if self._length % self.chunk:
            end = self.code.smaller(end, self.constants.get(self._length))
        return first, end

    def _clear_strip(self) -> None:
        """Sums of a strip of columns begin as 0."""
        code = self.code
        zero = code.broadcast(emit_constant(code.builder, 0, self.element), self.lanes)
        count = code.index(
            (D0 + (self.tile_m - 1)) // self.tile_m * self._tile_vectors, [self.rows]
        )
        with code.loop(count, "vector") as number:
            for buffer in self.partial:
                code.store_vector(zero, buffer, (D0 * self.lanes, [number]))

    @property
    def _tile_vectors(self) -> int:
        return self.tile_m * self.tile_n

    def _multiply(self, tile: Tile, ends: tuple[SSAValue, SSAValue]) -> None:
        """Add the products of the positions of a chunk to the sums of a tile."""
        code, (first, end) = self.code, ends
        lines = self._lines(tile)
        places = [self._place(tile[0], number) for number in range(self._tile_vectors)]
        sums: Sequence[SSAValue] = [
            code.load_vector(buffer, place, self.lanes)
            for buffer in self.partial
            for place in places
        ]
        step = STEPS * self.lanes
        whole = code.index(D0 + (D1 - D0) // step * step, [first, end])
        for begin, stop, steps in ((first, whole, STEPS), (whole, end, 1)):
            hint = self.inner.induction_var.name_hint or "k"
            body, loop = code.sweep(stop, hint, sums, begin, steps * self.lanes)
            with code.into(body):
                position, *made = body.args
                for number in range(steps):
                    here = code.index(D0 + number * self.lanes, [position])
                    self._ask(lines[self.n], here)
                    made = self._step(lines, here, made)
                code.builder.insert(scf.YieldOp(*made))
            sums = loop.results
        for number, value in enumerate(sums):
            buffer = self.partial[number // len(places)]
            code.store_vector(value, buffer, places[number % len(places)])

    def _place(self, tile_m: SSAValue, number: int) -> Place:
        """Where a vector of a tile lies among the sums of the strip."""
        return (D0 * self._tile_vectors + number) * self.lanes, [tile_m]

    def _lines(self, tile: Tile) -> dict[SSAValue, list[SSAValue]]:
        """The rows and the columns of a tile; past the edge, the last one again."""
        code = self.code
        found: dict[SSAValue, list[SSAValue]] = {}
        for counter, which, size, count in (
            (self.m, tile[0], self.tile_m, self.rows),
            (self.n, tile[1], self.tile_n, self.columns),
        ):
            lines = [code.index(D0 * size + number, [which]) for number in range(size)]
            if self.bounds[counter]:
                last = code.index(D0 + (-1), [count])
                lines = [code.smaller(line, last) for line in lines]
            found[counter] = lines
        return found

    def _step(
        self, lines: dict[SSAValue, list[SSAValue]], position: SSAValue, sums: Sequence[SSAValue]
    ) -> list[SSAValue]:
        """The sums after one more vector of positions."""
        loaded: dict[tuple[LoadOp, int], SSAValue] = {}
        made: dict[int, SSAValue] = {}
        # Vectors of rows stay in registers, those of columns pass by.
        for j in range(self.tile_n):
            for term, (row, column) in enumerate(self.factors):
                for i in range(self.tile_m):
                    a = self._vector(row, self.m, lines[self.m], i, position, loaded)
                    b = self._vector(column, self.n, lines[self.n], j, position, loaded)
                    at = term * self._tile_vectors + i * self.tile_n + j
                    made[at] = multiply_add(self.code, self.element, a, b, sums[at])
        return [made[at] for at in range(len(sums))]

    def _ask(self, columns: Sequence[SSAValue], position: SSAValue) -> None:
        """Ask for the columns some positions later, if the schedule says so."""
        if not self.ahead:
            return
        later = Later.after(self.code, position, self.ahead, self.constants.get(self._length))
        for _, load in self.factors:
            for line in columns:
                there = later.line(line, self.tile_n)
                later.ask(load, {self.n: there, self.inner.induction_var: later.position})

    def _vector(
        self,
        load: LoadOp,
        counter: SSAValue,
        lines: Sequence[SSAValue],
        number: int,
        position: SSAValue,
        loaded: dict[tuple[LoadOp, int], SSAValue],
    ) -> SSAValue:
        """What a load reads for a line, at a vector of positions."""
        if (load, number) not in loaded:
            code = self.code
            place = self._operands(load, counter, lines[number], position)
            indices = [code.index(expr, place) for expr in load.map.data.results]
            kind = VectorType(self.element, [self.lanes])
            loaded[load, number] = code.insert(vector.LoadOp(load.memref, indices, kind))
        return loaded[load, number]

    def _operands(
        self, load: LoadOp, counter: SSAValue, line: SSAValue, position: SSAValue
    ) -> list[SSAValue]:
        """The operands of a load's index at a line and a position."""
        known = {counter: line, self.inner.induction_var: position}
        return [known.get(operand, operand) for operand in load.indices]

    def _add_up(self, tile_n: SSAValue, sums: Sequence[SSAValue]) -> None:
        """Add up the elements of each vector of a strip."""
        code = self.code
        width = code.opaque(code.constants.get(self.tile_n))
        with (
            code.loop(self.rows, self.m.name_hint or "i") as row,
            code.loop(width, self.n.name_hint or "j") as column,
        ):
            for partial, buffer in zip(self.partial, sums, strict=True):
                start = emit_constant(code.builder, 0, self.element)
                body, loop = code.sweep(code.constants.get(self.lanes), "lane", [start])
                with code.into(body):
                    place = (D0 * self.tile_n + D1) * self.lanes + D2, [row, column, body.args[0]]
                    element = code.load(partial, place)
                    fold = combine(code.builder, Combiner.ADD, body.args[1], element, REASSOCIATE)
                    code.builder.insert(scf.YieldOp(fold))
                inside = D0 * self.size_n + D2 * self.tile_n + D1
                code.store(loop.results[0], buffer, (inside, [row, column, tile_n]))


class PlainDotBlock(DotBlock):
    """The same sums in plain loops; who compiles the loops finds the vectors."""

    code_class = PlainCode

    def _clear_strip(self) -> None:
        code = self.code
        zero = emit_constant(code.builder, 0, self.element)
        with code.loop(code.constants.get(self.size_m * self.tile_n * self.lanes), "lane") as lane:
            for buffer in self.partial:
                code.store(zero, buffer, (D0, [lane]))

    def _multiply(self, tile: Tile, ends: tuple[SSAValue, SSAValue]) -> None:
        """Add the products of the positions of a chunk to the sums of a tile."""
        code, (first, end) = self.code, ends
        lanes = code.constants.get(self.lanes)
        vectors = code.index((D1 - D0) // self.lanes, [first, end])
        hint = self.inner.induction_var.name_hint or "k"
        lines = self._lines(tile)
        with code.loop(vectors, hint) as step:
            for number in range(self._tile_vectors):
                i, j = divmod(number, self.tile_n)
                for buffer, (row, column) in zip(self.partial, self.factors, strict=True):
                    with code.loop(lanes, "lane") as lane:
                        here = code.index(D0 + D1 * self.lanes + D2, [first, step, lane])
                        left = self._element(row, self.m, lines[self.m][i], here)
                        right = self._element(column, self.n, lines[self.n][j], here)
                        expr, operands = self._place(tile[0], number)
                        place = expr + D1, [*operands, lane]
                        so_far = code.load(buffer, place)
                        code.store(
                            fold_plain(code, self.element, left, right, so_far), buffer, place
                        )

    def _element(
        self, load: LoadOp, counter: SSAValue, line: SSAValue, position: SSAValue
    ) -> SSAValue:
        operands = self._operands(load, counter, line, position)
        return self.code.insert(LoadOp(load.memref, load.map.data.results, operands))
