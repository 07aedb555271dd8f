"""`cooperative-reduce`: the threads of a block share the sweeps over one row.

    tile.launch (%row = 32 : thread) {
      %s = loop.for %k = 0 to 2048 reduce(add) -> f32 { ... %x[%row, %k] ... }
      loop.for %j = 0 to 2048 { ... loop.store %y, %out[%row, %j] }
    }
becomes
    tile.launch (%row = 32 : block, %lane = 256 : thread) schedule(#tile.schedule<threads = 256>) {
      %p = loop.for %k = 0 to 8 reduce(add) -> f32 { ... %x[%row, %k * 256 + %lane] ... }
      %s = tile.combine add %p over(%lane) : f32
      loop.for %j = 0 to 8 { ... loop.store %y, %out[%row, %j * 256 + %lane] }
    }

Each row becomes a block. Thread t visits elements t, t + T, t + 2T, ... of every sweep, so neighbouring
threads read neighbouring elements. A tail is masked: past it a reduction contributes its identity. What
stands between the sweeps every thread computes; what is stored there, one thread stores.

Declined are CPU targets, kernels without a reduction, contractions (operands that depend on different
axes of the launch want a register tile instead), and rows shorter than a warp.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.cost import hints_of, trips
from ...analysis.targets import Target, get_target
from ...dialects.kernel import WARP
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp, TestOp
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import extent_expr
from ...dialects.tile import AxisAttr, CombineOp, LaunchOp, Level, StageOp
from ..decisions import record
from .masks import mask_contributions
from .rewrite_indices import rewrite_index

INDEX = IndexType()

ELEMENTS_PER_THREAD = 4
"""Elements of a sweep that a thread visits at least before the block gets more threads."""


def _sweeps(launch: LaunchOp) -> list[ForOp]:
    return [op for op in launch.body.block.ops if isinstance(op, ForOp)]


def axes_read(load: LoadOp, launch: LaunchOp) -> frozenset[int]:
    """The axes of the launch that a load's index depends on."""
    arguments = list(launch.body.block.args)
    return frozenset(i for i, argument in enumerate(arguments) if argument in load.indices)


def is_contraction(launch: LaunchOp) -> bool:
    """Whether a reduction of the launch reads operands that depend on different axes."""
    for sweep in _sweeps(launch):
        loads = [op for op in sweep.walk() if isinstance(op, LoadOp)]
        axes = {read for load in loads if (read := axes_read(load, launch))}
        if sweep.res and len(axes) > 1:
            return True
    return False


def decline_reason(launch: LaunchOp, target: Target) -> str | None:
    """Why the threads of a block do not share the sweeps, or None if they do."""
    if not target.is_gpu:
        return "a block of a CPU has one thread"
    if launch.is_partitioned:
        return "the launch is partitioned already"
    if launch.schedule is not None:
        return "the schedule gives each thread a tile of its own"
    if any(isinstance(op, CombineOp | StageOp) for op in launch.walk()):
        return "its threads already work together"
    sweeps = _sweeps(launch)
    if not any(sweep.res for sweep in sweeps):
        return "no reduce loop in the body"
    longest = max(trips(sweep.extent.data) for sweep in sweeps)
    if longest < WARP:
        return f"the longest sweep has {longest} iterations, fewer than the {WARP} lanes of a warp"
    between = [op for op in launch.body.block.ops if not isinstance(op, ForOp | StoreOp)]
    if any(isinstance(inner, StoreOp) for op in between for inner in op.walk()):
        return "it stores under a condition between the sweeps"
    if is_contraction(launch):
        return "a contraction: its operands depend on different axes of the launch"
    return None


def choose_threads(longest: int, target: Target) -> int:
    """A power of two from a warp to the target's block, by the length of the longest sweep."""
    threads = WARP
    while threads < target.threads and threads * ELEMENTS_PER_THREAD < longest:
        threads *= 2
    return threads


def cooperate(launch: LaunchOp, threads: int) -> None:
    """Make each point of the launch a block whose threads share its sweeps."""
    lane = launch.body.block.insert_arg(INDEX, len(launch.axes))
    lane.name_hint = "lane"
    axes = [AxisAttr(axis.extent.data, Level.BLOCK) for axis in launch.axes]
    new = LaunchOp(
        [*axes, AxisAttr(threads, Level.THREAD)],
        launch.detach_region(launch.body),
        ScheduleAttr(threads=threads),
    )
    new.location = launch.location
    assert launch.parent is not None
    launch.parent.insert_op_before(new, launch)
    launch.detach()
    launch.erase()
    for op in list(new.body.block.ops):
        if isinstance(op, ForOp):
            _share_sweep(op, lane, threads)
        elif isinstance(op, StoreOp):
            _store_once(op, lane)


def _share_sweep(sweep: ForOp, lane: SSAValue, threads: int) -> None:
    """Let a loop visit every `threads`-th element from `lane` on, and combine what it reduces."""
    extent = sweep.extent.data
    visits = (extent + (threads - 1)) // threads
    counter = sweep.induction_var
    whole = AffineExpr.dimension(0) * threads + AffineExpr.dimension(1)
    shared = ForOp(
        visits,
        sweep.detach_region(sweep.body),
        combiners=[c.data for c in sweep.combiners],
        result_types=list(sweep.res.types),
    )
    shared.location = sweep.location
    assert sweep.parent is not None
    sweep.parent.insert_op_before(shared, sweep)
    for op in list(shared.walk()):
        rewrite_index(op, {counter: whole}, [counter, lane])
    if visits * threads != extent:
        mask_contributions(shared, whole * -1 + extent_expr(extent - 1), [counter, lane])
    after = Builder(InsertPoint.before(sweep))
    for mine, theirs, combiner in zip(sweep.res, shared.res, sweep.combiners, strict=True):
        combined = after.insert(CombineOp(combiner.data, theirs, [lane]))
        combined.location = sweep.location
        combined.result.name_hint = mine.name_hint
        theirs.name_hint = f"{mine.name_hint or 'value'}_part"
        mine.replace_all_uses_with(combined.result)
    sweep.detach()
    sweep.erase()


def _store_once(store: StoreOp, lane: SSAValue) -> None:
    """Let the first thread alone run a store that every thread would repeat."""
    before = Builder(InsertPoint.before(store))
    first = before.insert(TestOp([AffineExpr.dimension(0) * -1], [lane]))
    first.result.name_hint = "first"
    block = Block()
    guard: Operation = scf.IfOp(first.result, [], Region(block))
    guard.location = store.location
    before.insert(guard)
    store.detach()
    block.add_ops([store, scf.YieldOp()])


@dataclass(frozen=True)
class CooperativeReducePass(ModulePass):
    """Let the threads of a block share the sweeps of every row kernel."""

    name = "cooperative-reduce"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_target(self.target)
        with hints_of(op):
            for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
                for launch in [o for o in kernel.walk() if isinstance(o, LaunchOp)]:
                    self._apply(kernel.sym_name.data, launch, target)

    def _apply(self, name: str, launch: LaunchOp, target: Target) -> None:
        reason = decline_reason(launch, target)
        if reason is not None:
            record(self.name, name, False, reason, launch)
            return
        longest = max((sweep.extent.data for sweep in _sweeps(launch)), key=trips)
        threads = choose_threads(trips(longest), target)
        location = launch.location
        cooperate(launch, threads)
        reason = f"{threads} threads share each sweep of up to {longest} elements"
        record(self.name, name, True, reason, location)
