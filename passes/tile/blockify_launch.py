"""`blockify-launch`: the axes of a launch are shared out between blocks and the threads of a block.

    tile.launch (%i = 32 : thread, %j = 18944 : thread) { ... %x[%i, %j] ... }
becomes, with 256 threads,
    tile.launch (%i = 32 : block, %j_block = 74 : block, %j_thread = 256 : thread)
        schedule(#tile.schedule<threads = 256>) { ... %x[%i, %j_block * 256 + %j_thread] ... }

On a GPU a thread takes up to four neighbours at once where they are aligned vectors in memory and every
processor gets a block all the same: the option `vector` says how many. An innermost loop runs over them,
under a condition that holds for all; what an axis has beyond whole vectors runs one by one. What is the same
for all neighbours stands in front of that loop.

Threads are taken from the innermost axes: an axis that is shorter than what is left of the block becomes
threads whole, a longer one is split, and the rest are blocks. If a split leaves a tail, the body runs
under the condition that the index is inside. A CPU block has one thread, so there the innermost axes turn
back into loops until a block has about `serial` elements. A kernel that reads a transposed operand gets
rectangles instead of rows, one that reduces columns gets strips of columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ...analysis.cost import executions, trips
from ...dialects.inside import ops_in
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, ceil_div, static_extent
from ...dialects.tile import LaunchOp, Level
from ...errors import UsageError
from ..schedule.bind import BindPass
from ..schedule.primitive import SHARED, Primitive, carry_out
from ..schedule.split import SplitPass
from .axis_splits import (
    Split,
    choose_vector,
    has_loops,
    split_for_cpu,
    split_in_vectors,
    split_transposed,
    transposed_axis,
)
from .column_strips import find_strips
from .named_axes import name_axes
from .recipe import MachineRecipe, Taken


def blockify_contraction(
    launch: LaunchOp, schedule: ScheduleAttr
) -> tuple[Extent, list[Primitive]]:
    """Give each block the rows and columns that a schedule says; a thread for each, as yet.

    Gives the number of blocks and the steps. The schedule's axes become those that count within a block; one
    row or column needs none.
    """
    sizes = {schedule.get("m"): schedule.get("block_m"), schedule.get("n"): schedule.get("block_n")}
    splits: list[Split] = []
    for axis, extent in enumerate(launch.extents(Level.THREAD)):
        size = sizes.get(axis)
        if size is None:
            splits.append(Split(extent, blocks=extent))
        else:
            splits.append(Split(extent, blocks=ceil_div(extent, size), threads=size))
    first = sum(split.blocks != 1 for split in splits)
    within = [axis for axis, split in enumerate(splits) if split.threads != 1]
    for key in ("m", "n"):
        if (axis := schedule.get(key)) in within:
            schedule = schedule.with_choices(**{key: first + within.index(axis)})
        else:
            schedule = schedule.without(key)
    steps = blockify(launch, splits, schedule)
    return prod(split.blocks for split in splits), steps


def blockify(launch: LaunchOp, splits: list[Split], schedule: ScheduleAttr) -> list[Primitive]:
    """Share the axes of a launch out to blocks, threads and serial loops; gives the steps."""
    steps = steps_of(launch, splits)
    carry_out(steps, launch)
    launch.schedule = schedule
    return steps


def steps_of(launch: LaunchOp, splits: list[Split]) -> list[Primitive]:
    """The primitives that share axes out as `splits` say, one for each axis."""
    steps: list[Primitive] = []
    blocks: list[Primitive] = []
    loops: list[Primitive] = []
    axes = name_axes(launch)
    taken = set(axes)

    def fresh(name: str) -> str:
        while name in taken:
            name += "_inner"
        taken.add(name)
        return name

    for name, split in zip(axes, splits, strict=True):
        parts, within = split.threads * split.serial, name
        is_cut, width = parts not in (1, split.units), split.vector
        element = fresh("e") if width > 1 else ""
        if width > 1 and not (is_cut and split.has_tail):
            steps.append(SplitPass(axis=name, by=width, into=(name, element)))
            steps.append(BindPass(axis=element, to="vector"))
            width = 1
        if is_cut:
            level = "thread" if split.serial == 1 else "serial"
            names = (fresh(f"{name}_block"), fresh(f"{name}_{level}"))
            steps.append(SplitPass(axis=name, by=static_extent(parts) * width, into=names))
            blocks.append(BindPass(axis=names[0], to="block"))
            within = names[1]
        elif parts == 1:
            blocks.append(BindPass(axis=name, to="block"))
        if width > 1:
            steps.append(SplitPass(axis=within, by=width, into=(within, element)))
            steps.append(BindPass(axis=element, to="vector"))
        if split.threads != 1 and split.serial != 1:
            names = (within if is_cut else fresh(f"{name}_serial"), fresh(f"{name}_thread"))
            steps.append(SplitPass(axis=within, by=split.threads, into=names))
            within = names[0]
        if split.serial != 1:
            loops.append(BindPass(axis=within, to="serial"))
    return [*steps, *blocks, *reversed(loops)]


def work_per_point(launch: LaunchOp) -> int:
    """Loads and stores that one point of the launch runs, a measure of its work."""
    points = max(prod(trips(axis.extent.data) for axis in launch.axes), 1)
    accesses = sum(executions(o) for o in ops_in(launch) if isinstance(o, LoadOp | StoreOp))
    return max(accesses // points, 1)


@dataclass(frozen=True)
class BlockifyLaunchPass(MachineRecipe):
    """Partition the thread axes of every launch into blocks and threads.

    `threads` overrides the target's threads per block, `vector` how many neighbours a thread takes at once
    where it can.
    """

    name = "blockify-launch"

    threads: int | None = None
    vector: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.vector not in (None, 1, *WIDTHS):
            raise UsageError(f"vector is 1, 2, 4 or 8, got {self.vector}")
        super().apply(ctx, op)

    def _vector(self, launch: LaunchOp, threads: int) -> int | str:
        """The neighbours that a thread takes at once, or why one."""
        said = None if launch.schedule is None else launch.schedule.get("vector")
        asked = self.vector or said
        if asked == 1:
            return "the option says so" if self.vector else "the schedule says so"
        found = choose_vector(launch, 1 if asked else threads)
        return min(found, asked or found) if isinstance(found, int) else found

    def take(self, launch: LaunchOp) -> Taken | str:
        if launch.is_partitioned:
            return "the launch is partitioned already"
        if any(isinstance(op, SHARED) for op in ops_in(launch)):
            return "its threads already work together"
        if launch.schedule is not None and launch.schedule.get("block_m") is not None:
            blocks, steps = blockify_contraction(launch, launch.schedule)
            return Taken(f"{blocks} blocks as the schedule says", steps)
        extents, note, target = launch.extents(Level.THREAD), "", self.machine
        decided = launch.schedule or ScheduleAttr()
        threads = self.threads or target.threads
        if target.is_gpu:
            vector = self._vector(launch, threads * target.processors)
            note = (
                f"; no vectors: {vector}"
                if isinstance(vector, str)
                else f", in vectors of {vector}"
            )
            splits = split_in_vectors(extents, threads, vector if isinstance(vector, int) else 1)
        elif (axis := transposed_axis(launch)) is not None and not has_loops(launch):
            splits = split_transposed(extents, axis)
        elif (strips := find_strips(launch)) is not None:
            strip = decided.get("strip") or strips.size
            splits = [Split(extent, blocks=extent) for extent in extents]
            splits[-1] = Split(extents[-1], blocks=ceil_div(extents[-1], strip), serial=strip)
        else:
            work = work_per_point(launch)
            grain, rows = decided.get("grain") or target.serial, decided.get("rows") or 1
            loops = has_loops(launch)
            splits = split_for_cpu(extents, work, grain, rows=loops, side_by_side=rows)
        block = prod(s.threads for s in splits)
        serial = prod(trips(s.serial) for s in splits)
        if target.is_gpu:
            schedule = ScheduleAttr(threads=block)
        else:
            left = decided.without("grain")
            if not splits or not splits[-1].ragged:
                left = left.without("strip")
            schedule = left.with_choices(serial=max(serial, 1))
        if (vector := max((s.vector for s in splits), default=1)) > 1:
            schedule = schedule.with_choices(vector=vector)
        blocks = prod(s.blocks for s in splits)
        steps = blockify(launch, splits, schedule)
        per = f"{block} threads" if target.is_gpu else f"{serial} elements"
        return Taken(f"{blocks} blocks of {per}{note}", steps)
