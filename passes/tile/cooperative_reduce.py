"""`cooperative-reduce`: threads share the sweeps over a row.

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
and in vectors, where the elements lie in aligned ones,
      loop.for %j = 0 to 2 {
        loop.for %e = 0 to 4 { ... %out[%row, (%j * 256 + %lane) * 4 + %e] } attributes {vector}
      }

Thread t visits elements, or vectors, t, t + T, t + 2T, ... of every sweep, so neighbouring threads read
neighbours. Short rows are shared by a part of a warp, and a block has several. `row_shape.py` has the model;
`lanes` and `vector` of the schedule override it, as do the options `lanes`, `rows`, `vector` and `keep`. The
tail of a row and rows past the last one are masked: there a reduction contributes its identity. What stands
between the sweeps every thread computes; what is stored there, one thread stores.

Declined are CPU targets, kernels without a reduction, contractions (operands that depend on different
axes of the launch want a register tile instead), reductions over columns (`chunk-reduce` has them), sweeps in
which neighbouring points read the same, if there are many, and short sweeps that do not run along rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import IndexType, ModuleOp

from ...analysis.coalescing import sectors_of_lane
from ...analysis.cost import trips
from ...analysis.gpu_choices import RowShape
from ...analysis.vectors import accesses_along, is_unit_stride
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import WARP
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import (
    ForOp,
    LoadOp,
)
from ...dialects.schedule import CHOICES, Kept, ScheduleAttr
from ...dialects.tile import MAX_THREADS, CombineOp, LaunchOp, Level, PrefixOp, StageOp
from ...errors import UsageError
from ...machine.targets import Target
from ..schedule import partial_threads
from ..schedule.partial import PartialPass
from ..schedule.partial_threads import sweeps_of, widest_vector
from ..schedule.primitive import Primitive, carry_out
from .blockify_launch import steps_of
from .recipe import GpuRecipe, Taken
from .row_shape import (
    choose_shape,
    most_rows,
    split_rows,
)

INDEX = IndexType()

SHORTEST = 4
"""Elements of a row below which one thread takes it whole."""

ENOUGH_THREADS = 512
"""Threads that a processor has enough to do with, where each has a row."""


def axes_read(load: LoadOp, launch: LaunchOp) -> frozenset[int]:
    """The axes of the launch that a load's index depends on."""
    arguments = list(launch.body.block.args)
    return frozenset(i for i, argument in enumerate(arguments) if argument in load.indices)


def is_contraction(launch: LaunchOp) -> bool:
    """Whether a reduction of the launch reads operands that depend on different axes.

    If one depends on all axes that any does, each of its elements is read once: there is nothing that a tile
    could share, as of a row with a mask, or of a matrix that a vector is multiplied with.
    """
    for sweep in sweeps_of(launch):
        loads = ops_of(sweep, LoadOp)
        axes = {read for load in loads if (read := axes_read(load, launch))}
        if sweep.res and axes and frozenset[int]().union(*axes) not in axes:
            return True
    return False


def is_row_sweep(sweep: ForOp) -> bool:
    """Whether the elements of a sweep are neighbours in memory, for some of its accesses."""
    counter, block = sweep.induction_var, sweep.body.block
    return any(is_unit_stride(op, counter) for op in accesses_along(counter, block))


def reduces_columns(launch: LaunchOp) -> bool:
    """Whether neighbouring points of a launch read neighbours in memory, and no sweep runs along them."""
    if not launch.axes:
        return False
    last = launch.body.block.args[-1]
    sweeps = [sweep for sweep in sweeps_of(launch) if sweep.res]
    loads = [op for s in sweeps for op in accesses_along(last, s.body.block)]
    return any(is_unit_stride(op, last) for op in loads) and not any(map(is_row_sweep, sweeps))


def lanes_share_columns(launch: LaunchOp) -> bool:
    """Whether neighbouring lanes should have neighbouring points of a launch, not elements of one row.

    So it is where the points are neighbours in memory for some load, and lanes along them touch fewer sectors
    than lanes along the sweeps do: in a sum over columns, but not where a row has a factor of its own; in the
    product of a vector with a matrix that lies row by row.
    """
    if not launch.axes:
        return False
    last = (launch.body.block.args[-1], launch.axes.data[-1].extent.data)
    columns, rows, found = 0.0, 0.0, False
    for sweep in [sweep for sweep in sweeps_of(launch) if sweep.res]:
        along = (sweep.induction_var, sweep.extent.data)
        for op in ops_of(sweep, LoadOp):
            found |= is_unit_stride(op, last[0])
            columns += sectors_of_lane(op, last, along)
            rows += sectors_of_lane(op, along)
    return found and columns < rows


def reads_in_common(launch: LaunchOp, target: Target) -> bool:
    """Whether neighbouring points of a launch, of which there are many, read the same in its sweeps.

    So it is where each element of a row is compared with each: the lanes of a warp that have neighbouring
    points get what they read at once, and have nothing to exchange.
    """
    if not launch.axes or trips(launch.axes.data[-1].extent.data) < WARP:
        return False
    last = len(launch.axes) - 1
    loads = [op for s in sweeps_of(launch) if s.res for op in ops_in(s) if isinstance(op, LoadOp)]
    if not loads or any(last in axes_read(load, launch) for load in loads):
        return False
    points = prod(trips(axis.extent.data) for axis in launch.axes)
    return points >= target.processors * ENOUGH_THREADS


def obstacle(launch: LaunchOp) -> str | None:
    """Why threads cannot share the sweeps of a launch, or None if they can."""
    if launch.is_partitioned:
        return "the launch is partitioned already"
    if launch.schedule is not None and launch.schedule.get("block_m") is not None:
        return "the schedule gives each thread a tile of its own"
    if any(isinstance(op, CombineOp | PrefixOp | StageOp) for op in ops_in(launch)):
        return "its threads already work together"
    if (reason := partial_threads.obstacle(launch)) is not None:
        return reason
    if is_contraction(launch):
        return "a contraction: its operands depend on different axes of the launch"
    return None


def decline_reason(launch: LaunchOp, target: Target) -> str | None:
    """Why the sweeps of a launch are not shared by threads along rows, or None if they are."""
    reason = obstacle(launch)
    if reason is not None:
        return reason
    longest = max(sweeps_of(launch), key=lambda sweep: trips(sweep.extent.data))
    length = trips(longest.extent.data)
    if length < SHORTEST:
        return f"the longest sweep has {length} iterations, which one thread runs"
    if lanes_share_columns(launch):
        return "a reduction over columns: neighbouring threads read neighbours as it is"
    if reads_in_common(launch, target):
        return "neighbouring threads read the same elements as it is"
    if length < WARP and not is_row_sweep(longest):
        return f"the longest sweep has {length} iterations, which are not neighbours in memory"
    return None


def cooperate(launch: LaunchOp, shape: RowShape, *, columns: bool = False) -> list[Primitive]:
    """Let `shape.lanes` threads share the sweeps over each point of the launch; gives the steps.

    Neighbouring threads are lanes of one row; with `columns`, they are neighbouring points.
    """
    schedule = ScheduleAttr(threads=shape.threads)
    if shape.vector > 1:
        schedule = schedule.with_choices(vector=shape.vector)
    if shape.keep != Kept.REGISTERS:
        schedule = schedule.with_choices(keep=shape.keep)
    for later in ("keep", "transport"):
        if launch.schedule is not None and (word := launch.schedule.word(later)) is not None:
            schedule = schedule.with_choices(**{later: word})
    launch.schedule = None
    steps = steps_of(launch, split_rows(launch.extents(Level.THREAD), shape.rows))
    lanes, vector = shape.lanes, shape.vector
    steps.append(PartialPass(across="thread", parts=lanes, vector=vector, columns=columns))
    carry_out(steps, launch)
    launch.schedule = schedule
    return steps


@dataclass(frozen=True)
class CooperativeReducePass(GpuRecipe):
    """Let threads share the sweeps of every row kernel.

    Options override the model: `lanes` threads share a row, a block has `rows`, a thread takes `vector`
    neighbours at once where it can, and what several sweeps read is kept as `keep` says. Raises UsageError
    for what no launch can have.
    """

    name = "cooperative-reduce"

    lanes: int | None = None
    rows: int | None = None
    """Rows of a block."""
    vector: int | None = None
    keep: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for option, value in (("lanes", self.lanes), ("rows", self.rows)):
            if value is not None and (not 0 < value <= MAX_THREADS or value & (value - 1)):
                limit = f"a power of two, at most {MAX_THREADS}"
                raise UsageError(f"{option} is {limit}, got {value}")
        if self.vector is not None and self.vector not in (1, *WIDTHS):
            raise UsageError(f"vector is 1, 2, 4 or 8, got {self.vector}")
        if self.keep not in (None, *Kept):
            raise UsageError(f"keep is one of {', '.join(CHOICES['keep'].values)}, got {self.keep}")
        super().apply(ctx, op)

    def _shape(self, launch: LaunchOp) -> RowShape:
        """The shape of the model, with what options and schedule say as far as it can be done."""
        best = choose_shape(launch, self.machine)
        schedule = launch.schedule or ScheduleAttr()
        lanes = self.lanes or schedule.get("lanes") or best.lanes
        rows = min(self.rows or best.rows, most_rows(launch), MAX_THREADS // lanes)
        vector = self.vector or schedule.get("vector") or best.vector
        keep = self.keep or best.keep
        return RowShape(lanes, rows, min(vector, widest_vector(launch)), keep)

    def take(self, launch: LaunchOp) -> Taken | str:
        if (reason := decline_reason(launch, self.machine)) is not None:
            return reason
        longest = max((sweep.extent.data for sweep in sweeps_of(launch)), key=trips)
        shape = self._shape(launch)
        steps = cooperate(launch, shape)
        reason = f"{shape.lanes} threads share each sweep of up to {longest} elements"
        if shape.vector > 1:
            reason += f", in vectors of {shape.vector}"
        if shape.rows > 1:
            reason += f"; a block has {shape.rows} rows"
        return Taken(reason, steps)
