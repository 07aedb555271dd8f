"""Elements at positions that tensors say, and elements in order."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..dialects.sizes import Extent
from ..lazy.dtypes import int64
from ..lazy.expression import Node
from .building import (
    add,
    arange,
    axis_of,
    cast,
    compare,
    concat,
    expand,
    full,
    mul,
    narrow,
    op,
    pair,
    reshape,
    scalar,
    static_extent,
    static_shape,
    sub,
    unsqueeze,
    where,
)
from .rules import Call, Refused, rule, same_dtype

REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}
"""ATen's words for what happens to the elements that are there."""


def _index(call: Call, position: int, extent: Extent) -> Node:
    """An input of positions, those below 0 counted from the end."""
    index = cast(call.tensor(position), int64)
    return where(compare("lt", index, scalar(0, index)), add(index, scalar(extent, index)), index)


@rule("Gather", 1, 11, 13)
def gather(call: Call) -> Node:
    """The slices at positions along an axis."""
    x = call.tensor(0)
    axis = axis_of(call.integer("axis"), len(x.shape))
    index = call.tensor(1)
    if not index.shape and not call.depends(index):
        extent, place = x.shape[axis], int(call.know(index).item())
        if not isinstance(extent, int):
            return op("select.int", x, dim=axis, index=place)
        if not -extent <= place < extent:
            raise Refused(f"position {place} of {extent}")
        return op("select.int", x, dim=axis, index=place % extent)
    return op("index.Tensor", x, (_index(call, 1, x.shape[axis]),), dim=axis)


@rule("GatherElements", 11, 13)
def gather_elements(call: Call) -> Node:
    """At each position of the index the element that it names along an axis."""
    x = call.tensor(0)
    axis = axis_of(call.integer("axis"), len(x.shape))
    return op("gather.default", x, _index(call, 1, x.shape[axis]), dim=axis)


@rule("GatherND", 11, 12, 13)
def gather_nd(call: Call) -> Node:
    """The slices at positions of several axes."""
    x, index = call.tensor(0), call.tensor(1)
    batch = call.integer("batch_dims", 0)
    shape = static_shape(x)
    *outer, depth = static_shape(index)
    if batch + depth > len(shape) or batch > len(outer) or batch < 0 or depth < 1:
        raise Refused(f"indices {list(index.shape)} of {list(shape)}, batch_dims = {batch}")
    places = [_batch_place(axis, n, outer) for axis, n in enumerate(outer[:batch])]
    places += _places(cast(index, int64), shape[batch : batch + depth])
    return op("index.Tensor", x, tuple(places), dim=0)


def _batch_place(axis: int, extent: int, outer: Sequence[int]) -> Node:
    """The position along a leading axis that both tensors have."""
    shape = [extent if i == axis else 1 for i in range(len(outer))]
    return expand(reshape(arange(extent), shape), outer)


def _places(index: Node, extents: Sequence[int]) -> list[Node]:
    """The positions along each axis that the last axis of an index says."""
    last = len(index.shape) - 1
    found: list[Node] = []
    for i, extent in enumerate(extents):
        place = op("select.int", index, dim=last, index=i)
        low = compare("lt", place, scalar(0, place))
        found.append(where(low, add(place, scalar(extent, place)), place))
    return found


def _reduction(call: Call) -> str:
    if call.version < 16:
        return "none"
    allowed = ("none", "add", "mul") if call.version < 18 else ("none", *REDUCTIONS)
    return call.text("reduction", *allowed)


def _scattered(x: Node, axis: int, index: Node, updates: Node, reduction: str) -> Node:
    dtype = same_dtype(x, updates)
    if reduction == "none":
        return op("scatter.src", x, index, updates, dtype=dtype, dim=axis)
    word = REDUCTIONS[reduction]
    return op("scatter_reduce.two", x, index, updates, dtype=dtype, dim=axis, reduce=word)


@rule("Scatter", 9)
@rule("ScatterElements", 11, 13, 16, 18)
def scatter_elements(call: Call) -> Node:
    """The tensor with updates where the index names elements along an axis."""
    x = call.tensor(0)
    axis = axis_of(call.integer("axis"), len(x.shape))
    index = _index(call, 1, x.shape[axis])
    return _scattered(x, axis, index, call.tensor(2), _reduction(call))


@rule("ScatterND", 11, 13, 16, 18)
def scatter_nd(call: Call) -> Node:
    """The tensor with updates where the index names slices of several axes."""
    x, index, updates = call.tensor(0), call.tensor(1), call.tensor(2)
    reduction = _reduction(call)
    shape = static_shape(x)
    *outer, depth = static_shape(index)
    if depth > len(shape) or depth < 1:
        raise Refused(f"indices {list(index.shape)} of {list(shape)}")
    flat = full(outer, 0, int64)
    for place, extent in zip(_places(cast(index, int64), shape[:depth]), shape, strict=False):
        flat = add(mul(flat, scalar(extent, flat)), place)
    rows, width, number = prod(shape[:depth]), prod(shape[depth:]), prod(outer)
    wide = expand(reshape(flat, (number, 1)), (number, width))
    new = reshape(updates, (number, width))
    found = _scattered(reshape(x, (rows, width)), 0, wide, new, reduction)
    return reshape(found, shape)


@rule("OneHot", 9, 11, 28)
def one_hot(call: Call) -> Node:
    """One value at positions along a new axis, another elsewhere."""
    depth = int(call.array(1, "depth").item())
    index, values = _index(call, 0, depth), call.tensor(2)
    rank = len(index.shape) + 1
    axis = axis_of(call.integer("axis"), rank)
    shape = [depth if i == axis else 1 for i in range(rank)]
    hot = compare("eq", unsqueeze(index, axis), reshape(arange(depth), shape))
    off, on = (op("select.int", values, dim=0, index=i) for i in range(2))
    return where(hot, on, off)


@rule("TopK", 10, 11, 24)
def top_k(call: Call) -> Sequence[Node]:
    """The largest elements along an axis, or the smallest, and their positions; the first of equal ones."""
    x = call.tensor(0)
    (number,) = call.integers(1, "K")
    axis = axis_of(call.integer("axis"), len(x.shape))
    largest = call.version < 11 or call.flag("largest")
    call.whatever("sorted")  # any order will do without
    if not 0 <= number <= static_extent(x, axis):
        raise Refused(f"the first {number} of {x.shape[axis]}")
    properties = {"stable": True, "dim": axis, "descending": largest}
    both = [pair("sort.stable", x, index=i, **properties) for i in range(2)]
    return [narrow(each, axis, 0, number) for each in both]


@rule("Compress", 9, 11, 28)
def compress(call: Call) -> Node:
    """The slices where a list of bools, which must be known, is true."""
    x = call.tensor(0)
    given = call.given("axis")
    axis = 0 if given is None else axis_of(given, len(x.shape))
    x = reshape(x, (prod(static_shape(x)),)) if given is None else x
    chosen = call.array(1, "condition").reshape(-1).nonzero()[0].tolist()
    if any(i >= static_shape(x)[axis] for i in chosen):
        raise Refused(f"position {max(chosen)} of {x.shape[axis]}")
    if not chosen:
        return narrow(x, axis, 0, 0)
    return concat([narrow(x, axis, i, i + 1) for i in chosen], axis)


@rule("ReverseSequence", 10, 28)
def reverse_sequence(call: Call) -> Node:
    """Along an axis, the first elements backwards, as many as each batch says."""
    x = call.tensor(0)
    batch = axis_of(call.integer("batch_axis"), len(x.shape))
    time = axis_of(call.integer("time_axis"), len(x.shape))
    if {batch, time} != {0, 1}:
        raise Refused(f"batch_axis = {batch}, time_axis = {time}")
    shape = static_shape(x)
    steps = reshape(arange(shape[time]), (-1, 1) if time == 0 else (1, -1))
    lengths = cast(call.tensor(1), int64)
    lengths = reshape(lengths, (1, shape[batch]) if batch else (shape[batch], 1))
    back = sub(sub(lengths, scalar(1, lengths)), steps)
    index = where(compare("lt", steps, lengths), back, steps)
    index = reshape(index, (*shape[:2], *[1] * (len(shape) - 2)))
    return op("gather.default", x, expand(index, shape), dim=time)
