"""`coalesce-axes`: sweeps over neighbouring axes of memory become one.

    %s = loop.for %k = 0 to 8 reduce(add) -> f32 {
      %t = loop.for %l = 0 to 16 reduce(add) -> f32 {
        %v = loop.load %x[%i, %k, %l] : memref<4x8x16xf32>
        loop.yield %v : f32
      }
      loop.yield %t : f32
    }
becomes
    %s = loop.for %k = 0 to 128 reduce(add) -> f32 {
      %v = loop.load %x[%i, %k floordiv 16, %k mod 16] : memref<4x8x16xf32>
      loop.yield %v : f32
    }

and so do free loops in a row's own sweeps, such as that which stores what a norm over two axes gives. Only
where every access goes on in memory where a round of the inner loop ends: the flat index of an element then
has no quotient, and one long sweep is shared by threads, or runs over vectors, where two short ones are not.
A row that each round reads again keeps the loops apart. Free loops around everything stay as they are: they
become the axes of a launch, whose threads are counted over all of them at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import operand_ranges, simplify
from ...dialects.index import dims_in_order, linearize
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from ...dialects.sizes import shape_of
from ...errors import counted
from ...index.affine import divisions, replace_dims
from ..decisions import record
from ..tile.rewrite_indices import rewrite_index
from .nests import perfect_nest

PASS = "coalesce-axes"


def inner_of(outer: ForOp) -> ForOp | None:
    """The loop that is all a loop does: it folds alike, and what it gives is folded as it is."""
    inner, end = outer.body.block.first_op, outer.body.block.last_op
    if not isinstance(inner, ForOp) or inner.next_op is not end or not isinstance(end, YieldOp):
        return None
    same = list(end.arguments) == list(inner.res) and inner.combiners == outer.combiners
    return inner if same else None


def obstacle(outer: ForOp, inner: ForOp) -> str | None:
    """Why a loop and the one in it cannot count as one; None if they can."""
    extent = inner.extent.data
    if not isinstance(extent, int):
        return "the extent of the inner axis is dynamic"
    if outer.never_runs or inner.never_runs:
        return "it has no iterations"
    counters = (outer.induction_var, inner.induction_var)
    for op in ops_in(inner.body):
        if not any(counter in op.operands for counter in counters):
            continue
        if not isinstance(op, LoadOp | StoreOp):
            return "an index or a condition is computed from the axes"
        assert isinstance(op.memref.type, MemRefType)
        ranges = operand_ranges(op.indices)
        flat = simplify(linearize(op.map.data.results, shape_of(op.memref.type)), ranges)
        divided = {op.indices[d] for d in dims_in_order(list(divisions(flat)))}
        if any(counter in divided for counter in counters):
            return "the place of an element divides an axis"
        rounds = (_ahead(flat, op, counters[0], 1), _ahead(flat, op, counters[1], extent))
        if simplify(rounds[0], ranges) != simplify(rounds[1], ranges):
            return "the axes do not lie along each other in memory"
    return None


def _ahead(flat: AffineExpr, op: LoadOp | StoreOp, counter: SSAValue, steps: int) -> AffineExpr:
    """The place that is accessed when a counter is some steps further."""
    dims = [AffineExpr.dimension(i) for i in range(len(op.indices))]
    return replace_dims(
        flat, [d + steps * (v is counter) for d, v in zip(dims, op.indices, strict=True)]
    )


def coalesce(outer: ForOp, inner: ForOp) -> ForOp:
    """One loop in the place of a loop and the one that is all it does."""
    extent = inner.extent.data
    assert isinstance(extent, int) and outer.parent is not None
    block = Block(arg_types=[IndexType()])
    block.args[0].name_hint = outer.induction_var.name_hint
    joined = ForOp(
        outer.extent.data * extent,
        Region(block),
        combiners=[c.data for c in outer.combiners],
        result_types=outer.res.types,
    )
    joined.location = outer.location
    outer.parent.insert_op_before(joined, outer)
    end = block.last_op
    for op in list(inner.body.block.ops):
        op.detach()
        block.add_op(op)
    if end is not None:
        end.detach()
        end.erase()
    place = AffineExpr.dimension(0)
    old: dict[SSAValue, AffineExpr] = {
        outer.induction_var: place // extent,
        inner.induction_var: place % extent,
    }
    for op in ops_in(joined.body):
        rewrite_index(op, old, [block.args[0]])
    for mine, theirs in zip(outer.res, joined.res, strict=True):
        theirs.name_hint = mine.name_hint
        mine.replace_all_uses_with(theirs)
    outer.detach()
    outer.erase()
    return joined


def pairs(kernel: KernelOp) -> Iterator[tuple[ForOp, ForOp]]:
    """The loops that are all that another loop does, innermost first, but for the axes of a launch."""
    axes = perfect_nest(kernel)
    for loop in reversed(ops_of(kernel, ForOp)):
        inner = inner_of(loop)
        if inner is not None and loop not in axes:
            yield loop, inner


@dataclass(frozen=True)
class CoalesceAxesPass(ModulePass):
    """Make one sweep of those over neighbouring axes."""

    name = PASS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            count, reason = 0, "no loop is all that another one does"
            for outer, inner in pairs(kernel):
                found = obstacle(outer, inner)
                if found is None:
                    coalesce(outer, inner)
                    count += 1
                else:
                    reason = found
            if count:
                reason = f"{counted(count, 'pair')} of axes became one"
            record(PASS, kernel.sym_name.data, count > 0, reason, kernel)
