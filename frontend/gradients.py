"""Decompositions of operators that only training graphs have."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._decomp import get_decompositions
from torch._ops import OpOverload

from .convolution_gradients import convolution_backward, convolution_backward_or_call
from .eager_strides import with_eager_strides

aten = torch.ops.aten
Tensor = torch.Tensor

_BY_PYTORCH = (
    aten.native_batch_norm_backward.default,
    aten.native_group_norm_backward.default,
    aten.native_layer_norm_backward.default,
    aten.embedding_dense_backward.default,
)


def _group_norm(
    value: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    batch: int,
    channels: int,
    positions: int,
    groups: int,
    eps: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """The norm, and the mean and the deviation's reciprocal of each group, [batch, groups].

    PyTorch's own reads memory by strides, which no program for all sizes can.
    """
    wide = torch.float64 if value.dtype == torch.float64 else torch.float32
    shape = batch, groups, channels // groups, positions
    grouped = value.to(wide).reshape(shape)
    variance, mean = torch.var_mean(grouped, (2, 3), correction=0, keepdim=True)
    factor = torch.rsqrt(variance + eps)
    made = (grouped - mean) * factor
    if weight is not None:
        made = made * weight.reshape(groups, channels // groups, 1)
    if bias is not None:
        made = made + bias.reshape(groups, channels // groups, 1)
    mean, factor = (each.reshape(batch, groups).to(value.dtype) for each in (mean, factor))
    return made.reshape(value.shape).to(value.dtype), mean, factor


def _of_mixed_types(rule: Callable[..., Any]) -> Callable[..., Any]:
    """A rule for a norm that keeps statistics in f32 where an input of half precision has f32 weights.

    Eager's kernels on a CPU do, and those of the gradient read them so. A rule that is the operator leaves
    other calls as they are.
    """

    def norm(value: Tensor, *args: Any) -> Any:
        types = [each.dtype for each in args if isinstance(each, Tensor)]
        if value.dtype not in (torch.float16, torch.bfloat16) or torch.float32 not in types:
            return NotImplemented if isinstance(rule, OpOverload) else rule(value, *args)
        made, *statistics = rule(value.to(torch.float32), *args)
        return made.to(value.dtype), *statistics

    return norm


def _max_pool_backward(
    gradient: Tensor,
    value: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: Tensor,
) -> Tensor:
    """Each window's gradient goes to where its maximum was, a position in the plane of its channel."""
    planes = torch.zeros_like(value).flatten(-2)
    added = planes.scatter_add(-1, indices.flatten(-2), gradient.flatten(-2))
    return added.reshape(value.shape)


def _average_pool_backward(
    gradient: Tensor,
    value: Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    """Each window's share of the gradient goes to all its elements, if windows do not overlap."""
    apart = list(stride) in ([], list(kernel_size)) and not any(padding) and not ceil_mode
    if not apart or len(kernel_size) != 2:
        return NotImplemented
    return _spread(gradient / (divisor_override or math.prod(kernel_size)), value, kernel_size)


def _adaptive_pool_backward(gradient: Tensor, value: Tensor) -> Any:
    """The same where the windows of adaptive pooling are equal."""
    extents: list[Any] = list(zip(value.shape[-2:], gradient.shape[-2:], strict=True))
    if any(not isinstance(n, int) or not m or n % m for n, m in extents):
        return NotImplemented
    windows = [n // m for n, m in extents]
    return _spread(gradient / math.prod(windows), value, windows)


def _spread(shares: Tensor, value: Tensor, windows: Sequence[int]) -> Tensor:
    """A share for each window, at all its elements in images like `value`; 0 behind the last windows."""
    *images, rows, columns = shares.shape
    high, wide = windows
    each = shares.unsqueeze(-1).unsqueeze(-3).expand(*images, rows, high, columns, wide)
    whole = each.reshape(*images, rows * high, columns * wide)
    below, behind = value.shape[-2] - rows * high, value.shape[-1] - columns * wide
    return torch.nn.functional.pad(whole, (0, behind, 0, below))


def _weight_norm_backward(
    gradient: Tensor, direction: Tensor, length: Tensor, norms: Tensor, dim: int
) -> tuple[Tensor, Tensor]:
    """The gradients of `length * direction / norms`, whose norms are over all axes but `dim`."""
    wide = norms.dtype
    grad, along, size = (each.to(wide) for each in (gradient, direction, length))
    others = [axis for axis in range(direction.ndim) if axis != dim]
    product = (grad * along).sum(others, keepdim=True) / norms
    of_direction = size / norms * (grad - along * (product / norms))
    return of_direction.to(direction.dtype), product.to(length.dtype)


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor]:
    """The output of attention and the logsumexp of its scores, [..., queries], which backward reads.

    A query that a mask lets see nothing gives zeros, as it does in eager.
    """
    if dropout_p:
        return NotImplemented
    key, value = (_for_heads(each, query.shape[1]) for each in (key, value))
    scores = _scores(query, key, is_causal, attn_mask, scale)
    logsumexp = torch.logsumexp(scores, -1)
    weights = torch.softmax(scores, -1)
    if attn_mask is not None and key.shape[-2] != 0:
        sees_nothing = torch.amax(scores, -1, keepdim=True) == -math.inf
        weights = torch.where(sees_nothing, 0.0, weights)
    return weights.to(value.dtype) @ value, logsumexp


def _for_heads(shared: Tensor, heads: int) -> Tensor:
    """Keys or values for each head of the queries; in grouped-query attention several heads share one."""
    count = shared.shape[1]
    if count == heads:
        return shared
    batch, _, *rest = shared.shape
    each = shared.unsqueeze(2).expand(batch, count, heads // count, *rest)
    return each.reshape(batch, heads, *rest)


def _of_shared(grad: Tensor, count: int) -> Tensor:
    """The gradient of what `_for_heads` made `grad` a gradient of."""
    batch, heads, *rest = grad.shape
    return grad if count == heads else grad.reshape(batch, count, -1, *rest).sum(2)


def _scores(
    query: Tensor, key: Tensor, is_causal: bool, attn_mask: Tensor | None, scale: float | None
) -> Tensor:
    """Scaled and masked scores, in f32 where the inputs are f16 or bf16."""
    wide = torch.float64 if query.dtype == torch.float64 else torch.float32
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    scores = (query.to(wide) @ key.to(wide).mT) * factor
    if is_causal:
        visible = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        scores = torch.where(visible, scores, -math.inf)
    if attn_mask is not None:
        if attn_mask.dtype == torch.bool:
            return torch.where(attn_mask, scores, -math.inf)
        scores = scores + attn_mask
    return scores


def _attention_backward(
    grad_out: Tensor,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    out: Tensor,
    logsumexp: Tensor,
    dropout_p: float,
    is_causal: bool,
    *,
    attn_mask: Tensor | None = None,
    scale: float | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The gradients of queries, keys and values (Dao et al., FlashAttention, appendix B.2).

    A query that sees nothing has no gradient and adds to none.
    """
    if dropout_p:
        return NotImplemented
    count = key.shape[1]
    key, value = (_for_heads(each, query.shape[1]) for each in (key, value))
    scores = _scores(query, key, is_causal, attn_mask, scale)
    factor = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    weights = torch.exp(scores - logsumexp.unsqueeze(-1))
    if attn_mask is not None:
        weights = torch.where(logsumexp.unsqueeze(-1) == -math.inf, 0.0, weights)
    grad = grad_out.to(weights.dtype)
    share = (grad * out.to(weights.dtype)).sum(-1, keepdim=True)
    grad_scores = weights * (grad @ value.to(weights.dtype).mT - share) * factor
    return (
        (grad_scores @ key.to(weights.dtype)).to(query.dtype),
        _of_shared(grad_scores.mT @ query.to(weights.dtype), count).to(key.dtype),
        _of_shared(weights.mT @ grad, count).to(value.dtype),
    )


OF_WINDOWS: dict[Any, Callable[..., Any]] = {
    aten._adaptive_avg_pool2d_backward.default: _adaptive_pool_backward,
    aten._weight_norm_interface_backward.default: _weight_norm_backward,
    aten.avg_pool2d_backward.default: _average_pool_backward,
    aten.convolution_backward.default: convolution_backward,
    aten.max_pool2d_with_indices_backward.default: _max_pool_backward,
}
"""Gradients that programs may ask for themselves, too."""

_NORMS_BY_PYTORCH = (
    aten._batch_norm_with_update_functional.default,
    aten._native_batch_norm_legit_functional.default,
    aten.native_layer_norm.default,
)

OWN: dict[Any, Callable[..., Any]] = {
    aten._scaled_dot_product_flash_attention_for_cpu.default: _attention,
    aten._scaled_dot_product_flash_attention_for_cpu_backward.default: _attention_backward,
    aten._native_batch_norm_legit.no_stats: _of_mixed_types(aten._native_batch_norm_legit.no_stats),
    aten.native_group_norm.default: _of_mixed_types(_group_norm),
    **OF_WINDOWS,
}


def training_decompositions(*, calls_pytorch: bool = False) -> dict[Any, Callable[..., Any]]:
    """Operator -> what replaces it in forward and backward graphs, beside `decompositions()`.

    With `calls_pytorch` what PyTorch computes faster stays a call of it.
    """
    norms = get_decompositions(list(_NORMS_BY_PYTORCH))
    mixed = {op: _of_mixed_types(rule) for op, rule in norms.items()}
    rules = {**get_decompositions(list(_BY_PYTORCH)), **mixed, **OWN}
    if calls_pytorch:
        rules[aten.convolution_backward.default] = convolution_backward_or_call
    return {op: with_eager_strides(op, rule) for op, rule in rules.items()}
