"""Operations of neural networks: normalization, softmax, attention.

torch.rms_norm %x, %w  ->  x * rsqrt(mean(x * x) + eps) * w
"""

from __future__ import annotations

import math
import sys
from typing import Any

from xdsl.dialects.builtin import Float64Type, i1
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function, is_bool
from ...dialects.sizes import Extent, extent_expr
from ...dialects.torch_base import TorchOp
from ...dialects.torch_shapes import broadcast_shapes, normalize_axis
from ...index.affine import quotient
from .linear_algebra import product
from .lowering import Lowering, Refusal, Rule, dims, element_of, shape_of
from .reductions import centered, extremum_over, mean_over

F32_EPSILON = 2.0**-23

# --------------------------------------------------------------------------- normalization


def _last_axes(value: SSAValue, count: int) -> tuple[int, ...]:
    rank = len(shape_of(value))
    return tuple(range(rank - count, rank))


def _times(e: Lowering, value: SSAValue, weight: SSAValue | None) -> SSAValue:
    return value if weight is None else e.apply(Function.MUL, value, e.argument(weight))


def _rms_norm(e: Lowering, op: t.RmsNormOp) -> SSAValue:
    """x / sqrt(mean(x²) + eps) * weight; without eps, that of the type computed in."""
    value = e.argument(op.input)
    axes = _last_axes(value, len(op.extents("normalized_shape")))
    eps = op.optional_number("eps")
    if eps is None:
        eps = sys.float_info.epsilon if isinstance(e.element, Float64Type) else F32_EPSILON
    mean = mean_over(e, e.apply(Function.MUL, value, value), axes)
    scale = e.apply(Function.RSQRT, e.with_number(Function.ADD, mean, eps))
    normal = e.apply(Function.MUL, value, e.broadcast(scale, e.shape))
    return _times(e, normal, op.weight)


def _normalized(e: Lowering, op: Any) -> tuple[SSAValue, SSAValue, SSAValue]:
    """(x - mean) * rsqrt(variance + eps) * weight + bias, the mean, and the rsqrt."""
    value = e.argument(op.input)
    axes = _last_axes(value, len(op.extents("normalized_shape")))
    mean, distance = centered(e, value, axes)
    variance = mean_over(e, e.apply(Function.MUL, distance, distance), axes)
    scale = e.apply(Function.RSQRT, e.with_number(Function.ADD, variance, op.number("eps")))
    normal = e.apply(Function.MUL, distance, e.broadcast(scale, e.shape))
    result = _times(e, normal, op.weight)
    if op.bias is not None:
        result = e.apply(Function.ADD, result, e.argument(op.bias))
    return result, mean, scale


def _layer_norm(e: Lowering, op: t.LayerNormOp) -> SSAValue:
    return _normalized(e, op)[0]


def _native_layer_norm(e: Lowering, op: t.NativeLayerNormOp) -> list[SSAValue]:
    return list(_normalized(e, op))


# --------------------------------------------------------------------------- softmax


def _below_largest(e: Lowering, value: SSAValue, axis: int) -> SSAValue:
    """`value` less its maximum along `axis`, so that exponentials do not overflow."""
    largest = extremum_over(e, Combiner.MAX, value, [axis])
    return e.apply(Function.SUB, value, e.broadcast(largest, shape_of(value)))


def softmax_over(e: Lowering, value: SSAValue, axis: int) -> SSAValue:
    """Exponentials over their sum along `axis`; NaN where all is -inf."""
    exponentials = e.apply(Function.EXP, _below_largest(e, value, axis))
    total = e.reduce(Combiner.ADD, exponentials, [axis])
    return e.apply(Function.DIV, exponentials, e.broadcast(total, shape_of(value)))


def _log_softmax_over(e: Lowering, value: SSAValue, axis: int) -> SSAValue:
    below = _below_largest(e, value, axis)
    total = e.reduce(Combiner.ADD, e.apply(Function.EXP, below), [axis])
    return e.apply(Function.SUB, below, e.broadcast(e.apply(Function.LOG, total), shape_of(value)))


def _softmax(e: Lowering, op: Any) -> SSAValue:
    return _along_axis(e, op, softmax_over)


def _log_softmax(e: Lowering, op: Any) -> SSAValue:
    return _along_axis(e, op, _log_softmax_over)


def _along_axis(e: Lowering, op: Any, over: Any) -> SSAValue:
    """`over` along `dim`, on the input in the result's type; a 0-d tensor counts as one axis."""
    value = e.cast(op.input, e.element)
    if element_of(op.input) != e.result_element and e.result_element != e.element:
        value = e.cast(e.cast(op.input, e.result_element), e.element)
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    if not e.shape:
        return e.reshape(over(e, e.reshape(value, (1,)), 0), ())
    return over(e, value, axis)


# --------------------------------------------------------------------------- attention


def _attention(e: Lowering, op: t.ScaledDotProductAttentionOp) -> SSAValue:
    """softmax(query @ key.T * scale + mask) @ value; a row whose scores are all -inf gives zeros."""
    if op.number("dropout_p") != 0:
        raise Refusal(f"dropout_p = {op.number('dropout_p')}")
    query, key, value = (e.cast(v, e.element) for v in (op.query, op.key, op.value))
    if op.flag("enable_gqa"):
        key, value = (_shared_heads(e, v, shape_of(query)[-3]) for v in (key, value))
    scale = op.optional_number("scale")
    width = shape_of(query)[-1]
    factor = scale if scale is not None else 1 / math.sqrt(width) if width != 0 else 1.0
    scores = e.with_number(Function.MUL, product(e, query, key, transposed=True), factor)
    scores = _masked(e, op, scores)
    axis = len(shape_of(scores)) - 1
    weights = _zero_where_all_masked(e, scores, softmax_over(e, scores, axis), axis)
    if (
        e.on_gpu
    ):  # rounded as in PyTorch's kernels: tensor cores multiply by values of the same type
        weights = e.cast(e.cast(weights, element_of(op.value)), e.element)
    return e.broadcast(product(e, weights, value), e.shape)


def _shared_heads(e: Lowering, value: SSAValue, heads: Extent) -> SSAValue:
    """Each head of `value` for the group of query heads that share it."""
    shape = shape_of(value)
    group = heads // shape[-3]
    if group == 1:
        return value
    index = dims(len(shape))
    index[-3] = quotient(index[-3], extent_expr(group))
    return e.index_map([value], [index], (*shape[:-3], heads, *shape[-2:]), suffix="heads")


def _masked(e: Lowering, op: t.ScaledDotProductAttentionOp, scores: SSAValue) -> SSAValue:
    """The scores with masked positions at -inf."""
    if op.flag("is_causal"):
        if op.attn_mask is not None:
            raise Refusal("attn_mask together with is_causal")
        row, column = dims(len(shape_of(scores)))[-2:]
        return e.index_map(
            [scores],
            [dims(len(shape_of(scores)))],
            shape_of(scores),
            conditions=[[row + column * -1]],
            fill=-math.inf,
            suffix="causal",
        )
    if op.attn_mask is None:
        return scores
    shape = broadcast_shapes(shape_of(scores), shape_of(op.attn_mask))
    scores = e.broadcast(scores, shape)
    if not is_bool(element_of(op.attn_mask)):
        return e.apply(Function.ADD, scores, e.argument(op.attn_mask, shape=shape))
    mask = e.argument(op.attn_mask, i1, shape)
    return e.select(mask, scores, e.fill_like(scores, -math.inf))


def _zero_where_all_masked(e: Lowering, scores: SSAValue, weights: SSAValue, axis: int) -> SSAValue:
    largest = extremum_over(e, Combiner.MAX, scores, [axis])
    none = e.with_number(Function.EQ, largest, -math.inf)
    zero = e.fill_like(weights, 0.0)
    return e.select(e.broadcast(none, shape_of(weights)), zero, weights)


# --------------------------------------------------------------------------- losses


def _probabilities(e: Lowering, value: SSAValue) -> SSAValue:
    """`value`, of which the least and the largest element are checked: a loop with a check is no vector loop.

    Without elements these are the identities of the folds, infinities that the bounds replace.
    """
    for combiner, bound in ((Combiner.MIN, 1.0), (Combiner.MAX, 0.0)):
        outermost = value
        if axes := range(len(shape_of(value))):
            outermost = e.reduce(combiner, value, axes)
        function = Function(combiner.value)
        checked = e.apply(Function.PROBABILITY, e.with_number(function, outermost, bound))
        other = Function.MAX if function is Function.MIN else Function.MIN
        value = e.apply(other, value, e.broadcast(checked, shape_of(value)))
    return value


def _binary_cross_entropy(e: Lowering, op: t.BinaryCrossEntropyOp) -> SSAValue:
    """(t - 1) * max(log(1 - p), -100) - t * max(log(p), -100), times the weight; not reduced."""
    if op.integer("reduction"):
        raise Refusal("a reduction")
    value, target = (_probabilities(e, e.argument(each)) for each in (op.input, op.target))
    logs = [
        e.with_number(Function.MAX, log, -100.0)
        for log in (
            e.apply(Function.LOG1P, e.apply(Function.NEG, value)),
            e.apply(Function.LOG, value),
        )
    ]
    loss = e.apply(
        Function.SUB,
        e.apply(Function.MUL, e.with_number(Function.SUB, target, 1.0), logs[0]),
        e.apply(Function.MUL, target, logs[1]),
    )
    return _times(e, loss, op.weight)


RULES: dict[type[TorchOp], Rule] = {
    t.RmsNormOp: _rms_norm,
    t.LayerNormOp: _layer_norm,
    t.NativeLayerNormOp: _native_layer_norm,
    t.SoftmaxOp: _softmax,
    t.InternalSoftmaxOp: _softmax,
    t.LogSoftmaxOp: _log_softmax,
    t.InternalLogSoftmaxOp: _log_softmax,
    t.ScaledDotProductAttentionOp: _attention,
    t.BinaryCrossEntropyOp: _binary_cross_entropy,
}
"""The rule for each operation."""
