"""What rules are made of: operations of Torch IR on expressions, by ATen's names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from ..dialects.sizes import Extent, Size
from ..lazy.data import cast
from ..lazy.dtypes import DType, bool_, int64
from ..lazy.expression import Argument, Node, apply, leaf
from .dtypes import is_float
from .rules import Refused

__all__ = ["cast", "full", "known", "op", "scalar"]


def op(aten: str, *arguments: Argument, dtype: DType | None = None, **properties: Any) -> Node:
    """An operator; its result has the dtype of the first tensor if no other is said."""
    first = next((a for a in arguments if isinstance(a, Node)), None)
    chosen = dtype or (None if first is None else first.dtype)
    assert chosen is not None
    return apply(aten, arguments, chosen, properties)


def typed(aten: str, x: Node, **properties: Any) -> Node:
    """An operator of one tensor that is asked to compute in its dtype."""
    return apply(aten, [x], x.dtype, {**properties, "dtype": x.dtype})


def pair(aten: str, *arguments: Argument, index: int, **properties: Any) -> Node:
    """A result of an operator that gives values and their positions."""
    (first, *_) = arguments
    assert isinstance(first, Node)
    return apply(aten, arguments, (first.dtype, int64), properties, index)


def element(value: Any, dtype: DType) -> bool | int | float | Size:
    """A number as an element of a dtype."""
    if isinstance(value, Size):
        return value
    if dtype is bool_:
        return bool(value)
    return float(value) if is_float(dtype) else int(value)


def full(shape: Sequence[Extent], value: Any, dtype: DType) -> Node:
    """A tensor that is a number everywhere."""
    properties = {"size": tuple(shape), "fill_value": element(value, dtype), "dtype": dtype}
    return apply("full.default", [], dtype, properties)


def scalar(value: Any, like: Node) -> Node:
    """A number as a tensor without axes, of the dtype of another."""
    return full((), value, like.dtype)


def known(array: np.ndarray[Any, Any], dtype: DType) -> Node:
    """A tensor of elements that are known; those of one element are part of what is compiled."""
    if array.size == 1 and dtype.storage == array.dtype and dtype.name != "bfloat16":
        return full(array.shape, array.reshape(-1)[0], dtype)
    return leaf(np.ascontiguousarray(array).reshape(array.shape), dtype)


def integers(values: Sequence[int]) -> Node:
    """A list of integers."""
    return leaf(np.array(values, np.int64), int64)


# ---- arithmetic


def add(a: Node, b: Node) -> Node:
    """a + b."""
    return op("add.Tensor", a, b)


def sub(a: Node, b: Node) -> Node:
    """a - b."""
    return op("sub.Tensor", a, b)


def mul(a: Node, b: Node) -> Node:
    """a * b."""
    return op("mul.Tensor", a, b)


def div(a: Node, b: Node) -> Node:
    """a / b, of floats."""
    return op("div.Tensor", a, b)


def where(condition: Node, a: Node, b: Node) -> Node:
    """`a` where the condition is true, else `b`."""
    return op("where.self", condition, a, b, dtype=a.dtype)


def compare(name: str, a: Node, b: Node) -> Node:
    """One of eq, ne, lt, le, gt, ge."""
    return op(f"{name}.Tensor", a, b, dtype=bool_)


def either(a: Node, b: Node) -> Node:
    """Whether one of two is true."""
    return op("logical_or.default", a, b, dtype=bool_)


def unary(name: str, x: Node) -> Node:
    """An operator of one tensor, which keeps its dtype."""
    return op(f"{name}.default", x)


# ---- shapes


def static_shape(node: Node, start: int = 0) -> tuple[int, ...]:
    """The extents of axes from one on. Raises Refused if one is a size that each call chooses."""
    found = tuple(n for n in node.shape[start:] if isinstance(n, int))
    if len(found) < len(node.shape[start:]):
        raise Refused(f"axes that calls choose, in {list(node.shape)}")
    return found


def static_extent(node: Node, axis: int) -> int:
    """The extent of an axis. Raises Refused if it is a size that each call chooses."""
    extent = node.shape[axis]
    if not isinstance(extent, int):
        raise Refused(f"an axis that calls choose, in {list(node.shape)}")
    return extent


def axis_of(axis: int, rank: int) -> int:
    """An axis counted from the front. Raises Refused if there is none."""
    if not -rank <= axis < max(rank, 1):
        raise Refused(f"axis {axis} of a tensor of {rank} axes")
    return axis % rank if rank else 0


def axes_of(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Axes counted from the front. Raises Refused if there are none such, or one twice."""
    found = tuple(axis_of(axis, rank) for axis in axes)
    if len(set(found)) < len(found):
        raise Refused(f"axes {list(axes)} name one axis twice")
    return found


def reshape(node: Node, shape: Sequence[Extent]) -> Node:
    """The elements in row-major order under another shape."""
    return node if tuple(shape) == node.shape else op("view.default", node, size=tuple(shape))


def permute(node: Node, order: Sequence[int]) -> Node:
    """The axes in another order."""
    if list(order) == list(range(len(node.shape))):
        return node
    return op("permute.default", node, dims=tuple(order))


def expand(node: Node, shape: Sequence[Extent]) -> Node:
    """Axes of extent 1 repeated, and leading ones added."""
    return node if tuple(shape) == node.shape else op("expand.default", node, size=tuple(shape))


def narrow(node: Node, axis: int, start: Extent, end: Extent, step: int = 1) -> Node:
    """Every step-th position of an axis, from start to before end."""
    if (start, end, step) == (0, node.shape[axis], 1):
        return node
    return op("slice.Tensor", node, dim=axis, start=start, end=end, step=step)


def unsqueeze(node: Node, *axes: int) -> Node:
    """New axes of extent 1 where these are in the result."""
    shape = list(node.shape)
    for axis in sorted(axes):
        shape.insert(axis, 1)
    return reshape(node, shape)


def concat(nodes: Sequence[Node], axis: int) -> Node:
    """Tensors joined along an axis."""
    if len(nodes) == 1:
        return nodes[0]
    return op("cat.default", tuple(nodes), dtype=nodes[0].dtype, dim=axis)


def pad(node: Node, widths: Sequence[tuple[int, int]], value: Any = 0) -> Node:
    """Positions that are a number, so many before and after each axis; negative ones take away."""
    if not any(before or after for before, after in widths):
        return node
    flat = tuple(width for both in reversed(widths) for width in both)
    return op("constant_pad_nd.default", node, pad=flat, value=element(value, node.dtype))


def length(extents: Sequence[Extent]) -> Node:
    """A list of extents, some of which calls may choose."""
    fixed = [n for n in extents if isinstance(n, int)]
    if len(fixed) == len(extents):
        return integers(fixed)
    return concat([full((1,), n, int64) for n in extents], 0)


def count(shape: Sequence[Extent]) -> Extent:
    """The number of elements."""
    return prod(shape)


def arange(end: Extent, dtype: DType = int64) -> Node:
    """The numbers from 0 to before `end`."""
    return apply(
        "arange.start_step", [], dtype, {"start": 0, "end": end, "step": 1, "dtype": dtype}
    )


# ---- folds


def fold(aten: str, node: Node, axes: Sequence[int], keep: bool = False) -> Node:
    """amax, amin, mean or sum over axes; over none it is the tensor itself."""
    if not axes:
        return node
    if aten in ("sum", "mean"):
        overload = "sum.dim_IntList" if aten == "sum" else "mean.dim"
        return typed(overload, node, dim=tuple(axes), keepdim=keep)
    return op(f"{aten}.default", node, dim=tuple(axes), keepdim=keep)
