"""`deepen`: the free loop at the end of a launch becomes its innermost axis.

    tile.launch (%i = 256 : thread) {
      %m = loop.load %max[%i]
      loop.for %j = 0 to 64 { ... loop.store %s, %y[%i, %j] }
    }
becomes
    tile.launch (%i = 256 : thread, %j = 64 : thread) {
      %m = loop.load %max[%i]
      ... loop.store %s, %y[%i, %j]
    }

What stands in front of the loop is then computed for each of its points. The pass declines if the last
operation of the launch is not its one free loop, and if something in front of it must not be repeated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Operation

from ...dialects.inside import ops_in
from ...dialects.loop import AccumulateOp, AssertOp, CheckedIndexOp, ForOp, StoreOp, YieldOp
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ...errors import UsageError
from ..tile.named_axes import insert_axis
from .primitive import Primitive


def find_loop(launch: LaunchOp) -> ForOp | str:
    """The loop that can become an axis, or why there is none."""
    if launch.settled is not None:
        return launch.settled
    return _at_end(list(launch.body.block.ops))


def _at_end(ops: Sequence[Operation]) -> ForOp | str:
    """The free loop that operations end with, or why there is none."""
    loops = [op for op in ops if op.regions]
    if not loops or loops != [loop := ops[-1]] or not isinstance(loop, ForOp) or loop.res:
        return "its body does not end with its one free loop"
    return loop


def deepen(launch: LaunchOp, loop: ForOp) -> None:
    """Make a free loop at the end of a launch its innermost axis."""
    body, name = launch.body.block, loop.induction_var.name_hint
    axis = AxisAttr(loop.extent.data, Level.THREAD)
    loop.induction_var.replace_all_uses_with(insert_axis(launch, len(body.args), axis, name))
    for op in list(loop.body.block.ops):
        op.detach()
        if isinstance(op, YieldOp):
            op.erase()
        else:
            body.add_op(op)
    loop.detach()
    loop.erase()


@dataclass(frozen=True)
class DeepenPass(Primitive):
    """Make axes of loops. Raises UsageError for less than one."""

    name = "deepen"

    loops: int = 1
    """How many loops, one in the other, become axes."""

    def __post_init__(self):
        if self.loops < 1:
            raise UsageError(f"loops is 1 or more, not {self.loops}")

    @property
    def done(self) -> str:
        """How many loops became axes."""
        return f"{self.loops} loops are axes" if self.loops > 1 else "its loop is an axis"

    def change(self, launch: LaunchOp) -> str | None:
        """Make axes of the loops; gives why not, and then makes none."""
        found, front = find_loop(launch), list(launch.body.block.ops)[:-1]
        for _ in range(self.loops):
            if isinstance(found, str):
                return found
            if any(isinstance(op, StoreOp | AccumulateOp) for each in front for op in ops_in(each)):
                return "it stores in front of its loop"
            if found.never_runs and any(isinstance(op, AssertOp | CheckedIndexOp) for op in front):
                return "it checks indices from data in front of a loop that never runs"
            body = [op for op in found.body.ops if not isinstance(op, YieldOp)]
            found, front = _at_end(body), [*front, *body[:-1]]
        for _ in range(self.loops):
            loop = find_loop(launch)
            assert isinstance(loop, ForOp)
            deepen(launch, loop)
        return None
