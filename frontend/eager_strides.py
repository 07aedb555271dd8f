"""Decompositions whose results have eager's strides.

    def select_scatter(x, source, dim, index):           # x: strides (25, 1, 5)
        return where(mask, source.unsqueeze(dim), x)     # strides (5, 1, 25)

becomes

    made = where(mask, source.unsqueeze(dim), x)
    return made.permute([0, 2, 1]).contiguous().permute([0, 2, 1])

An operator's own kernel for fake tensors says the strides of its results, its decomposition others. For
operators in `KERNELS` both differ from the kernels that run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeAlias

import torch
from torch._C import DispatchKey  # pyright: ignore[reportPrivateUsage]
from torch._dispatch.python import no_python_dispatcher
from torch._prims_common import (
    compute_elementwise_output_logical_to_physical_perm,
    suggest_memory_format,
)
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils import _pytree as pytree

from .aliasing import is_composite
from .layouts import is_row_major, order_of
from .sizes import is_symbolic

aten = torch.ops.aten

COMPOSITE_KEY = DispatchKey.CompositeImplicitAutograd
"""Where the kernel of a composite operator is: the operator itself may be replaced by its rule."""

Rule: TypeAlias = Callable[..., Any]

Order: TypeAlias = Callable[..., Sequence[int] | None]
"""The order in memory of the axes of an operator's first result; None if it is as fake tensors say."""


def _of_operands(*args: Any, **kwargs: Any) -> Sequence[int]:
    """The order that TensorIterator chooses for element-wise results."""
    tensors = [value for value in args if isinstance(value, torch.Tensor)]
    order, _ = compute_elementwise_output_logical_to_physical_perm(*torch.broadcast_tensors(*tensors))
    return order


def _of_images(value: torch.Tensor, *args: Any, **kwargs: Any) -> Sequence[int] | None:
    """Channels last if the first operand has them last, else row-major; on a CPU."""
    if not value.is_cpu:
        return None
    axes = list(range(value.ndim))
    channels_last = suggest_memory_format(value) in (torch.channels_last, torch.channels_last_3d)
    return [0, *axes[2:], 1] if channels_last else axes


def _of_rolled_images(
    value: torch.Tensor, shifts: Sequence[int], dims: Sequence[int] = ()
) -> Sequence[int] | None:
    """The order of images, but row-major if an axis stays as it is or if the tensor is rolled as one row.

    A shift is taken for no multiple of a dynamic size.
    """
    order = _of_images(value)
    sizes = [value.shape[dim] for dim in dims]
    moved = [
        shift != 0 if is_symbolic(size) else shift % max(size, 1) != 0
        for shift, size in zip(shifts, sizes, strict=False)
    ]
    return order if order is None or (dims and all(moved)) else list(range(value.ndim))


def _of_losses(
    value: torch.Tensor, target: torch.Tensor, weight: torch.Tensor | None, reduction: int, ignored: int
) -> Sequence[int]:
    """Row-major, however the targets lie."""
    return list(range(target.ndim)) if reduction == 0 else []


KERNELS: dict[Any, Order] = {
    **dict.fromkeys(
        (
            aten.copysign.Tensor,
            aten.div.Tensor_mode,
            aten.floor_divide.default,
            aten.native_dropout_backward.default,
            aten.special_xlog1py.default,
            aten.xlogy.Tensor,
        ),
        _of_operands,
    ),
    **dict.fromkeys(
        (
            aten._batch_norm_with_update_functional.default,
            aten._native_batch_norm_legit.no_stats,
            aten._native_batch_norm_legit_functional.default,
            aten._native_batch_norm_legit_no_training.default,
            aten.channel_shuffle.default,
            aten.max_unpool2d.default,
            aten.native_batch_norm.default,
            aten.reflection_pad3d.default,
            aten.replication_pad3d.default,
        ),
        _of_images,
    ),
    aten.nll_loss2d_forward.default: _of_losses,
    aten.roll.default: _of_rolled_images,
}
"""Operators of which PyTorch's fake tensors have other strides than eager (2.11 to 2.13)."""


def unlike_fake_tensors(op: Any) -> Rule:
    """A rule for an operator of `KERNELS` that stays: its result lies as eager's."""
    return with_eager_strides(op, lambda *_, **__: NotImplemented)


def _as_it_is(op: Any) -> Rule:
    """A rule that calls an operator of strided tensors itself, once."""
    active: ContextVar[bool] = ContextVar(f"the rule of {op}", default=False)

    def once(*args: Any, **kwargs: Any) -> Any:
        if active.get() or not any(map(_is_strided, pytree.tree_leaves((args, kwargs)))):
            return NotImplemented
        token = active.set(True)
        try:
            return op(*args, **kwargs)
        finally:
            active.reset(token)

    return once


def with_eager_strides(op: Any, rule: Rule) -> Rule:
    """A rule for an operator whose results are no views; they lie as eager's.

    So do those of an operator of `KERNELS` that the rule leaves as it is.
    """
    itself = _as_it_is(op) if op in KERNELS else None

    def laid_out(*args: Any, **kwargs: Any) -> Any:
        made = rule(*args, **kwargs)
        if made is NotImplemented and itself is not None:
            made = itself(*args, **kwargs)
        if not any(map(_is_strided, pytree.tree_leaves((args, kwargs, made)))):
            return made
        if made is NotImplemented:
            return made
        results, structure = pytree.tree_flatten(made)
        order = KERNELS[op](*args, **kwargs) if op in KERNELS else None
        if order is not None:
            results[0] = in_order(results[0], order)
        else:
            with disable_proxy_modes_tracing(), _kernels_of(args):
                run = partial(op._op_dk, COMPOSITE_KEY) if is_composite(op) else op
                said = pytree.tree_leaves(run(*args, **kwargs))
            results = list(map(_lying_as, results, said))
        return pytree.tree_unflatten(results, structure)

    return laid_out


def _kernels_of(args: Any) -> AbstractContextManager[Any]:
    """Have fake tensors run what PyTorch runs in C++, which knows more of strides; sizes must be numbers."""
    tensors = (x for x in pytree.tree_leaves(args) if isinstance(x, torch.Tensor))
    dynamic = any(is_symbolic(size) for tensor in tensors for size in tensor.shape)
    return nullcontext() if dynamic else no_python_dispatcher()


def _is_strided(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and not is_row_major(value.shape, value.stride())


def _lying_as(made: Any, said: Any) -> Any:
    """`made`, with its axes in memory as those of `said` if that is dense."""
    order = order_of(said) if isinstance(said, torch.Tensor) else None
    return made if order is None else in_order(made, order)


def in_order(value: torch.Tensor, order: Sequence[int]) -> torch.Tensor:
    """`value`, dense with its axes in this order in memory, the slowest first: itself if it is so already."""
    moved = value.permute(list(order))
    if is_row_major(moved.shape, moved.stride()):
        return value
    return moved.contiguous().permute([order.index(axis) for axis in range(value.ndim)])
