"""`schedule-rows`: decides how a CPU runs each kernel that is no contraction, and writes it on its launch.

    tile.launch (%i = 1024 : thread) { ... the sum of a row of 4096 ... }
becomes, for a CPU with AVX-512,
    tile.launch (%i = 1024 : thread)
        schedule(#tile.schedule<grain = 4096, prefetch = 4096, width = 512>) { ... }

`blockify-launch` gives blocks their `grain`, `prefetch-sweeps` asks for what lies `prefetch` bytes ahead, and
LLVM makes vectors of `width` bits, `interleave` of them side by side. `analysis/cpu_rows.py` has the model
that decides, for the CPU that `target` names. Choices may be asked for as options:
`schedule-rows{prefetch=0}`; what a kernel cannot have as it is asked for, it does not get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...analysis.cost import FUNCTION_WORK, scalar_work, trips
from ...analysis.cpu_rows import RowProblem, choose_rows, misfit
from ...analysis.windows import rows_overlap, window_elements
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import shape_of
from ...dialects.tile import LaunchOp
from ...machine.targets import get_cpu
from ..asked_choices import asked_choices
from ..decisions import record
from ..schedule.hint import HintPass
from .blockify_launch import work_per_point
from .column_strips import find_strips
from .order_windows import sliding_axes
from .recipe import Recipe


def find_problem(kernel: KernelOp, launch: LaunchOp) -> str | RowProblem:
    """Why nothing is decided for a launch, or what the model needs to know of it."""
    if launch.settled is not None:
        return launch.settled
    points = prod(trips(axis.extent.data) for axis in launch.axes)
    reduces = any(isinstance(op, ForOp) and op.res for op in ops_in(launch))
    work = work_per_point(launch)
    read = [_bytes(argument, points * work) for argument in kernel.input_args]
    strips = find_strips(launch)
    sweeps = _sweeps(launch)
    # What is computed once for a row takes no time beside what is computed for each of its elements.
    loops = ops_of(launch, ForOp) if reduces else [launch]
    computes = any(scalar_work(op) >= FUNCTION_WORK for loop in loops for op in ops_in(loop))
    return RowProblem(
        points,
        work,
        sum(read),
        arrays=sum(1 for each in read if 2 * each >= max(read)),
        reduces=reduces,
        computes=computes,
        divides=reduces and any(isinstance(op, arith.DivfOp) for op in ops_in(launch)),
        sweeps=len(sweeps),
        waits=_waits(sweeps),
        converts=_converts(sweeps),
        loads=max((len(ops_of(sweep, LoadOp)) for sweep in sweeps), default=1),
        dynamic=any(not isinstance(sweep.extent.data, int) for sweep in sweeps),
        window=window_elements(launch) or 1,
        overlaps=rows_overlap(launch),
        image=_image(launch),
        strip=0 if strips is None else strips.size,
        strips=() if strips is None else tuple(strips.sizes),
    )


def _sweeps(launch: LaunchOp) -> list[ForOp]:
    """The loops of a launch, one after the other; none if some stand under a condition."""
    loops = [loop for loop in ops_of(launch, ForOp) if not isinstance(loop.parent_op(), ForOp)]
    return loops if all(loop.parent_op() is launch for loop in loops) else []


def _waits(sweeps: Sequence[ForOp]) -> bool:
    """Whether sweeps fold more than once, divide, or convert what they read."""
    folds = sum(1 for sweep in sweeps if sweep.res)
    divide = any(isinstance(op, arith.DivfOp) for sweep in sweeps for op in ops_in(sweep))
    return folds > 1 or divide or _converts(sweeps)


def _converts(sweeps: Sequence[ForOp]) -> bool:
    return any(isinstance(op, arith.ExtFOp) for sweep in sweeps for op in ops_in(sweep))


def _image(launch: LaunchOp) -> int:
    """The points of the axes that windows slide along, and those inside of them; 1 if these come last."""
    axes = sliding_axes(launch)
    if not axes or window_elements(launch) is None or len(launch.axes) - 1 in axes:
        return 1
    return prod(trips(axis.extent.data) for axis in launch.axes.data[axes[0] :])


def _bytes(array: SSAValue, loads: int) -> int:
    """The bytes of an array that so many loads read at most; of a dynamic one, as its hints say."""
    assert isinstance(array.type, MemRefType)
    type = cast(MemRefType, array.type)
    return storage_bytes(type.element_type) * min(prod(map(trips, shape_of(type))), loads)


@dataclass(frozen=True)
class ScheduleRowsPass(Recipe):
    """Write a schedule on each launch that has none; `target` says for which CPU."""

    name = "schedule-rows"

    target: str = "cpu"
    grain: int | None = None
    prefetch: int | None = None
    width: int | None = None
    interleave: int | None = None
    rows: int | None = None
    strip: int | None = None
    divide: int | None = None

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, cpu = kernel.sym_name.data, get_cpu(self.target)
        if isinstance(problem := find_problem(kernel, launch), str):
            record(self.name, name, False, problem, launch)
            return
        fits = partial(misfit, problem, cpu=cpu)
        best, why = asked_choices(self, name, choose_rows(problem, cpu), fits, launch)
        launch.schedule = ScheduleAttr(**best.written)
        ahead = f"{best.prefetch} bytes ahead" if best.prefetch else "nothing ahead"
        reason = f"blocks of about {best.grain} accesses, asking for {ahead}, in vectors of "
        count = f", {best.interleave} at once" if best.interleave else ""
        count += f", {best.rows} rows side by side" if best.rows > 1 else ""
        count += ", divided and not multiplied" if best.divide else ""
        count += f", strips of {best.strip} columns" if best.strip else ""
        hints = HintPass()
        for choice, value in best.written.items():
            hints = hints if choice == "grain" else replace(hints, **{choice: value})
        told = f"{reason}{best.width} bits{count}{why}"
        record(self.name, name, True, told, launch, steps=[hints])
