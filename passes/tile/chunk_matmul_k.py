"""`chunk-matmul-k`: the sweep of a contraction becomes chunks of K, each as long as a block can share.

    %s = loop.for %k = 0 to 3584 reduce(add) -> f32 { ... %x[%i, %k] ... loop.yield %p : f32 }
becomes
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
        ... %x[%i, %k_block * 16 + %k] ... loop.yield %p : f32
      } attributes {chunk}
      loop.yield %c : f32
    }

The chunk is `block_k` of the schedule. Past the end of K a contribution is the identity of its combiner. The
lowering of nested reductions goes on with the outer sum in the inner loop.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Region
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, YieldOp
from ...dialects.sizes import extent_expr
from ...dialects.tile import LaunchOp
from ..decisions import record
from ..lower_loops import CHUNK
from .masks import mask_contributions
from .rewrite_indices import rewrite_index


def chunk(sweep: ForOp, size: int) -> ForOp:
    """Split a reducing loop into chunks of `size`; gives the loop over the chunks."""
    extent = sweep.extent.data
    chunks = (extent + (size - 1)) // size
    types = list(sweep.res.types)
    combiners = [c.data for c in sweep.combiners]
    inner = ForOp(size, sweep.detach_region(sweep.body), combiners=combiners, result_types=types)
    block = Block(arg_types=[IndexType()])
    outer = ForOp(chunks, Region(block), combiners=combiners, result_types=types)
    for loop in (inner, outer):
        loop.location = sweep.location
    inner.attributes[CHUNK] = UnitAttr()
    position = inner.induction_var
    number = outer.induction_var
    number.name_hint = f"{position.name_hint or 'k'}_block"
    if block.last_op is not None:
        block.last_op.detach()
    block.add_ops([inner, YieldOp(*inner.res)])
    assert sweep.parent is not None
    sweep.parent.insert_op_before(outer, sweep)
    whole = AffineExpr.dimension(0) * size + AffineExpr.dimension(1)
    for op in ops_in(inner.body):
        rewrite_index(op, {position: whole}, [number, position])
    if chunks * size != extent:
        mask_contributions(inner, [whole * -1 + extent_expr(extent - 1)], [number, position])
    for old, part, new in zip(sweep.res, inner.res, outer.res, strict=True):
        part.name_hint = f"{old.name_hint or 'value'}_chunk"
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    sweep.detach()
    sweep.erase()
    return outer


@dataclass(frozen=True)
class ChunkMatmulKPass(ModulePass):
    """Chunk the sweep of each launch whose schedule has a `block_k`."""

    name = "chunk-matmul-k"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in open_launches(op):
            self._apply(kernel.sym_name.data, launch)

    def _apply(self, name: str, launch: LaunchOp) -> None:
        size = None if launch.schedule is None else launch.schedule.get("block_k")
        sweeps = [o for o in launch.body.block.ops if isinstance(o, ForOp) and o.res]
        if size is None:
            record(self.name, name, False, "the schedule has no block_k", launch)
            return
        if any(isinstance(o, ForOp) for sweep in sweeps for o in ops_in(sweep.body)):
            record(self.name, name, False, "the sweep has chunks already", launch)
            return
        if launch.schedule is not None and launch.schedule.word("vectors") is not None:
            record(self.name, name, False, "a CPU's dot tile takes chunks itself", launch)
            return
        for sweep in sweeps:
            chunk(sweep, size)
        extents = ", ".join(str(sweep.extent.data) for sweep in sweeps) or "no sweep"
        record(self.name, name, True, f"chunks of {size} of {extents}", launch)
