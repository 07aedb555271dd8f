"""`flatten-sweeps`: a sweep over several axes becomes one over their elements, so that lanes go along memory.

    tile.launch (%c = 64 : thread) {
      %s = loop.for %i = 0 to 32 reduce(add) -> f32 {
        %t = loop.for %k = 0 to 784 reduce(add) -> f32 { ... %x[%i, %c, %k] ... }
        loop.yield %t : f32
      }
      loop.store %s, %out[%c]
    }
becomes
    tile.launch (%c = 64 : thread) {
      %s = loop.for %k = 0 to 25088 reduce(add) -> f32 { ... %x[%k floordiv 784, %c, %k mod 784] ... }
      loop.store %s, %out[%c]
    }

as of the statistics of a batch norm. The threads that share a sweep stand side by side along its outermost
loop: there were 32 of them, each with an image of its own. Now there are as many as the elements need, and
neighbours read neighbours. Innermost comes the axis along which the lanes of a warp touch the fewest sectors
of memory (`analysis/coalescing.py`), and then the next one. A quotient costs a GPU a few instructions, and it
waits for memory.

An axis of unknown extent is not divided by. If it is the one that lanes should go along, it becomes the sweep
that threads share, with the others in it:
      %s = loop.for %k = 0 to s0 reduce(add) -> f32 {
        %t = loop.for %i = 0 to 32 reduce(add) -> f32 { ... %x[%i, %c, %k] ... }
        loop.yield %t : f32
      }

Declined are CPU targets, what threads cannot share (`cooperative-reduce`), sweeps over one axis, those whose
contributions are computed from folds of their own, windows, columns that keep the machine busy with a
thread each, and sweeps over several axes of unknown extents.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.coalescing import sectors_of_lane
from ...analysis.cost import trips
from ...analysis.windows import window_elements
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, KernelOp, LoadOp, StoreOp, YieldOp
from ...dialects.sizes import Extent, static_extent
from ...dialects.tile import LaunchOp
from ...machine.targets import Target
from ..decisions import record
from ..schedule.partial_threads import loop_like, sweeps_of
from .chunk_reduce import BUSY_THREADS
from .cooperative_reduce import lanes_share_columns, obstacle
from .recipe import GpuRecipe
from .rewrite_indices import rewrite_index
from .tileify import is_scalar


def nest_of(sweep: ForOp) -> list[ForOp]:
    """A loop and those in it, each all that the one around it does besides scalars, outermost first."""
    loops = [sweep]
    while True:
        *scalars, inner, end = [None, *loops[-1].body.block.ops]
        if not isinstance(inner, ForOp) or not isinstance(end, YieldOp):
            return loops
        if inner.limit is not None:
            return loops
        if list(end.arguments) != list(inner.res) or inner.combiners != sweep.combiners:
            return loops
        if not all(op is None or is_scalar(op) for op in scalars):
            return loops
        loops.append(inner)


@dataclass(frozen=True)
class Order:
    """The loops of a nest as they are to be: one that stays around the others, and those that become one."""

    flat: list[ForOp]
    around: ForOp | None = None

    @property
    def extent(self) -> Extent:
        """The extent of the one loop."""
        return self.flat[0].extent.data * prod(
            static_extent(loop.extent.data) for loop in self.flat[1:]
        )

    @property
    def told(self) -> str:
        """What becomes of them."""
        extents = " by ".join(str(loop.extent.data) for loop in self.flat)
        if self.around is None:
            return f"{extents} elements are one sweep"
        return f"threads share the axis of {self.around.extent.data}, each goes over {extents} more"


def choose_order(nest: list[ForOp]) -> Order | str:
    """How the loops of a nest become one, or why they stay as they are."""
    if any(loop.never_runs for loop in nest):
        return "a sweep has no iterations"
    accesses = [op for op in ops_in(nest[0]) if isinstance(op, LoadOp | StoreOp)]

    def apart(loop: ForOp) -> float:
        return sum(sectors_of_lane(op, (loop.induction_var, loop.extent.data)) for op in accesses)

    order = sorted(nest, key=apart, reverse=True)
    unknown = [loop for loop in order if not isinstance(loop.extent.data, int)]
    known = [loop for loop in order if loop not in unknown]
    if len(unknown) > 1:
        return "the extents of several axes are not known"
    if unknown and order[-1] is unknown[0]:
        if unknown == nest[:1] and len(nest) == 2:
            return "threads share the axis whose elements are neighbours as it is"
        return Order(known, unknown[0])
    return Order([*unknown, *known])


def _places(loops: list[ForOp]) -> dict[SSAValue, AffineExpr]:
    """What each loop counts, over the counter of the one loop that they become."""
    exprs: dict[SSAValue, AffineExpr] = {}
    inside = 1
    for loop in reversed(loops):
        here: AffineExpr = AffineExpr.dimension(0)
        here = here if inside == 1 else here // inside
        if loop is not loops[0]:
            here = here % static_extent(loop.extent.data)
            inside *= static_extent(loop.extent.data)
        exprs[loop.induction_var] = here
    return exprs


def flatten(nest: list[ForOp], order: Order) -> None:
    """Put one loop in the place of a nest, or two of which the outer one is what threads are to share."""
    outermost, innermost = nest[0], nest[-1]
    first = innermost.body.block.first_op
    assert first is not None
    for loop in nest[:-1]:
        for op in [o for o in loop.body.ops if not isinstance(o, ForOp | YieldOp)]:
            op.detach()
            innermost.body.block.insert_op_before(op, first)
    exprs, name = _places(order.flat), order.flat[-1].induction_var.name_hint
    around = None if order.around is None else order.around.induction_var
    shared_name = None if around is None else around.name_hint
    body = innermost.detach_region(innermost.body)
    counter = body.block.args[0]
    counter.name_hint = name
    new = loop_like(innermost, order.extent, body)
    counters: list[SSAValue] = [counter]
    if order.around is not None and around is not None:
        inner, shared = new, Block(arg_types=[IndexType()])
        shared.add_ops([inner, YieldOp(*inner.res)])
        shared.args[0].name_hint = shared_name
        new = loop_like(outermost, order.around.extent.data, Region(shared))
        counters.append(shared.args[0])
        exprs[around] = AffineExpr.dimension(1)
    assert outermost.parent is not None
    outermost.parent.insert_op_before(new, outermost)
    for op in ops_in(new):
        rewrite_index(op, exprs, counters)
    for mine, theirs in zip(outermost.res, new.res, strict=True):
        theirs.name_hint = mine.name_hint
        mine.replace_all_uses_with(theirs)
    outermost.detach()
    outermost.erase()


def decline_reason(launch: LaunchOp, target: Target) -> str | None:
    """Why the sweeps of a launch stay as they are, or None if those over several axes may become one."""
    reason = obstacle(launch)
    if reason is not None:
        return reason
    if window_elements(launch) is not None:
        return "a window, which one thread folds"
    points = prod(trips(axis.extent.data) for axis in launch.axes)
    if lanes_share_columns(launch) and points >= target.processors * BUSY_THREADS:
        return f"{points} columns keep {target.processors} processors busy, a thread each"
    return None


@dataclass(frozen=True)
class FlattenSweepsPass(GpuRecipe):
    """Make one loop of each sweep over several axes that threads are to share."""

    name = "flatten-sweeps"

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        name, reason = kernel.sym_name.data, decline_reason(launch, self.machine)
        if reason is not None:
            record(self.name, name, False, reason, launch)
            return
        for sweep in sweeps_of(launch):
            nest = nest_of(sweep)
            order = choose_order(nest) if len(nest) > 1 else _single_reason(sweep)
            if isinstance(order, str):
                record(self.name, name, False, order, launch)
                continue
            reason = order.told
            flatten(nest, order)
            record(self.name, name, True, reason, launch)


def _single_reason(sweep: ForOp) -> str:
    """Why a loop is no nest."""
    if any(isinstance(op, ForOp) for op in sweep.body.block.ops):
        return "what an iteration contributes is computed from a fold of its own"
    return "a sweep runs over one axis"
