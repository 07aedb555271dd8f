"""Activation functions, and softmax."""

from __future__ import annotations

from collections.abc import Callable

from ..lazy.dtypes import int64
from ..lazy.expression import Node
from .building import (
    add,
    arange,
    axis_of,
    cast,
    compare,
    count,
    div,
    mul,
    op,
    reshape,
    scalar,
    static_extent,
    sub,
    unary,
    where,
)
from .rules import Call, Refused, rule


@rule("LeakyRelu", 6, 16)
def leaky_relu(call: Call) -> Node:
    """alpha * x below 0."""
    return op("leaky_relu.default", call.tensor(0), negative_slope=call.real("alpha"))


@rule("Elu", 6, 22)
def elu(call: Call) -> Node:
    """alpha * (exp(x) - 1) below 0."""
    return op("elu.default", call.tensor(0), alpha=call.real("alpha"))


@rule("Selu", 6, 22)
def selu(call: Call) -> Node:
    """gamma * (alpha * (exp(x) - 1) below 0, else x)."""
    alpha, gamma = call.real("alpha"), call.real("gamma")
    return op("elu.default", call.tensor(0), alpha=alpha, scale=gamma)


@rule("Celu", 12, 28)
def celu(call: Call) -> Node:
    """alpha * (exp(x / alpha) - 1) below 0."""
    alpha = call.real("alpha")
    if alpha <= 0:
        raise Refused(f"alpha = {alpha}")
    return op("elu.default", call.tensor(0), alpha=alpha, input_scale=1 / alpha)


@rule("Gelu", 20)
def gelu(call: Call) -> Node:
    """x times the normal distribution's cumulative function, or its approximation by tanh."""
    return op("gelu.default", call.tensor(0), approximate=call.text("approximate", "none", "tanh"))


@rule("HardSigmoid", 6, 22)
def hard_sigmoid(call: Call) -> Node:
    """alpha * x + beta, between 0 and 1."""
    x = call.tensor(0)
    return _hard(x, call.real("alpha"), call.real("beta"))


def _hard(x: Node, alpha: float, beta: float) -> Node:
    line = add(mul(x, scalar(alpha, x)), scalar(beta, x))
    high = op("minimum.default", line, scalar(1, x))
    return op("maximum.default", high, scalar(0, x))


@rule("HardSwish", 14, 22)
def hard_swish(call: Call) -> Node:
    """x times HardSigmoid(x) for alpha = 1/6 and beta = 1/2."""
    x = call.tensor(0)
    return mul(x, _hard(x, 1 / 6, 0.5))


def softplus_of(x: Node) -> Node:
    """log(1 + exp(x)), which overflows nowhere."""
    high = op("maximum.default", x, scalar(0, x))
    return add(high, unary("log1p", unary("exp", unary("neg", unary("abs", x)))))


@rule("Softplus", 1, 22)
def softplus(call: Call) -> Node:
    """log(1 + exp(x))."""
    return softplus_of(call.tensor(0))


@rule("Softsign", 1, 22)
def softsign(call: Call) -> Node:
    """x / (1 + |x|)."""
    x = call.tensor(0)
    return div(x, add(unary("abs", x), scalar(1, x)))


@rule("Mish", 18, 22)
def mish(call: Call) -> Node:
    """x * tanh(softplus(x))."""
    x = call.tensor(0)
    return mul(x, unary("tanh", softplus_of(x)))


@rule("Swish", 24)
def swish(call: Call) -> Node:
    """x * sigmoid(alpha * x)."""
    x, alpha = call.tensor(0), call.real("alpha")
    return mul(x, unary("sigmoid", mul(x, scalar(alpha, x))))


@rule("ThresholdedRelu", 10, 22)
def thresholded_relu(call: Call) -> Node:
    """x above alpha, else 0."""
    x, alpha = call.tensor(0), call.real("alpha")
    return where(compare("gt", x, scalar(alpha, x)), x, scalar(0, x))


@rule("PRelu", 7, 9, 16)
def prelu(call: Call) -> Node:
    """slope * x below 0."""
    x, slope = call.tensor(0), call.tensor(1)
    return where(compare("lt", x, scalar(0, x)), mul(x, slope), x)


@rule("Shrink", 9)
def shrink(call: Call) -> Node:
    """x moved by bias towards 0, and 0 where |x| is at most lambd."""
    x, bias, lambd = call.tensor(0), call.real("bias"), call.real("lambd")
    inner = where(compare("gt", x, scalar(lambd, x)), sub(x, scalar(bias, x)), scalar(0, x))
    return where(compare("lt", x, scalar(-lambd, x)), add(x, scalar(bias, x)), inner)


def _along(aten: str) -> Callable[[Call], Node]:
    """Softmax over an axis, or in older versions over all axes from one on."""

    def of(call: Call) -> Node:
        x = call.tensor(0)
        if call.version >= 13:
            axis = axis_of(call.integer("axis"), len(x.shape))
            return op(aten, x, dim=axis) if x.shape else op(aten, reshape(x, (1,)), dim=0)
        flat = _flat(call, x)
        return reshape(op(aten, flat, dim=1), x.shape)

    return of


def _flat(call: Call, x: Node) -> Node:
    """A matrix whose rows are all elements from an axis on."""
    shape = x.shape
    axis = axis_of(call.integer("axis"), len(shape))
    return reshape(x, (count(shape[:axis]), count(shape[axis:])))


rule("Softmax", 1, 11, 13, text="exp(x) over its sum.")(_along("softmax.int"))
rule("LogSoftmax", 1, 11, 13, text="The logarithm of the softmax.")(_along("log_softmax.int"))


@rule("Hardmax", 1, 11, 13)
def hardmax(call: Call) -> Node:
    """1 at the first of the largest elements, else 0."""
    x = call.tensor(0)
    flat = x if call.version >= 13 else _flat(call, x)
    axis = axis_of(call.integer("axis"), len(flat.shape)) if call.version >= 13 else 1
    first = op("argmax.default", flat, dtype=int64, dim=axis, keepdim=True)
    shape = [1] * len(flat.shape)
    extent = static_extent(flat, axis)
    shape[axis] = extent
    places = reshape(arange(extent), shape)
    return reshape(cast(compare("eq", first, places), x.dtype), x.shape)
