"""`scan-rows`: the threads of a block share a running fold, instead of each place folding alone.

The step is `scan`; this pass says along which axis, and by how many threads: lanes for each vector of a row,
as far as a block has them. Where neighbours in memory are no neighbours of a fold, they are columns, and the
lanes of a warp have these. Short rows share a block.

Declined is what `scan` declines, parts of few places, and of more than the threads of a block can keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from ...analysis.cost import trips
from ...analysis.vectors import is_unit_stride
from ...dialects.inside import ops_in
from ...dialects.kernel import WARP
from ...dialects.loop import LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import MAX_THREADS, LaunchOp, Level
from ...machine.targets import Target
from ..replacing import replace
from ..schedule.scan import Scan, ScanPass, find_scan, share, terms_of, widest_vector
from .named_axes import name_axes
from .recipe import GpuRecipe, Taken
from .row_shape import covering, rows_per_block
from .running_folds import runs

MOST_KEPT = 128
"""Registers that a thread may have for terms: what does not fit is still sooner there than folded again."""

LEAST = 4
"""Places of a column that a thread has at least."""


def _choose(launch: LaunchOp, scan: Scan, name: str, target: Target) -> ScanPass:
    """Lanes for each vector of a row, as far as a block has them; for columns, whole warps along them."""
    extents = [axis.extent.data for axis in launch.axes]
    del extents[scan.axis]
    if _runs_along_columns(launch, scan):
        others = min(covering(extents[-1]), WARP)
        lanes = min(covering(-(-scan.part // LEAST)), WARP)
        each = -(-scan.part // lanes)
        return ScanPass("", name, scan.part, lanes, each, others, columns=True)
    vector = widest_vector(launch, scan)
    units = scan.part // vector
    lanes = min(covering(units), MAX_THREADS)
    rows = rows_per_block(prod(map(trips, extents)), lanes, target)
    room = prod(map(covering, extents))
    each = -(-units // lanes) * vector
    return ScanPass("", name, scan.part, lanes, each, min(rows, room), vector)


def _runs_along_columns(launch: LaunchOp, scan: Scan) -> bool:
    """Whether the terms are neighbours along the last other axis, and not along the fold."""
    others = [v for n, v in enumerate(launch.body.block.args) if n != scan.axis]
    loads = [(op, loop) for loop in terms_of(launch) for op in ops_in(loop) if isinstance(op, LoadOp)]
    if not others or any(is_unit_stride(op, loop.induction_var) for op, loop in loads):
        return False
    return any(is_unit_stride(op, others[-1]) for op, _ in loads)


def _change(launch: LaunchOp, target: Target) -> ScanPass | str:
    """Share the running folds of a launch; gives the step, or why it has none."""
    if launch.settled is not None:
        return launch.settled
    reasons: dict[str, None] = {}
    for axis, part in runs(launch):
        name = name_axes(launch)[axis]
        copy = launch.clone()
        copy.location = launch.location
        scan = find_scan(copy, axis, part)
        if isinstance(scan, str):
            reasons[scan] = None
            continue
        step = _choose(copy, scan, name, target)
        if (registers := step.each * _words(copy)) > MOST_KEPT:
            reasons[f"a thread would keep {registers} registers of terms"] = None
            continue
        replace(launch, copy)
        share(copy, scan, step.shape)
        threads = prod(copy.extents(Level.THREAD))
        assert isinstance(threads, int)
        schedule = ScheduleAttr(threads=threads)
        copy.schedule = schedule.with_choices(vector=step.vector) if step.vector > 1 else schedule
        return step
    return "; ".join(reasons) or "no reduction ends at the place of an axis"


def _words(launch: LaunchOp) -> int:
    """Registers of the terms of a place."""
    return sum(
        -(-storage_bytes(result.type) // 4) for loop in terms_of(launch) for result in loop.res
    )


@dataclass(frozen=True)
class ScanRowsPass(GpuRecipe):
    """Needs launches whose axes are not shared out yet; leaves running folds that threads share."""

    name = "scan-rows"

    def take(self, launch: LaunchOp) -> Taken | str:
        step = _change(launch, self.machine)
        return step if isinstance(step, str) else Taken(step.done, [step])
