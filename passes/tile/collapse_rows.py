"""`collapse-rows`: axes that only the rows of a contraction depend on become one, and those of its columns.

    tile.launch (%b = 8 : thread, %i = 32 : thread, %j = 512 : thread) {
      ... %x[%b, %i, %k] ... %w[%j, %k] ...
    }
becomes
    tile.launch (%i = 256 : thread, %j = 512 : thread) {
      ... %x[%i floordiv 32, %i mod 32, %k] ... %w[%j, %k] ...
    }

A CPU block then packs its columns once for the rows of all sequences of a batch. Columns are joined likewise,
such as the pixels of all lines of an image, if they go on in memory where a line ends: register tiles then
need not end there. If lines are short, it is enough that results go on: tiles that end with a line cost more
than to find its elements. If results lie apart, as those of one phase of a transposed convolution, they need
not go on either.
Lines of dynamic length are joined if everything goes on, and so no index divides by it.
On a GPU not: there, what a block reads of an operand must be a box.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.index import operand_ranges, simplify
from ...analysis.products import LONG, Product, axes_of, find_product, walk_along_k
from ...dialects.index import dims_in_order, linearize
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp, TestOp
from ...dialects.sizes import extent_expr, shape_of
from ...dialects.tile import LaunchOp
from ...index.affine import divisions, replace_dims
from ..schedule.fuse import FusePass, fuse_axes
from .named_axes import name_axes
from .recipe import Recipe, Taken
from .rewrite_indices import index_of

VECTOR = 16
"""Elements of the longest vectors of f32."""

FEW_VECTORS = 4
"""Of a line: the widest register tile has so many."""

SHORT = 96
"""Columns of a line that is not worth tiles of its own. Convolutions whose lines have 28 to 75 columns take
5 to 27 % less when these are joined, those of 112 to 200 columns up to 9 % more."""


def find_axis(launch: LaunchOp) -> int | str:
    """The axis of rows or columns that can join the one in front of it, or why there is none."""
    if launch.settled is not None:
        return launch.settled
    product = find_product(launch)
    if isinstance(product, str):
        return product
    known: dict[SSAValue, frozenset[int]] = {}
    reason = "there is no other axis in front of the rows that the columns do not depend on"
    for axis, others in ((product.m, product.columns), (product.n, product.rows)):
        outer = axis - 1
        if outer < 0 or any(outer in axes_of(value, launch, known) for value in others):
            continue
        if axis == product.m or _lies_along_k(launch, product):
            return axis
        if not stays_along(launch, product, short=_is_short(launch, axis)):
            reason = "joined columns would not lie along each other in memory"
        else:
            return axis
    return reason


def _lies_along_k(launch: LaunchOp, product: Product) -> bool:
    """Whether columns are few, and of vectors along the sweep: rows, then, of a block that is turned."""
    extent, length = launch.axes.data[product.n].extent.data, product.sweeps[-1].extent.data
    if not isinstance(extent, int) or not isinstance(length, int):
        return False
    few = extent < VECTOR * FEW_VECTORS and length >= LONG
    return few and walk_along_k(product, product.columns, product.n, launch)


def _is_short(launch: LaunchOp, axis: int) -> bool:
    """Whether an axis is shorter than what is worth tiles of its own."""
    extent, counter = launch.axes.data[axis].extent.data, launch.body.block.args[axis]
    apart = any(is_apart(op, counter) for op in ops_in(launch))
    return isinstance(extent, int) and extent < (VECTOR * FEW_VECTORS if apart else SHORT)


def stays_along(launch: LaunchOp, product: Product, *, short: bool) -> bool:
    """Whether all that is accessed goes on in memory where the axis before the columns is one further.

    If columns are `short`, what the contraction reads need not.
    """
    outer, inner = launch.body.block.args[product.n - 1], launch.body.block.args[product.n]
    extent = extent_expr(launch.axes.data[product.n].extent.data)
    for op in ops_in(launch.body):
        if outer not in op.operands and inner not in op.operands:
            continue
        if divides(op, inner):
            return False
        if short and (product.sweeps[0].is_ancestor(op) or is_apart(op, inner)):
            continue
        if isinstance(op, LoadOp | StoreOp):
            if shifted(op, {outer: 1}) != shifted(op, {inner: extent}):
                return False
        elif not isinstance(op, TestOp) or not product.sweeps[0].is_ancestor(op):
            return False
    return True


def is_apart(op: Operation, counter: SSAValue) -> bool:
    """Whether an operation stores what belongs to neighbours along a counter apart."""
    return isinstance(op, StoreOp) and shifted(op, {counter: 1}) != shifted(op, {}) + 1


def divides(op: Operation, counter: SSAValue) -> bool:
    """Whether an index of an operation has a quotient or a remainder of a counter."""
    exprs, operands = index_of(op) or ((), [])
    found = [node for expr in exprs for node in divisions(expr)]
    return any(operands[d] is counter for d in dims_in_order(found))


def shifted(op: LoadOp | StoreOp, steps: dict[SSAValue, AffineExpr | int]) -> AffineExpr:
    """The flat index that is accessed when counters are some steps further."""
    type = op.memref.type
    assert isinstance(type, MemRefType)
    dims = [AffineExpr.dimension(i) + steps.get(v, 0) for i, v in enumerate(op.indices)]
    offset = linearize(op.map.data.results, shape_of(type))
    return simplify(replace_dims(offset, dims), operand_ranges(op.indices))


def collapse(launch: LaunchOp, axis: int) -> FusePass:
    """Make one axis of an axis of a launch and the one in front of it; gives the step."""
    names = name_axes(launch)
    fuse_axes(launch, axis - 1, names[axis])
    return FusePass(axes=(names[axis - 1], names[axis]))


@dataclass(frozen=True)
class CollapseRowsPass(Recipe):
    """Make the rows of each contraction one axis."""

    name = "collapse-rows"

    def take(self, launch: LaunchOp) -> Taken | str:
        found, steps = find_axis(launch), list[FusePass]()
        while isinstance(found, int):
            steps.append(collapse(launch, found))
            found = find_axis(launch)
        return Taken(f"{len(steps) + 1} axes are one", steps) if steps else found
