"""`order-windows`: the axes that windows slide along become the innermost ones of a launch.

    tile.launch (%p = 3136 : thread, %c = 128 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 { ... %x[%c, %p floordiv 56 + %n, %p mod 56 + %m] ... }
      loop.store %s, %y[%p, %c]
    }
becomes
    tile.launch (%c = 128 : thread, %p_part = 56 : thread, %p = 56 : thread) {
      %s = loop.for %n = 0 to 3 reduce(add) -> f32 { ... %x[%c, %p_part + %n, %p + %m] ... }
      loop.store %s, %y[%p_part * 56 + %p, %c]
    }

So a block copies what its windows read (`stage-windows`), and computes neighbours as vectors; where channels
come last, it stores them one by one, which takes less than to gather each window. An axis of lines one after
the other is split for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ...analysis.conditions import Term, terms
from ...analysis.cost import trips
from ...analysis.windows import MOST_STEPS, MOST_STRIDE, window_elements
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp
from ...dialects.tile import LaunchOp
from ..schedule.primitive import Primitive
from ..schedule.reorder import ReorderPass
from .named_axes import name_axes
from .recipe import Recipe, Taken
from .rewrite_indices import index_of
from .split_axes import quotients, split, trial


def sliding_axes(launch: LaunchOp) -> list[int]:
    """The axes whose counters are added to those of windows in an index or a condition.

    Those of which a step is at most a few of a window: images that lie one after the other are no windows.
    """
    found: set[int] = set()
    windows = {op.induction_var for op in ops_in(launch) if isinstance(op, ForOp) and op.res}
    for each in index_sums(launch):
        steps = [abs(c) for value, c in (each or {}).items() if value in windows]
        for axis, argument in enumerate(launch.body.block.args):
            if any(0 < abs((each or {}).get(argument, 0)) <= MOST_STRIDE * n for n in steps):
                found.add(axis)
    return sorted(found)


def index_sums(launch: LaunchOp) -> Iterator[dict[Term, int] | None]:
    """What is added up, and how often, in each index of a launch's reductions; None where it is no sum."""
    for op in [
        op for each in launch.body.block.ops if isinstance(each, ForOp) for op in ops_in(each)
    ]:
        exprs, operands = index_of(op) or ((), [])
        for expr in exprs:
            found = terms(expr, operands)
            yield found and found[0]


def move_last(launch: LaunchOp, axes: Sequence[int]) -> list[Primitive]:
    """Make some axes the innermost ones, in the order that they have; gives the steps."""
    names = name_axes(launch)
    order = [*(n for i, n in enumerate(names) if i not in axes), *(names[i] for i in axes)]
    if order == names:
        return []
    step = ReorderPass(axes=tuple(order))
    reason = step.change(launch)
    assert reason is None, reason
    return [step]


def has_windows(launch: LaunchOp) -> bool:
    """Whether a launch has loops, all of them reductions of a few steps."""
    loops = ops_of(launch, ForOp)
    return bool(loops) and all(op.res and trips(op.extent.data) <= MOST_STEPS for op in loops)


def _arrange(launch: LaunchOp) -> list[Primitive] | str:
    """Split and order the axes of a launch; gives the steps, or why not."""
    if launch.settled is not None:
        return launch.settled
    if not has_windows(launch):
        return "it has no windows"
    if _are_in_order(launch):
        return "its windows are of neighbours"
    for parts in (None, *dict.fromkeys(quotients(launch))):
        with trial(launch) as copy:
            _order(copy, parts)
            if not _are_in_order(copy):
                continue
        return _order(launch, parts)
    return "no order of its axes has windows of neighbours"


def _are_in_order(launch: LaunchOp) -> bool:
    """Whether windows are of neighbours, at sums of counters: nothing is divided."""
    return window_elements(launch) is not None and all(
        each is not None for each in index_sums(launch)
    )


def _order(launch: LaunchOp, parts: tuple[int, int] | None) -> list[Primitive]:
    """Split an axis in parts of a size, if that is to be, and have windows slide along the innermost axes."""
    steps = [] if parts is None else split(launch, *parts)
    return [*steps, *move_last(launch, sliding_axes(launch))]


@dataclass(frozen=True)
class OrderWindowsPass(Recipe):
    """Have windows slide along the innermost axes of a CPU's launches."""

    name = "order-windows"

    def take(self, launch: LaunchOp) -> Taken | str:
        steps = _arrange(launch)
        told = "its windows slide along the innermost axes now"
        return steps if isinstance(steps, str) else Taken(told, steps)
