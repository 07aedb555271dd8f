"""`split-reduce`: a long reduction with few results becomes two kernels, so that all processors take part.

    %y = loop.kernel @k(%x) {
      tile.launch () {
        %s = loop.for %k = 0 to 1048576 reduce(add) -> f32 { ... %x[%k] ... }
        loop.store %s, %y[]
      }
    }
becomes
    %parts = loop.kernel @k_partial(%x) {
      tile.launch (%k_part = 128 : thread) {
        %s = loop.for %k = 0 to 8192 reduce(add) -> f32 { ... %x[%k_part * 8192 + %k] ... }
        loop.store %s, %parts[%k_part]
      }
    }
    %y = loop.kernel @k_fold(%parts) {
      tile.launch () {
        %s = loop.for %k = 0 to 128 reduce(add) -> f32 { ... %parts[%k] ... }
        loop.store %s, %y[]
      }
    }

The parts are folded in a fixed order, so every run gives the same result.

Declined are launches with a schedule, kernels with several sweeps, extents that are not known, reductions
whose iterations need what a check lets through, those that keep the machine busy as they are or are too short
for a second kernel, and those of columns on a CPU, which reads them row by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IndexType

from ...analysis.contraction import find_contraction
from ...dialects.inside import ops_of
from ...dialects.kernel import WARP
from ...dialects.loop import ForOp, KernelOp
from ...dialects.tile import LaunchOp, Level
from ...machine.targets import Target
from ..decisions import record
from ..schedule.partial import PartialPass
from ..schedule.partial_blocks import fold_in_parts, parts_of, sweep_of
from .chunk_reduce import block_columns
from .cooperative_reduce import lanes_share_columns, reduces_columns
from .recipe import MachineRecipe

INDEX = IndexType()

LEAST = 1 << 15
"""Elements of a block's share below which a second kernel does not pay."""

SHARE = 1 << 13
"""Elements of a part."""

CPU_BLOCKS = 16
"""Blocks for the cores of a CPU, however many there are: the order of a sum is the same everywhere."""

CPU_SHARE = 1 << 16
"""Elements of a part on a CPU: what a core takes longer for than for a second kernel."""


def _extent(loop: ForOp) -> int:
    extent = loop.extent.data
    assert isinstance(extent, int)
    return extent


def find_step(launch: LaunchOp, target: Target) -> PartialPass | str:
    """The step that folds a reduction in parts, or why there is none."""
    if launch.settled is not None:
        return launch.settled
    sweep = sweep_of(launch)
    if isinstance(sweep, str):
        return sweep
    extents = launch.extents(Level.THREAD)
    nest = ops_of(sweep, ForOp)
    if not all(isinstance(e, int) for e in (*extents, *(loop.extent.data for loop in nest))):
        return "an extent is not known"
    if not isinstance(find_contraction(launch), str):
        return "a contraction"
    points, elements = prod(map(int, extents)), prod(_extent(loop) for loop in nest)  # pyright: ignore
    if not points:
        return "it has no result to compute"
    choose = _choose if target.is_gpu else _choose_on_cpu
    count = choose(launch, points, elements, target)
    if isinstance(count, str):
        return count
    # Parts that are not equal begin at sectors of memory.
    count, extent = min(count, _extent(sweep)), _extent(sweep)
    grain = 1 if extent % count == 0 else WARP
    return PartialPass(across="block", parts=parts_of(extent, count, grain).count, grain=grain)


def _choose(launch: LaunchOp, points: int, elements: int, target: Target) -> int | str:
    columns = block_columns(launch, target) if lanes_share_columns(launch) else 1
    blocks, share = -(-points // columns), elements * columns
    if share < LEAST:
        return f"{share} elements of a block are too few for a second kernel"
    if blocks * 2 > target.processors:
        return f"{blocks} blocks keep {target.processors} processors busy"
    parts = 1
    while blocks * parts < target.processors and share // (parts * 2) >= SHARE:
        parts *= 2
    return parts


def _choose_on_cpu(launch: LaunchOp, points: int, elements: int, target: Target) -> int | str:
    if reduces_columns(launch):
        return "a CPU reads columns row by row"
    if points * 2 > CPU_BLOCKS:
        return f"{points} rows keep the cores busy"
    parts = 1
    while points * parts < CPU_BLOCKS and parts * 2 <= elements // CPU_SHARE:
        parts *= 2
    if parts == 1:
        return f"{elements} elements of a row are too few for a second kernel on a CPU"
    return parts


@dataclass(frozen=True)
class SplitReducePass(MachineRecipe):
    """Split long reductions with few results into parts."""

    name = "split-reduce"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        step = find_step(launch, self.machine)
        name, location = kernel.sym_name.data, launch.location
        if isinstance(step, str):
            record(self.name, name, False, step, location)
            return
        made = fold_in_parts(kernel, step.parts, step.grain)
        assert not isinstance(made, str), made
        names = tuple(new.sym_name.data for new in made)
        record(self.name, name, True, step.done, location, names, [step])
