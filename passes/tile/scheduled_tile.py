"""The step `tensorize` that the choices of a launch's schedule come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...dialects.tile import LaunchOp
from ...machine.matrix_instructions import WGMMA, MatrixInstruction
from ..schedule.tensorize import TensorizePass
from .named_axes import name_axes
from .warp_tiles import find_product


def scheduled_tile(
    launch: LaunchOp, instructions: Sequence[MatrixInstruction] | None = None
) -> TensorizePass | str:
    """The tile of each thread that the schedule of a launch says, or why it says none.

    The first of the instructions that fits multiplies, threads by themselves if none is given.
    """
    schedule, names = launch.schedule, name_axes(launch)
    if schedule is None or schedule.get("thread_m") is None or schedule.get("thread_n") is None:
        return "the schedule gives threads no tiles"
    if schedule.get("threads") is not None:
        return "the tiles are in registers already"
    keys = {axis: key for key in ("m", "n") if (axis := schedule.get(key)) is not None}
    if not keys:
        return "a block has one row and one column"
    axes = {axis: schedule.number(f"thread_{key}") for axis, key in keys.items()}
    step = TensorizePass(axes=tuple(names[axis] for axis in axes), by=tuple(axes.values()))
    if instructions is None:
        strips = (schedule.get(f"strip_{key}") for key in keys.values())
        listed = tuple(each or size for each, size in zip(strips, step.by, strict=True))
        return replace(step, strips=listed if listed != step.by else ())
    if len(axes) != 2:
        return "its threads count more than rows and columns"
    (m, rows), (n, columns) = axes.items()
    found = find_product(launch, instructions, (m, n), (rows, columns))
    if isinstance(found, str):
        return found
    return replace(step, instr="wgmma" if found.row is WGMMA else found.row.name)
