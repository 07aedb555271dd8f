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
copy engine brings what it fetches once to the shared memory of both, so the cache has less to give. So with
rows that threads hold, as those of queries, and keys and values. Blocks of a cluster wait for each other in
each chunk; where their loops end at limits of their own, all go on to the last of these.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import BlockArgument
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.conditions import slope_along
from ...analysis.copies import bulk_refusal
from ...analysis.launches import launches_of
from ...dialects.affine import replace_dims
from ...dialects.index import Index, index_properties
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp
from ...dialects.schedule import Transport
from ...dialects.tile import LaunchOp, Level, StageOp
from ...dialects.tile_mma import WgmmaOp
from ..decisions import record
from .block_axes import split_counter

CHOICES = ("cluster_m", "cluster_n")


@dataclass(frozen=True)
class Cluster:
    """The axis along which blocks form clusters, how many, and the slabs that these share."""

    counter: BlockArgument
    count: int
    shared: list[StageOp]


def find_cluster(launch: LaunchOp, choice: str, count: int) -> Cluster | str:
    """What a choice of a schedule asks for, or why it cannot be."""
    products = [op for op in ops_in(launch) if isinstance(op, WgmmaOp)]
    if not products:
        return "no warpgroups multiply slabs"
    rows = {op.rows for op in products if op.rows}
    columns = {op.columns for op in products}
    along, across = (rows, columns) if choice == "cluster_m" else (columns, rows)
    stages = [op for op in ops_in(launch) if isinstance(op, StageOp)]
    moving = [stage for stage in stages if stage.slab in along]
    shared = [stage for stage in stages if stage.slab in across]
    counter = (
        _counter(launch, moving, shared) if moving or any(op.held for op in products) else None
    )
    if counter is None:
        return "no axis of blocks has slabs of its own and others that are the same"
    blocks = launch.axes.data[counter.index].extent.data
    if not isinstance(blocks, int) or blocks % count:
        return f"{blocks} blocks are no whole clusters of {count}"
    for stage in shared:
        if (reason := _unshared(launch, stage, counter, count)) is not None:
            return reason
    return Cluster(counter, count, shared)


def _counter(
    launch: LaunchOp, moving: list[StageOp], shared: list[StageOp]
) -> BlockArgument | None:
    """The last axis of blocks on which some slabs depend, or what threads hold, and others do not."""
    fixed = {value for stage in shared for value in stage.origin}
    moved = {value for stage in moving for value in stage.origin}
    counters = [
        argument
        for argument, axis in zip(launch.body.block.args, launch.axes, strict=True)
        if axis.level.data is Level.BLOCK
        and argument not in fixed
        and (argument in moved or not moving)
    ]
    return counters[-1] if counters and shared else None


def _unshared(launch: LaunchOp, stage: StageOp, counter: BlockArgument, count: int) -> str | None:
    """Why the blocks of a cluster cannot share a slab, or None."""
    loop = stage.parent_op()
    if not isinstance(loop, ForOp) or loop.parent_op() is not launch:
        return "its slabs are not those of one loop"
    if loop.limit is not None and last_limit(loop, counter, count) is None:
        return "it is not known which of its blocks ends last"
    if stage.transport is not Transport.TMA:
        return "a slab goes by other ways than tma"
    stage.multicast = IntegerAttr(count, i64)
    refusal = bulk_refusal(stage, stage.swizzle_bytes)
    stage.multicast = None
    return refusal


def last_limit(loop: ForOp, counter: BlockArgument, count: int) -> Index | None:
    """The largest limit of a loop in the cluster that a block, numbered by a counter, is in.

    None if that is not the one of its first or of its last block.
    """
    assert loop.limit is not None
    operands = list(loop.limit_operands)
    rises = slope_along(loop.limit, operands, counter)
    if rises is None:
        return None
    at = [AffineExpr.dimension(i) for i in range(len(operands))]
    for i, value in enumerate(operands):
        if value is counter:
            at[i] = at[i] // count * count + (count - 1 if rises > 0 else 0)
    return [replace_dims(loop.limit, at)], operands


def form_cluster(launch: LaunchOp, found: Cluster) -> None:
    """Let the blocks of a launch form clusters."""
    loops = dict.fromkeys(stage.parent_op() for stage in found.shared)
    for loop in loops:
        assert isinstance(loop, ForOp)
        if loop.limit is not None:
            last = last_limit(loop, found.counter, found.count)
            assert last is not None
            loop.limit_map, operands = index_properties(last)
            loop.operands = operands
    blocks = [axis for axis in launch.axes if axis.level.data is Level.BLOCK]
    split_counter(launch, found.counter, found.count, len(blocks), Level.CLUSTER)
    for stage in found.shared:
        stage.multicast = IntegerAttr(found.count, i64)


@dataclass(frozen=True)
class FormClustersPass(ModulePass):
    """Let blocks form clusters where the schedule has `cluster_m` or `cluster_n`."""

    name = "form-clusters"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel, launch in launches_of(op):
            name = kernel.sym_name.data
            choice = next((c for c in CHOICES if launch.schedule and launch.schedule.get(c)), None)
            if choice is None or launch.schedule is None:
                record(self.name, name, False, "the schedule asks for none", launch)
                continue
            found = find_cluster(launch, choice, launch.schedule.number(choice))
            if isinstance(found, str):
                launch.schedule = launch.schedule.without(choice)
                record(self.name, name, False, found, launch)
                continue
            form_cluster(launch, found)
            hints = ", ".join(dict.fromkeys(s.slab.name_hint or "a slab" for s in found.shared))
            record(self.name, name, True, f"clusters of {found.count} blocks share {hints}", launch)
