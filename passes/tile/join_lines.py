"""`join-lines`: the columns of a product of matrices go on from one line of an image to the next (GPU).

    tile.launch (%j = 256 : thread, %y = 14 : thread, %x = 14 : thread) {
      ... %image[%k, %y + 1, %x] ... %w[%j, %k] ...
    }
becomes
    tile.launch (%j = 256 : thread, %x = 196 : thread) {
      ... %image[%k, %x floordiv 14 + 1, %x mod 14] ... %w[%j, %k] ...
    }

A block of 56 columns then has four whole lines, which is a box (`analysis/lines.py`). One of 16 would have a
single line, and columns past the end of it.

Declined are CPUs, which join lines when they pack (`collapse-rows`), what tensor cores do not multiply, and
lines of which no block of up to 128 columns has whole ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from xdsl.ir import SSAValue

from ...analysis.borders import loads_through_borders
from ...analysis.contraction import Contraction, axes_of, find_contraction
from ...analysis.factors import choose_instruction
from ...analysis.tiling_choice import MOST_LINES
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp
from ...dialects.tile import LaunchOp
from ...machine.targets import Target
from .collapse_rows import collapse, divides
from .recipe import GpuRecipe, Taken


def decline_reason(launch: LaunchOp, target: Target) -> str | None:
    """Why the columns of a launch end where a line does, or None if they are to go on."""
    if launch.settled is not None:
        return launch.settled
    found = find_contraction(launch)
    if isinstance(found, str):
        return found
    row = choose_instruction(found.sweep, target)
    if row is None:
        return "tensor cores do not multiply it"
    line, lines = (launch.axes.data[axis].extent.data for axis in (found.n, found.n - 1))
    if found.n in (0, found.m + 1) or lines == 1:
        return "there are no lines in front of its columns"
    if not isinstance(line, int) or not isinstance(lines, int):
        return "its lines are of dynamic length or number"
    if lcm(line, row.shape[1]) > MOST_LINES:
        return f"no block of up to {MOST_LINES} columns has whole lines of {line}"
    return None if _count_apart(launch, found) else "lines and columns are not counted apart"


def _count_apart(launch: LaunchOp, found: Contraction) -> bool:
    """Whether only what depends on columns depends on lines, and counts them along axes of their own."""
    line, column = launch.body.block.args[found.n - 1], launch.body.block.args[found.n]
    if any(divides(op, counter) for op in ops_in(launch) for counter in (line, column)):
        return False
    for load in loads_through_borders(found.sweep.body.block):
        axes = axes_of(load, launch)
        if (found.n in axes) != (found.n - 1 in axes):
            return False
        if any({line, column} <= used for used in _counters(load)):
            return False
    return True


def _counters(load: LoadOp) -> list[set[SSAValue]]:
    """What the index along each axis depends on."""
    return [{load.indices[d] for d in expr.used_dims()} for expr in load.map.data.results]


@dataclass(frozen=True)
class JoinLinesPass(GpuRecipe):
    """Make one axis of the lines of an image and of the columns of each, for tensor cores."""

    name = "join-lines"

    def take(self, launch: LaunchOp) -> Taken | str:
        if (reason := decline_reason(launch, self.machine)) is not None:
            return reason
        found = find_contraction(launch)
        assert isinstance(found, Contraction)
        line, lines = (launch.axes.data[axis].extent.data for axis in (found.n, found.n - 1))
        return Taken(f"{lines} lines of {line} are one axis", [collapse(launch, found.n)])
