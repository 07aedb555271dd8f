"""Which slabs of a contraction the copy engine can fill, and which of them are rows along K.

What a box must be, `dialects/tensor_map.py` says; here it is asked of loads, before there are slabs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..dialects.alignment import divisor
from ..dialects.loop import LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import extent_expr, shape_of
from ..dialects.tensor_map import MAX_RANK, UNIT


def comes_in_boxes(load: LoadOp, counters: Sequence[SSAValue], position: SSAValue) -> bool:
    """Whether parts of what is loaded are boxes: each counter of a part goes along one axis, one by one.

    `position` may go along the lines of an axis, if its parts do not go past their ends.
    """
    memref = load.memref.type
    assert isinstance(memref, MemRefType)
    shape, size = shape_of(memref), storage_bytes(memref.element_type)
    if len(shape) > MAX_RANK or any(
        divisor(extent_expr(prod(shape[axis:])), ()) * size % UNIT for axis in range(1, len(shape))
    ):
        return False
    along = [_counter(load, axis) for axis in range(len(shape))]
    if along[-1] is None and _line(load, position):
        along[-1] = position
    own = [value for value in (*counters, position) if value in load.indices]
    return along[-1] in own and all(along.count(value) == 1 for value in own)


def is_row_along(load: LoadOp, row: SSAValue, position: SSAValue, count: int) -> bool:
    """Whether `position` counts neighbours, `count` at a time, and `row` the rows of them."""
    if len(load.map.data.results) < 2 or _counter(load, -2) != row:
        return False
    return _counter(load, -1) == position or (_line(load, position) or 1) % count == 0


def _counter(load: LoadOp, axis: int) -> SSAValue | None:
    """What counts along an axis of what is loaded, if that is all that does."""
    expr = load.map.data.results[axis]
    return load.indices[expr.position] if isinstance(expr, AffineDimExpr) else None


def _line(load: LoadOp, counter: SSAValue) -> int | None:
    """The length of the innermost axis, if a counter goes along it, and then along that of the next line."""
    if counter not in load.indices:
        return None
    *outer, last = load.map.data.results
    place = list(load.indices).index(counter)
    dim = AffineExpr.dimension(place)
    match last:
        case AffineBinaryOpExpr(
            kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=AffineConstantExpr(value=length)
        ) if lhs == dim:
            own = [expr for expr in outer if place in expr.used_dims()]
            return length if own == [dim // length] else None
        case _:
            return None
