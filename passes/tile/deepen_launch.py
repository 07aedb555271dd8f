"""`deepen-launch`: a contraction whose rows need something first becomes a launch over its columns, too.

    tile.launch (%i = 256 : thread) {
      %m = loop.load %max[%i]
      loop.for %j = 0 to 64 {
        %s = loop.for %k = 0 to 256 reduce(add) -> f32 { ... }
        loop.store %s, %y[%i, %j]
      }
    }
becomes
    tile.launch (%i = 256 : thread, %j = 64 : thread) {
      %m = loop.load %max[%i]
      %s = loop.for %k = 0 to 256 reduce(add) -> f32 { ... }
      loop.store %s, %y[%i, %j]
    }

What stands in front of the loop is then computed for each column. On a CPU, packing moves it to where it is
needed: only a launch that becomes a contraction whose factors can be packed is deepened. A GPU has a thread
for each column, which computes scalars, such as the factor of a row or a channel, as soon as it would get
them from elsewhere: every launch is deepened that has only those in front.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...analysis.products import find_product
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp
from ...dialects.tile import LaunchOp
from ..schedule.deepen import DeepenPass, deepen, find_loop
from .recipe import MachineRecipe, Taken
from .tileify import is_scalar


def deepened(launch: LaunchOp) -> LaunchOp:
    """A copy of a launch with as many axes as it can get."""
    copy = launch.clone()
    while isinstance(loop := find_loop(copy), ForOp):
        deepen(copy, loop)
    return copy


@dataclass(frozen=True)
class DeepenLaunchPass(MachineRecipe):
    """Make contractions out of launches over rows that compute something in front of the columns."""

    name = "deepen-launch"

    def take(self, launch: LaunchOp) -> Taken | str:
        make_deeper = spread if self.machine.is_gpu else _make_contraction
        made = make_deeper(launch)
        return made if isinstance(made, str) else Taken("its columns are an axis", [DeepenPass(loops=made)])


def _make_contraction(launch: LaunchOp) -> int | str:
    """Deepen a launch to a contraction; gives by how many loops, or why not."""
    loop = find_loop(launch)
    if isinstance(loop, str):
        return loop
    trial = deepened(launch)
    product = find_product(trial)
    if isinstance(product, str):
        trial.drop_all_references()
        return product
    assert launch.parent is not None
    trial.location = launch.location
    launch.parent.insert_op_before(trial, launch)
    count = len(trial.axes) - len(launch.axes)
    launch.detach()
    launch.erase()
    return count


def spread(launch: LaunchOp) -> int | str:
    """Deepen a launch as long as only scalars stand in front of a loop; gives how often, or why not."""
    loop, count = find_loop(launch), 0
    if isinstance(loop, str):
        return loop
    while isinstance(loop, ForOp) and _only_scalars_before(loop):
        deepen(launch, loop)
        loop, count = find_loop(launch), count + 1
    return count or "more than scalars stand in front of its loop"


def _only_scalars_before(loop: ForOp) -> bool:
    """Whether each iteration of a loop may repeat what stands in front of it.

    A check may be repeated, but is not to be lost with a loop that never runs.
    """
    assert loop.parent is not None
    return all(
        op is loop
        or is_scalar(op)
        or (not loop.never_runs and isinstance(op, AssertOp | CheckedIndexOp))
        for op in loop.parent.ops
    )
