"""The gradients of a convolution, each a convolution or a sum.

    input     the transposed convolution of the output's gradient (see `transposed_convolutions`)
    weight    the convolution of the input, batch as channels, with the output's gradient, stride and
              dilation exchanged
    bias      the sum of the output's gradient

Where the convolution is transposed, input and output change places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import torch

from .transposed_convolutions import MOST_PHASES, per_axis

aten = torch.ops.aten
Tensor = torch.Tensor

LEAST_WORK = 1 << 19
"""Multiply-adds from which on a call of PyTorch costs less than it may save."""

LEAST_LINE = 12
"""Elements of the lines along which the gradient of a weight is summed in vectors."""

FEW_TAPS = 9
"""Of a filter for each channel: PyTorch has kernels of their own for those."""


def convolution_backward(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    bias_sizes: Sequence[int] | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    """The gradients of the input, the weight and the bias that a mask asks for."""
    rank = input.dim() - 2
    if rank < 1:
        return NotImplemented
    stride, padding, dilation = per_axis(rank, stride, padding, dilation)
    for_input = for_weight = for_bias = None
    if output_mask[0] and transposed:
        for_input = _convolved(grad_output, weight, stride, padding, dilation, groups)
        # An output_padding as large as the stride is one more place to start at.
        for axis in range(2, 2 + rank):
            for_input = for_input.narrow(axis, 0, input.shape[axis])
    elif output_mask[0]:
        for_input = _spread(grad_output, input, weight, stride, padding, dilation, groups)
    if output_mask[1]:
        small, large = (input, grad_output) if transposed else (grad_output, input)
        for_weight = _weight_gradient(small, large, weight, stride, padding, dilation, groups)
    if output_mask[2]:
        for_bias = grad_output.sum([0, *range(2, 2 + rank)])
    return for_input, for_weight, for_bias


def convolution_backward_or_call(*arguments: Any) -> Any:
    """The same, less what PyTorch computes faster on a CPU: that is a call of it."""
    compute: Callable[..., Any] = convolution_backward
    upstream, value, weight, _, stride, _, _, transposed, _, groups, mask = arguments
    there = _in_pytorch(upstream, value, weight, stride, transposed, groups)
    faster = [asked and each for asked, each in zip(mask, there, strict=True)]
    if not any(faster):
        return compute(*arguments)
    if faster == mask:
        return NotImplemented
    rest = [asked and not each for asked, each in zip(mask, faster, strict=True)]
    called = aten.convolution_backward(*arguments[:-1], faster)
    made = compute(*arguments[:-1], rest)
    return tuple(a if each else b for a, b, each in zip(called, made, faster, strict=True))


def _in_pytorch(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    transposed: bool,
    groups: int,
) -> tuple[bool, bool, bool]:
    """Which gradients PyTorch computes in less time: measured on two cores of an AMD Zen 5, PyTorch 2.13."""
    small = input if transposed else grad_output
    if not all(n.node.has_hint() for n in small.shape if isinstance(n, torch.SymInt)):
        return True, True, False  # a batch that may be empty is no channels that may be none
    taps = prod(map(_hint, weight.shape[2:]))
    per_group = _hint(weight.shape[1])
    work = _hint(small.shape[0]) * prod(map(_hint, small.shape[1:])) * per_group * taps
    if input.device.type != "cpu" or input.dtype == torch.float64 or work < LEAST_WORK:
        return False, False, False
    if per_group == 1 and groups > 1:
        apart = input.dtype == torch.float32 and max(stride) > 1 and taps <= FEW_TAPS
        return apart and not transposed, taps <= FEW_TAPS, False
    short = _hint(small.shape[-1]) < LEAST_LINE
    for_input = (short and (taps > 1 or max(stride) > 1)) or prod(stride) > MOST_PHASES
    return for_input and not transposed, short and taps > 1, False


def _hint(size: int | torch.SymInt) -> int:
    """A size, or what it is in the example."""
    return size.node.hint if isinstance(size, torch.SymInt) else size


def _convolved(
    value: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
    *,
    transposed: bool = False,
    more: Sequence[int] | None = None,
) -> Tensor:
    """A convolution without a bias; `more` is the padding of the output."""
    more = more or [0] * len(stride)
    return aten.convolution(
        value, weight, None, stride, padding, dilation, transposed, more, groups
    )


# --------------------------------------------------------------------------- the input


def _spread(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    """One transposed convolution."""
    left: list[int] = []
    for axis, (step, border, apart) in enumerate(zip(stride, padding, dilation, strict=True), 2):
        span = apart * (weight.shape[axis] - 1) + 1
        reached = (grad_output.shape[axis] - 1) * step - 2 * border + span
        left.append(input.shape[axis] - reached)
    slides = stride, padding, dilation
    return _convolved(grad_output, weight, *slides, groups, transposed=True, more=left)


# --------------------------------------------------------------------------- the weight


def _weight_gradient(
    grad_output: Tensor,
    input: Tensor,
    weight: Tensor,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    groups: int,
) -> Tensor:
    batch, channels, *extents = input.shape
    # Batch and channels of a group change places; a group has images of its own.
    images = input.reshape(batch, groups, channels // groups, *extents)
    images = images.transpose(0, 2).reshape(channels // groups, groups * batch, *extents)
    gradients = grad_output.transpose(0, 1)
    whole = _convolved(images, gradients, dilation, padding, stride, groups).transpose(0, 1)
    for axis in range(2, weight.dim()):  # rows that a stride skipped at the end belong to no weight
        whole = whole.narrow(axis, 0, weight.shape[axis])
    return whole.contiguous()
