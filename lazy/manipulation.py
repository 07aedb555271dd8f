"""Movement: what gives elements other places. All of it is index maps, which fuse into their readers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..dialects.sizes import Extent
from .calls import computed
from .data import cast
from .dtypes import Number, check_number, int64, promoted
from .expression import Node, apply
from .functions import Axes, astype, axes_of, public, result, tensor, where
from .tensor import METHODS, Tensor
from .variables import extents


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
def expand_dims(x: Tensor, /, axis: int = 0) -> Tensor:
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
    """Each element so many times in a row; numbers in a tensor are computed now, to know the shape."""
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    (dim,) = axes_of(axis, x.ndim)
    if isinstance(repeats, Tensor):
        places = np.arange(int(x.shape[dim]))
        return take(x, computed(np.repeat, places, astype(repeats, int64)), axis=dim)
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
    index = cast(tensor(indices, "integral", "take"), int64)
    return Tensor.of(apply("index.Tensor", [x.node, (index,)], x.dtype, {"dim": dim}))


@public
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """At each position of `indices` the element of `x` that it names along the axis, also from its end."""
    index = Tensor.of(cast(tensor(indices, "integral", "take_along_axis"), int64))
    (dim,) = axes_of(axis, len(tensor(x, name="take_along_axis").shape))
    properties = {"size": (), "fill_value": x.shape[dim], "dtype": int64}
    extent = Tensor.of(apply("full.default", [], int64, properties))
    index = where(index < 0, index + extent, index)
    if index.ndim != x.ndim:
        raise ValueError(f"take_along_axis: {index.ndim} axes of indices for one of {x.ndim}")

    def without(shape: Sequence[Extent]) -> tuple[Extent, ...]:
        return (*shape[:dim], 1, *shape[dim + 1 :])

    wide = list(broadcast_shape(without(x.shape), without(index.shape)))

    def widened(each: Tensor) -> Node:
        return broadcast_to(each, [*wide[:dim], each.shape[dim], *wide[dim + 1 :]]).node

    return Tensor.of(apply("gather.default", [widened(x), widened(index)], x.dtype, {"dim": dim}))


METHODS.update(permute=METHODS["permute_dims"], expand=METHODS["broadcast_to"])
