"""The kernel of a softmax between two contractions, a row at a time.

    tile.launch (%h = 12 : thread) {
      %scores = tile.pack (%r = 1, %j = 512) { %q[%h, %d] * %k[%h, %j, %d], summed over %d }
      %max = loop.for %j = 0 to 512 reduce(max) -> f32 { ... %scores[0, %j] ... }
      %powers = tile.pack (%r = 1, %j = 512) { exp(%scores[0, %j] - %max) }
      %weight = loop.for %j = 0 to 512 reduce(add) -> f32 { ... %powers[0, %j] ... }
      %weights = tile.pack (%r = 1, %j = 512) { %powers[0, %j] / %weight }
      loop.for %n = 0 to 64 {
        %mean = loop.for %j = 0 to 512 reduce(add) -> f32 { %weights[0, %j] * %v[%h, %j, %n] }
        ...

Written by `online-softmax` where no two rows share a column: what is read once is read in place. What there
is of each column of a row lies in the scratchpad.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects import math as functions
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.softmax import Softmax
from ...analysis.terms import Term
from ...dialects.loop import ForOp, LoadOp, StoreOp, YieldOp
from ...dialects.scalars import Combiner
from ...dialects.sizes import static_extent
from ...dialects.syntax import scalar_attr
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...dialects.tile_pack import SHARED, PackOp, PackYieldOp
from ...index.affine import ZERO
from .blocked_softmax import kernel_like
from .emit_terms import TermWriter

INDEX = IndexType()

_Element = Callable[[TermWriter, SSAValue], SSAValue]
_Contribution = Callable[[Block, SSAValue], SSAValue]


def build_rows(found: Softmax) -> None:
    """Put the kernel in front of the one that it replaces."""
    kernel, arrays, outputs = kernel_like(found)
    kernel.body.block.add_op(_Rows(found, arrays, outputs).launch())


@dataclass
class _Rows:
    found: Softmax
    arrays: dict[object, SSAValue]
    outputs: dict[SSAValue, SSAValue]
    counters: list[SSAValue] = field(default_factory=list[SSAValue])
    dims: dict[int, AffineExpr] = field(default_factory=dict[int, AffineExpr])

    def launch(self) -> LaunchOp:
        """A launch over all rows."""
        found, body = self.found, Block()
        axes: list[AxisAttr] = []
        for axis, extent in enumerate(found.extents):
            if axis != found.product.n:
                counter = body.insert_arg(INDEX, len(body.args))
                counter.name_hint = found.launch.body.block.args[axis].name_hint
                self.dims[axis] = AffineExpr.dimension(len(self.counters))
                self.counters.append(counter)
                axes.append(AxisAttr(extent, Level.THREAD))
        launch = LaunchOp(axes, Region(body))
        launch.location = found.launch.location
        self._fill(body)
        return launch

    def _fill(self, body: Block) -> None:
        found = self.found
        scores = self._row(body, "scores", lambda writer, _: writer.write(found.exponent))
        largest = self._fold(body, Combiner.MAX, "max", lambda block, j: _load(block, scores, j))

        def power(writer: TermWriter, j: SSAValue) -> SSAValue:
            score = _load(writer.block, scores, j)
            shifted = _add(writer.block, arith.SubfOp(score, largest))
            return _add(writer.block, functions.ExpOp(shifted))

        powers = self._row(body, "powers", power)
        weight = self._fold(body, Combiner.ADD, "weight", lambda block, j: _load(block, powers, j))

        def share(writer: TermWriter, j: SSAValue) -> SSAValue:
            power = _load(writer.block, powers, j)
            part = _add(writer.block, arith.DivfOp(power, weight))
            return self._guarded(writer.block, largest, part) if found.guarded else part

        weights = self._row(body, "weights", share)
        columns = Block(arg_types=[INDEX])
        n = found.product.n
        columns.args[0].name_hint = found.launch.body.block.args[n].name_hint
        inner = self._writer(columns, {n: columns.args[0]})

        def term(block: Block, j: SSAValue) -> SSAValue:
            value = self._writer(block, {n: columns.args[0], found.sweep: j}).write(found.value)
            return _add(block, arith.MulfOp(_load(block, weights, j), value))

        mean = self._fold(columns, Combiner.ADD, "mean", term)
        for number, result in enumerate((largest, weight, mean)):
            inner.known[Term("result", number, (), result.type)] = result
        for store in found.stores:
            value, place = inner.write(store.value), inner.exprs(store.exprs)
            columns.add_op(StoreOp(value, self.outputs[store.output], place, inner.counters))
        columns.add_op(YieldOp())
        body.add_op(ForOp(found.width, Region(columns)))

    def _guarded(self, block: Block, largest: SSAValue, weight: SSAValue) -> SSAValue:
        """A weight, but 0 in a row of minus infinities."""
        low = _add(block, arith.ConstantOp(scalar_attr(-math.inf, weight.type)))
        zero = _add(block, arith.ConstantOp(scalar_attr(0.0, weight.type)))
        nothing = _add(block, arith.CmpfOp(largest, low, "oeq"))
        return _add(block, arith.SelectOp(nothing, zero, weight))

    def _writer(self, block: Block, places: dict[int, SSAValue]) -> TermWriter:
        """Writes terms at a place in a row, or a column of the result, or both."""
        counters, dims = [*self.counters, *places.values()], dict(self.dims)
        for position, dim in enumerate(places, len(self.counters)):
            dims[dim] = AffineExpr.dimension(position)
        return TermWriter(block, counters, dims, self.arrays)

    def _row(self, block: Block, name: str, element: _Element) -> SSAValue:
        """A row of the scratchpad, of what is computed for each column."""
        body = Block(arg_types=[INDEX, INDEX])
        body.args[0].name_hint, body.args[1].name_hint = "r", "j"
        value = element(self._writer(body, {self.found.sweep: body.args[1]}), body.args[1])
        body.add_op(PackYieldOp(value))
        columns = static_extent(self.found.columns)
        pack = PackOp(MemRefType(value.type, [1, columns], memory_space=SHARED), Region(body))
        pack.location = self.found.launch.location
        pack.packed.name_hint = name
        block.add_op(pack)
        return pack.packed

    def _fold(
        self, block: Block, combiner: Combiner, name: str, contribution: _Contribution
    ) -> SSAValue:
        """A fold over the row."""
        body = Block(arg_types=[INDEX])
        body.args[0].name_hint = "j"
        value = contribution(body, body.args[0])
        body.add_op(YieldOp(value))
        columns = self.found.columns
        loop = ForOp(columns, Region(body), combiners=[combiner], result_types=[value.type])
        loop.location = self.found.launch.location
        loop.res[0].name_hint = name
        return _add(block, loop)


def _add(block: Block, op: Operation) -> SSAValue:
    block.add_op(op)
    return op.results[0]


def _load(block: Block, row: SSAValue, place: SSAValue) -> SSAValue:
    return _add(block, LoadOp(row, [ZERO, AffineExpr.dimension(0)], [place]))
