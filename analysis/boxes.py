"""Which slabs of a contraction the copy engine can fill, and which of them are rows along K.

What a box must be, `dialects/tensor_map.py` says; here it is asked of loads, before there are slabs.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineDimExpr

from ..dialects.alignment import divisor
from ..dialects.loop import LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import extent_expr, shape_of
from ..dialects.tensor_map import MAX_RANK, UNIT


def comes_in_boxes(load: LoadOp, counters: Sequence[SSAValue]) -> bool:
    """Whether parts of what is loaded are boxes: each counter of a part goes along one axis, one by one."""
    memref = load.memref.type
    assert isinstance(memref, MemRefType)
    shape, size = shape_of(memref), storage_bytes(memref.element_type)
    if len(shape) > MAX_RANK or any(
        divisor(extent_expr(prod(shape[axis:])), ()) * size % UNIT for axis in range(1, len(shape))
    ):
        return False
    along = [_counter(load, axis) for axis in range(len(shape))]
    own = [value for value in counters if value in load.indices]
    return along[-1] in own and all(along.count(value) == 1 for value in own)


def is_row_along(load: LoadOp, row: SSAValue, position: SSAValue) -> bool:
    """Whether `position` counts neighbours of what is loaded, and `row` the rows of them."""
    rank = len(load.map.data.results)
    return rank > 1 and (_counter(load, -2), _counter(load, -1)) == (row, position)


def _counter(load: LoadOp, axis: int) -> SSAValue | None:
    """What counts along an axis of what is loaded, if that is all that does."""
    expr = load.map.data.results[axis]
    return load.indices[expr.position] if isinstance(expr, AffineDimExpr) else None
