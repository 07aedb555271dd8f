"""`tileify`: the outer free loops of a kernel become the threads of a launch.

    loop.for %i = 0 to 32 {
      loop.for %j = 0 to 64 { BODY }
    }
becomes
    tile.launch (%i = 32 : thread, %j = 64 : thread) { BODY }

Peeled are the free loops that contain nothing but the next one. Scalars that stand before the first loop,
such as the factor of `x * s.exp()`, go into BODY: each thread computes them, or there would be one thread.
Anything else that stands there, and a kernel without free loops, go into the launch's body. Iterations of
free loops are independent, so any order, and any split over threads, computes the same.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp, YieldOp
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ..decisions import record
from ..loop.dedup_loads import is_reusable
from ..loop.nests import perfect_nest


def is_scalar(op: Operation) -> bool:
    """Whether an operation is no loop and no branch, and may be repeated."""
    return not op.regions and is_reusable(op)


def sink_scalars(kernel: KernelOp) -> int:
    """Move the scalars before the one free loop of a kernel into its innermost loop; gives how many."""
    *scalars, loop = kernel.body.block.ops
    if not isinstance(loop, ForOp) or loop.res or not all(map(is_scalar, scalars)):
        return 0
    for op in scalars:
        op.detach()
    innermost = perfect_nest(kernel)[-1].body.block
    first = innermost.first_op
    assert first is not None
    innermost.insert_ops_before(scalars, first)
    return len(scalars)


def tileify(kernel: KernelOp) -> int:
    """Replace the outer loops of a kernel by a launch; gives how many were peeled."""
    loops = perfect_nest(kernel)
    axes = [AxisAttr(loop.extent.data, Level.THREAD) for loop in loops]
    innermost = loops[-1].body.block if loops else kernel.body.block
    body = Block(arg_types=[loop.induction_var.type for loop in loops])
    moved: list[Operation] = [o for o in innermost.ops if not isinstance(o, YieldOp)]
    for op in moved:
        op.detach()
        body.add_op(op)
    counters: list[SSAValue] = [loop.induction_var for loop in loops]
    for counter, argument in zip(counters, body.args, strict=True):
        argument.name_hint = counter.name_hint
        counter.replace_all_uses_with(argument)
    if loops:
        loops[0].detach()
        loops[0].erase()
    launch = LaunchOp(axes, Region(body))
    launch.location = kernel.location
    kernel.body.block.add_op(launch)
    return len(loops)


@dataclass(frozen=True)
class TileifyPass(ModulePass):
    """Put a `tile.launch` in place of every kernel's outer free loops."""

    name = "tileify"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in ops_of(op, KernelOp):
            name = kernel.sym_name.data
            if any(isinstance(o, LaunchOp) for o in ops_in(kernel)):
                record(self.name, name, False, "the kernel has a launch already", kernel)
                continue
            sunk = sink_scalars(kernel)
            peeled = tileify(kernel)
            told = f"{peeled} free loops became thread axes"
            told += f", each thread computes {sunk} scalars" if sunk else ""
            record(self.name, name, True, told, kernel, steps=[self])
