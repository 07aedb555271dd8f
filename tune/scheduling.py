"""The passes that write schedules, and what each has to decide for a kernel as it meets it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..analysis import cpu_problems
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp
from ..machine.cpus import Cpu
from ..machine.targets import Target
from ..passes.tile import online_softmax, schedule_rows
from ..passes.tile.cooperative_reduce import CooperativeReducePass
from ..passes.tile.online_softmax import OnlineSoftmaxPass
from ..passes.tile.schedule import SchedulePass
from ..passes.tile.schedule_cpu import ScheduleCpuPass
from ..passes.tile.schedule_rows import ScheduleRowsPass
from ..runtime.threads import thread_count
from .gpu_spaces import find_shape_space, find_tiling_space
from .spaces import RowSpace, SoftmaxSpace, Space, TilingSpace

Find = Callable[[KernelOp, LaunchOp, Target], Space | str]
"""What a pass decides for a kernel that is one launch, as it meets it; or why it decides nothing."""


def cpu_of(target: Target) -> Cpu:
    """The core of a target that is a CPU."""
    assert target.cpu is not None
    return target.cpu


def _softmaxes(kernel: KernelOp, launch: LaunchOp, target: Target) -> Space | str:
    found = online_softmax.find_problem(kernel, cpu_of(target))
    if isinstance(found, str):
        return found
    return SoftmaxSpace(found[1], cpu_of(target), thread_count())


def _tilings(kernel: KernelOp, launch: LaunchOp, target: Target) -> Space | str:
    found = cpu_problems.find_problem(launch)
    if isinstance(found, str):
        return found
    return TilingSpace(found[1], cpu_of(target), thread_count())


def _rows(kernel: KernelOp, launch: LaunchOp, target: Target) -> Space | str:
    found = schedule_rows.find_problem(kernel, launch)
    if isinstance(found, str):
        return found
    return RowSpace(found, cpu_of(target), thread_count())


def _gpu_tilings(kernel: KernelOp, launch: LaunchOp, target: Target) -> Space | str:
    return find_tiling_space(kernel, target)


def _gpu_rows(kernel: KernelOp, launch: LaunchOp, target: Target) -> Space | str:
    return find_shape_space(kernel, launch, target)


SchedulingPass = (
    OnlineSoftmaxPass | ScheduleCpuPass | ScheduleRowsPass | SchedulePass | CooperativeReducePass
)

_CPU: dict[str, Find] = {
    OnlineSoftmaxPass.name: _softmaxes,
    ScheduleCpuPass.name: _tilings,
    ScheduleRowsPass.name: _rows,
}

_GPU: dict[str, Find] = {
    SchedulePass.name: _gpu_tilings,
    CooperativeReducePass.name: _gpu_rows,
}


def scheduling_for(target: Target) -> Mapping[str, Find]:
    """The passes that write schedules for a target, by name."""
    return _GPU if target.is_gpu else _CPU
