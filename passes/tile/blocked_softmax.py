"""The kernel of a softmax between two contractions, in blocks of rows and parts of scores.

Written by `online-softmax`, which shows it; lowered by `passes/llvm/softmax_blocks.py`. Past the end of the
rows, of the scores and of the result's columns packed factors are 0; past the end of the scores exponents are
minus infinity, which contributes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float32Type,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    f32,
    i64,
)
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.softmax import Softmax
from ...analysis.terms import Term
from ...analysis.vectors import lies_along
from ...dialects.amx import DEPTH
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp, TestOp, YieldOp
from ...dialects.scalars import Combiner
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, ceil_div, extent_expr
from ...dialects.syntax import scalar_attr
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...dialects.tile_pack import SHARED, PackOp, PackYieldOp
from ..lower_loops import CHUNK
from .emit_terms import TermWriter
from .pack_operands import pad_of

INDEX = IndexType()
WEIGHTED = (Combiner.MAX, Combiner.WEIGHT, Combiner.MEAN)


def narrow(term: Term) -> Term | None:
    """The bf16 that a term is widened from to f32, if it is."""
    if term.name != "arith.extf" or not isinstance(term.type, Float32Type):
        return None
    (inner,) = term.operands
    return inner if isinstance(inner.type, BFloat16Type) else None


@dataclass(frozen=True)
class _Line:
    """A dim that comes in parts: the counters that say which part and where in it, and its end."""

    dim: int
    part: SSAValue | None
    size: int
    extent: Extent

    @property
    def is_ragged(self) -> bool:
        """Whether the last part ends past the end."""
        return self.extent % self.size != 0

    def at(self, inside: SSAValue) -> tuple[AffineExpr, list[SSAValue]]:
        """The position, over two counters at most."""
        if self.part is None:
            return AffineExpr.dimension(0), [inside]
        return AffineExpr.dimension(0) * self.size + AffineExpr.dimension(1), [self.part, inside]


def kernel_like(
    found: Softmax,
) -> tuple[KernelOp, dict[object, SSAValue], dict[SSAValue, SSAValue]]:
    """An empty kernel in the place of the softmax's, the arrays that its terms load from, and the outputs
    by those of the old one."""
    old = found.kernel
    terms = (found.exponent, found.value, *(store.value for store in found.stores))
    loaded = [t.key for term in terms for t in term.walk() if t.name == "load"]
    inputs = list(dict.fromkeys(key for key in loaded if isinstance(key, SSAValue)))
    kernel = KernelOp(old.sym_name.data, inputs, old.outputs.types)
    kernel.attributes |= old.attributes
    kernel.location = old.location
    arrays: dict[object, SSAValue] = dict(zip(inputs, kernel.input_args, strict=True))
    outputs: dict[SSAValue, SSAValue] = dict(zip(old.output_args, kernel.output_args, strict=True))
    for theirs, mine in (*zip(inputs, kernel.input_args, strict=True), *outputs.items()):
        mine.name_hint = theirs.name_hint
    assert old.parent is not None
    old.parent.insert_op_before(kernel, old)
    for theirs, mine in zip(old.outputs, kernel.outputs, strict=True):
        mine.name_hint = theirs.name_hint
        theirs.replace_all_uses_with(mine)
    return kernel, arrays, outputs


def build_kernel(found: Softmax, schedule: ScheduleAttr) -> None:
    """Put the kernel in front of the one that it replaces; `schedule` has sizes and vectors, and room
    for what m and n are."""
    _Builder(found, schedule).build()


@dataclass
class _Builder:
    found: Softmax
    schedule: ScheduleAttr
    arrays: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])

    def build(self) -> None:
        """Build the kernel and put it in the old one's place."""
        kernel, self.arrays, self.outputs = kernel_like(self.found)
        kernel.body.block.add_op(self._launch())

    def _launch(self) -> LaunchOp:
        found, product = self.found, self.found.product
        old = list(found.launch.body.block.args)
        size_m, size_n = self.schedule.number("block_m"), self.schedule.number("block_n")
        body = Block()
        axes: list[AxisAttr] = []
        self.dims: dict[int, AffineExpr] = {}
        self.counters: list[SSAValue] = []
        blocks: dict[int, SSAValue] = {}
        for axis, extent in enumerate(found.extents):
            if axis == product.n:
                continue
            blocks[axis] = body.insert_arg(INDEX, len(body.args))
            hint = old[axis].name_hint or "i"
            blocks[axis].name_hint = f"{hint}_block" if axis == product.m else hint
            parts = ceil_div(extent, size_m) if axis == product.m else extent
            axes.append(AxisAttr(parts, Level.BLOCK))
            if axis != product.m:
                self.dims[axis] = AffineExpr.dimension(len(self.counters))
                self.counters.append(blocks[axis])
        points: dict[int, SSAValue] = {}
        for axis in sorted((product.m, product.n)):
            points[axis] = body.insert_arg(INDEX, len(body.args))
            points[axis].name_hint = old[axis].name_hint
            axes.append(AxisAttr(size_m if axis == product.m else size_n, Level.THREAD))
        self.row = _Line(product.m, blocks[product.m], size_m, found.rows)
        self.column = _Line(product.n, None, size_n, found.width)
        self.row_point, self.column_point = points[product.m], points[product.n]
        position = {axis: len(blocks) + i for i, axis in enumerate(points)}
        schedule = self.schedule.with_choices(m=position[product.m], n=position[product.n])
        launch = LaunchOp(axes, Region(body), schedule)
        launch.location = found.launch.location
        self._fill(body)
        return launch

    def _writer(self, block: Block, *lines: tuple[_Line, SSAValue]) -> TermWriter:
        """Writes terms at points of lines, given by their counters."""
        counters, dims = list(self.counters), dict(self.dims)
        for line, inside in lines:
            expr, operands = line.at(inside)
            first = len(counters)
            space = [AffineExpr.dimension(first + i) for i in range(len(operands))]
            dims[line.dim] = expr.replace_dims_and_symbols(space, [])
            counters += operands
        return TermWriter(block, counters, dims, self.arrays)

    def _inside(self, writer: TermWriter, *lines: _Line) -> SSAValue | None:
        """Whether a point is not past the end of lines; None if no point is."""
        ends = [
            AffineExpr.dimension(line.dim) * -1 + extent_expr(line.extent - 1)
            for line in lines
            if line.is_ragged
        ]
        if not ends:
            return None
        test = TestOp(writer.exprs(ends), writer.counters)
        writer.block.add_op(test)
        return test.result

    # ------------------------------------------------------------------ the body

    def _fill(self, body: Block) -> None:
        found = self.found
        self.mma = self.schedule.get("mma") == 1
        unit = DEPTH if self.mma else 1
        depth = -(-found.depth // unit) * unit
        inner = _Line(found.score.bound or 0, None, depth, found.depth)
        left = self._pack(body, found.left, self.row, inner, "row")
        outer = self._loop(body, ceil_div(found.columns, self.schedule.number("block_k")), "_block")
        scores = _Line(
            found.sweep, outer.induction_var, self.schedule.number("block_k"), found.columns
        )
        parts = outer.body.block
        right = self._pack(parts, found.right, scores, inner, "column")
        value = self._pack(parts, found.value, self.column, scores, "value")
        chunk = self._loop(parts, scores.size, "")
        chunk.attributes[CHUNK] = UnitAttr()
        self._contribute(chunk, scores, left, right, value)
        parts.add_op(YieldOp(*chunk.res))
        self._finish(body, outer)

    def _loop(self, block: Block, extent: Extent, suffix: str) -> ForOp:
        types = [self.found.exponent.type] * len(WEIGHTED)
        region = Region(Block(arg_types=[INDEX]))
        loop = ForOp(extent, region, combiners=WEIGHTED, result_types=types)
        last = loop.body.block.last_op
        if last is not None:
            last.detach()
        hint = self.found.product.sweeps[0].induction_var.name_hint or "k"
        loop.induction_var.name_hint = hint + suffix
        loop.location = self.found.product.sweeps[0].location
        for result, name in zip(loop.res, ("max", "weight", "mean"), strict=True):
            result.name_hint = name
        block.add_op(loop)
        return loop

    def _pack(self, block: Block, term: Term, rows: _Line, positions: _Line, name: str) -> PackOp:
        """A factor over its rows and positions, 0 past their ends; bf16 where matrix tiles multiply."""
        if self.mma:
            term = narrow(term) or term
        body = Block(arg_types=[INDEX, INDEX])
        row, position = body.args
        row.name_hint, position.name_hint = "r", "p"
        writer = self._writer(body, (rows, row), (positions, position))
        inside = self._inside(writer, rows, positions)
        value = writer.write(term) if inside is None else self._or(writer, inside, term, 0.0)
        body.add_op(PackYieldOp(value))
        shape = [rows.size, positions.size]
        pack = PackOp(MemRefType(term.type, shape, memory_space=SHARED), Region(body))
        if name != "row":
            pack.panels = IntegerAttr(self.schedule.number("thread_n"), i64)
        elif self.mma or lies_along(body, position):
            pack.pad = pad_of(pack.element.type)
        else:
            pack.panels = IntegerAttr(self.schedule.number("thread_m"), i64)
        pack.location = self.found.launch.location
        pack.packed.name_hint = f"{name}_packed"
        block.add_op(pack)
        return pack

    def _or(
        self, writer: TermWriter, condition: SSAValue, term: Term, otherwise: float
    ) -> SSAValue:
        """A term where a condition holds, else a number."""
        yes, no = Block(), Block()
        yes.add_op(scf.YieldOp(writer.within(yes).write(term)))
        constant = arith.ConstantOp(scalar_attr(otherwise, term.type))
        no.add_ops([constant, scf.YieldOp(constant.result)])
        op = scf.IfOp(condition, [term.type], Region(yes), Region(no))
        writer.block.add_op(op)
        return op.output[0]

    def _contribute(
        self, chunk: ForOp, scores: _Line, left: PackOp, right: PackOp, value: PackOp
    ) -> None:
        """One score, and what it contributes."""
        found, body = self.found, chunk.body.block
        score = self._score(chunk, left, right)
        body.add_op(score)
        writer = self._writer(body, (self.row, self.row_point), (scores, chunk.induction_var))
        writer.known[found.score] = score.res[0]
        inside = self._inside(writer, self.row, scores)
        if inside is None:
            exponent = writer.write(found.exponent)
        else:
            exponent = self._or(writer, inside, found.exponent, -math.inf)
        one = arith.ConstantOp(scalar_attr(1.0, found.exponent.type))
        space = [AffineExpr.dimension(0), AffineExpr.dimension(1)]
        load = LoadOp(value.packed, space, [self.column_point, chunk.induction_var])
        body.add_ops([one, load])
        body.add_op(YieldOp(exponent, one.result, self._widen(body, load.result)))

    def _widen(self, block: Block, element: SSAValue) -> SSAValue:
        """A packed element as what is multiplied."""
        if not self.mma:
            return element
        wide = arith.ExtFOp(element, f32)
        block.add_op(wide)
        return wide.result

    def _score(self, chunk: ForOp, left: PackOp, right: PackOp) -> ForOp:
        body = Block(arg_types=[INDEX])
        space = [AffineExpr.dimension(0), AffineExpr.dimension(1)]
        loads = [
            LoadOp(pack.packed, space, [line, body.args[0]])
            for pack, line in ((left, self.row_point), (right, chunk.induction_var))
        ]
        body.add_ops(loads)
        row, column = (self._widen(body, load.result) for load in loads)
        product = arith.MulfOp(row, column)
        body.add_ops([product, YieldOp(product.result)])
        fold, (_, depth) = self.found.score, left.shape
        loop = ForOp(depth, Region(body), combiners=[Combiner.ADD], result_types=[fold.type])
        if isinstance(fold.op, ForOp):
            body.args[0].name_hint = fold.op.induction_var.name_hint
        loop.res[0].name_hint = "score"
        return loop

    def _finish(self, body: Block, outer: ForOp) -> None:
        """Store what follows from the folded row."""
        found = self.found
        lines = [(self.row, self.row_point), (self.column, self.column_point)]
        writer = self._writer(body, *lines)
        inside = self._inside(writer, self.row, self.column)
        then = Block() if inside is not None else body
        for number, result in enumerate(outer.res):
            writer.known[Term("result", number, (), result.type)] = result
        writer = writer.within(then)
        if not found.guarded:
            writer.known[found.mean] = self._mean(then, outer.res)
        for store in found.stores:
            value, place = writer.write(store.value), writer.exprs(store.exprs)
            then.add_op(StoreOp(value, self.outputs[store.output], place, writer.counters))
        if inside is not None:
            then.add_op(scf.YieldOp())
            body.add_op(scf.IfOp(inside, [], Region(then)))

    def _mean(self, block: Block, results: Sequence[SSAValue]) -> SSAValue:
        """The mean, but NaN in a row of minus infinities, which has no weight: there exp(x - max x) is."""
        _, weight, mean = results
        zero = arith.ConstantOp(scalar_attr(0, weight.type))
        nan = arith.ConstantOp(scalar_attr(math.nan, weight.type))
        nothing = arith.CmpfOp(weight, zero.result, "oeq")
        chosen = arith.SelectOp(nothing.result, nan.result, mean)
        block.add_ops([zero, nan, nothing, chosen])
        return chosen.result
