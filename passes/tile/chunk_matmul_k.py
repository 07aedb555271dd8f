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

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.launches import open_launches
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.tile import LaunchOp
from ..decisions import record
from ..schedule.primitive import carry_out
from ..schedule.split import SplitPass
from .named_axes import name_sweeps


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
        extents = ", ".join(str(sweep.extent.data) for sweep in sweeps) or "no sweep"
        axes = dict.fromkeys(name_sweeps(launch, sweeps))
        steps = [SplitPass(axis=axis, by=size, into=(f"{axis}_block", axis)) for axis in axes]
        carry_out(steps, launch)
        record(self.name, name, True, f"chunks of {size} of {extents}", launch, steps=steps)
