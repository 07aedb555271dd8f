"""`chunk-matmul-k`: the sweep of a contraction becomes chunks of K, each as long as a block can share.

    %s = loop.for %k = 0 to 3584 reduce(add) -> f32 { ... %x[%i, %k] ... loop.yield %p : f32 }
becomes
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %c = loop.for %k = 0 to 16 reduce(add) -> f32 { ... %x[%i, %k_block * 16 + %k] ... } attributes {chunk}
      loop.yield %c : f32
    }

It takes the step `split{axis=k by=16 into=k_block,k}` (`passes/schedule/split.py` shows what becomes of it),
where the chunk is `block_k` of the schedule.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.tile import LaunchOp
from ..schedule.primitive import carry_out
from ..schedule.split import SplitPass
from .named_axes import name_sweeps
from .recipe import Recipe, Taken


@dataclass(frozen=True)
class ChunkMatmulKPass(Recipe):
    """Chunk the sweep of each launch whose schedule has a `block_k`."""

    name = "chunk-matmul-k"

    def take(self, launch: LaunchOp) -> Taken | str:
        size = None if launch.schedule is None else launch.schedule.get("block_k")
        sweeps = [o for o in launch.body.block.ops if isinstance(o, ForOp) and o.res]
        if size is None:
            return "the schedule has no block_k"
        if any(isinstance(o, ForOp) for sweep in sweeps for o in ops_in(sweep.body)):
            return "the sweep has chunks already"
        if launch.schedule is not None and launch.schedule.word("vectors") is not None:
            return "a CPU's dot tile takes chunks itself"
        extents = ", ".join(str(sweep.extent.data) for sweep in sweeps) or "no sweep"
        axes = dict.fromkeys(name_sweeps(launch, sweeps))
        steps = [SplitPass(axis=axis, by=size, into=(f"{axis}_block", axis)) for axis in axes]
        carry_out(steps, launch)
        return Taken(f"chunks of {size} of {extents}", steps)
