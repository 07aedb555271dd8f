"""What folds axes, and what orders or searches elements along them."""

from __future__ import annotations

from typing import Any, Literal

from .creation import full
from .data import cast
from .dtypes import (
    FLOATING,
    INTEGRAL,
    SIGNED,
    UNSIGNED,
    DType,
    Number,
    as_dtype,
    bool_,
    int64,
    uint64,
)
from .expression import apply
from .functions import Axes, astype, axes_of, meet, public, result, tensor
from .manipulation import concat, narrow, reshape
from .tensor import Tensor

FOLDS = {
    "max": ("amax.default", "real numeric", "one element"),
    "min": ("amin.default", "real numeric", "one element"),
    "mean": ("mean.dim", "floating", ""),
    "any": ("any.dims", "any", ""),
    "all": ("all.dims", "any", ""),
}
"""Reductions that are one operator: the dtypes they take, and what they need at least."""


def _fold(name: str, aten: str, kind: str, needed: str) -> Any:
    def function(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
        node = tensor(x, kind, name)
        axes = axes_of(axis, len(node.shape))
        if name in ("any", "all"):  # of bytes, ATen's are bytes
            node = cast(node, bool_)
        if needed and 0 in (node.shape[each] for each in axes):
            raise ValueError(f"{name} of {list(node.shape)} over axes {list(axes)} needs {needed}")
        if not axes:
            return Tensor.of(node)
        return result(aten, node, dim=axes, keepdim=keepdims)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{name}` of the array API, which is ATen's `{aten}`."
    return function


for _name, _row in FOLDS.items():
    public(_fold(_name, *_row))


def _sum_dtype(x: Tensor, dtype: Any, name: str) -> DType:
    """What sums and products are in: integers in 64 bits, floats as they are, or as asked."""
    node = tensor(x, "numeric", name)
    if dtype is not None:
        return as_dtype(dtype)
    return {SIGNED: int64, UNSIGNED: uint64}.get(node.dtype.kind, node.dtype)


@public
def sum(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The sum over axes; of integers in int64 or uint64."""
    chosen, axes = _sum_dtype(x, dtype, "sum"), axes_of(axis, x.ndim)
    if not axes:
        return astype(x, chosen)
    node = cast(x.node, chosen) if chosen.kind not in (FLOATING, SIGNED) else x.node
    return result("sum.dim_IntList", node, chosen, dim=axes, keepdim=keepdims, dtype=chosen)


@public
def prod(x: Tensor, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False) -> Tensor:
    """The product over axes; of integers in int64 or uint64."""
    chosen, axes = _sum_dtype(x, dtype, "prod"), axes_of(axis, x.ndim)
    folded = astype(x, chosen)
    for axis in sorted(axes, reverse=True):
        folded = result("prod.dim_int", folded.node, dim=axis, keepdim=keepdims, dtype=chosen)
    return folded


@public
def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The variance: squared distances from the mean, over the count less `correction`."""
    return _spread("var", x, axis, correction, keepdims)


@public
def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """The square root of the variance."""
    return _spread("std", x, axis, correction, keepdims)


def _spread(name: str, x: Tensor, axis: Axes, correction: float, keepdims: bool) -> Tensor:
    axes = axes_of(axis, len(tensor(x, FLOATING, name).shape))
    folded = reshape(x, (*x.shape, 1)) if not axes else x  # ATen would fold all
    dim = axes or (x.ndim,)
    keep = keepdims and bool(axes)
    return result(f"{name}.correction", folded.node, dim=dim, correction=correction, keepdim=keep)


@public
def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """How many elements are not zero, NaN among them."""
    return sum(astype(astype(x, bool_), int64), axis=axis, keepdims=keepdims)


@public
def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the largest element along an axis, or of all; that of the first NaN."""
    return _position("argmax", x, axis, keepdims)


@public
def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """The first position of the smallest element along an axis, or of all; that of the first NaN."""
    return _position("argmin", x, axis, keepdims)


def _position(name: str, x: Tensor, axis: int | None, keepdims: bool) -> Tensor:
    node = tensor(x, "real numeric", name)
    axes = axes_of(axis, len(node.shape))
    if 0 in (node.shape[each] for each in axes):
        raise ValueError(f"{name} of {list(node.shape)} needs one element")
    if axis is None:
        first = result(f"{name}.default", node, int64)
        return reshape(first, (1,) * x.ndim) if keepdims else first
    return result(f"{name}.default", node, int64, dim=axes[0], keepdim=keepdims)


# --------------------------------------------------------------------------- along an axis


def _cumulative(
    name: str, x: Tensor, axis: int | None, dtype: Any, include_initial: bool, initial: Number
) -> Tensor:
    chosen = _sum_dtype(x, dtype, name)
    if axis is None and x.ndim != 1:
        raise ValueError(f"{name} needs an axis of a tensor of {x.ndim} axes")
    (dim,) = axes_of(0 if axis is None else axis, x.ndim)
    aten = {"cumulative_sum": "cumsum.default", "cumulative_prod": "cumprod.default"}[name]
    asked = chosen if chosen.kind in INTEGRAL else None  # else integers would be in int64
    folded = result(aten, astype(x, chosen).node, dim=dim, dtype=asked)
    if not include_initial:
        return folded
    shape = (*x.shape[:dim], 1, *x.shape[dim + 1 :])
    return concat([full(shape, initial, dtype=chosen), folded], axis=dim)


@public
def cumulative_sum(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """At each position of an axis the sum up to it; of at most 4096 elements."""
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial, 0)


@public
def cumulative_prod(
    x: Tensor, /, *, axis: int | None = None, dtype: Any = None, include_initial: bool = False
) -> Tensor:
    """At each position of an axis the product up to it; of at most 4096 elements."""
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial, 1)


@public
def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """The differences of neighbours along an axis, n times."""
    tensor(x, "numeric", "diff")
    parts = [part for part in (prepend, x, append) if part is not None]
    x = concat(parts, axis=axis) if len(parts) > 1 else x
    (dim,) = axes_of(axis, x.ndim)
    for _ in range(n):
        extent = x.shape[dim]
        x = narrow(x, dim, 1, extent) - narrow(x, dim, 0, max(extent - 1, 0))
    return x


def _sorted(name: str, x: Tensor, axis: int, descending: bool, index: int) -> Tensor:
    node = tensor(x, "real numeric", name)
    (dim,) = axes_of(axis, len(node.shape))
    properties = {"stable": True, "dim": dim, "descending": descending}
    return Tensor.of(apply("sort.stable", [node], [node.dtype, int64], properties, index))


@public
def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """The elements along an axis in order, equal ones as they stood; NaN is the largest."""
    return _sorted("sort", x, axis, descending, 0)


@public
def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """The positions along an axis that `sort` takes the elements from."""
    return _sorted("argsort", x, axis, descending, 1)


@public
def searchsorted(
    x1: Tensor,
    x2: Tensor,
    /,
    *,
    side: Literal["left", "right"] = "left",
    sorter: Tensor | None = None,
) -> Tensor:
    """Where each element of x2 belongs in the sorted 1-d tensor x1."""
    nodes = meet("searchsorted", "real numeric", [x1, x2])
    order = None if sorter is None else cast(tensor(sorter, "integral", "searchsorted"), int64)
    if x1.ndim != 1 or side not in ("left", "right"):
        raise ValueError("searchsorted takes a 1-d tensor, and side is 'left' or 'right'")
    return Tensor.of(
        apply("searchsorted.Tensor", [*nodes, order], int64, {"right": side == "right"})
    )
