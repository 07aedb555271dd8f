"""A CPU block of a softmax between two contractions: rows of scores that stay in the L1 cache.

    %max, %weight, %mean = loop.for %part = 0 to 8 reduce(max, weight, mean) {
      %ks = tile.pack ...   %vs = tile.pack ...
      ... loop.for %j = 0 to 512 reduce(max, weight, mean) {
        %s = (a score)      loop.yield f(%s), 1, %vs[%d, %j]
      } {chunk}
    }
    loop.store %mean, %y[...]

becomes

    fill %qs                                               // once for each block
    scf.for %part = 0 to 8 {
      fill %ks, fill %vs
      scf.for %tile_m {                                    // 8 rows
        %strip = scores of 8 rows and 512 columns          // register tiles, as of any contraction
        scf.for %i { ... }                                 // a row: its share of each column
        %mean += %strip times %vs                          // register tiles
      }
    }
    ... store %mean ...

`softmax_rows.py` has the code of a row. Where conditions on counters mask all scores of a register tile's
rows from some column on (`softmax_limits.py`), as a causal mask does, those columns are left out. They would
contribute 0 times their values, which is 0, or NaN where a value is not finite: a block looks for that once,
and where there is one, the rows of each register tile begin with what they leave out.

Sums are folded in the order of the columns, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects.amx import DEPTH
from ...dialects.loop import ForOp, LoadOp, TestOp
from ...dialects.scalars import Combiner, storage_bytes
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ..loop.scalar_code import emit_constant
from ..tile.pack_operands import PAD_BYTES
from ..weighted import share
from .loop_code import Place
from .pack_loops import Bound, PackBody
from .packed_blocks import PackedBlock, elements_of, narrow
from .plain_blocks import PlainCode, PlainPackLoops
from .register_tiles import Packed, PlainTile, RegisterTile, Term, widen
from .softmax_limits import Counters, Limit, Limits, is_constant, masks
from .softmax_rows import Exponents, RowBuffers, SoftmaxRows

POWERS = (8, 12, 18, 24, 31)
"""Of 2, that a number of columns found at run time is compared with; the last is not less than any."""

D0, D1 = (AffineExpr.dimension(i) for i in range(2))


class SoftmaxBlock(PackedBlock):
    """Lowers the body of a launch whose rows are folded by `max, weight, mean`."""

    def read(self) -> None:
        """Find the score, what follows from it, and what is packed."""
        exponent, weight, value = self.inner.yielded
        loops = [op for op in self.inner.body.ops if isinstance(op, ForOp)]
        load = narrow(value).owner
        if len(loops) != 1 or not is_constant(weight, 1.0) or not isinstance(load, LoadOp):
            raise _wrong()
        self.score, self.exponent = loops[0], exponent
        product = self.score.yielded[0].owner
        if not isinstance(product, arith.MulfOp) or len(self.score.res) != 1:
            raise _wrong()
        self.left = self._packed(product.operands, self.m, self.score.induction_var)
        self.right = self._packed(
            product.operands, self.inner.induction_var, self.score.induction_var
        )
        self.value = self._packed([value], self.n, self.inner.induction_var)
        apart = (self.score, load, value.owner, weight.owner, self.inner.body.block.last_op)
        self.follow = [op for op in self.inner.body.ops if op not in apart]

    def _packed(self, values: Sequence[SSAValue], row: SSAValue, position: SSAValue) -> PackOp:
        """The pack that one of some values is loaded from, at a row and a position."""
        for value in values:
            load = narrow(value).owner
            if isinstance(load, LoadOp) and load.indices == (row, position):
                if isinstance(load.memref.owner, PackOp):
                    return load.memref.owner
        raise _wrong()

    # ------------------------------------------------------------------ the block

    def lower(self, block: Block) -> None:
        """Write the block's code; the launch's body is taken apart."""
        self.code = code = self.code_class(block, self.constants)
        part, parts = self.inner.extent.data, self.outer.extent.data
        assert isinstance(part, int)
        self.part, self.parts = part, parts
        buffers = {pack: self._scratch(pack.element.type, elements_of(pack)) for pack in self.packs}
        element = self.value.element.type
        self.stride = part + PAD_BYTES // storage_bytes(element)
        scores = self.tile_m * self.stride
        sizes = scores, self.size_m, self.size_m, self.size_m * self.size_n
        made = [self._scratch(self.element, size) for size in sizes]
        if element != self.element:
            made.append(self._scratch(element, scores))
        self.scratch = RowBuffers(*made)
        square = self._square(element)
        self._name(buffers, made)
        rest, tests = self._after()
        self.bounds = {counter: self._bounds(counter, tests) for counter in (self.m, self.n)}
        self.rows, self.columns = (
            self._least(self.constants.get(size), self.bounds[counter])
            for counter, size in ((self.m, self.size_m), (self.n, self.size_n))
        )
        values = PackBody.of(self.value)
        self.whole = self._columns(values)
        self.limits = self._take_limits(values)
        # Rows that end where masks say have whole register tiles.
        self.widths = [] if self.limits.found else self._narrow_widths(values.positions)
        unit, self.scale = self._power(-1), self._power(1)
        self.each_row = self._each_row(unit)
        self._start(values)
        end = self.limits.end(self.constants.get(0), self.rows)
        depth = self.constants.get(self.left.shape[1])
        self._pack(self.left, buffers, self.rows, self.tile_m, depth, square)
        products = self._products(buffers)
        products[0].prepare(self.entry)
        count = code.index((D0 + (part - 1)) // part, [end])
        first = self.limits.first_part(self.constants.get(0), self.rows)
        with code.loop(count, self.outer.induction_var.name_hint or "part", first) as chunk:
            self.outer.induction_var.replace_all_uses_with(chunk)
            length = self.limits.inside(end, chunk)
            self._pack(self.right, buffers, length, self.tile_n, depth, square)
            self._pack(self.value, buffers, self.columns, self.tile_n, length, square)
            with code.loop(self._tiles(self.rows, self.tile_m), "tile_m") as tile_m:
                self._strip(products, tile_m, chunk, length)
        self._store(rest)
        code.builder.insert(scf.YieldOp())

    def _strip(
        self,
        products: tuple[RegisterTile, RegisterTile],
        tile_m: SSAValue,
        chunk: SSAValue,
        length: SSAValue,
    ) -> None:
        """What a part contributes to the rows of a register tile."""
        code, depth = self.code, self.constants.get(self.left.shape[1])
        first, last = self._rows_of(tile_m)
        limits, some = self.limits, nullcontext()

        def end_of_row(row: SSAValue) -> SSAValue:
            return code.smaller(length, limits.inside(limits.end_of_row(row), chunk))

        if limits.found or limits.begins:
            length = limits.inside(limits.end(first, last), chunk)
            some = code.when(limits.has_columns(length, chunk, limits.first_part(first, last)))
        with some:
            self._multiply_tiles(products[0], tile_m, (length, self.widths), depth)
            self.each_row.fold(
                (first, last), length, end_of_row if limits.found else None, self.m.name_hint or "i"
            )
            widths = self._narrow_widths(self.bounds[self.n])
            self._multiply_tiles(products[1], tile_m, (self.columns, widths), length)

    def _power(self, sign: int) -> SSAValue:
        """A power of 2 that is not less than the number of columns, or with sign -1 its reciprocal."""

        def constant(exponent: int) -> SSAValue:
            return emit_constant(self.code.builder, 2.0 ** (sign * exponent), self.element)

        columns = self.part * self.parts
        if isinstance(columns, int):
            return constant((columns - 1).bit_length())
        found = constant(POWERS[-1])
        for exponent in POWERS[-2::-1]:
            most = self.constants.get(1 << exponent)
            fits = self.code.insert(arith.CmpiOp(self.whole, most, "sle"))
            found = self.code.insert(arith.SelectOp(fits, constant(exponent), found))
        return found

    def _rows_of(self, tile_m: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The first row of a register tile, and the row behind its last one."""
        first = self.code.index(D0 * self.tile_m, [tile_m])
        behind = self.code.index(D0 + self.tile_m, [first])
        return first, self.code.smaller(behind, self.rows)

    def _after(self) -> tuple[list[Operation], list[TestOp]]:
        """What is done for each point once its row is complete, and the conditions around it."""
        ops, tests = super()._after()
        return [op for op in ops if op is not self.left], tests

    def _name(self, buffers: dict[PackOp, SSAValue], sums: Sequence[SSAValue]) -> None:
        """Give the scratch buffers the names of what they hold."""
        for pack, buffer in buffers.items():
            buffer.name_hint = pack.packed.name_hint
        names = ("scores", "maxima", "weights", "means", "factors")
        for buffer, name in zip(sums, names, strict=False):
            buffer.name_hint = name

    def _each_row(self, unit: SSAValue) -> SoftmaxRows:
        """What is done with the scores of a row."""
        column, (score,) = self.inner.induction_var, self.score.res
        exponents = Exponents(score, self.m, column, self.follow, self.exponent)
        sizes = self.cpu, self.tile_n, self.stride, self.size_n
        return SoftmaxRows(
            self.code, self.element, self.scratch, exponents, *sizes, unit, self.parts != 1
        )

    def _products(self, buffers: dict[PackOp, SSAValue]) -> tuple[RegisterTile, RegisterTile]:
        """The register tiles of scores, and those of means."""
        left, right, value = (Packed.of(p, buffers[p]) for p in (self.left, self.right, self.value))
        # The strip has one row of tiles, so what stands apart from one to the next does not count.
        weights = Packed(self.scratch.factors or self.scratch.scores, self.stride)
        sizes = self.element, self.cpu, self.tile_m, self.tile_n
        scores = Term(left, right, self.scratch.scores)
        hint = self.score.induction_var.name_hint or "k"
        means = Term(weights, value, self.scratch.means)
        part_hint = self.inner.induction_var.name_hint or "j"
        return (
            self.tile_class(self.code, [scores], *sizes, self.stride, True, hint),
            self.tile_class(self.code, [means], *sizes, self.size_n, False, part_hint, True),
        )

    def _pack(
        self,
        pack: PackOp,
        buffers: dict[PackOp, SSAValue],
        rows: SSAValue,
        tile: int,
        length: SSAValue,
        square: SSAValue,
    ) -> None:
        """Fill a pack: so many rows, to the end of a register tile, and positions."""
        code, body = self.code, PackBody.of(pack)
        if pack is self.value and self.limits.found:
            # Steps of pairs are whole where masks end: behind them stand values, whose weights are 0.
            step = code.index((D0 + (DEPTH - 1)) // DEPTH * DEPTH, [length])
            length = self._least(code.smaller(step, self.constants.get(self.part)), body.positions)
        elif pack is not self.value:
            length = self._least(length, body.positions)
        total = code.index((D0 + (tile - 1)) // tile * tile, [rows])
        filled = self._least(total, body.rows)
        loops = self.pack_loops_class(
            code, pack, body, buffers[pack], self.lanes, filled, total, length, square
        )
        loops.emit()

    # ------------------------------------------------------------------ where rows end

    def _columns(self, value: PackBody) -> SSAValue:
        """How many columns there are."""
        whole = self.constants.get(self.part * self.parts)
        for bound in set(value.positions):
            whole = self.code.smaller(whole, self.code.index(bound.expr, self._at_first(bound)))
        return whole

    def _at_first(self, bound: Bound) -> list[SSAValue]:
        """Values in the first part."""
        zero = self.constants.get(0)
        return [zero if value is self.outer.induction_var else value for value in bound.operands]

    def _take_limits(self, value: PackBody) -> Limits:
        """Find what masks all columns from some one on; conditions that say no more are dropped."""
        found, begins = list[Limit](), list[Limit]()
        counters = Counters(self.m, self.n, self.inner.induction_var, self.outer.induction_var)
        outermost = True
        for guard, test in masks(self.exponent):
            whole = True
            for expr in test.exprs:
                bound = Bound.of(expr, test.operands_, counters.column)
                if bound is not None and bound in value.positions:
                    continue
                sizes, index = (self.part, self.parts), (expr, test.operands_)
                limit = Limit.of(index, counters, *sizes)
                if (begin := Limit.of(index, counters, *sizes, begins=True)) is not None:
                    begins.append(begin)
                    whole = False
                elif limit is not None:
                    found.append(limit)
                elif self._bound(expr, test, self.m) not in self.bounds[self.m]:
                    whole = False
            outermost = outermost and whole
            if outermost:
                self._drop(guard)
        return Limits(self.code, counters, self.part, self.whole, tuple(found), tuple(begins))

    def _drop(self, guard: scf.IfOp) -> None:
        """Do what a condition guards without it: no loop goes where it does not hold."""
        then = guard.true_region.block
        end = then.last_op
        assert isinstance(end, scf.YieldOp)
        inner = [op for op in then.ops if op is not end]
        self.follow = [op for op in self.follow if op not in (guard, guard.cond.owner)] + inner
        self.exponent = end.operands[0]

    # ------------------------------------------------------------------ what rows carry

    def _start(self, value: PackBody) -> None:
        """Rows without columns; what is left out of a row counts as 0 times its value."""
        code = self.code
        zero = emit_constant(code.builder, 0, self.element)
        low = emit_constant(code.builder, -math.inf, self.element)
        tiles = self._tiles(self.rows, self.tile_m)
        rows = code.index(D0 * self.tile_m, [tiles])
        with code.loop(rows, "r") as row:
            code.store(low, self.scratch.maxima, (D0, [row]))
            code.store(zero, self.scratch.weights, (D0, [row]))
            with code.loop(self.constants.get(self.size_n), "c") as column:
                self._set_mean(row, column, zero)
        if not self.limits.found and not self.limits.begins:
            return
        # The least of linear ends is concave: no row ends before both the first and the last one.
        top, bottom = self.constants.get(0), code.index(D0 - 1, [self.rows])
        least = code.smaller(*(self.limits.end_of_row(row) for row in (top, bottom)))
        self._leave_out(value, top, least, self.whole)
        if self.limits.begins:
            self._leave_out(value, top, top, self.limits.begin(top, self.rows, latest=True))
        found = self.each_row.reduce(Combiner.ADD, zero, self.columns, lambda c: self._mean(top, c))
        with code.when(code.insert(arith.CmpfOp(found, found, "uno"))):
            with code.loop(self.columns, "c") as column:
                self._set_mean(top, column, zero)
            with code.loop(tiles, "tile_m") as tile_m:
                first, last = self._rows_of(tile_m)
                self._leave_out(value, first, self.limits.end(first, last), self.whole)
                if (part := self.limits.first_part(first, last)) is not None:
                    self._leave_out(value, first, top, code.index(D0 * self.part, [part]))
                second = code.index(D0 + 1, [first])
                with code.loop(last, "r", second) as row, code.loop(self.columns, "c") as column:
                    self._set_mean(row, column, self._mean(first, column))

    def _leave_out(self, value: PackBody, row: SSAValue, first: SSAValue, behind: SSAValue) -> None:
        """Add 0 times the values of columns from `first` to `behind` to what a row carries: 0, or NaN."""
        code = self.code
        zero = emit_constant(code.builder, 0, self.element)
        column, position = self.value.body.block.args
        with code.loop(behind, "left_out", first) as out, code.loop(self.columns, "c") as c:
            at: dict[SSAValue, SSAValue] = {column: c, position: out}
            at[self.outer.induction_var] = self.constants.get(0)
            element = widen(code, code.clone(value.ops, at)[value.element], self.element)
            nothing = code.insert(arith.MulfOp(zero, element))
            self._set_mean(row, c, code.insert(arith.AddfOp(self._mean(row, c), nothing)))

    def _mean_at(self, row: SSAValue, column: SSAValue) -> Place:
        return D0 * self.size_n + D1, [row, column]

    def _mean(self, row: SSAValue, column: SSAValue) -> SSAValue:
        return self.code.load(self.scratch.means, self._mean_at(row, column))

    def _set_mean(self, row: SSAValue, column: SSAValue, value: SSAValue) -> None:
        self.code.store(value, self.scratch.means, self._mean_at(row, column))

    def _store(self, rest: Sequence[Operation]) -> None:
        """What is done with the complete rows."""
        code = self.code
        # All columns of the block are whole vectors.
        columns = code.opaque(self.columns) if self.bounds[self.n] else self.columns
        with code.loop(self.rows, self.m.name_hint or "i") as i:
            largest, total = (
                code.load(buffer, (D0, [i]))
                for buffer in (self.scratch.maxima, self.scratch.weights)
            )
            inverse = share(code.builder, emit_constant(code.builder, 1, self.element), total)
            weight = code.insert(arith.MulfOp(total, self.scale))
            with code.loop(columns, self.n.name_hint or "j") as j:
                mean = code.insert(arith.MulfOp(self._mean(i, j), inverse))
                values: dict[SSAValue, SSAValue] = {self.m: i, self.n: j}
                for result, value in zip(self.outer.res, (largest, weight, mean), strict=True):
                    value.name_hint = result.name_hint
                    values[result] = value
                code.clone(rest, values)


class PlainSoftmaxBlock(SoftmaxBlock):
    """The same in plain loops, where no vector registers are named."""

    code_class = PlainCode
    pack_loops_class = PlainPackLoops
    tile_class = PlainTile
    matrix_classes = pack_loops_class, tile_class


def _wrong() -> DeploError:
    return DeploError(
        "a packed softmax folds what follows from one sum of products, with weight 1, and a packed value"
    )
