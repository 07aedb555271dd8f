"""Tensors out of nothing but numbers, and out of data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..dialects.sizes import Extent, Size
from .data import full as full_node
from .data import node_of
from .dtypes import (
    COMPLEX,
    FLOATING,
    KINDS,
    PYTHON_DEFAULTS,
    SIGNED,
    UNSIGNED,
    Number,
    as_dtype,
    bool_,
    complex128,
    float32,
    float64,
    int64,
    number_type,
)
from .expression import apply
from .functions import astype, on_cpu, public, result, tensor
from .manipulation import broadcast_arrays, reshape
from .tensor import Tensor
from .variables import extents, largest


def asarray(
    obj: Any, /, *, dtype: Any = None, device: str | None = None, copy: bool | None = None
) -> Tensor:
    """A tensor of data; of a tensor with `copy=False` itself, which x[…] = v will change."""
    on_cpu(device)
    if not isinstance(obj, Tensor):
        return Tensor.of(node_of(obj, dtype, copy))
    if copy is not False:
        return Tensor(obj, dtype)
    if dtype is not None and as_dtype(dtype) is not obj.dtype:
        raise ValueError(f"a tensor of {obj.dtype} is none of {as_dtype(dtype)} without a copy")
    return obj


def from_dlpack(x: Any, /, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor of the memory of an array that speaks DLPack."""
    if not hasattr(x, "__dlpack__"):
        raise TypeError(f"from_dlpack: a {type(x).__name__} does not speak DLPack")
    return asarray(x, device=device, copy=copy)


def full(
    shape: Extent | Sequence[Extent],
    fill_value: Number,
    *,
    dtype: Any = None,
    device: str | None = None,
) -> Tensor:
    """A tensor that is `fill_value` everywhere."""
    on_cpu(device)
    asked = extents(shape)
    if any(extent < 0 for extent in asked):
        raise ValueError(f"full: a shape has no negative extents, got {list(asked)}")
    chosen = PYTHON_DEFAULTS[number_type(fill_value)] if dtype is None else as_dtype(dtype)
    value = bool(fill_value) if chosen is bool_ and fill_value in (0, 1) else fill_value
    return Tensor.of(full_node(asked, value, chosen))


def _filled(name: str, value: int) -> None:
    def of_shape(
        shape: Extent | Sequence[Extent], *, dtype: Any = None, device: str | None = None
    ) -> Tensor:
        return full(shape, value, dtype=float32 if dtype is None else dtype, device=device)

    def like(x: Tensor, /, *, dtype: Any = None, device: str | None = None) -> Tensor:
        node = tensor(x, name=f"{name}_like")
        chosen = node.dtype if dtype is None else dtype
        return full(node.shape, value, dtype=chosen, device=device)

    of_shape.__doc__ = like.__doc__ = f"A tensor that is {value} everywhere."
    public(of_shape, name, method=False)
    public(like, f"{name}_like", method=False)


for _name, _value in {"zeros": 0, "ones": 1, "empty": 0}.items():
    _filled(_name, _value)


def full_like(
    x: Tensor, /, fill_value: Number, *, dtype: Any = None, device: str | None = None
) -> Tensor:
    """A tensor of the shape of another that is `fill_value` everywhere."""
    chosen = tensor(x, name="full_like").dtype if dtype is None else dtype
    return full(x.shape, fill_value, dtype=chosen, device=device)


def arange(
    start: Number | Size,
    /,
    stop: Number | Size | None = None,
    step: Number = 1,
    *,
    dtype: Any = None,
    device: str | None = None,
) -> Tensor:
    """The numbers from start (0 where it is alone), by step, before stop."""
    on_cpu(device)
    first, end = (0, start) if stop is None else (start, stop)
    whole = all(isinstance(number, int | Size) for number in (first, end, step))
    chosen = (int64 if whole else float32) if dtype is None else as_dtype(dtype)
    numbers = [number for number in (first, end, step) if isinstance(number, int)]
    if chosen.kind == UNSIGNED and len(numbers) == 3:
        places = arange(len(range(*numbers)), dtype=int64)
        return astype(places, chosen) * (numbers[2] % (1 << chosen.bits)) + numbers[0]
    made = chosen if chosen.kind in (SIGNED, FLOATING) else int64 if whole else float64
    properties = {"start": first, "end": end, "step": step, "dtype": made}
    return astype(Tensor.of(apply("arange.start_step", [], made, properties)), chosen)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: Any = None,
    device: str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """`num` numbers evenly from start to stop, computed in float64."""
    on_cpu(device)
    chosen = float32 if dtype is None else as_dtype(dtype)
    if chosen.kind not in KINDS["floating"]:
        raise TypeError(f"linspace gives floats, not {chosen}")
    exact = complex128 if chosen.kind == COMPLEX else float64
    found = np.linspace(start, stop, num, endpoint=endpoint, dtype=exact.numpy)
    return Tensor.of(node_of(found, chosen))


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: Any = None,
    device: str | None = None,
) -> Tensor:
    """1 on the k-th diagonal, 0 elsewhere."""
    shape = (n_rows, n_rows if n_cols is None else n_cols)
    rows, columns = reshape(arange(n_rows), (n_rows, 1)), arange(shape[1], device=device)
    places = columns - rows == _diagonal(shape, k)
    return Tensor(places, float32 if dtype is None else dtype)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> list[Tensor]:
    """Each 1-d tensor along an axis of its own, broadcast over those of the others."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing is 'xy' or 'ij', not {indexing!r}")
    order = list(range(len(arrays)))
    if indexing == "xy" and len(arrays) > 1:
        order[:2] = [1, 0]
    shapes = [[-1 if axis == i else 1 for axis in range(len(arrays))] for i in order]
    return broadcast_arrays(*(reshape(x, s) for x, s in zip(arrays, shapes, strict=True)))


for _function in (asarray, from_dlpack, full, full_like, arange, linspace, eye, meshgrid):
    public(_function, method=False)


@public
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part on and below the k-th diagonal, 0 above it."""
    return result("tril.default", _matrix(x, "tril").node, diagonal=_diagonal(x.shape, k))


@public
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The part on and above the k-th diagonal, 0 below it."""
    return result("triu.default", _matrix(x, "triu").node, diagonal=_diagonal(x.shape, k))


def _diagonal(shape: Sequence[Extent], k: int) -> int:
    """The number of a diagonal; of those that are beyond a matrix the nearest, which is empty, too."""
    rows, columns = map(largest, shape[-2:])
    return max(-rows, min(k, columns))


def _matrix(x: Tensor, name: str) -> Tensor:
    if len(tensor(x, name=name).shape) < 2:
        raise ValueError(f"{name} takes matrices, not a tensor of {x.ndim} axes")
    return x
