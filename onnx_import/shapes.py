"""Shapes as values: what a model computes of extents that calls choose, so that it is known where shapes are.

Models say Shape, Gather and Concat, and then Reshape to what these give. Beside the expression that computes
such a list there are its elements, numbers and sizes, in an array of objects.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..dialects.sizes import Extent, Size
from .rules import Call

Values = np.ndarray[Any, Any]
"""An array of numbers and sizes."""


def shape_values(call: Call) -> Values:
    """What Shape gives of a tensor."""
    found: Sequence[Extent] = call.tensor(0).shape
    if call.version >= 15:
        found = found[slice(call.given("start"), call.given("end"))]
    return _objects(found)


def _objects(values: Sequence[Any]) -> Values:
    made = np.empty(len(values), object)
    made[:] = values
    return made


def _axes(call: Call, arrays: Sequence[Values], at: int = 1) -> tuple[int, ...] | None:
    given = call.given("axes") if call.version < 13 else None
    if call.version >= 13 and len(arrays) > at:
        given = arrays[at].reshape(-1)
    return None if given is None else tuple(int(i) for i in given)


def _gather(call: Call, arrays: Sequence[Values]) -> Values:
    places = arrays[1].astype(np.int64)
    return np.asarray(np.take(arrays[0], places, axis=call.integer("axis")), object)


def _unsqueeze(call: Call, arrays: Sequence[Values]) -> Values:
    return np.expand_dims(arrays[0], _axes(call, arrays) or ())


def _squeeze(call: Call, arrays: Sequence[Values]) -> Values:
    return np.squeeze(arrays[0], _axes(call, arrays))


def _concat(call: Call, arrays: Sequence[Values]) -> Values:
    return np.concatenate(arrays, axis=call.integer("axis"))


def _slice(call: Call, arrays: Sequence[Values]) -> Values | None:
    if call.version < 10:
        return None
    lists = [[int(n) for n in array.reshape(-1)] for array in arrays[1:]]
    starts, ends = lists[:2]
    axes = lists[2] if len(lists) > 2 else list(range(len(starts)))
    steps = lists[3] if len(lists) > 3 else [1] * len(starts)
    found = arrays[0]
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        places = slice_places(start, end, step, found.shape[axis])
        found = np.take(found, np.array(places, np.int64), axis=axis)
    return found


def slice_places(start: int, end: int, step: int, extent: int) -> range:
    """The positions that Slice takes of an axis. Backwards, a start before the first is the first.

    There Python's slices differ: `[1, 2][-3::-1]` is empty.
    """
    low, high = (0, extent) if step > 0 else (-1, extent - 1)
    first, last = (n + extent if n < 0 else n for n in (start, end))
    first = min(max(first, 0), high)
    return range(first, min(max(last, low), high), step) if extent else range(0)


def _cast(call: Call, arrays: Sequence[Values]) -> Values | None:
    return arrays[0] if call.integer("to") in (6, 7) else None  # int32 and int64


def _reshape(call: Call, arrays: Sequence[Values]) -> Values | None:
    shape = [int(n) for n in arrays[1].reshape(-1)]
    return None if 0 in shape else arrays[0].reshape(shape)


def _product(call: Call, arrays: Sequence[Values]) -> Values:
    total = np.prod(arrays[0].reshape(-1))
    keeps = bool(call.integer("keepdims", 1)) and arrays[0].ndim == 1
    return np.array([total] if keeps else total, object)


def _quotient(a: Any, b: Any) -> Any:
    """A quotient of which nothing is cut off below 0, where truncating is not rounding down."""
    if not (a >= 0 and b > 0):
        raise ValueError("a quotient below 0")
    return a // b


def _equal(a: Any, b: Any) -> bool:
    if isinstance(a, Size) or isinstance(b, Size):
        number = b if isinstance(a, Size) else a
        if a != b and (isinstance(number, Size) or number >= 1):
            raise ValueError("whether sizes are equal")
    return bool(a == b)


def _elements(function: Callable[..., Any]) -> Callable[[Call, Sequence[Values]], Values]:
    at_each = np.frompyfunc(function, 2, 1)
    return lambda call, arrays: np.asarray(at_each(*arrays), object)


FOLDS: Mapping[str, Callable[[Call, Sequence[Values]], Values | None]] = {
    "Add": _elements(lambda a, b: a + b),
    "Sub": _elements(lambda a, b: a - b),
    "Mul": _elements(lambda a, b: a * b),
    "Div": _elements(_quotient),
    "Equal": _elements(_equal),
    "Cast": _cast,
    "Concat": _concat,
    "Gather": _gather,
    "Identity": lambda call, arrays: arrays[0],
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Unsqueeze": _unsqueeze,
    "Where": lambda call, arrays: np.where(arrays[0].astype(bool), arrays[1], arrays[2]),
}
"""Operators that models reckon with extents by."""


def fold(call: Call, arrays: Sequence[Values | None]) -> Values | None:
    """The elements of an operator's result, of inputs whose elements are known; None if they are not."""
    known = [array for array in arrays if array is not None]
    function = FOLDS.get(call.operator)
    if function is None or len(known) < len(arrays):
        return None
    return function(call, known)
