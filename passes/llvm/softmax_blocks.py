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
        scf.for %i {                                       // a row: online softmax
          %x = f(%strip), its maximum with %max[%i]
          %e = exp(%x - maximum), their sum with what %weight[%i] is now worth
          %strip = %e / sum; scale %mean[%i, ...]
        }
        %mean += %strip times %vs                          // register tiles
      }
    }
    ... store %mean ...

Where conditions on counters say that all scores from some column on are masked for a block's rows, those
columns are left out: they contribute 0 times their values, which is 0, or NaN where a value is not finite.
That is the same for all rows of the block and is summed once.

Sums are folded in the order of the columns, whatever the number of threads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import linear
from ...dialects.loop import ForOp, LoadOp, TestOp
from ...dialects.scalars import Combiner
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine
from ..weighted import exponent_shift, scaled_exp, share
from .pack_loops import Bound, PackBody
from .packed_blocks import PackedBlock, elements_of
from .plain_blocks import PlainCode, PlainPackLoops
from .register_tiles import Packed, PlainTile, RegisterTile, Term

PAD = 16
"""Elements between rows of scores, so that they do not all meet in one line of the cache."""

D0, D1 = (AffineExpr.dimension(i) for i in range(2))

REASSOCIATE = arith.FastMathFlagsAttr((FastMathFlag.REASSOC,))


class SoftmaxBlock(PackedBlock):
    """Lowers the body of a launch whose rows are folded by `max, weight, mean`."""

    def read(self) -> None:
        """Find the score, what follows from it, and what is packed."""
        exponent, weight, value = self.inner.yielded
        loops = [op for op in self.inner.body.ops if isinstance(op, ForOp)]
        load = value.owner
        if len(loops) != 1 or not _is_constant(weight, 1.0) or not isinstance(load, LoadOp):
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
        apart = (self.score, load, weight.owner, self.inner.body.block.last_op)
        self.follow = [op for op in self.inner.body.ops if op not in apart]

    def _packed(self, values: Sequence[SSAValue], row: SSAValue, position: SSAValue) -> PackOp:
        """The pack that one of some values is loaded from, at a row and a position."""
        for value in values:
            load = value.owner
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
        assert isinstance(parts, int)
        self.part, self.parts = part, parts
        buffers = {pack: self._scratch(pack.element.type, elements_of(pack)) for pack in self.packs}
        self.stride = part + PAD
        self.strip = self._scratch(self.element, self.tile_m * self.stride)
        self.largest, self.weights = (self._scratch(self.element, self.size_m) for _ in range(2))
        self.means = self._scratch(self.element, self.size_m * self.size_n)
        square = self._scratch(self.element, self.lanes * self.lanes)
        self._name(buffers, [self.strip, self.largest, self.weights, self.means])
        rest, tests = self._after()
        self.bounds = {counter: self._bounds(counter, tests) for counter in (self.m, self.n)}
        self.rows, self.columns = (
            self._least(self.constants.get(size), self.bounds[counter])
            for counter, size in ((self.m, self.size_m), (self.n, self.size_n))
        )
        values = PackBody.of(self.value)
        whole, end = self._ends(values)
        self._start(values, whole, end)
        depth = self.constants.get(self.left.shape[1])
        self._pack(self.left, buffers, self.rows, self.tile_m, depth, square)
        products = self._products(buffers)
        count = code.index((D0 + (part - 1)) // part, [end])
        with code.loop(count, self.outer.induction_var.name_hint or "part") as chunk:
            self.outer.induction_var.replace_all_uses_with(chunk)
            left = code.index(D0 - D1 * part, [end, chunk])
            length = code.smaller(left, self.constants.get(part))
            self._pack(self.right, buffers, length, self.tile_n, depth, square)
            self._pack(self.value, buffers, self.columns, self.tile_n, length, square)
            with code.loop(self._tiles(self.rows, self.tile_m), "tile_m") as tile_m:
                with code.loop(self._tiles(length, self.tile_n), "tile_n") as tile_n:
                    products[0].multiply((tile_m, tile_n), depth)
                first = code.index(D0 * self.tile_m, [tile_m])
                last = code.smaller(code.index(D0 + self.tile_m, [first]), self.rows)
                with code.loop(last, self.m.name_hint or "i", first) as row:
                    self._fold_row(row, code.index(D0 - D1, [row, first]), length)
                with code.loop(self._tiles(self.columns, self.tile_n), "tile_n") as tile_n:
                    products[1].multiply((tile_m, tile_n), length)
        self._store(rest)
        code.builder.insert(scf.YieldOp())

    def _after(self) -> tuple[list[Operation], list[TestOp]]:
        """What is done for each point once its row is complete, and the conditions around it."""
        ops, tests = super()._after()
        return [op for op in ops if op is not self.left], tests

    def _name(self, buffers: dict[PackOp, SSAValue], sums: Sequence[SSAValue]) -> None:
        """Give the scratch buffers the names of what they hold."""
        for pack, buffer in buffers.items():
            buffer.name_hint = pack.packed.name_hint
        for buffer, name in zip(sums, ("scores", "maxima", "weights", "means"), strict=True):
            buffer.name_hint = name

    def _products(self, buffers: dict[PackOp, SSAValue]) -> tuple[RegisterTile, RegisterTile]:
        """The register tiles of scores, and those of means."""
        left, right, value = (Packed.of(p, buffers[p]) for p in (self.left, self.right, self.value))
        # The strip has one row of tiles, so what stands apart from one to the next does not count.
        weights = Packed(self.strip, self.stride)
        sizes = self.element, self.lanes, self.tile_m, self.tile_n
        scores = Term(left, right, self.strip)
        hint = self.score.induction_var.name_hint or "k"
        means = Term(weights, value, self.means)
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
        total = code.index((D0 + (tile - 1)) // tile * tile, [rows])
        filled = self._least(total, body.rows)
        loops = self.pack_loops_class(
            code, pack, body, buffers[pack], self.lanes, filled, total, length, square
        )
        loops.emit()

    # ------------------------------------------------------------------ where rows end

    def _ends(self, value: PackBody) -> tuple[SSAValue, SSAValue]:
        """How many columns there are, and how many some row of the block does not mask."""
        code = self.code
        edges = set(value.positions)
        whole = self.constants.get(self.part * self.parts)
        for bound in edges:
            whole = code.smaller(whole, code.index(bound.expr, self._at_first(bound.operands)))
        end, guard, kept = whole, self.exponent.owner, False
        for test, expr in _masks(self.exponent):
            counter = self.inner.induction_var
            bound = Bound.of(expr, test.operands_, counter)
            if bound is not None and bound in edges:
                continue
            if (limit := self._limit(expr, list(test.operands_))) is not None:
                end = code.smaller(end, limit)
            outermost = isinstance(guard, scf.IfOp) and test is guard.cond.owner
            kept |= outermost and self._bound(expr, test, self.m) not in self.bounds[self.m]
        if not kept and _masks(self.exponent) and isinstance(guard, scf.IfOp):
            self._drop(guard)
        if end is whole:
            return whole, whole
        return whole, code.insert(arith.MaxSIOp(end, self.constants.get(0)))

    def _at_first(self, operands: Sequence[SSAValue]) -> list[SSAValue]:
        """Values in the first part."""
        zero = self.constants.get(0)
        return [zero if value is self.outer.induction_var else value for value in operands]

    def _limit(self, expr: AffineExpr, operands: list[SSAValue]) -> SSAValue | None:
        """The column from which on a condition holds for no row, if it says that."""
        terms, column = linear(expr), self.inner.induction_var
        if terms is None or column not in operands:
            return None
        slopes = {v: terms.coefficients.get(i, 0) for i, v in enumerate(operands)}
        apart = slopes.get(self.outer.induction_var, 0) == -self.part or self.parts == 1
        if slopes[column] != -1 or not apart or self.n in operands:
            return None
        zero = self.constants.get(0)
        last = self.code.index(D0 - 1, [self.rows])
        row = last if slopes.get(self.m, 0) > 0 else zero
        known: dict[SSAValue, SSAValue] = {
            column: zero,
            self.outer.induction_var: zero,
            self.m: row,
        }
        return self.code.index(expr + 1, [known.get(value, value) for value in operands])

    def _drop(self, guard: scf.IfOp) -> None:
        """Do what a condition guards without it: no loop goes where it does not hold."""
        then = guard.true_region.block
        end = then.last_op
        assert isinstance(end, scf.YieldOp)
        inner = [op for op in then.ops if op is not end]
        self.follow = [op for op in self.follow if op not in (guard, guard.cond.owner)] + inner
        self.exponent = end.operands[0]

    # ------------------------------------------------------------------ what rows carry

    def _start(self, value: PackBody, whole: SSAValue, end: SSAValue) -> None:
        """Rows without columns; what is left out of all rows counts as 0 times its value."""
        code = self.code
        zero = emit_constant(code.builder, 0, self.element)
        low = emit_constant(code.builder, -math.inf, self.element)
        rows = code.index((D0 + (self.tile_m - 1)) // self.tile_m * self.tile_m, [self.rows])
        width = self.constants.get(self.size_n)
        first = self.constants.get(0)
        with code.loop(width, "c") as column:
            code.store(zero, self.means, (D0, [column]))
        if end is not whole:
            row, position = self.value.body.block.args
            with code.loop(whole, "left_out", end) as out, code.loop(self.columns, "c") as column:
                at: dict[SSAValue, SSAValue] = {row: column, position: out}
                at[self.outer.induction_var] = first
                left_out = code.clone(value.ops, at)[value.element]
                so_far = code.load(self.means, (D0, [column]))
                nothing = code.insert(arith.MulfOp(zero, left_out))
                code.store(code.insert(arith.AddfOp(so_far, nothing)), self.means, (D0, [column]))
        with code.loop(rows, "r") as row:
            code.store(low, self.largest, (D0, [row]))
            code.store(zero, self.weights, (D0, [row]))
        with (
            code.loop(rows, "r", self.constants.get(1)) as row,
            code.loop(width, "c") as column,
        ):
            start = code.load(self.means, (D0, [column]))
            code.store(start, self.means, (D0 * self.size_n + D1, [row, column]))

    def _fold_row(self, row: SSAValue, line: SSAValue, length: SSAValue) -> None:
        """Put the scores of a row into what it carries, and the shares of its columns in their place."""
        code = self.code
        before = code.load(self.largest, (D0, [row]))
        worth = code.load(self.weights, (D0, [row]))

        def exponents(column: SSAValue) -> SSAValue:
            place = (D0 * self.stride + D1, [line, column])
            values: dict[SSAValue, SSAValue] = {self.m: row, self.inner.induction_var: column}
            values[self.score.res[0]] = code.load(self.strip, place)
            exponent = code.clone(self.follow, values)[self.exponent]
            code.store(exponent, self.strip, place)
            return exponent

        def numerators(column: SSAValue) -> SSAValue:
            place = (D0 * self.stride + D1, [line, column])
            value = scaled_exp(code.builder, code.load(self.strip, place), shift)
            code.store(value, self.strip, place)
            return value

        largest = self._reduce(Combiner.MAX, before, length, exponents)
        shift = exponent_shift(code.builder, largest)
        zero = emit_constant(code.builder, 0, self.element)
        added = self._reduce(Combiner.ADD, zero, length, numerators)
        scale = scaled_exp(code.builder, before, shift)
        kept = code.insert(arith.MulfOp(worth, scale))
        total = combine(code.builder, Combiner.ADD, kept, added)
        code.store(largest, self.largest, (D0, [row]))
        code.store(total, self.weights, (D0, [row]))
        one = emit_constant(code.builder, 1, self.element)
        unit = share(code.builder, one, total)
        with code.loop(length, "j") as column:
            place = (D0 * self.stride + D1, [line, column])
            scaled = code.insert(arith.MulfOp(code.load(self.strip, place), unit))
            code.store(scaled, self.strip, place)
        old = code.insert(arith.MulfOp(kept, unit))
        with code.loop(self.constants.get(self.size_n), "c") as column:
            place = (D0 * self.size_n + D1, [row, column])
            scaled = code.insert(arith.MulfOp(code.load(self.means, place), old))
            code.store(scaled, self.means, place)

    def _reduce(
        self,
        combiner: Combiner,
        start: SSAValue,
        end: SSAValue,
        contribution: Callable[[SSAValue], SSAValue],
    ) -> SSAValue:
        """Fold what a function writes for each column of a row."""
        code = self.code
        hint = self.inner.induction_var.name_hint or "j"
        body, loop = code.sweep(end, hint, [start])
        outer, code.builder = code.builder, Builder(InsertPoint.at_end(body))
        value = contribution(body.args[0])
        folded = combine(code.builder, combiner, body.args[1], value, REASSOCIATE)
        code.builder.insert(scf.YieldOp(folded))
        code.builder = outer
        return loop.results[0]

    def _store(self, rest: Sequence[Operation]) -> None:
        """What is done with the complete rows."""
        code = self.code
        columns = code.opaque(self.columns)
        with (
            code.loop(self.rows, self.m.name_hint or "i") as i,
            code.loop(columns, self.n.name_hint or "j") as j,
        ):
            values: dict[SSAValue, SSAValue] = {self.m: i, self.n: j}
            places = ((D0, [i]), (D0, [i]), (D0 * self.size_n + D1, [i, j]))
            buffers = (self.largest, self.weights, self.means)
            for result, buffer, place in zip(self.outer.res, buffers, places, strict=True):
                values[result] = code.load(buffer, place)
                values[result].name_hint = result.name_hint
            code.clone(rest, values)


class PlainSoftmaxBlock(SoftmaxBlock):
    """The same in plain loops, where no vector registers are named."""

    code_class = PlainCode
    pack_loops_class = PlainPackLoops
    tile_class = PlainTile


def _wrong() -> DeploError:
    return DeploError(
        "a packed softmax folds what follows from one sum of products, with weight 1, and a packed value"
    )


def _is_constant(value: SSAValue, number: float) -> bool:
    op = value.owner
    return (
        isinstance(op, arith.ConstantOp)
        and isinstance(op.value, FloatAttr)
        and op.value.value.data == number
    )


def _masks(exponent: SSAValue) -> list[tuple[TestOp, AffineExpr]]:
    """Conditions on counters, all of which hold where an exponent is not minus infinity."""
    op = exponent.owner
    if not isinstance(op, scf.IfOp) or not isinstance(op.cond.owner, TestOp):
        return []
    yes, no = op.true_region.block.last_op, op.false_region.block.last_op
    assert yes is not None
    assert no is not None
    if len(op.output) != 1 or not _is_constant(no.operands[0], -math.inf):
        return []
    test = op.cond.owner
    return [(test, expr) for expr in test.exprs] + _masks(yes.operands[0])
