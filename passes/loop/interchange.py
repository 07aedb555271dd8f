"""Changes of a kernel's nest of free loops after which what a load stands for runs less often.

    for %i = 0 to 64 { for %c = 0 to 320 { ... %mean[%c floordiv 10] ... } }
becomes
    for %c = 0 to 32 { for %i = 0 to 64 { for %c_1 = 0 to 10 { ... %mean[%c] ... } } }

`bind_first` moves the loops outwards that the loads depend on: the statistics of a column run once for it.
`split_first` splits the loop whose places read the input in groups, too: those of a group norm run once for
each. Iterations of free loops are independent, so any order is right. Each gives what undoes it, or None if
it changes nothing; `fuse-loops` decides whether a change pays.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineBinaryOpKind, AffineDimExpr, AffineExpr

from ...analysis.cost import trips
from ...dialects.inside import ops_in
from ...dialects.loop import ExtentAttr, ForOp, KernelOp, LoadOp, YieldOp
from ...dialects.sizes import extent_of
from ...index.affine import divisions
from ..tile.rewrite_indices import rewrite_index
from .coalesce_axes import coalesce
from .nests import perfect_nest, permute

Undo = Callable[[], None]

LONG = 64
"""Neighbours that are worth a loop of their own."""


def bind_first(consumer: KernelOp, argument: SSAValue) -> Undo | None:
    """Move the loops that loads of `argument` depend on outwards."""
    loops, needed = perfect_nest(consumer), _needed(consumer, argument)
    first = [i for i, loop in enumerate(loops) if loop in needed]
    order = first + [i for i in range(len(loops)) if i not in first]
    if order == list(range(len(loops))) or not first:
        return None
    permute(loops, order)
    back = [order.index(i) for i in range(len(loops))]
    return lambda: permute(loops, back)


def split_first(consumer: KernelOp, argument: SSAValue, processors: int) -> Undo | None:
    """Split the loop whose places read `argument` in groups, and move the loop over groups outwards.

    There is a group for each processor of a GPU, as blocks work on one each. The last loop stays as long as
    it is, or is a long one: it is to walk along memory.
    """
    group = _group(consumer, argument)
    if group is None:
        return None
    place, size = group
    length = _last_length(consumer)
    inner = split(perfect_nest(consumer)[place], size)
    back = bind_first(consumer, argument)

    def undo() -> None:
        if back is not None:
            back()
        coalesce(perfect_nest(consumer)[place], inner)

    groups = prod(trips(loop.extent.data) for loop in _needed(consumer, argument))
    if groups < processors or _last_length(consumer) < min(length, LONG):
        undo()
        return None
    return undo


def split(loop: ForOp, size: int) -> ForOp:
    """Make two of a free loop, over groups of so many places and over those of one; gives the inner loop."""
    whole, body = loop.induction_var, loop.body.block
    inside = Block(arg_types=[IndexType()])
    for op in list(body.ops):
        op.detach()
        inside.add_op(op)
    inner = ForOp(size, Region(inside))
    inner.location = loop.location
    body.add_ops([inner, YieldOp()])
    loop.extent = ExtentAttr(loop.extent.data // size)
    (place,) = inside.args
    group = body.insert_arg(IndexType(), 1)
    group.name_hint = place.name_hint = whole.name_hint
    old: dict[SSAValue, AffineExpr] = {
        whole: AffineExpr.dimension(0) * size + AffineExpr.dimension(1)
    }
    for op in ops_in(inside):
        rewrite_index(op, old, [group, place])
    body.erase_arg(whole)
    return inner


def _loads(argument: SSAValue) -> list[LoadOp]:
    return [use.operation for use in argument.uses if isinstance(use.operation, LoadOp)]


def _needed(consumer: KernelOp, argument: SSAValue) -> list[ForOp]:
    """The loops that loads of `argument` depend on."""
    read = {value for load in _loads(argument) for value in load.indices}
    return [loop for loop in perfect_nest(consumer) if loop.induction_var in read]


def _last_length(kernel: KernelOp) -> int:
    return trips(perfect_nest(kernel)[-1].extent.data)


def _group(consumer: KernelOp, argument: SSAValue) -> tuple[int, int] | None:
    """The place in the nest of the loop by whose quotient an input is read, and the size of a group."""
    loops = perfect_nest(consumer)
    places: dict[SSAValue, int] = {loop.induction_var: n for n, loop in enumerate(loops)}
    for load in _loads(argument):
        for node in (node for expr in load.map.data.results for node in divisions(expr)):
            if node.kind != AffineBinaryOpKind.FloorDiv or not isinstance(node.lhs, AffineDimExpr):
                continue
            place = places.get(load.indices[node.lhs.position])
            if place is None or node.rhs.used_dims():
                continue
            extent, size = loops[place].extent.data, extent_of(node.rhs)
            if isinstance(size, int) and extent % size == 0 and size < trips(extent):
                return place, size
    return None
