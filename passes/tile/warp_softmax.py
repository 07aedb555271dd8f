"""A softmax between two contractions whose scores stay in the registers of warps; a part of `online-softmax`.

    tile.launch (%b = 32 : block, %i_block = 8 : block, %i = 32 : thread, %j = 4 : thread) {
      %q0, ... = loop.load %q[...]                       // two rows of each thread, as tile.mma takes them
      %m0, %l0, %t0, ..., %m1, %l1, ... = loop.for %c = 0 to 8
          reduce(max, weight, weight, ..., max, weight, ...) -> f32, ... {
        %ks = tile.stage %k[%b, %c * 64, 0] ...
        %vs = tile.stage %v[%b, %c * 64, 0] ...
        %s0, ... = tile.mma (%q0, ...) by (%k0, ...) : bf16         // scores of two rows
        %x0 = f(%s0)                                       // the exponents
        %m0 = tile.combine max ... over(%j)                        // of each row in this chunk
        %p0 = exp(%x0 - %m0)
        %l0 = tile.combine add ... over(%j)
        %y0, ... = tile.mma (%p0, ...) by (%v0, ...) : bf16         // what the scores are, as factors
        loop.yield %m0, %l0, %y0, ...
      }
      loop.store %t0 / %l0, ...

A lane's sums of a product are of two neighbouring columns of each 8, of two rows; these are the positions at
which it then multiplies by the values, which any lane may choose as long as all agree (`dialects/mma.py`).
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import FloatAttr, IndexType, UnitAttr, f32
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.conditions import slope
from ...analysis.index import UNKNOWN, operand_ranges, simplify
from ...analysis.softmax import Softmax
from ...analysis.softmax_factors import Factors
from ...analysis.terms import DIMS, Term
from ...dialects.loop import ForOp, StoreOp, TestOp, YieldOp
from ...dialects.scalars import Combiner
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import ceil_div
from ...dialects.syntax import scalar_attr
from ...dialects.tile import AxisAttr, CombineOp, LaunchOp, Level
from ...index.affine import ZERO, replace_dims
from ..lower_loops import RISING
from ..weighted import approximate_exp, exponent_shift, share
from .blocked_softmax import kernel_like
from .emit_terms import TermWriter
from .softmax_products import COLUMNS, LANES, ROWS, Place, Products

INDEX = IndexType()


def build_warps(
    found: Softmax,
    factors: Factors,
    rows: int,
    columns: int,
    multiply: type[Products],
    stages: int | None,
) -> None:
    """Put the kernel in the place of the old one, with blocks of `rows` and chunks of `columns` scores.

    `stages` are the buffers of the slabs of a chunk, if that is not left to others.
    """
    kernel, arrays, outputs = kernel_like(found)
    place = Place(found, factors, columns, arrays, [], {})
    kernel.body.block.add_op(_Builder(place, multiply(place), rows, outputs, stages).launch())


class _Builder:
    def __init__(
        self,
        place: Place,
        products: Products,
        rows: int,
        outputs: dict[SSAValue, SSAValue],
        stages: int | None,
    ):
        self.place, self.products, self.outputs = place, products, outputs
        self.found, self.factors, self.arrays = place.found, place.factors, place.arrays
        self.counters, self.dims = place.counters, place.dims
        self.rows, self.columns, self.stages = rows, place.columns, stages
        self.apart = rows // ROWS
        """How far apart the two rows of a thread are, and how many threads are along them."""
        assert isinstance(self.found.columns, int) and isinstance(self.found.rows, int)
        self.scores, self.lines = self.found.columns, self.found.rows

    def launch(self) -> LaunchOp:
        """The launch that computes all of it."""
        found, body = self.found, Block()
        old = list(found.launch.body.block.args)
        axes: list[AxisAttr] = []
        for axis, extent in enumerate(found.extents):
            if axis == found.product.n:
                continue
            counter = body.insert_arg(INDEX, len(body.args))
            is_row = axis == found.product.m
            counter.name_hint = f"{old[axis].name_hint or 'i'}{'_block' if is_row else ''}"
            axes.append(AxisAttr(ceil_div(extent, self.rows) if is_row else extent, Level.BLOCK))
            self.dims[axis] = AffineExpr.dimension(len(self.counters))
            self.counters.append(counter)
        self.thread = body.insert_arg(INDEX, len(body.args))
        self.lane = body.insert_arg(INDEX, len(body.args))
        self.thread.name_hint, self.lane.name_hint = "i_thread", "lane"
        axes += [AxisAttr(self.apart, Level.THREAD), AxisAttr(LANES, Level.THREAD)]
        self.block_row = self.dims[found.product.m]
        self.counters += [self.thread, self.lane]
        self.row, self.at_lane = self.place.thread, self.place.lane
        self.kept = self._kept()
        if limit_of(self.kept, len(self.counters)) is not None:
            # blocks with more of it to do come first: of what a causal mask keeps, those of the last rows
            self.block_row = self.block_row * -1 + (-(-self.lines // self.rows) - 1)
            self.dims[found.product.m] = self.block_row
            self.kept = self._kept()
        schedule = ScheduleAttr(
            threads=self.apart * LANES,
            thread_m=ROWS,
            thread_n=found.width // LANES,
            mma=self.products.mma,
            **({} if self.stages is None else {"stages": self.stages}),
        )
        launch = LaunchOp(axes, Region(body), schedule)
        launch.location = found.launch.location
        self._fill(body)
        return launch

    # ------------------------------------------------------------------ writing

    def _row(self, number: int) -> AffineExpr:
        """The row of a thread with this number."""
        return self.block_row * self.rows + self.row + number * self.apart

    def _writer(self, block: Block, counters: Sequence[SSAValue], **dims: AffineExpr) -> TermWriter:
        """Writes terms at a point, given by expressions for `row`, `column`, `inner` and `n`."""
        names = {
            "row": self.found.product.m,
            "column": self.found.sweep,
            "inner": self.found.score.bound or 0,
            "n": self.found.product.n,
        }
        places = {names[name]: expr for name, expr in dims.items()}
        return TermWriter(block, counters, self.dims | places, self.arrays)

    def _inside(self, writer: TermWriter, *ends: tuple[AffineExpr, int, int]) -> SSAValue | None:
        """Whether expressions are below their extents; None if they always are, in whole parts."""
        left = [expr * -1 + (extent - 1) for expr, extent, part in ends if extent % part]
        if not left:
            return None
        test = TestOp(left, list(writer.counters))
        writer.block.add_op(test)
        return test.result

    def _or(
        self, writer: TermWriter, condition: SSAValue | None, term: Term, other: float
    ) -> SSAValue:
        """A term where a condition holds, else a number."""
        if condition is None:
            return writer.write(term)
        yes, no = Block(), Block()
        yes.add_op(scf.YieldOp(writer.within(yes).write(term)))
        constant = arith.ConstantOp(scalar_attr(other, term.type))
        no.add_ops([constant, scf.YieldOp(constant.result)])
        op = scf.IfOp(condition, [term.type], Region(yes), Region(no))
        writer.block.add_op(op)
        return op.output[0]

    # ------------------------------------------------------------------ the body

    def _fill(self, body: Block) -> None:
        found = self.found
        left = [self._left(body, row) for row in range(ROWS)]
        totals = found.width // LANES
        group = [Combiner.MAX, Combiner.WEIGHT, *[Combiner.WEIGHT] * totals]
        chunk = Block(arg_types=[INDEX])
        count = ROWS * len(group)
        extent = -(-self.scores // self.columns)
        hint = found.product.sweeps[0].induction_var.name_hint or "k"
        chunk.args[0].name_hint = f"{hint}_block"
        limit = limit_of(self.kept, len(self.counters))
        self._chunk(chunk, left, [] if limit is not None else self.kept)
        loop = ForOp(
            extent,
            Region(chunk),
            combiners=group * ROWS,
            result_types=[f32] * count,
            limit=None if limit is None else ([limit], self.counters),
        )
        if limit is not None or not self.kept:  # the weights stand in the loop, under no condition
            loop.attributes[RISING] = UnitAttr()
        loop.location = found.product.sweeps[0].location
        for result, name in zip(
            loop.res, ["max", "weight", *["total"] * totals] * ROWS, strict=True
        ):
            result.name_hint = name
        body.add_op(loop)
        for row in range(ROWS):
            self._store(body, row, loop.res[row * len(group) : (row + 1) * len(group)])

    def _left(self, body: Block, row: int) -> list[SSAValue]:
        """What a thread multiplies in one of its rows; 0 past the last row."""
        head = self._writer(body, self.counters, row=self._row(row))
        inside = self._inside(head, (self._row(row), self.lines, self.rows))
        block = body if inside is None else Block()
        values: list[SSAValue] = []
        for position in self.products.positions():
            writer = self._writer(block, self.counters, row=self._row(row), inner=position)
            values.append(writer.write(self.factors.left))
        if inside is None:
            return values
        zero = arith.ConstantOp(scalar_attr(0.0, self.factors.left.type))
        other = Block([zero, scf.YieldOp(*[zero.result] * len(values))])
        block.add_op(scf.YieldOp(*values))
        types = [value.type for value in values]
        chosen = scf.IfOp(inside, types, Region(block), Region(other))
        body.add_op(chosen)
        return list(chosen.output)

    def _chunk(
        self, chunk: Block, left: list[list[SSAValue]], conditions: Sequence[AffineExpr]
    ) -> None:
        """What the scores of some columns contribute to the two rows of a thread."""
        self.products.start(chunk)
        part = chunk.args[0]
        if not conditions:
            chunk.add_op(YieldOp(*self._contribution(chunk, part, left)))
            return
        # what no row of the block sees contributes nothing
        any_kept = TestOp(conditions, [*self.counters, part])
        yes, no = Block(), Block()
        contributed = self._contribution(yes, part, left)
        yes.add_op(scf.YieldOp(*contributed))
        low, zero = _constant(no, -numbers.inf), _constant(no, 0.0)
        group = len(contributed) // ROWS
        no.add_op(scf.YieldOp(*[low, *[zero] * (group - 1)] * ROWS))
        types = [value.type for value in contributed]
        chosen = scf.IfOp(any_kept.result, types, Region(yes), Region(no))
        chunk.add_ops([any_kept, chosen, YieldOp(*chosen.output)])

    def _kept(self) -> list[AffineExpr]:
        """What is at least 0 where a condition on rows and columns may keep a score of a block's chunk.

        Expressions over the counters and the chunk's number; none without a condition.
        """
        kept, row, column = self.found.exponent, self.found.product.m, self.found.sweep
        if kept.name != "if" or kept.operands[0].name != "test" or not is_low(kept.operands[2]):
            return []
        first_row = self.block_row * self.rows
        first_column = AffineExpr.dimension(len(self.counters)) * self.columns
        tests: list[AffineExpr] = []
        for expr in kept.operands[0].exprs:
            down, across = (slope(expr, {dim}, [UNKNOWN] * DIMS) for dim in (row, column))
            if down is None or across is None or (not down and not across):
                continue
            best = {
                row: first_row + (self.rows - 1 if down > 0 else 0),
                column: first_column + (self.columns - 1 if across > 0 else 0),
            }
            space = [(self.dims | best).get(dim, ZERO) for dim in range(DIMS)]
            tests.append(replace_dims(expr, space))
        ranges = [*operand_ranges(self.counters), UNKNOWN]
        return [simplify(test, ranges) for test in tests]

    def _contribution(
        self, chunk: Block, part: SSAValue, left: list[list[SSAValue]]
    ) -> list[SSAValue]:
        """The largest exponent, the weight and the weighted totals of each row of a thread in a chunk."""
        scores = self.products.scores(chunk, left)
        rows = [self._weights(chunk, part, row, [s[row] for s in scores]) for row in range(ROWS)]
        short = self.factors.value.type
        weights = [[_insert(chunk, arith.TruncFOp(p, short)) for p in row[2]] for row in rows]
        summed = self.products.values(chunk, weights)
        return [
            value
            for number, (largest, total, _) in enumerate(rows)
            for value in (largest, total, *(v for tile in summed for v in tile[number]))
        ]

    def _weights(
        self, chunk: Block, part: SSAValue, row: int, scores: list[list[SSAValue]]
    ) -> tuple[SSAValue, SSAValue, list[SSAValue]]:
        """The largest exponent of a row, and the exponentials of all, shifted by it, with their sum."""
        counters = [*self.counters, part]
        number = AffineExpr.dimension(len(self.counters))
        exponents: list[SSAValue] = []
        for tile, pair in enumerate(scores):
            for which, score in enumerate(pair):
                column = number * self.columns + self.at_lane * 2 + (tile * COLUMNS + which)
                writer = self._writer(chunk, counters, row=self._row(row), column=column)
                writer.known[self.found.score] = score
                inside = self._inside(
                    writer,
                    (self._row(row), self.lines, self.rows),
                    (column, self.scores, self.columns),
                )
                exponents.append(self._or(writer, inside, self.found.exponent, -numbers.inf))
        largest = self._fold(chunk, Combiner.MAX, exponents)
        builder = Builder(InsertPoint.at_end(chunk))
        shift = exponent_shift(builder, largest)
        weights = [approximate_exp(builder, exponent, shift) for exponent in exponents]
        return largest, self._fold(chunk, Combiner.ADD, weights), weights

    def _fold(self, chunk: Block, combiner: Combiner, values: list[SSAValue]) -> SSAValue:
        """The fold of a row, over a thread's values and over the lanes that share it."""
        kind = arith.MaximumfOp if combiner is Combiner.MAX else arith.AddfOp
        while len(values) > 1:  # in pairs, none of which waits for another
            half = len(values) // 2
            pairs = zip(values[:half], values[half : 2 * half], strict=True)
            values = [*(_insert(chunk, kind(a, b)) for a, b in pairs), *values[2 * half :]]
        return _insert(chunk, CombineOp(combiner, values[0], [self.lane]))

    # ------------------------------------------------------------------ the end

    def _store(self, body: Block, row: int, results: Sequence[SSAValue]) -> None:
        """Store what follows from a folded row."""
        found = self.found
        largest, weight, *totals = results
        block, guard = body, None
        head = self._writer(body, self.counters, row=self._row(row))
        if (inside := self._inside(head, (self._row(row), self.lines, self.rows))) is not None:
            block = Block()
            guard = scf.IfOp(inside, [], Region(block))
        one = _constant(block, 1.0)
        each = share(Builder(InsertPoint.at_end(block)), one, weight)
        for number, total in enumerate(totals):
            mean = _insert(block, arith.MulfOp(total, each))
            tile, which = divmod(number, 2)
            place = self.at_lane * 2 + (tile * COLUMNS + which)
            writer = self._writer(block, self.counters, row=self._row(row), n=place)
            for known, result in enumerate((largest, weight)):
                writer.known[Term("result", known, (), result.type)] = result
            writer.known[found.mean] = mean if found.guarded else _or_nan(block, weight, mean)
            for store in found.stores:
                value, where = writer.write(store.value), writer.exprs(store.exprs)
                block.add_op(
                    StoreOp(value, self.outputs[store.output], where, list(writer.counters))
                )
        if guard is not None:
            block.add_op(scf.YieldOp())
            body.add_op(guard)


def limit_of(conditions: Sequence[AffineExpr], counter: int) -> AffineExpr | None:
    """The first number of a chunk, dim `counter`, from which on a condition never holds.

    None if there is no such number, or if there are several conditions.
    """
    if len(conditions) != 1:
        return None
    ranges = [UNKNOWN] * (counter + 1)
    falls = slope(conditions[0], {counter}, ranges)
    if falls is None or falls >= 0:
        return None
    at_first = replace_dims(conditions[0], [*map(AffineExpr.dimension, range(counter)), ZERO])
    return simplify(at_first // -falls + 1, ranges)


def is_low(term: Term) -> bool:
    """Whether a term is minus infinity."""
    value = None if term.op is None else term.op.properties.get("value")
    return (
        term.name == "arith.constant"
        and isinstance(value, FloatAttr)
        and value.value.data == -numbers.inf
    )


def _or_nan(block: Block, weight: SSAValue, mean: SSAValue) -> SSAValue:
    """The mean, but NaN in a row of minus infinities, which has no weight."""
    nothing = _insert(block, arith.CmpfOp(weight, _constant(block, 0.0), "oeq"))
    return _insert(block, arith.SelectOp(nothing, _constant(block, numbers.nan), mean))


def _constant(block: Block, number: float) -> SSAValue:
    return _insert(block, arith.ConstantOp(scalar_attr(number, f32)))


def _insert(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]
