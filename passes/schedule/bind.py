"""`bind`: says where the points of an axis run.

    tile.launch (%i = 64 : thread, %j = 1024 : thread) { ... }
becomes, by `bind{axis=i to=block},bind{axis=j to=serial}`,
    tile.launch (%i = 64 : block) {
      loop.for %j = 0 to 1024 { ... }
    }

| to | the points of the axis are |
|---|---|
| `block` | blocks; it becomes the last axis of those |
| `cluster` | neighbouring blocks, which run at the same time and may share slabs |
| `thread` | threads of a block, as those of each axis are at first |
| `serial` | iterations of a loop around all that a thread does |
| `vector` | neighbours that a thread accesses at once: iterations of the innermost loop, which is marked |

Values that are the same for all neighbours of a vector are computed in front of its loop. If the body is
under a condition on the neighbours, they are accessed at once where it holds for the last one, else one by
one. An axis of one point is removed, wherever it is bound to. The pass declines vectors of axes of dynamic
extent or of more points than a vector has, of points with loops or conditions of their own, and
under a condition that may hold for a neighbour and not for the one before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.index import always_holds, operand_ranges, simplify
from ...analysis.vectors import VECTOR
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import ForOp, TestOp
from ...dialects.sizes import static_extent
from ...dialects.tile import MAX_CLUSTER, AxisAttr, LaunchOp, Level
from ...index.affine import ZERO, replace_dims
from ..loop.hoist_invariants import hoist_from
from ..tile.masks import mask_contributions
from ..tile.named_axes import (
    INDEX,
    find_axis,
    find_guard,
    insert_axis,
    is_guard,
    remove_axis,
    replace_counter,
    take_off_condition,
)
from .primitive import Primitive, check_word, of_blocks, settled_axes

PLACES = ("block", "cluster", "thread", "serial", "vector")
"""Where an axis may run."""


def bind_axis(launch: LaunchOp, position: int, to: str) -> None:
    """Bind an axis; one of one point goes away."""
    if launch.axes.data[position].extent.data == 1:
        replace_counter(launch, {launch.body.block.args[position]: ZERO}, [])
        remove_axis(launch, position)
    elif to in ("serial", "vector"):
        loop = _to_loop(launch, position)
        if to == "vector":
            _to_vector(launch, loop)
    else:
        _to_level(launch, position, Level(to))


def _to_level(launch: LaunchOp, position: int, level: Level) -> None:
    """Run an axis at a level, behind the axes that do."""
    old, extent = launch.body.block.args[position], launch.axes.data[position].extent.data
    remaining = [axis for n, axis in enumerate(launch.axes) if n != position]
    ranks = [list(Level).index(axis.level.data) for axis in remaining]
    place = sum(rank <= list(Level).index(level) for rank in ranks)
    place += place > position
    counter = insert_axis(launch, place, AxisAttr(extent, level), old.name_hint or f"i{position}")
    old.replace_all_uses_with(counter)
    remove_axis(launch, old.index)


def _to_loop(launch: LaunchOp, position: int) -> ForOp:
    """Make the points of an axis iterations of a loop around the body."""
    old, block = launch.body.block.args[position], launch.body.block
    body = Block(arg_types=[INDEX])
    body.args[0].name_hint = old.name_hint
    for op in list(block.ops):
        op.detach()
        body.add_op(op)
    loop = ForOp(launch.axes.data[position].extent.data, Region(body))
    old.replace_all_uses_with(body.args[0])
    block.add_op(loop)
    remove_axis(launch, position)
    return loop


def _to_vector(launch: LaunchOp, loop: ForOp) -> None:
    """Mark a loop over neighbours; where it has a condition on them, in front of it stands one for all."""
    loop.attributes[VECTOR] = UnitAttr()
    if (found := _condition(loop)) is not None:
        test, branch = found
        _peel(loop, test, branch)
    hoist_from(loop)


def _condition(loop: ForOp) -> tuple[TestOp, scf.IfOp] | None:
    """The condition that the whole body of a loop is under, if there is one."""
    test, *rest = loop.body.block.ops
    if not isinstance(test, TestOp) or len(rest) != 2 or not isinstance(rest[0], scf.IfOp):
        return None
    return (test, rest[0]) if is_guard(test, rest[0]) else None


def _peel(loop: ForOp, test: TestOp, branch: scf.IfOp) -> None:
    """Run a loop whole if its condition holds for the last neighbour, else under that condition."""
    operands, counter = list(test.operands_), loop.induction_var
    n = operands.index(counter) if counter in operands else -1
    of_loop = [expr for expr in test.exprs if n in expr.used_dims()]
    others = [expr for expr in test.exprs if n not in expr.used_dims()]
    take_off_condition(test, branch)
    if others:
        _enter(loop, others, operands)
    if not of_loop:
        return
    tail = loop.clone()
    del tail.attributes[VECTOR]
    tail.induction_var.name_hint = counter.name_hint
    before = Builder(InsertPoint.before(loop))
    dims: list[AffineExpr] = [AffineExpr.dimension(m) for m in range(len(operands))]
    dims[n] = AffineExpr.constant(static_extent(loop.extent.data) - 1)
    full = before.insert(TestOp([replace_dims(each, dims) for each in of_loop], operands))
    full.result.name_hint = "full"
    operands[n] = tail.induction_var
    mask_contributions(tail, of_loop, operands)
    then, otherwise = Block(), Block([tail, scf.YieldOp()])
    before.insert(scf.IfOp(full.result, [], Region(then), Region(otherwise)))
    loop.detach()
    then.add_ops([loop, scf.YieldOp()])


def _enter(loop: ForOp, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]) -> None:
    """Put a loop under a condition that is the same in each iteration."""
    before = Builder(InsertPoint.before(loop))
    test = before.insert(TestOp(exprs, operands))
    branch = before.insert(scf.IfOp(test.result, [], Region(Block())))
    loop.detach()
    branch.true_region.block.add_ops([loop, scf.YieldOp()])


def may_be_vector(launch: LaunchOp, position: int) -> str | None:
    """Why the points of an axis are not accessed at once, or None."""
    counter, extent = launch.body.block.args[position], launch.axes.data[position].extent.data
    if not isinstance(extent, int):
        return "its extent is dynamic"
    if not 1 <= extent <= max(WIDTHS):
        return f"a thread accesses 1 to {max(WIDTHS)} neighbours at once, not {extent}"
    if any(isinstance(op, ForOp) for op in ops_in(launch)):
        return "each point runs a loop"
    found = find_guard(launch)
    branches = ops_of(launch, scf.IfOp)
    if branches != ([] if found is None else [found[1]]):
        return "a condition stands inside of its body"
    if found is None or counter not in found[0].operands_:
        return None
    test, n = found[0], list(found[0].operands_).index(counter)
    if all(_falls(test, expr, n, extent) for expr in test.exprs):
        return None
    return "a condition may hold for a neighbour and not for one before it"


def may_be_cluster(launch: LaunchOp, position: int) -> str | None:
    """Why the points of an axis are not the blocks of clusters, or None."""
    axis = launch.axes.data[position]
    if axis.level.data is not Level.BLOCK:
        return "it does not count blocks, which a cluster is made of"
    if launch.extents(Level.CLUSTER):
        return "its blocks form clusters already"
    if not isinstance(axis.extent.data, int) or not 1 <= axis.extent.data <= MAX_CLUSTER:
        return f"a cluster has 1 to {MAX_CLUSTER} blocks, not {axis.extent.data}"
    return None


def _falls(test: TestOp, expr: AffineExpr, n: int, extent: int) -> bool:
    """Whether an expression of a condition never grows with its operand `n`, from 0 to `extent`."""
    ranges = operand_ranges(test.operands_)
    dims = [AffineExpr.dimension(m) for m in range(len(test.operands_))]
    values = [
        replace_dims(expr, [*dims[:n], AffineExpr.constant(value), *dims[n + 1 :]])
        for value in range(extent)
    ]
    falls = (simplify(a + b * -1, ranges) for a, b in pairwise(values))
    return all(always_holds(each, ranges) for each in falls)


@dataclass(frozen=True)
class BindPass(Primitive):
    """Bind an axis to blocks, clusters, threads, a loop or a vector. Raises UsageError for another place."""

    name = "bind"

    axis: str = ""
    """The axis, by the name of its counter."""
    to: str = ""
    """Where its points run: block, cluster, thread, serial or vector."""

    def __post_init__(self):
        check_word("to", self.to, PLACES)

    @property
    def done(self) -> str:
        """Where the axis runs."""
        return f"{self.axis} runs as {self.to}"

    def settled(self, launch: LaunchOp) -> str | None:
        """Why the axis is to stay where it is, or None: blocks may form clusters at any time."""
        if self.to == "cluster" and of_blocks(launch, [self.axis]):
            return None
        return settled_axes(launch, copies=self.to not in ("block", "serial"))

    def change(self, launch: LaunchOp) -> str | None:
        """Bind the axis; gives why not."""
        position = find_axis(launch, self.axis)
        if isinstance(position, str):
            return position
        if self.to == "cluster" and (reason := may_be_cluster(launch, position)) is not None:
            return f"{self.axis}: {reason}"
        if self.to == "vector" and (reason := may_be_vector(launch, position)) is not None:
            return f"{self.axis}: {reason}"
        bind_axis(launch, position, self.to)
        return None
