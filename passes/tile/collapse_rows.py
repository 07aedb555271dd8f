"""`collapse-rows`: axes that only the rows of a contraction depend on become one.

    tile.launch (%b = 8 : thread, %i = 32 : thread, %j = 512 : thread) {
      ... %x[%b, %i, %k] ... %w[%j, %k] ...
    }
becomes
    tile.launch (%i = 256 : thread, %j = 512 : thread) {
      ... %x[%i floordiv 32, %i mod 32, %k] ... %w[%j, %k] ...
    }

A CPU block then packs its columns once for the rows of all sequences of a batch. On a GPU not: there, what
a block reads of an operand must be a box.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.products import axes_of, find_product
from ...analysis.targets import get_target
from ...dialects.loop import KernelOp
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ..decisions import record
from .rewrite_indices import rewrite_index


def find_axis(launch: LaunchOp) -> int | str:
    """The axis of the rows that can join the one in front of it, or why there is none."""
    if launch.schedule is not None or launch.is_partitioned:
        return "it has a schedule already"
    product = find_product(launch)
    if isinstance(product, str):
        return product
    known: dict[SSAValue, frozenset[int]] = {}
    outer = product.m - 1
    if outer < 0 or any(outer in axes_of(c, launch, known) for c in product.columns):
        return "there is no other axis in front of the rows that the columns do not depend on"
    if not isinstance(launch.axes.data[product.m].extent.data, int):
        return "the extent of the rows is dynamic"
    return product.m


def collapse(launch: LaunchOp, axis: int) -> None:
    """Make one axis of an axis of a launch, whose extent is constant, and the one in front of it."""
    body, axes = launch.body.block, list(launch.axes)
    outer, inner = body.args[axis - 1], body.args[axis]
    extent = axes[axis].extent.data
    assert isinstance(extent, int)
    joined = AxisAttr(axes[axis - 1].extent.data * extent, Level.THREAD)
    counter = body.insert_arg(IndexType(), axis - 1)
    counter.name_hint = inner.name_hint
    launch.axes = ArrayAttr([*axes[: axis - 1], joined, *axes[axis - 1 :]])
    place = AffineExpr.dimension(0)
    old: dict[SSAValue, AffineExpr] = {outer: place // extent, inner: place % extent}
    for op in list(launch.body.walk()):
        rewrite_index(op, old, [counter])
    body.erase_arg(outer)
    body.erase_arg(inner)
    launch.axes = ArrayAttr([*axes[: axis - 1], joined, *axes[axis + 1 :]])


@dataclass(frozen=True)
class CollapseRowsPass(ModulePass):
    """Make the rows of each contraction one axis."""

    name = "collapse-rows"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        gpu = get_target(self.target).is_gpu
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            for launch in [o for o in kernel.walk() if isinstance(o, LaunchOp)]:
                found = "the target is a GPU" if gpu else find_axis(launch)
                count = 0
                while isinstance(found, int):
                    collapse(launch, found)
                    count, found = count + 1, find_axis(launch)
                reason = f"{count + 1} axes are one" if count else found
                record(self.name, kernel.sym_name.data, count > 0, reason, launch)
