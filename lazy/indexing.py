"""`x[…]`, and `x[…] = v`, which makes of a tensor one with other elements.

Places that data decide are found by gathers; how many a mask has is computed when it is used.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dialects.sizes import Size
from .calls import computed
from .creation import arange
from .data import cast, full
from .dtypes import INTEGRAL, Number, bool_, int64, promoted
from .expression import apply, leaf
from .functions import checking, result, where
from .manipulation import broadcast_to, concat, expand_dims, flip, narrow, permute_dims, reshape
from .tensor import METHODS, Tensor
from .variables import largest, named


def getitem(x: Tensor, key: Any) -> Tensor:
    """The elements at integers, slices, `...`, None, tensors of integers and masks, as numpy has them."""
    x, items = _items(x, key)
    by_tensors = any(isinstance(item, Tensor) for item in items)
    places: list[Tensor | None] = []
    for item in items:
        axis = len(places)
        if item is None:
            x = expand_dims(x, axis=axis)
        elif isinstance(item, slice):
            x = _sliced(x, axis, item)
        elif isinstance(item, Tensor):
            places.append(item)
            continue
        elif by_tensors:
            index = _whole(item, x, axis)
            places.append(Tensor.of(full((), index, int64)))
            continue
        else:
            x = result("select.int", x.node, dim=axis, index=_whole(item, x, axis))
            continue
        places.append(None)
    return _gathered(x, places) if by_tensors else x


def _items(x: Tensor, key: Any) -> tuple[Tensor, list[Any]]:
    """The tensor, and what is said of each of its axes; masks as tensors of integers, one for each axis."""
    given: list[Any] = list(key) if isinstance(key, tuple) else [key]
    used = sum(map(_axes_of, given))
    found = [i for i, item in enumerate(given) if item is Ellipsis]
    if used > x.ndim or len(found) > 1:
        raise IndexError(f"{used} indices do not fit a tensor of {x.ndim} axes")
    (at,) = found or [len(given)]
    given[at : at + 1] = [slice(None)] * (x.ndim - used)
    items: list[Any] = []
    axis = 0
    for item in given:
        if not isinstance(item, Tensor):
            items.append(item)
        elif item.dtype.kind in INTEGRAL:
            items.append(Tensor(item, int64))
        elif item.dtype is not bool_:
            raise IndexError(f"a tensor of {item.dtype} is no index")
        else:
            if not item.ndim:
                x, item = expand_dims(x, axis), reshape(item, (1,))
            _check_mask(x, axis, item)
            items += computed(np.nonzero, item)
        axis += _axes_of(item)
    return x, items


def _axes_of(item: Any) -> int:
    """How many axes an item is of."""
    if isinstance(item, Tensor) and item.dtype is bool_:
        return item.ndim
    return int(item is not None and item is not Ellipsis)


def _check_mask(x: Tensor, axis: int, mask: Tensor) -> None:
    of = x.shape[axis : axis + mask.ndim]
    if of != mask.shape:
        raise IndexError(f"a mask of {list(mask.shape)} is of axes of {list(of)}")


def _whole(item: Any, x: Tensor, axis: int) -> int:
    """An index of an axis. Raises IndexError for what is none."""
    try:
        index = operator.index(item)
    except TypeError:
        raise IndexError(
            f"an index is an integer, a slice, ..., None or a tensor, not {item!r}"
        ) from None
    if isinstance(item, bool) or not -x.shape[axis] <= index < x.shape[axis]:
        raise IndexError(f"index {item} is outside axis {axis} of extent {x.shape[axis]}")
    return index


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


def _bounds(item: slice) -> slice:
    """A slice with numbers for tensors, which are computed."""

    def bound(value: Any) -> Any:
        return value if value is None or isinstance(value, Size) else operator.index(value)

    return slice(bound(item.start), bound(item.stop), bound(item.step))


def _sliced(x: Tensor, axis: int, item: slice) -> Tensor:
    item = _bounds(item)
    if item == slice(None) or (item == slice(item.stop) and item.stop == x.shape[axis]):
        return x
    if isinstance(item.stop, Size) and item == slice(item.stop):
        return _front(x, axis, item.stop)
    if any(isinstance(n, Size) for n in (x.shape[axis], item.start, item.stop, item.step)):
        raise IndexError(
            f"of variables there is x[:n] only: axis {axis} of {list(x.shape)}[{item}]"
        )
    start, count, step = _range(item, x.shape[axis])
    if (start, count, step) == (0, x.shape[axis], 1):
        return x
    if step > 0:
        return narrow(x, axis, start, start + (count - 1) * step + 1 if count else start, step)
    low = start + (count - 1) * step if count else 0
    return flip(narrow(x, axis, low, start + 1 if count else 0, -step), axis=axis)


def _range(item: slice, extent: Any) -> tuple[int, int, int]:
    """The first position that a slice names, how many it does, and how far they are apart."""
    start, stop, step = item.indices(extent)
    return start, len(range(start, stop, step)), step


def _gathered(x: Tensor, places: Sequence[Tensor | None]) -> Tensor:
    """Axes by tensors of integers: where these are not neighbours, what they give stands in front."""
    chosen = [axis for axis, place in enumerate(places) if place is not None]
    indices = tuple(place.node for place in places if place is not None)
    first = chosen[0]
    if chosen[-1] - first + 1 != len(chosen):
        rest = [axis for axis in range(x.ndim) if axis not in chosen]
        x, first = permute_dims(x, [*chosen, *rest]), 0
    return Tensor.of(apply("index.Tensor", [x.node, indices], x.dtype, {"dim": first}))


# --------------------------------------------------------------------------- x[…] = v


def setitem(x: Tensor, key: Any, value: Tensor | Number) -> Tensor:
    """The tensor with `value`, which broadcasts, where the key says."""
    if isinstance(value, Tensor):
        promoted(x.dtype, value.dtype)  # raises for another kind
        given = Tensor.of(cast(value.node, x.dtype))
    elif isinstance(value, Number):  # pyright: ignore[reportUnnecessaryIsInstance]
        given = Tensor.of(full((), value, x.dtype))
    else:
        raise TypeError(f"it takes a deplo.Tensor or a number, not a {type(value).__name__}")
    if isinstance(key, Tensor) and key.dtype is bool_ and not given.ndim:
        if key.ndim:
            _check_mask(x, 0, key)
        return where(reshape(key, (*key.shape, *[1] * (x.ndim - key.ndim))), given, x)
    _, items = _items(x, key)
    if not any(isinstance(item, Tensor) for item in items):
        box = _box(x, [item for item in items if item is not None])
        if all(step in (1, -1) for _, _, step in box):
            return _placed(x, key, box, given)
    places = getitem(reshape(arange(x.size), x.shape), key)
    if places.size == 0:
        return x
    wide = broadcast_to(given, places.shape)
    nodes = [reshape(each, (each.size,)).node for each in (x, places, wide)]
    return reshape(Tensor.of(apply("scatter.src", nodes, x.dtype, {"dim": 0})), x.shape)


def _box(x: Tensor, items: Sequence[Any]) -> list[tuple[int, int, int]]:
    """Of each axis the first position, how many there are, and how far they are apart."""
    extents = [int(extent) for extent in x.shape]
    return [
        _range(_bounds(item), extent)
        if isinstance(item, slice)
        else (_whole(item, x, axis) % extent, 1, 1)
        for axis, (item, extent) in enumerate(zip(items, extents, strict=True))
    ]


def _placed(x: Tensor, key: Any, box: Sequence[tuple[int, int, int]], value: Tensor) -> Tensor:
    """A value where a box is: the parts before and behind it stay."""
    wide = broadcast_to(value, getitem(x, key).shape)
    inner = reshape(wide, [count for _, count, _ in box])
    inner = flip(inner, axis=[axis for axis, (*_, step) in enumerate(box) if step < 0])
    starts = [start - count + 1 if step < 0 else start for start, count, step in box]
    ends = [start + count for start, (_, count, _) in zip(starts, box, strict=True)]
    if 0 in inner.shape:
        return x

    def around(x: Tensor, axis: int) -> Tensor:
        if axis == x.ndim:
            return inner
        start, end, extent = starts[axis], ends[axis], x.shape[axis]
        middle = around(narrow(x, axis, start, end), axis + 1)
        before = [narrow(x, axis, 0, start)] if start else []
        behind = [narrow(x, axis, end, extent)] if end < extent else []
        return concat([*before, middle, *behind], axis=axis) if before or behind else middle

    return around(x, 0)


METHODS["getitem"] = checking(getitem, "x[…]")
METHODS["setitem"] = checking(setitem, "x[…] = v")
