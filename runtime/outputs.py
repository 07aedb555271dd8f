"""What a saved program returns, and writes to its inputs, of the arrays that its plan makes.

    {"from": "result", "index": 0, "order": [1, 0]}                    a result, its axes permuted
    {"from": "argument", "index": 2, "views": [["select", 0, 1]]}      a view of an argument
    {"constant": null}    {"size": "s0 * 2", "axes": [[0, 1, 1, 0]]}   other values

A size is an expression over sizes: of each, the argument and the axis that say it, and the scale and offset
by which they do. One `"of": "result"` is said by axes of results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from .sizes import Expression

Data = Mapping[str, Any]
"""A value as JSON data."""

COMPLEX = {"float32": "complex64", "float64": "complex128"}


def _permute(value: Any, axes: Sequence[int]) -> Any:
    return value.transpose(axes)


def _swap(value: Any, first: int, second: int) -> Any:
    return value.swapaxes(first, second)


def _select(value: Any, axis: int, index: int) -> Any:
    return value[(slice(None),) * (axis % value.ndim) + (index, ...)]  # never a copy, as a scalar is


def _slice(value: Any, axis: int, start: int | None, end: int | None, step: int) -> Any:
    return value[(slice(None),) * (axis % value.ndim) + (slice(start, end, step),)]


def _unsqueeze(value: Any, axis: int) -> Any:
    return np.expand_dims(value, axis)


def _squeeze(value: Any, axes: int | Sequence[int]) -> Any:
    axes = [axes] if isinstance(axes, int) else axes
    short = tuple(axis for axis in axes if value.shape[axis] == 1) if value.ndim else ()
    return np.squeeze(value, short)


def _expand(value: Any, shape: Sequence[int]) -> Any:
    new = len(shape) - value.ndim
    return np.broadcast_to(
        value, [value.shape[i - new] if n == -1 else n for i, n in enumerate(shape)]
    )


def _diagonal(value: Any, offset: int, first: int, second: int) -> Any:
    view = value.diagonal(offset, first, second)
    view.flags.writeable = value.flags.writeable
    return view


def _reshape(value: Any, shape: Sequence[int]) -> Any:
    return value.reshape(tuple(shape))


def _same(value: Any) -> Any:
    return value


VIEWS: dict[str, Callable[..., Any]] = {
    "permute": _permute,
    "swap": _swap,
    "select": _select,
    "slice": _slice,
    "unsqueeze": _unsqueeze,
    "squeeze": _squeeze,
    "expand": _expand,
    "diagonal": _diagonal,
    "reshape": _reshape,
    "same": _same,
}
"""The views that a file may name, of an array and what else each takes."""


def value_of(data: Data, sources: Mapping[str, Sequence[Any]]) -> Any:
    """The value that `data` says; `sources` are the results, arguments and outputs of the call."""
    if "constant" in data:
        return data["constant"]
    arguments = sources["argument"]
    if "size" in data:
        return _size(data, sources[data.get("of", "argument")])
    value = sources[data["from"]][data["index"]]
    if data["from"] == "result":
        if data.get("complex"):
            value = as_complex(value)
        if (order := data.get("order")) is not None:
            value = viewed(value, _permute, np.argsort(order))
    for name, *given in data.get("views", ()):
        numbers = [_given(each, arguments) for each in given]
        value = viewed(value, VIEWS[name], *numbers, reshapes=name == "reshape")
    return value


class Elsewhere(ABC):
    """An array in memory that numpy cannot read."""

    layout: Any
    """A numpy array at the same address, of the same shape and strides, which must not be read."""

    @abstractmethod
    def viewed(self, view: Callable[..., Any], *given: Any, reshapes: bool = False) -> Any:
        """A view of it, by a function of numpy arrays and what that is given."""


def viewed(value: Any, view: Callable[..., Any], *given: Any, reshapes: bool = False) -> Any:
    """A view of an array, by a function of numpy arrays; an array elsewhere makes it itself.

    A view that `reshapes` may have to be a copy.
    """
    if isinstance(value, Elsewhere):
        return value.viewed(view, *given, reshapes=reshapes)
    return view(value, *given)


def layout_of(value: Any) -> Any:
    """The numpy array that lies as a value does: itself, or of an array elsewhere one that is never read."""
    return value.layout if isinstance(value, Elsewhere) else value


def as_complex(pairs: Any) -> Any:
    """A row-major array of the parts of complex numbers as these, in the same memory."""
    kind = COMPLEX[str(pairs.dtype)]
    return viewed(pairs, lambda array: array.view(kind)[..., 0])


def _given(value: Any, arguments: Sequence[Any]) -> Any:
    """What a view is given, sizes as numbers."""
    if isinstance(value, list):
        return [_given(each, arguments) for each in value]  # pyright: ignore[reportUnknownVariableType]
    return _size(value, arguments) if isinstance(value, dict) else value


def _size(data: Any, arguments: Sequence[Any]) -> int:
    sizes = [
        -((offset - arguments[argument].shape[axis]) // scale)
        for argument, axis, scale, offset in data["axes"]
    ]
    return Expression(data["size"]).evaluate(sizes)


def check_value(data: Data, counts: Mapping[str, int]) -> None:
    """Raise ValueError, KeyError or TypeError unless `data` names what there is, `counts` of each source."""
    if "constant" in data:
        return
    if "size" in data:
        _size(data, [_Shape()] * counts[data.get("of", "argument")])
        return
    if not 0 <= data["index"] < counts[data["from"]]:
        raise ValueError(f"there is no {data['from']} {data['index']}")
    for name, *_ in data.get("views", ()):
        _ = VIEWS[name]


class _Shape:
    """Stands for an array of any shape."""

    def __init__(self) -> None:
        self.shape = [1 << 20] * 64

