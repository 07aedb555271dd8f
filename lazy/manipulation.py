"""Movement: what gives elements other places. All of it is index maps, which fuse into their readers."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..dialects.sizes import Extent, Size
from .data import cast
from .dtypes import SIGNED, check_number, promoted
from .expression import Node, apply, leaf
from .functions import Axes, axes_of, checking, public, result, tensor
from .tensor import METHODS, Number, Tensor
from .variables import extents, largest, named


@public
def reshape(x: Tensor, /, shape: Extent | Sequence[Extent], *, copy: bool | None = None) -> Tensor:
    """The elements in row-major order under another shape, one extent of which may be -1."""
    node = tensor(x, name="reshape")
    size = extents(shape)
    return x if size == node.shape else result("view.default", node, size=size)


@public
def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """The axes in another order."""
    order = axes_of(axes, len(tensor(x, name="permute_dims").shape))
    return (
        x if list(order) == list(range(x.ndim)) else result("permute.default", x.node, dims=order)
    )


@public
def broadcast_to(x: Tensor, /, shape: Sequence[Extent]) -> Tensor:
    """Axes of extent 1 repeated, and leading ones added."""
    node = tensor(x, name="broadcast_to")
    return x if tuple(shape) == node.shape else result("expand.default", node, size=tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> list[Tensor]:
    """Tensors in the shape that they broadcast to."""
    shape = broadcast_shape(*(tensor(x, name="broadcast_arrays").shape for x in arrays))
    return [broadcast_to(x, shape) for x in arrays]


public(broadcast_arrays, method=False)


def broadcast_shape(*shapes: Sequence[Extent]) -> tuple[Extent, ...]:
    """The shape that shapes broadcast to. Raises ValueError if there is none."""
    rank = max(map(len, shapes), default=0)
    padded = [(*[1] * (rank - len(shape)), *shape) for shape in shapes]
    extents = [set(column) - {1} or {1} for column in zip(*padded, strict=True)]
    if any(len(found) > 1 for found in extents):
        raise ValueError(f"shapes {' and '.join(str(list(s)) for s in shapes)} do not broadcast")
    return tuple(found.pop() for found in extents)


@public
def expand_dims(x: Tensor, /, *, axis: int = 0) -> Tensor:
    """A new axis of extent 1."""
    (at,) = axes_of(axis, len(tensor(x, name="expand_dims").shape) + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


@public
def squeeze(x: Tensor, /, axis: int | Sequence[int]) -> Tensor:
    """Without axes of extent 1. Raises ValueError if one has another."""
    axes = axes_of(axis, len(tensor(x, name="squeeze").shape))
    if any(x.shape[each] != 1 for each in axes):
        raise ValueError(f"squeeze: axes {list(axes)} of {list(x.shape)} are not all of extent 1")
    return reshape(x, [n for i, n in enumerate(x.shape) if i not in axes])


@public
def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Axes at other places; the rest keep their order."""
    rank = len(tensor(x, name="moveaxis").shape)
    placed = dict(zip(axes_of(destination, rank), axes_of(source, rank), strict=True))
    others = (axis for axis in range(rank) if axis not in placed.values())
    return permute_dims(x, [placed[i] if i in placed else next(others) for i in range(rank)])


@public
def flip(x: Tensor, /, *, axis: Axes = None) -> Tensor:
    """Axes, or all, the other way round."""
    axes = axes_of(axis, len(tensor(x, name="flip").shape))
    return result("flip.default", x.node, dims=axes) if axes else x


def _joined(name: str, arrays: Sequence[Tensor], axis: int, added: int) -> Tensor:
    nodes = [tensor(x, name=name) for x in arrays]
    if not nodes or len({len(node.shape) for node in nodes}) > 1:
        raise ValueError(f"{name} takes tensors, at least one, of one number of axes")
    dtype = promoted(*(node.dtype for node in nodes))
    (dim,) = axes_of(axis, len(nodes[0].shape) + added)
    aten = "stack.default" if added else "cat.default"
    cast_nodes = tuple(cast(node, dtype) for node in nodes)
    return Tensor.of(apply(aten, [cast_nodes], dtype, {"dim": dim}))


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis they have; flattened first if there is none."""
    if axis is None:
        arrays, axis = [reshape(x, x.size) for x in arrays], 0
    return _joined("concat", arrays, axis, 0)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis."""
    return _joined("stack", arrays, axis, 1)


for _function in (concat, stack):
    public(_function, method=False)


@public
def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """The slices along an axis."""
    if not tensor(x, name="unstack").shape:
        raise TypeError("a tensor without axes has nothing along them")
    (dim,) = axes_of(axis, x.ndim)
    return tuple(result("select.int", x.node, dim=dim, index=i) for i in range(x.shape[dim]))


def narrow(x: Tensor, axis: int, start: Extent, end: Extent, step: int = 1) -> Tensor:
    """Every step-th position of an axis, from start to before end."""
    return result("slice.Tensor", x.node, dim=axis, start=start, end=end, step=step)


@public
def roll(x: Tensor, /, shift: int | Sequence[int], *, axis: Axes = None) -> Tensor:
    """The elements moved along axes; those that leave at the end come in at the start."""
    if axis is None:
        return reshape(roll(reshape(x, (x.size,)), shift, axis=0), x.shape)
    axes = (axis,) if isinstance(axis, int) else axis
    shifts = [shift] * len(axes) if isinstance(shift, int) else shift
    for dim, by in zip(axes, shifts, strict=True):
        (dim,) = axes_of(dim, x.ndim)
        extent = x.shape[dim]
        if extent != 0 and by % extent != 0:
            cut = extent - by % extent
            x = concat([narrow(x, dim, cut, extent), narrow(x, dim, 0, cut)], axis=dim)
    return x


@public
def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element so many times in a row."""
    if isinstance(repeats, Tensor):
        raise TypeError("repeat takes one number: the shape must not depend on a tensor's elements")
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    (dim,) = axes_of(axis, x.ndim)
    before, after = x.shape[: dim + 1], x.shape[dim + 1 :]
    wide = broadcast_to(reshape(x, (*before, 1, *after)), (*before, repeats, *after))
    return reshape(wide, (*before[:-1], before[-1] * repeats, *after))


@public
def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """The tensor so many times along each axis."""
    times = (*[1] * (len(tensor(x, name="tile").shape) - len(repetitions)), *repetitions)
    return result("repeat.default", x.node, repeats=times)


@public
def pad(x: Tensor, widths: Sequence[tuple[Extent, Extent]], value: Number = 0) -> Tensor:
    """Positions that are `value`, so many before and after each axis; a negative number takes away."""
    if len(widths) != len(tensor(x, name="pad").shape):
        raise ValueError(f"pad takes a pair for each of {x.ndim} axes, not {len(widths)}")
    flat = tuple(width for pair in reversed(widths) for width in pair)
    number = check_number(value, x.dtype) if value else 0
    return result("constant_pad_nd.default", x.node, pad=flat, value=number)


@public
def shrink(x: Tensor, bounds: Sequence[tuple[Extent, Extent]]) -> Tensor:
    """Of each axis the part from a position to before another."""
    return pad(
        x, [(-low, high - extent) for (low, high), extent in zip(bounds, x.shape, strict=True)]
    )


@public
def take(x: Tensor, indices: Tensor, /, *, axis: int | None = None) -> Tensor:
    """The slices at positions along an axis; one that is outside stops the program."""
    (dim,) = axes_of(0 if axis is None else axis, len(tensor(x, name="take").shape))
    if axis is None and x.ndim != 1:
        raise ValueError(f"take needs an axis of a tensor of {x.ndim} axes")
    index = tensor(indices, "integral", "take")
    return Tensor.of(apply("index.Tensor", [x.node, (index,)], x.dtype, {"dim": dim}))


@public
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """At each position of `indices` the element of `x` that it names along the axis."""
    index = Tensor.of(tensor(indices, "integral", "take_along_axis"))
    (dim,) = axes_of(axis, len(tensor(x, name="take_along_axis").shape))
    if index.ndim != x.ndim:
        raise ValueError(f"take_along_axis: {index.ndim} axes of indices for one of {x.ndim}")

    def without(shape: Sequence[Extent]) -> tuple[Extent, ...]:
        return (*shape[:dim], 1, *shape[dim + 1 :])

    wide = list(broadcast_shape(without(x.shape), without(index.shape)))

    def widened(each: Tensor) -> Node:
        return broadcast_to(each, [*wide[:dim], each.shape[dim], *wide[dim + 1 :]]).node

    return Tensor.of(apply("gather.default", [widened(x), widened(index)], x.dtype, {"dim": dim}))


# --------------------------------------------------------------------------- x[…]


def getitem(x: Tensor, key: Any) -> Tensor:
    """Integers, slices, `...`, None, and neighbouring axes by tensors of integers."""
    items = list(key) if isinstance(key, tuple) else [key]
    used = sum(item is not None and item is not Ellipsis for item in items)
    if used > x.ndim or sum(item is Ellipsis for item in items) > 1:
        raise IndexError(f"{used} indices do not fit a tensor of {x.ndim} axes")
    if not any(item is Ellipsis for item in items):
        items.append(Ellipsis)
    at = next(i for i, item in enumerate(items) if item is Ellipsis)
    items[at : at + 1] = [slice(None)] * (x.ndim - used)
    chosen = [i for i, item in enumerate(items) if isinstance(item, Tensor)]
    if chosen:
        return _indexed(x, items, chosen)
    axis = 0
    for item in items:
        if item is None:
            x = expand_dims(x, axis=axis)
        elif isinstance(item, slice):
            x = _sliced(x, axis, item)
        else:
            x = _selected(x, axis, item)
            continue
        axis += 1
    return x


def _selected(x: Tensor, axis: int, item: Any) -> Tensor:
    try:
        index = operator.index(item)
    except TypeError:
        raise IndexError(
            f"an index is an integer, a slice, ..., None or a tensor of integers, not {item!r}"
        ) from None
    if isinstance(item, bool) or not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError(f"index {item} is outside axis {axis} of extent {x.shape[axis]}")
    return result("select.int", x.node, dim=axis, index=index)


def _front(x: Tensor, axis: int, end: Size) -> Tensor:
    """An axis up to a variable; of data, what a plan reads of them (`plans.py`)."""
    if not (extent := x.shape[axis]) >= largest(end):
        raise IndexError(
            f"'{named([end])[0]}' may be {largest(end)}, axis {axis} has {extent} positions"
        )
    if x.node.array is None:
        return narrow(x, axis, 0, end)
    shape = (*x.shape[:axis], *named([end]), *x.shape[axis + 1 :])
    return Tensor.of(leaf(x.node.array, x.dtype, shape))


def _sliced(x: Tensor, axis: int, item: slice) -> Tensor:
    if item == slice(None) or (item == slice(item.stop) and item.stop == x.shape[axis]):
        return x
    if isinstance(item.stop, Size) and item == slice(item.stop):
        return _front(x, axis, item.stop)
    if any(isinstance(n, Size) for n in (x.shape[axis], item.start, item.stop, item.step)):
        raise IndexError(
            f"of variables there is x[:n] only: axis {axis} of {list(x.shape)}[{item}]"
        )
    start, stop, step = item.indices(x.shape[axis])
    count = len(range(start, stop, step))
    if (start, count, step) == (0, x.shape[axis], 1):
        return x
    if step > 0:
        return narrow(x, axis, start, start + (count - 1) * step + 1 if count else start, step)
    low = start + (count - 1) * step if count else 0
    return flip(narrow(x, axis, low, start + 1 if count else 0, -step), axis=axis)


def _indexed(x: Tensor, items: Sequence[Any], chosen: Sequence[int]) -> Tensor:
    """Neighbouring axes by tensors of integers, and the others by slices."""
    first, last = chosen[0], chosen[-1] + 1
    if len(chosen) != last - first or not all(isinstance(i, slice | Tensor) for i in items):
        raise IndexError("with tensors as indices, of neighbouring axes, there can only be slices")
    for axis, item in enumerate(items):
        if isinstance(item, slice):
            x = _sliced(x, axis, item)
        elif item.dtype.kind != SIGNED:
            raise IndexError(f"a tensor of {item.dtype} is no index; for a mask use where")
    indices = tuple(items[i].node for i in chosen)
    return Tensor.of(apply("index.Tensor", [x.node, indices], x.dtype, {"dim": first}))


METHODS["getitem"] = checking(getitem, "x[…]")
METHODS.update(permute=METHODS["permute_dims"], expand=METHODS["broadcast_to"])
