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

from dataclasses import dataclass, field
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.cost import executions, hints_of, trips
from ...analysis.launches import launches_of
from ...analysis.vectors import VECTOR
from ...dialects.inside import ops_in
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import ForOp, LoadOp, StoreOp, TestOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import Extent, ceil_div, extent_expr
from ...dialects.tile import AxisAttr, CombineOp, LaunchOp, Level, PrefixOp, StageOp
from ...errors import UsageError
from ...index.affine import ZERO, product
from ...machine.targets import Target, get_target
from ..decisions import record
from ..loop.hoist_invariants import hoist_from
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
from .masks import mask_contributions
from .rewrite_indices import rewrite_index

INDEX = IndexType()


@dataclass
class _Rebuild:
    """The new launch under construction: its axes, counters, and each old counter's expression."""

    axes: list[AxisAttr] = field(default_factory=list[AxisAttr])
    counters: list[SSAValue] = field(default_factory=list[SSAValue])
    exprs: list[AffineExpr] = field(default_factory=list[AffineExpr])

    def counter(self, value: SSAValue, name: str) -> AffineExpr:
        """The expression of a new counter."""
        value.name_hint = name
        self.counters.append(value)
        return AffineExpr.dimension(len(self.counters) - 1)


def blockify_contraction(launch: LaunchOp, schedule: ScheduleAttr) -> Extent:
    """Give each block the rows and columns that a schedule says; a thread for each, as yet.

    Gives the number of blocks. The schedule's axes become those that count within a block.
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
    rows = schedule.get("block_m") != 1
    blockify(launch, splits, schedule.with_choices(m=first, n=first + rows))
    return prod(split.blocks for split in splits)


def partition(
    launch: LaunchOp, splits: list[Split], schedule: ScheduleAttr
) -> tuple[LaunchOp, list[AffineExpr], list[SSAValue]]:
    """Replace the axes of a launch by block axes and thread axes, with no condition where they are ragged.

    Gives the new launch, expressions that are at least zero inside of ragged axes, and what they count.
    """
    state, block, _ = _share_axes(launch, splits)
    _move_body(launch, Builder(InsertPoint.at_end(block)))
    new = _finish(launch, state, block, schedule)
    return new, _ends(state, splits), state.counters


def blockify(launch: LaunchOp, splits: list[Split], schedule: ScheduleAttr) -> LaunchOp:
    """Replace the axes of a launch by block axes, thread axes and serial loops; gives the new launch."""
    state, block, names = _share_axes(launch, splits)
    builder = Builder(InsertPoint.at_end(block))
    for axis, split in enumerate(splits):
        if split.serial == 1:
            continue
        whole = split.serial == split.extent
        name = names[axis] if whole else f"{names[axis]}_serial"
        loop, builder = _enter_loop(builder, split.serial)
        counter = state.counter(loop.induction_var, name)
        state.exprs[axis] = state.exprs[axis] + counter * split.threads
    if ends := _ends(state, splits):
        inside = builder.insert(TestOp(ends, state.counters))
        guarded = scf.IfOp(inside.result, [], Region(Block([scf.YieldOp()])))
        builder.insert(guarded)
        builder = _end_of(guarded.true_region)
    vectors: list[ForOp] = []
    tails: list[tuple[ForOp, AffineExpr, Extent]] = []
    for axis, split in enumerate(splits):
        if split.vector == 1:
            continue
        loop, builder = _enter_loop(builder, split.vector)
        loop.attributes[VECTOR] = UnitAttr()
        vectors.append(loop)
        first = state.exprs[axis] * split.vector
        state.exprs[axis] = first + state.counter(loop.induction_var, "e")
        if split.has_tail:
            tails.append((loop, first, split.extent))
    _move_body(launch, builder)
    new = _finish(launch, state, block, schedule)
    for loop, first, extent in tails:
        _add_tail(loop, first, extent, state.counters)
    for loop in vectors:
        hoist_from(loop)
    return new


def _share_axes(launch: LaunchOp, splits: list[Split]) -> tuple[_Rebuild, Block, list[str]]:
    """The block and thread axes of a new launch, its body, and the names of the old axes."""
    state = _Rebuild(exprs=[ZERO] * len(splits))
    block = Block()
    names = [a.name_hint or f"i{n}" for n, a in enumerate(launch.body.block.args)]
    for level in (Level.BLOCK, Level.THREAD):
        for axis, split in enumerate(splits):
            extent = split.blocks if level is Level.BLOCK else split.threads
            if extent == 1:
                continue
            whole = split.blocks == split.extent or split.threads == split.extent
            name = names[axis] if whole else f"{names[axis]}_{level}"
            counter = state.counter(block.insert_arg(INDEX, len(block.args)), name)
            scale = split.threads * split.serial if level is Level.BLOCK else 1
            state.exprs[axis] = state.exprs[axis] + product(counter, extent_expr(scale))
            state.axes.append(AxisAttr(extent, level))
    return state, block, names


def _ends(state: _Rebuild, splits: list[Split]) -> list[AffineExpr]:
    """What is at least zero inside of each ragged axis; one with a tail has a condition of its own."""
    return [
        state.exprs[axis] * -1 + extent_expr(split.units - 1)
        for axis, split in enumerate(splits)
        if split.ragged and split.extent != 0 and not split.has_tail
    ]


def _end_of(region: Region) -> Builder:
    assert region.block.last_op is not None
    return Builder(InsertPoint.before(region.block.last_op))


def _enter_loop(builder: Builder, extent: Extent) -> tuple[ForOp, Builder]:
    loop = builder.insert(ForOp(extent, Region(Block(arg_types=[INDEX]))))
    return loop, _end_of(loop.body)


def _move_body(launch: LaunchOp, builder: Builder) -> None:
    for op in list(launch.body.block.ops):
        op.detach()
        builder.insert(op)


def _finish(launch: LaunchOp, state: _Rebuild, block: Block, schedule: ScheduleAttr) -> LaunchOp:
    """Put the new launch in the place of the old one, and its counters in that of the old ones."""
    new = LaunchOp(state.axes, Region(block), schedule)
    new.location = launch.location
    assert launch.parent is not None
    launch.parent.insert_op_before(new, launch)
    old: dict[SSAValue, AffineExpr] = dict(zip(launch.body.block.args, state.exprs, strict=True))
    for op in ops_in(new):
        rewrite_index(op, old, state.counters)
    launch.detach()
    launch.erase()
    return new


def _add_tail(loop: ForOp, first: AffineExpr, extent: Extent, counters: list[SSAValue]) -> None:
    """Run a loop over neighbours from `first` on if all are inside, else those that are one by one."""
    width = loop.extent.data
    before = Builder(InsertPoint.before(loop))
    full = before.insert(TestOp([first * -1 + extent_expr(extent - width)], counters))
    full.result.name_hint = "full"
    tail = loop.clone()
    del tail.attributes[VECTOR]
    tail.induction_var.name_hint = loop.induction_var.name_hint
    mask_contributions(
        tail,
        [first * -1 + AffineExpr.dimension(len(counters)) * -1 + extent_expr(extent - 1)],
        [*counters, tail.induction_var],
    )
    then, otherwise = Block(), Block([tail, scf.YieldOp()])
    before.insert(scf.IfOp(full.result, [], Region(then), Region(otherwise)))
    loop.detach()
    then.add_ops([loop, scf.YieldOp()])


def work_per_point(launch: LaunchOp) -> int:
    """Loads and stores that one point of the launch runs, a measure of its work."""
    points = max(prod(trips(axis.extent.data) for axis in launch.axes), 1)
    accesses = sum(executions(o) for o in ops_in(launch) if isinstance(o, LoadOp | StoreOp))
    return max(accesses // points, 1)


@dataclass(frozen=True)
class BlockifyLaunchPass(ModulePass):
    """Partition the thread axes of every launch into blocks and threads.

    `threads` overrides the target's threads per block, `vector` how many neighbours a thread takes at once
    where it can.
    """

    name = "blockify-launch"

    target: str = "sm_90a"
    threads: int | None = None
    vector: int | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        if self.vector not in (None, 1, *WIDTHS):
            raise UsageError(f"vector is 1, 2, 4 or 8, got {self.vector}")
        with hints_of(op):
            for kernel, launch in launches_of(op):
                self._apply(kernel.sym_name.data, launch, target)

    def _vector(self, launch: LaunchOp, threads: int) -> int | str:
        """The neighbours that a thread takes at once, or why one."""
        said = None if launch.schedule is None else launch.schedule.get("vector")
        asked = self.vector or said
        if asked == 1:
            return "the option says so" if self.vector else "the schedule says so"
        found = choose_vector(launch, 1 if asked else threads)
        return min(found, asked or found) if isinstance(found, int) else found

    def _apply(self, name: str, launch: LaunchOp, target: Target) -> None:
        if launch.is_partitioned:
            record(self.name, name, False, "the launch is partitioned already", launch)
            return
        if any(isinstance(o, CombineOp | PrefixOp | StageOp) for o in ops_in(launch)):
            record(self.name, name, False, "its threads already work together", launch)
            return
        if launch.schedule is not None and launch.schedule.get("block_m") is not None:
            blocks = blockify_contraction(launch, launch.schedule)
            record(self.name, name, True, f"{blocks} blocks as the schedule says", launch)
            return
        extents, note = launch.extents(Level.THREAD), ""
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
        blocks, location = prod(s.blocks for s in splits), launch.location
        blockify(launch, splits, schedule)
        per = f"{block} threads" if target.is_gpu else f"{serial} elements"
        record(self.name, name, True, f"{blocks} blocks of {per}{note}", location)
