"""The order of a tensor's axes in memory: the slowest axis first.

A tensor of 2 by 3 by 4 elements with strides (4, 8, 1) is dense: its axes lie in the order 1, 0, 2, and
permuted by it the tensor is row-major.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.utils._sympy.functions import Max

from ..dialects.allowed_sizes import DEFAULT_HINT
from .call_sizes import Axes, ReturnedSize, at_call
from .sizes import is_symbolic


def is_row_major(extents: Sequence[Any], strides: Sequence[Any]) -> bool:
    """Whether a tensor of some extents is known to have its elements one after the other.

    Asks no guard of export: numbers that depend on sizes are compared as expressions.
    """
    if any(type(extent) is int and extent == 0 for extent in extents):
        return True
    dense: Any = 1
    for extent, stride in zip(reversed(extents), reversed(strides), strict=True):
        if type(extent) is int and extent == 1:
            continue
        if sympy.expand(_positive(stride) - dense) != 0:
            return False
        dense = dense * _positive(extent)
    return True


def _positive(number: Any) -> Any:
    """A number as an expression in which extents are at least 1: without elements, strides do not matter."""
    if not is_symbolic(number):
        return sympy.Integer(number)
    maxima = [m for m in number.node.expr.atoms(Max) if sympy.Integer(1) in m.args]
    return number.node.expr.xreplace({m: Max(*(set(m.args) - {1})) for m in maxima})


def order_of(value: torch.Tensor) -> list[int] | None:
    """The axes of a dense tensor, the slowest first; None if it has gaps."""
    return _order_of(value.shape, value.stride())


def _order_of(shape: Sequence[int], strides: Sequence[int]) -> list[int] | None:
    axes = range(len(shape))
    if is_row_major(shape, strides):
        return list(axes)
    order = sorted(axes, key=lambda axis: -_expected(strides[axis]))
    dense = is_row_major([shape[a] for a in order], [strides[a] for a in order])
    return order if dense else None


def _expected(stride: Any) -> int:
    """A stride in the example; if sizes in it depend on values, for a size that is as good as any."""
    if not is_symbolic(stride):
        return stride
    if stride.node.has_hint():
        return stride.node.hint
    return int(stride.node.expr.xreplace(dict.fromkeys(stride.node.expr.free_symbols, DEFAULT_HINT)))


def order_in_memory(node: torch.fx.Node) -> list[int] | None:
    """The same for a node's tensor; None also if it is row-major."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or is_row_major(value.shape, value.stride()):
        return None
    return order_of(value)


def dense_strides(shape: Sequence[int], order: Sequence[int]) -> list[int]:
    """The strides of a dense tensor with its axes in this order, the slowest first."""
    strides, step = [1] * len(shape), 1
    for axis in reversed(order):
        strides[axis] = step
        step *= max(shape[axis], 1)
    return strides


def _empty_strided(size: Sequence[int], stride: Sequence[int], **given: Any) -> Any:
    """Memory without values that is dense, with its axes in the order of `stride`."""
    order = _order_of(size, stride)
    return NotImplemented if order is None else torch.empty_permuted(size, order, **given)


def _new_empty_strided(
    value: torch.Tensor, size: Sequence[int], stride: Sequence[int], **given: Any
) -> Any:
    as_value = {"dtype": value.dtype, "device": value.device}
    return _empty_strided(size, stride, **as_value | given)


EMPTIES = {
    torch.ops.aten.empty_strided.default: _empty_strided,
    torch.ops.aten.new_empty_strided.default: _new_empty_strided,
}
"""Operators that make memory without values."""


@dataclass(frozen=True)
class Layout:
    """Where the elements of a result are in memory: one of both fields is given."""

    order: tuple[int, ...] | None = None
    """The axes of a dense result, the slowest first; the program computes it permuted so."""
    strides: tuple[int | ReturnedSize, ...] | None = None
    """Strides that leave gaps between elements, or repeat them."""

    def of(self, result: torch.Tensor, arguments: Sequence[Any]) -> torch.Tensor:
        """The row-major result of a call with these arguments of `@main`, laid out so; never a view.

        A dense one is the same tensor with other axes, as autograd lets nobody change a view that a custom
        function returned.
        """
        if self.order is not None:
            shape, strides = result.shape, result.stride()
            places = [self.order.index(axis) for axis in range(len(self.order))]
            return result.as_strided_([shape[i] for i in places], [strides[i] for i in places])
        assert self.strides is not None
        wanted = [n.of(arguments) if isinstance(n, ReturnedSize) else n for n in self.strides]
        made = torch.empty_strided(result.shape, wanted, dtype=result.dtype, device=result.device)
        once, target = result, made
        for axis, stride in enumerate(wanted):
            if stride == 0:
                once, target = (t.narrow(axis, 0, min(t.shape[axis], 1)) for t in (once, target))
        target.copy_(once)
        return made


def layout_of(node: torch.fx.Node, axes: Axes) -> Layout | None:
    """The layout of a result in eager, or None if it is row-major, or depends on values in tensors.

    `axes` say where sizes come from.
    """
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or is_row_major(value.shape, value.stride()):
        return None
    if (order := order_in_memory(node)) is not None:
        return Layout(order=tuple(order))
    strides = [at_call(stride, axes) for stride in value.stride()]
    return None if None in strides else Layout(strides=tuple(strides))
