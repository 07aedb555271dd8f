"""What models need besides the array API: activations, norms, convolution, pooling, attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .dtypes import FLOATING, int64
from .expression import Argument, apply
from .functions import axes_of, public, result, tensor
from .tensor import Tensor

ACTIVATIONS: Mapping[str, Sequence[str]] = {
    "relu": (),
    "sigmoid": (),
    "silu": (),
    "erf": (),
    "exp2": (),
    "rsqrt": (),
    "gelu": ("approximate",),
    "leaky_relu": ("negative_slope",),
    "elu": ("alpha",),
}
"""Functions at each position, with the names of their options."""


def _activation(name: str, options: Sequence[str]) -> Any:
    def function(x: Tensor, /, **given: Any) -> Tensor:
        if unknown := set(given) - set(options):
            raise TypeError(f"{name} has no option {', '.join(sorted(unknown))}")
        return result(f"{name}.default", tensor(x, FLOATING, name), **given)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"ATen's `{name}` at each position."
    return function


for _name, _options in ACTIVATIONS.items():
    public(_activation(_name, _options))


@public
def softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """exp(x) over its sum along an axis."""
    (dim,) = axes_of(axis, len(tensor(x, FLOATING, "softmax").shape))
    return result("softmax.int", x.node, dim=dim)


@public
def log_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """The logarithm of the softmax along an axis."""
    (dim,) = axes_of(axis, len(tensor(x, FLOATING, "log_softmax").shape))
    return result("log_softmax.int", x.node, dim=dim)


def _applied(aten: str, tensors: Sequence[Tensor | None], **properties: Any) -> Tensor:
    """An operator on float tensors of one dtype, some of which may be absent."""
    name = aten.partition(".")[0]
    nodes: list[Argument] = [None if x is None else tensor(x, FLOATING, name) for x in tensors]
    dtypes = {x.dtype for x in tensors if x is not None}
    if len(dtypes) > 1:
        raise TypeError(f"{name} takes tensors of one dtype, not {', '.join(map(str, dtypes))}")
    return Tensor.of(apply(aten, nodes, dtypes.pop(), properties))


@public
def layer_norm(
    x: Tensor, /, weight: Tensor | None = None, bias: Tensor | None = None, *, eps: float = 1e-5
) -> Tensor:
    """The last axis less its mean, over its deviation, times a weight, plus a bias."""
    size = (x.shape[-1],)
    return _applied("layer_norm.default", [x, weight, bias], normalized_shape=size, eps=eps)


@public
def rms_norm(x: Tensor, /, weight: Tensor | None = None, *, eps: float = 1e-6) -> Tensor:
    """The last axis over the root of its mean square, times a weight."""
    return _applied("rms_norm.default", [x, weight], normalized_shape=(x.shape[-1],), eps=eps)


@public
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x @ weight.mT + bias."""
    return _applied("linear.default", [x, weight, bias])


@public
def convolution(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    stride: int = 1,
    padding: int = 0,
    dilation: int = 1,
    groups: int = 1,
) -> Tensor:
    """The convolution of [batch, channels, …] with [outputs, channels / groups, …]."""
    axes = x.ndim - 2
    return _applied(
        "convolution.default",
        [x, weight, bias],
        stride=(stride,) * axes,
        padding=(padding,) * axes,
        dilation=(dilation,) * axes,
        transposed=False,
        output_padding=(0,) * axes,
        groups=groups,
    )


@public
def max_pool2d(x: Tensor, /, size: int, *, stride: int | None = None, padding: int = 0) -> Tensor:
    """The largest element of each window of the last two axes."""
    node = tensor(x, FLOATING, "max_pool2d")
    windows = _windows(size, stride, padding)
    aten = "max_pool2d_with_indices.default"
    return Tensor.of(apply(aten, [node], [node.dtype, int64], windows))


@public
def avg_pool2d(x: Tensor, /, size: int, *, stride: int | None = None, padding: int = 0) -> Tensor:
    """The mean of each window of the last two axes; what pads it counts."""
    return _applied("avg_pool2d.default", [x], **_windows(size, stride, padding))


def _windows(size: int, stride: int | None, padding: int) -> dict[str, tuple[int, int]]:
    step = size if stride is None else stride
    return {"kernel_size": (size, size), "stride": (step, step), "padding": (padding, padding)}


@public
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    /,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """softmax(query @ key.mT * scale + mask) @ value; a mask of bools leaves out where it is false."""
    nodes = [tensor(x, FLOATING, "attention") for x in (query, key, value)]
    arguments = [*nodes, None if mask is None else tensor(mask, "any")]
    properties = {"is_causal": is_causal, "scale": scale}
    return Tensor.of(
        apply("scaled_dot_product_attention.default", arguments, query.dtype, properties)
    )


@public
def embedding(weight: Tensor, indices: Tensor, /) -> Tensor:
    """The rows of a matrix at positions."""
    nodes = [tensor(weight, name="embedding"), tensor(indices, "integral", "embedding")]
    return Tensor.of(apply("embedding.default", nodes, weight.dtype))
