"""Normalization: what is less its mean, over its deviation."""

from __future__ import annotations

from collections.abc import Sequence

from ..lazy.dtypes import DType, float32
from ..lazy.expression import Node
from .building import (
    add,
    axes_of,
    axis_of,
    cast,
    compare,
    div,
    fold,
    mul,
    narrow,
    op,
    pad,
    scalar,
    static_extent,
    static_shape,
    sub,
    unary,
    where,
)
from .dtypes import BY_ONNX, is_float
from .linear import columns
from .rules import Call, Refused, rule

MAX_CHANNELS = 1 << 10
"""Channels that a window of LRN has at most; each is an addition."""


def _moments(x: Node, axes: Sequence[int]) -> tuple[Node, Node]:
    """The mean and the variance over axes, which stay with extent 1."""
    mean = fold("mean", x, axes, True)
    apart = sub(x, mean)
    return mean, fold("mean", mul(apart, apart), axes, True)


def _inverse(variance: Node, epsilon: float) -> Node:
    return unary("rsqrt", add(variance, scalar(epsilon, variance)))


@rule("BatchNormalization", 9, 14, 15)
def batch_normalization(call: Call) -> Sequence[Node | None]:
    """Each channel by its mean and variance: those given, or in training those of the batch."""
    x = call.tensor(0)
    scale, bias, mean, variance = (columns(call.tensor(i), x.shape) for i in range(1, 5))
    epsilon, momentum = call.real("epsilon"), call.real("momentum")
    if call.version < 14:
        return [_scaled(x, scale, bias, mean, variance, epsilon)]
    if not call.flag("training_mode"):
        return [_scaled(x, scale, bias, mean, variance, epsilon)]
    axes = [i for i in range(len(x.shape)) if i != 1]
    own = _moments(x, axes)
    outputs = [_scaled(x, scale, bias, *own, epsilon)]
    for position, new in zip((3, 4), own, strict=True):
        old = call.tensor(position)
        flat = op("view.default", new, size=old.shape)
        kept = mul(old, scalar(momentum, old))
        outputs.append(add(kept, mul(cast(flat, old.dtype), scalar(1 - momentum, old))))
    return outputs


def _scaled(x: Node, scale: Node, bias: Node, mean: Node, variance: Node, epsilon: float) -> Node:
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, in float32 where dtypes differ."""
    nodes = [x, scale, bias, mean, variance]
    wide = x.dtype if len({node.dtype for node in nodes}) == 1 else float32
    x_, scale, bias, mean, variance = (cast(node, wide) for node in nodes)
    factor = mul(_inverse(variance, epsilon), scale)
    return cast(add(mul(sub(x_, mean), factor), bias), x.dtype)


@rule("InstanceNormalization", 6, 22)
def instance_normalization(call: Call) -> Node:
    """Each channel of each image by its own mean and variance."""
    x = call.tensor(0)
    scale, bias = (columns(call.tensor(i), x.shape) for i in (1, 2))
    mean, variance = _moments(cast(x, _at_least_float32(x)), range(2, len(x.shape)))
    return _scaled(x, scale, bias, mean, variance, call.real("epsilon"))


def _at_least_float32(x: Node) -> DType:
    return float32 if x.dtype.bits < 32 else x.dtype


def _stash(call: Call, x: Node) -> DType:
    """The dtype that normalization computes in."""
    asked = call.integer("stash_type", 1)
    if asked not in BY_ONNX or not is_float(BY_ONNX[asked]):
        raise Refused(f"stash_type = {asked}")
    return x.dtype if x.dtype.bits > BY_ONNX[asked].bits else BY_ONNX[asked]


@rule("LayerNormalization", 17)
def layer_normalization(call: Call) -> Sequence[Node | None]:
    """The last axes, from one on, by their mean and variance; then a scale and a bias."""
    x, scale, bias = call.tensor(0), call.tensor(1), call.optional(2)
    axis, epsilon = axis_of(call.integer("axis"), len(x.shape)), call.real("epsilon")
    dtype = _stash(call, x)
    shape = static_shape(x, axis)
    whole = scale.shape == shape and (bias is None or bias.shape == shape)
    if whole and not call.wants(1) and not call.wants(2) and dtype is float32:
        return [op("layer_norm.default", x, scale, bias, normalized_shape=shape, eps=epsilon)]
    wide = cast(x, dtype)
    mean, variance = _moments(wide, range(axis, len(x.shape)))
    inverse = _inverse(variance, epsilon)
    result = mul(cast(mul(sub(wide, mean), inverse), x.dtype), scale)
    return [result if bias is None else add(result, bias), mean, inverse]


@rule("RMSNormalization", 23)
def rms_normalization(call: Call) -> Node:
    """The last axes, from one on, over the root of their mean square; then a scale."""
    x, scale = call.tensor(0), call.tensor(1)
    axis, epsilon = axis_of(call.integer("axis"), len(x.shape)), call.real("epsilon")
    dtype = _stash(call, x)
    shape = static_shape(x, axis)
    if scale.shape == shape and dtype is float32 and scale.dtype is x.dtype:
        return op("rms_norm.default", x, scale, normalized_shape=shape, eps=epsilon)
    wide = cast(x, dtype)
    square = fold("mean", mul(wide, wide), range(axis, len(x.shape)), True)
    return mul(cast(mul(wide, _inverse(square, epsilon)), scale.dtype), scale)


@rule("LpNormalization", 1, 22)
def lp_normalization(call: Call) -> Node:
    """An axis over its norm; 0 where that is 0."""
    x, p = call.tensor(0), call.integer("p")
    axis = axis_of(call.integer("axis"), len(x.shape))
    if p not in (1, 2):
        raise Refused(f"p = {p}")
    powers = unary("abs", x) if p == 1 else mul(x, x)
    norm = fold("sum", powers, (axis,), True)
    norm = norm if p == 1 else unary("sqrt", norm)
    zero = compare("eq", norm, scalar(0, norm))
    return where(zero, scalar(0, x), div(x, where(zero, scalar(1, norm), norm)))


@rule("LRN", 1, 13)
def local_response_normalization(call: Call) -> Node:
    """Each channel over a power of the squares of its neighbours and its own."""
    x, size = call.tensor(0), call.integer("size")
    alpha, beta, bias = call.real("alpha"), call.real("beta"), call.real("bias")
    channels = static_extent(x, 1)
    if not 1 <= size <= MAX_CHANNELS:
        raise Refused(f"size = {size}")
    widths = [(0, 0)] * len(x.shape)
    widths[1] = (size - 1) // 2, size - 1 - (size - 1) // 2
    squares = pad(mul(x, x), widths)
    total = narrow(squares, 1, 0, channels)
    for start in range(1, size):
        total = add(total, narrow(squares, 1, start, start + channels))
    base = add(scalar(bias, x), mul(total, scalar(alpha / size, x)))
    return div(x, op("pow.Tensor_Scalar", base, exponent=beta))


@rule("MeanVarianceNormalization", 9, 13)
def mean_variance_normalization(call: Call) -> Node:
    """Axes by their mean and variance."""
    x = call.tensor(0)
    axes = axes_of([int(i) for i in call.needed("axes")], len(x.shape))
    if 0 in x.shape:
        raise Refused("a tensor of no elements")
    mean, variance = _moments(x, axes)
    deviation = add(unary("sqrt", variance), scalar(1e-9, variance))
    return div(sub(x, mean), deviation)
