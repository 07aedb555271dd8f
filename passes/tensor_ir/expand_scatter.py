"""`expand-scatter`: each element of the result looks for the updates that hit it.

    %y = tensor_ir.scatter add %x[%i] along 0 from %u
           : (tensor<5xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<5xf32>
becomes
    %index = tensor_ir.gather (iota 5)[%i] along 0                // the indices, checked once
    %hits  = elementwise eq(index_map (n, k) -> %index[k], iota of n)    : tensor<5x4xi1>
    %sum   = reduce add(select(%hits, index_map (n, k) -> %u[k], 0)) over [1]
    %y     = select(reduce any(%hits) over [1], %x + %sum, %x)

and `replace` takes the update at the last position that hits. So the result does not depend on the order
in which threads run, each element is stored once, and nothing is needed below that the primitives do not
have. It costs one comparison per element and update along the axis. For a CPU, which can change elements one
by one in a kernel of its own, a scatter that would take longer so stays (`lower-tile-to-scf`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of
from ...analysis.orders import runs_in_order, scatter_in_order_seconds, scatter_work
from ...analysis.updates import takes_place
from ...dialects.inside import ops_in, ops_of
from ...dialects.scalars import Combiner, Function, identity, is_float
from ...dialects.tensor_ir_indexed import ScatterOp
from ...dialects.torch_base import Shape
from ..decisions import record
from ..torch.lowering import Lowering, dims, element_of, shape_of


class _Expansion:
    """Builds what replaces one scatter.

    The updates along the axis become a new last axis, which is folded away.
    """

    def __init__(self, op: ScatterOp):
        self.build = Lowering(op)
        self.op = op
        self.axis = op.axis.value.data
        self.shape = shape_of(op.input)
        self.count = shape_of(op.updates)[self.axis]

    def result(self) -> SSAValue:
        """The value that stands for the scatter's."""
        e, op = self.build, self.op
        index = e.checked(op.indices, self.shape[self.axis])
        if self.count == 0:
            return op.input
        hits = self._hits(index)
        combiner = op.update.data.combiner
        return self._replaced(hits) if combiner is None else self._combined(combiner, hits)

    def _spread(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value[p, k, q]` at `[p, n, q, k]` for any `n`; an axis of extent 1 is repeated."""
        index = dims(len(shape))
        index[self.axis] = index.pop()
        source = shape_of(value)
        index = [
            AffineExpr.constant(0) if n == 1 else expr
            for n, expr in zip(source, index, strict=True)
        ]
        return self.build.index_map([value], [index], shape, suffix="per_element")

    def _hits(self, index: SSAValue) -> SSAValue:
        """Whether update `k` goes to position `n`, at `[p, n, q, k]`."""
        extents = [
            self.shape[i] if i == self.axis else n for i, n in enumerate(shape_of(self.op.indices))
        ]
        shape = (*extents, self.count)
        spread = self._spread(index, shape)
        return self.build.apply(Function.EQ, spread, self.build.iota(self.axis, i64, shape))

    def _fold(self, combiner: Combiner, value: SSAValue) -> SSAValue:
        last = len(self.shape)
        return self.build.squeeze(self.build.reduce(combiner, value, [last]), [last])

    def _combined(self, combiner: Combiner, hits: SSAValue) -> SSAValue:
        """The input folded with the updates that hit; where there are none, the input."""
        e, element = self.build, element_of(self.op.input)
        whole = (*self.shape, self.count)
        neutral = e.constant(identity(combiner, element), element, whole)
        updates = self._spread(self.op.updates, whole)
        total = self._fold(combiner, e.select(e.broadcast(hits, whole), updates, neutral))
        changed = e.apply(Function(combiner.value), self.op.input, total)
        if combiner is not Combiner.ADD or not is_float(element):
            return changed
        # -0.0 + 0.0 is 0.0, so what is not hit is not added to.
        hit = e.broadcast(self._fold(Combiner.ANY, hits), self.shape)
        return e.select(hit, changed, self.op.input)

    def _replaced(self, hits: SSAValue) -> SSAValue:
        """The update at the last position that hits; where there is none, the input."""
        e, shape = self.build, shape_of(hits)
        positions = e.iota(len(shape) - 1, i64, shape)
        last = self._fold(Combiner.MAX, e.select(hits, positions, e.fill_like(positions, -1)))
        safe = e.with_number(Function.MAX, last, 0)
        if prod(shape_of(last)) == self.shape[self.axis]:  # one list of indices for all
            picked = e.gather(
                self.op.updates, e.reshape(safe, self.shape[self.axis : self.axis + 1]), self.axis
            )
        else:
            picked = e.gather_along(self.op.updates, e.broadcast(safe, self.shape), self.axis)
        hit = e.broadcast(e.with_number(Function.GE, last, 0), self.shape)
        return e.select(hit, picked, self.op.input)


def _is_read_later(op: ScatterOp) -> bool:
    """Whether something behind a scatter reads what it begins as."""
    later = op.next_op
    while later is not None:
        if any(op.input in inner.operands for inner in ops_in(later)):
            return True
        later = later.next_op
    return False


def _stays(op: ScatterOp) -> bool:
    """Whether updates in order take less time than comparisons, or may do so."""
    shape, indices, axis = shape_of(op.input), shape_of(op.indices), op.axis.value.data
    count, replaces = shape_of(op.updates)[axis], op.update.data.combiner is None
    if not isinstance(count, int) or not isinstance(shape[axis], int):
        return True
    if takes_place(op.result, op.input) and not _is_read_later(op):
        return True  # in place
    work = scatter_work(shape, indices, count, axis, replaces=replaces)
    return work.seconds > scatter_in_order_seconds(shape, indices, count, axis)


@dataclass(frozen=True)
class ExpandScatterPass(ModulePass):
    """Replace each `tensor_ir.scatter` by comparisons, reductions and gathers."""

    name = "expand-scatter"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Expand every scatter that is to be."""
        in_order = runs_in_order(self.target)
        scatters = ops_of(op, ScatterOp)
        if not scatters:
            record(self.name, "main", False, "there is no scatter")
        with hints_of(op):
            for scatter in scatters:
                if in_order and _stays(scatter):
                    name = scatter.result.name_hint or "scatter"
                    record(self.name, name, False, "its updates are faster one by one", scatter)
                else:
                    self._expand(scatter)

    def _expand(self, scatter: ScatterOp) -> None:
        expansion = _Expansion(scatter)
        value = expansion.result()
        name = scatter.result.name_hint
        if value is not scatter.input:
            value.name_hint = name
        scatter.result.replace_all_uses_with(value)
        reason = f"{prod(expansion.shape)} elements look at {expansion.count} updates each"
        record(self.name, name or "scatter", True, reason, scatter)
        scatter.detach()
        scatter.erase()
