"""`form-clusters`: neighbouring blocks run at the same time, and each fetches a part of what all read.

    tile.launch (%i = 4 : block, %j = 74 : block, ...) schedule(#tile.schedule<..., cluster_m = 2>) {
      ...
        %xs = tile.stage %x[%i * 128, %k * 64] via tma ...
        %ws = tile.stage %w[%j * 256, %k * 64] via tma ...
becomes
    tile.launch (%i_part = 2 : block, %j = 74 : block, %i_in = 2 : cluster, ...) ... {
      ...
        %xs = tile.stage %x[%i_part * 256 + %i_in * 128, %k * 64] via tma ...
        %ws = tile.stage %w[%j * 256, %k * 64] via tma ... multicast 2

Two blocks that stand one below the other multiply by the same columns, two side by side the same rows. The
copy engine brings what it fetches once to the shared memory of both, so the cache has less to give. Blocks of
a cluster wait for each other in each chunk; those whose loops end at a limit of their own do not form any.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import BlockArgument

from ...analysis.copies import bulk_refusal
from ...dialects.inside import ops_of
from ...dialects.loop import ForOp
from ...dialects.tile import LaunchOp, Level, StageOp, arguments_behind
from ...dialects.tile_mma import WgmmaOp
from ..schedule.bind import BindPass
from ..schedule.primitive import carry_out
from ..schedule.split import in_parts
from .filled_slabs import fill_slabs
from .recipe import Recipe, Taken

CHOICES = ("cluster_m", "cluster_n")


@dataclass(frozen=True)
class Cluster:
    """The axis along which blocks form clusters, how many, and the slabs that these share."""

    counter: BlockArgument
    count: int
    shared: list[StageOp]


def find_cluster(launch: LaunchOp, choice: str, count: int) -> Cluster | str:
    """What a choice of a schedule asks for, or why it cannot be."""
    products = ops_of(launch, WgmmaOp)
    if not products:
        return "no warpgroups multiply slabs"
    rows = {op.rows for op in products if op.rows}
    columns = {op.columns for op in products}
    along, across = (rows, columns) if choice == "cluster_m" else (columns, rows)
    stages = ops_of(launch, StageOp)
    moving = [stage for stage in stages if stage.slab in along]
    shared = [stage for stage in stages if stage.slab in across]
    counter = _counter(launch, moving, shared)
    if counter is None:
        return "no axis of blocks has slabs of its own and others that are the same"
    blocks = launch.axes.data[counter.index].extent.data
    if not isinstance(blocks, int) or blocks % count:
        return f"{blocks} blocks are no whole clusters of {count}"
    for stage in shared:
        if (reason := _unshared(launch, stage, count)) is not None:
            return reason
    return Cluster(counter, count, shared)


def _counter(
    launch: LaunchOp, moving: list[StageOp], shared: list[StageOp]
) -> BlockArgument | None:
    """The last axis of blocks on which some slabs depend, and others do not."""
    fixed = arguments_behind(value for stage in shared for value in stage.origin)
    moved = arguments_behind(value for stage in moving for value in stage.origin) - fixed
    counters = [
        argument
        for argument, axis in zip(launch.body.block.args, launch.axes, strict=True)
        if axis.level.data is Level.BLOCK and argument in moved
    ]
    return counters[-1] if counters and shared else None


def _unshared(launch: LaunchOp, stage: StageOp, count: int) -> str | None:
    """Why the blocks of a cluster cannot share a slab, or None."""
    loop = stage.parent_op()
    if not isinstance(loop, ForOp) or loop.parent_op() is not launch or loop.limit is not None:
        return "its slabs are not those of one loop that all blocks run equally often"
    stage.multicast = IntegerAttr(count, i64)
    refusal = bulk_refusal(stage, stage.swizzle_bytes)
    stage.multicast = None
    return refusal


@dataclass(frozen=True)
class FormClustersPass(Recipe):
    """Let blocks form clusters where the schedule has `cluster_m` or `cluster_n`."""

    name = "form-clusters"

    def take(self, launch: LaunchOp) -> Taken | str:
        choice = next((c for c in CHOICES if launch.schedule and launch.schedule.get(c)), None)
        if choice is None or launch.schedule is None:
            return "the schedule asks for none"
        found = find_cluster(launch, choice, launch.schedule.number(choice))
        if isinstance(found, str):
            launch.schedule = launch.schedule.without(choice)
            return found
        steps, within = in_parts(launch, found.counter, found.count)
        steps.append(BindPass(axis=within, to="cluster"))
        carry_out(steps, launch)
        steps.append(fill_slabs(launch, "multicast", dict.fromkeys(found.shared, found.count)))
        hints = ", ".join(stage.slab.name_hint or "a slab" for stage in found.shared)
        return Taken(f"clusters of {found.count} blocks share {hints}", steps)
