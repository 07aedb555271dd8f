"""Normalization over channels: batch norm and group norm.

torch._native_batch_norm_legit_no_training %x, %w, %b, %mean, %var
  ->  (x - mean[c]) * rsqrt(var[c] + eps) * w[c] + b[c]
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function
from ...dialects.torch_base import TorchOp
from .lowering import Lowering, Refusal, Rule, shape_of
from .reductions import centered, mean_over
from .windows import along_channels


def _affine(e: Lowering, op: Any, normal: SSAValue) -> SSAValue:
    """`normal * weight + bias`, each of which is one number per channel or absent."""
    for function, value in ((Function.MUL, op.weight), (Function.ADD, op.bias)):
        if value is not None:
            normal = e.apply(function, normal, along_channels(e, e.cast(value, e.element)))
    return normal


def _inverse_deviation(e: Lowering, variance: SSAValue, op: Any) -> SSAValue:
    return e.apply(Function.RSQRT, e.with_number(Function.ADD, variance, op.number("eps")))


def _inference(e: Lowering, op: t.InternalNativeBatchNormLegitNoTrainingOp) -> list[SSAValue]:
    """With running statistics; the saved statistics are empty on a CPU."""
    saved = op.results[1:]
    if any(result.first_use is not None and 0 not in shape_of(result) for result in saved):
        raise Refusal("the saved statistics of batch norm in inference")
    mean = along_channels(e, e.cast(op.running_mean, e.element))
    scale = _inverse_deviation(e, e.cast(op.running_var, e.element), op)
    distance = e.apply(Function.SUB, e.argument(op.input), mean)
    normal = e.apply(Function.MUL, distance, along_channels(e, scale))
    empty = [e.constant(0, e.element, shape_of(result)) for result in saved]
    return [_affine(e, op, normal), *empty]


def _normalized(
    e: Lowering, value: SSAValue, axes: tuple[int, ...], op: Any
) -> tuple[SSAValue, ...]:
    """`value` with mean 0 and variance 1 over `axes`, the mean, and 1 / deviation."""
    mean, distance = centered(e, value, axes)
    variance = mean_over(e, e.apply(Function.MUL, distance, distance), axes)
    scale = _inverse_deviation(e, variance, op)
    normal = e.apply(Function.MUL, distance, e.broadcast(scale, shape_of(value)))
    return normal, mean, scale


def _batch_statistics(e: Lowering, op: t.InternalNativeBatchNormLegitOp) -> list[SSAValue]:
    """With the statistics of the batch: over all axes but the channels'."""
    if not op.flag("training"):
        raise Refusal("training = False without running statistics")
    axes = (0, *range(2, len(e.shape)))
    normal, mean, scale = _normalized(e, e.argument(op.input), axes, op)
    saved = [e.reshape(v, shape_of(r)) for v, r in zip((mean, scale), op.results[1:], strict=True)]
    return [_affine(e, op, normal), *saved]


def _group_norm(e: Lowering, op: t.NativeGroupNormOp) -> list[SSAValue]:
    """Over the channels of a group and all their positions."""
    batch, channels, groups = op.extent("N"), op.extent("C"), op.integer("group")
    if e.shape[:2] != (batch, channels):
        raise Refusal(f"N = {batch} and C = {channels} for an input of shape {list(e.shape)}")
    grouped = (batch, groups, channels // groups, *e.shape[2:])
    value = e.reshape(e.argument(op.input), grouped)
    normal, mean, scale = _normalized(e, value, tuple(range(2, len(grouped))), op)
    saved = [e.reshape(v, shape_of(r)) for v, r in zip((mean, scale), op.results[1:], strict=True)]
    return [_affine(e, op, e.reshape(normal, e.shape)), *saved]


RULES: dict[type[TorchOp], Rule] = {
    t.InternalNativeBatchNormLegitNoTrainingOp: _inference,
    t.InternalNativeBatchNormLegitOp: _batch_statistics,
    t.NativeGroupNormOp: _group_norm,
}
"""The rule for each operation."""
