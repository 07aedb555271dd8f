"""`split-axes`: an axis whose quotient alone an operand of a contraction reads becomes two.

    tile.launch (%j = 64 : thread, %l = 56 : thread) {
      ... %x[%j floordiv 16 * 16 + %m, %l] ... %w[%j, %m] ...
    }
becomes
    tile.launch (%j_part = 4 : thread, %j = 16 : thread, %l = 56 : thread) {
      ... %x[%j_part * 16 + %m, %l] ... %w[%j_part * 16 + %j, %m] ...
    }

As of a convolution in groups: `%j` was in both operands, and so in neither the rows nor the columns. It is
split where the launch is no contraction as it is, and is one then.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IndexType, ModuleOp
from xdsl.ir import BlockArgument, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.passes import ModulePass

from ...analysis.contraction import find_contraction
from ...analysis.products import find_product
from ...analysis.targets import get_target
from ...dialects.affine import divisions
from ...dialects.loop import KernelOp
from ...dialects.tile import AxisAttr, LaunchOp, Level
from ..decisions import record
from .rewrite_indices import index_of, rewrite_index


def quotients(launch: LaunchOp) -> Iterator[tuple[int, int]]:
    """The axes of a launch that an index divides, each with a divisor of its extent."""
    for op in launch.body.walk():
        exprs, operands = index_of(op) or ((), [])
        for node in (node for expr in exprs for node in divisions(expr)):
            match node.kind, node.lhs, node.rhs:
                case (
                    AffineBinaryOpKind.FloorDiv,
                    AffineDimExpr(position=position),
                    AffineConstantExpr(value=part),
                ):
                    axis = launch.axis_of(value := operands[position])
                    extent = None if axis is None else axis.extent.data
                    if isinstance(extent, int) and part < extent and extent % part == 0:
                        assert isinstance(value, BlockArgument)
                        yield value.index, part
                case _:
                    pass


def split(launch: LaunchOp, axis: int, part: int) -> None:
    """Make two axes of one: its parts, and the places in a part; the last part may have too many places."""
    body, axes = launch.body.block, list(launch.axes)
    whole, extent = body.args[axis], axes[axis].extent.data
    assert isinstance(extent, int)
    parts, place = (body.insert_arg(IndexType(), axis + n) for n in range(2))
    parts.name_hint, place.name_hint = f"{whole.name_hint or 'i'}_part", whole.name_hint
    two = [AxisAttr(-(-extent // part), Level.THREAD), AxisAttr(part, Level.THREAD)]
    launch.axes = ArrayAttr([*axes[:axis], *two, *axes[axis:]])
    old: dict[SSAValue, AffineExpr] = {
        whole: AffineExpr.dimension(0) * part + AffineExpr.dimension(1)
    }
    for op in list(launch.body.walk()):
        rewrite_index(op, old, [parts, place])
    body.erase_arg(whole)
    launch.axes = ArrayAttr([*axes[:axis], *two, *axes[axis + 1 :]])


@dataclass(frozen=True)
class SplitAxesPass(ModulePass):
    """Split the axes that keep launches from being contractions."""

    name = "split-axes"

    target: str = "cpu"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [o for o in op.walk() if isinstance(o, KernelOp)]:
            for launch in [o for o in kernel.walk() if isinstance(o, LaunchOp)]:
                done, reason = self._split(launch)
                record(self.name, kernel.sym_name.data, done, reason, launch)

    def _split(self, launch: LaunchOp) -> tuple[bool, str]:
        if launch.schedule is not None or launch.is_partitioned:
            return False, "it has a schedule already"
        if self._is_contraction(launch):
            return False, "it is a contraction as it is"
        found = dict.fromkeys(quotients(launch))
        for axis, part in found:
            copy = launch.clone()
            split(copy, axis, part)
            if self._is_contraction(copy):
                name = launch.body.block.args[axis].name_hint or f"axis {axis}"
                split(launch, axis, part)
                return True, f"{name} is split in parts of {part}"
        return False, "no split makes it a contraction" if found else "no index divides an axis"

    def _is_contraction(self, launch: LaunchOp) -> bool:
        find = find_contraction if get_target(self.target).is_gpu else find_product
        return not isinstance(find(launch), str)
