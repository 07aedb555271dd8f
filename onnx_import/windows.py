"""Convolution and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf, prod

import numpy as np

from ..dialects.sizes import Extent
from ..lazy.dtypes import float32, int64
from ..lazy.expression import Node
from .building import (
    add,
    arange,
    cast,
    div,
    fold,
    full,
    known,
    mul,
    narrow,
    op,
    pad,
    pair,
    reshape,
    scalar,
    static_shape,
    sub,
    unary,
)
from .dtypes import is_float
from .linear import columns, less_zero
from .rules import Call, Refused, rule, same_dtype

MAX_PLACES = 1 << 24
"""Elements of all windows of an axis that are counted while a model is imported."""


@dataclass(frozen=True)
class Windows:
    """The windows of the axes behind batch and channels."""

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    before: Sequence[int]
    after: Sequence[int]
    """Padding that counts; windows may reach beyond it."""
    counts: Sequence[int]
    """How many windows there are."""

    def beyond(self, extents: Sequence[int]) -> list[tuple[int, int]]:
        """Padding with which the windows fit exactly; negative where the last elements are in none."""
        widths: list[tuple[int, int]] = []
        for i, extent in enumerate(extents):
            reach = (self.counts[i] - 1) * self.strides[i]
            reach += (self.sizes[i] - 1) * self.dilations[i] + 1
            widths.append((self.before[i], reach - extent - self.before[i]))
        return widths


def _list(call: Call, name: str, number: int, default: int) -> list[int]:
    given = call.given(name)
    values = [default] * number if given is None else [int(n) for n in given]
    if len(values) != number:
        raise Refused(f"{name} = {values} of {number} axes")
    return values


def windows_of(call: Call, extents: Sequence[int], sizes: Sequence[int]) -> Windows:
    """The windows that a node's attributes say."""
    rank = len(extents)
    strides, dilations = _list(call, "strides", rank, 1), _list(call, "dilations", rank, 1)
    if len(sizes) != rank or min([*strides, *dilations, *sizes], default=1) < 1:
        raise Refused(f"windows of {list(sizes)} by {strides}, dilated by {dilations}")
    ceils = bool(call.given("ceil_mode"))
    how = call.text("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    pads = _list(call, "pads", 2 * rank, 0)
    reach = [(k - 1) * d + 1 for k, d in zip(sizes, dilations, strict=True)]
    before, after, counts = pads[:rank], pads[rank:], [0] * rank
    for i, extent in enumerate(extents):
        if how.startswith("SAME"):
            counts[i] = -(-extent // strides[i])
            total = max((counts[i] - 1) * strides[i] + reach[i] - extent, 0)
            small, large = total // 2, total - total // 2
            before[i], after[i] = (small, large) if how == "SAME_UPPER" else (large, small)
            continue
        if how == "VALID":
            before[i] = after[i] = 0
        span = extent + before[i] + after[i] - reach[i]
        if span < 0:
            raise Refused(f"a window of {reach[i]} elements of {extent}")
        counts[i] = span // strides[i] + 1
        if ceils and span % strides[i] and counts[i] * strides[i] < extent + before[i]:
            counts[i] += 1  # a window that begins in the padding behind is none
    return Windows(sizes, strides, dilations, before, after, counts)


# ---- convolution


def _convolution(x: Node, weight: Node, bias: Node | None, windows: Windows, groups: int) -> Node:
    axes = len(x.shape) - 2
    widths = [(0, 0), (0, 0), *windows.beyond(static_shape(x, 2))]
    symmetric = all(b == a and b >= 0 for b, a in widths)
    return op(
        "convolution.default",
        *(x if symmetric else pad(x, widths), weight, bias),
        stride=tuple(windows.strides),
        padding=tuple(b for b, _ in widths[2:]) if symmetric else (0,) * axes,
        dilation=tuple(windows.dilations),
        transposed=False,
        output_padding=(0,) * axes,
        groups=groups,
    )


def _kernel(call: Call, weight: Node) -> list[int]:
    """The extents of a window, which an attribute may repeat."""
    extents = list(static_shape(weight, 2))
    given = call.given("kernel_shape")
    if given is not None and list(given) != extents:
        raise Refused(f"kernel_shape = {list(given)} of weights {extents}")
    return extents


@rule("Conv", 1, 11, 22)
def convolution(call: Call) -> Node:
    """The convolution of images, or what has other numbers of axes, with weights."""
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    same_dtype(*[each for each in (x, weight, bias) if each is not None])
    windows = windows_of(call, static_shape(x, 2), _kernel(call, weight))
    return _convolution(x, weight, bias, windows, call.integer("group"))


@rule("ConvInteger", 10)
def convolution_of_integers(call: Call) -> Node:
    """The convolution of integers of 8 bits, less their zero points, in int32."""
    return convolution_integer(call, (0, 2), (1, 3))


def convolution_integer(call: Call, of: tuple[int, int], by: tuple[int, int]) -> Node:
    """The convolution in int32 of two inputs, each with the one that is its zero point."""
    x = less_zero(call, call.tensor(of[0]), of[1], 1)
    weight = less_zero(call, call.tensor(by[0]), by[1], 0)
    windows = windows_of(call, static_shape(x, 2), _kernel(call, weight))
    return _convolution(x, weight, None, windows, call.integer("group"))


@rule("ConvTranspose", 1, 11, 22)
def transposed_convolution(call: Call) -> Node:
    """What a convolution with these weights would have come from, as a sum over windows."""
    x, weight, bias = call.tensor(0), call.tensor(1), call.optional(2)
    same_dtype(*[each for each in (x, weight, bias) if each is not None])
    groups, sizes = call.integer("group"), _kernel(call, weight)
    extents = static_shape(x, 2)
    rank = len(extents)
    strides, dilations = _list(call, "strides", rank, 1), _list(call, "dilations", rank, 1)
    added, pads = _list(call, "output_padding", rank, 0), _list(call, "pads", 2 * rank, 0)
    how = call.text("auto_pad", "NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER")
    asked = call.given("output_shape")
    whole = [
        (n - 1) * s + (k - 1) * d + 1
        for n, s, k, d in zip(extents, strides, sizes, dilations, strict=True)
    ]
    widths: list[tuple[int, int]] = []
    for i in range(rank):
        before, after = (0, 0) if how == "VALID" else (pads[i], pads[rank + i])
        if asked is not None or how.startswith("SAME"):
            wanted = extents[i] * strides[i] if asked is None else int(asked[-rank:][i])
            total = whole[i] + added[i] - wanted
            if total < 0:
                raise Refused(f"{wanted} elements where there are {whole[i] + added[i]}")
            small, large = total // 2, total - total // 2
            before, after = (small, large) if how == "SAME_UPPER" else (large, small)
        widths.append((-before, added[i] - after))
    product = _scattered_windows(x, weight, groups, strides, dilations)
    product = pad(product, [(0, 0), (0, 0), *widths])
    return product if bias is None else add(product, columns(bias, product.shape))


def _scattered_windows(
    x: Node, weight: Node, groups: int, strides: Sequence[int], dilations: Sequence[int]
) -> Node:
    """A convolution of the elements, strides apart with 0 between them, with the weights backwards."""
    channels, *extents = static_shape(x, 1)
    rank = len(extents)
    _, per_group, *sizes = static_shape(weight)
    for i, (n, stride) in enumerate(zip(extents, strides, strict=True)):
        if stride > 1:
            apart = reshape(x, (*x.shape[: i + 3], 1, *x.shape[i + 3 :]))
            widths = [(0, 0)] * len(apart.shape)
            widths[i + 3] = (0, stride - 1)
            apart = pad(apart, widths)
            shape = (*x.shape[: i + 2], n * stride, *x.shape[i + 3 :])
            x = narrow(reshape(apart, shape), i + 2, 0, (n - 1) * stride + 1)
    reach = [(k - 1) * d for k, d in zip(sizes, dilations, strict=True)]
    flipped = op("flip.default", weight, dims=tuple(range(2, rank + 2))) if rank else weight
    grouped = reshape(flipped, (groups, channels // groups, per_group, *sizes))
    exchanged = op("transpose.int", grouped, dim0=1, dim1=2)
    kernel = reshape(exchanged, (groups * per_group, channels // groups, *sizes))
    return op(
        "convolution.default",
        *(x, kernel, None),
        stride=(1,) * rank,
        padding=tuple(reach),
        dilation=tuple(dilations),
        transposed=False,
        output_padding=(0,) * rank,
        groups=groups,
    )


# ---- pooling


def _planes(x: Node) -> Node:
    """What has one axis as planes of one row, for operators of two axes."""
    return reshape(x, (*x.shape[:2], 1, x.shape[2])) if len(x.shape) == 3 else x


def _of_planes(values: Sequence[int], rank: int, alone: int) -> tuple[int, ...]:
    return (alone, *values) if rank == 1 else tuple(values)


@rule("MaxPool", 1, 8, 10, 11, 12, 22)
def max_pool(call: Call) -> Sequence[Node | None]:
    """The largest element of each window, and where it is among all elements."""
    x = call.tensor(0)
    shape = x.shape
    extents, rank = static_shape(x, 2), len(shape) - 2
    by_columns = call.version >= 8 and call.flag("storage_order")
    windows = windows_of(call, extents, [int(n) for n in call.needed("kernel_shape")])
    if rank not in (1, 2, 3):
        raise Refused(f"windows of {rank} axes")
    widths = windows.beyond(extents)
    lowest = -inf if is_float(x.dtype) else int(np.iinfo(x.dtype.storage).min)
    padded = _planes(pad(x, [(0, 0), (0, 0), *widths], lowest))
    aten = "max_pool3d_with_indices.default" if rank == 3 else "max_pool2d_with_indices.default"
    flat = max(rank, 2)
    properties = {
        "kernel_size": _of_planes(windows.sizes, rank, 1),
        "stride": _of_planes(windows.strides, rank, 1),
        "padding": (0,) * flat,
        "dilation": _of_planes(windows.dilations, rank, 1),
        "ceil_mode": False,
    }
    result = (*shape[:2], *windows.counts)
    largest = reshape(pair(aten, padded, index=0, **properties), result)
    if not call.wants(1):
        return [largest]
    place = reshape(pair(aten, padded, index=1, **properties), result)
    padded_extents = static_shape(padded, len(padded.shape) - rank)
    return [largest, _among_all(place, shape, padded_extents, widths, by_columns)]


def _among_all(
    place: Node,
    shape: Sequence[Extent],
    padded: Sequence[int],
    widths: Sequence[tuple[int, int]],
    by_columns: bool,
) -> Node:
    """Positions in padded images as positions in the whole tensor."""
    extents = [n for n in shape[2:] if isinstance(n, int)]
    steps = [
        prod(extents[:i]) if by_columns else prod(extents[i + 1 :]) for i in range(len(extents))
    ]
    found = full((), 0, int64)
    for i, step in reversed(list(enumerate(steps))):
        at = op("remainder.Tensor", place, scalar(padded[i], place))
        place = op("div.Tensor_mode", place, scalar(padded[i], place), rounding_mode="floor")
        at = sub(at, scalar(widths[i][0], at))
        found = add(mul(at, scalar(step, at)), found)
    images = reshape(arange(shape[0] * shape[1]), (*shape[:2], *[1] * len(extents)))
    return add(found, mul(images, scalar(prod(extents), images)))


def _sums(x: Node, windows: Windows) -> Node:
    """The sum of each window, 0 beyond the edges."""
    shape, rank = x.shape, len(x.shape) - 2
    padded = pad(x, [(0, 0), (0, 0), *windows.beyond(static_shape(x, 2))])
    result = (*shape[:2], *windows.counts)
    if rank in (1, 2, 3) and set(windows.dilations) == {1}:
        aten = "avg_pool3d.default" if rank == 3 else "avg_pool2d.default"
        total = op(
            aten,
            _planes(padded),
            kernel_size=_of_planes(windows.sizes, rank, 1),
            stride=_of_planes(windows.strides, rank, 1),
            padding=(0,) * max(rank, 2),
            divisor_override=1,
        )
        return reshape(total, result)
    alone = reshape(padded, (shape[0] * shape[1], 1, *padded.shape[2:]))
    ones = full((1, 1, *windows.sizes), 1, x.dtype)
    found = op(
        "convolution.default",
        *(alone, ones, None),
        stride=tuple(windows.strides),
        padding=(0,) * rank,
        dilation=tuple(windows.dilations),
        transposed=False,
        output_padding=(0,) * rank,
        groups=1,
    )
    return reshape(found, result)


def _numbers(windows: Windows, extents: Sequence[int], with_padding: bool) -> np.ndarray:
    """How many elements of each window count."""
    found = np.ones((), np.float64)
    for i, extent in enumerate(extents):
        if windows.counts[i] * windows.sizes[i] > MAX_PLACES:
            raise Refused(f"{windows.counts[i]} windows of {windows.sizes[i]} elements")
        starts = np.arange(windows.counts[i]) * windows.strides[i]
        places = starts[:, None] + np.arange(windows.sizes[i]) * windows.dilations[i]
        low = 0 if with_padding else windows.before[i]
        high = windows.before[i] + extent + (windows.after[i] if with_padding else 0)
        found = found[..., None] * ((places >= low) & (places < high)).sum(1)
    return found


@rule("AveragePool", 7, 10, 11, 19, 22)
def average_pool(call: Call) -> Node:
    """The mean of each window; padding counts if that is asked for."""
    x = call.tensor(0)
    extents = static_shape(x, 2)
    with_padding = call.flag("count_include_pad")
    windows = windows_of(call, extents, [int(n) for n in call.needed("kernel_shape")])
    numbers = _numbers(windows, extents, with_padding)
    if not numbers.all():
        raise Refused("windows of no elements")
    if not is_float(x.dtype):
        raise Refused("the mean of integers")
    wide = cast(x, float32) if x.dtype.bits < 32 else x
    total = _sums(wide, windows)
    if (numbers == numbers.flat[0]).all():
        return cast(div(total, scalar(numbers.flat[0], total)), x.dtype)
    divisor = known(numbers.astype(wide.dtype.storage), wide.dtype)
    return cast(div(total, divisor), x.dtype)


@rule("LpPool", 11, 18, 22)
def lp_pool(call: Call) -> Node:
    """The norm of each window."""
    x, p = call.tensor(0), call.integer("p")
    windows = windows_of(call, static_shape(x, 2), [int(n) for n in call.needed("kernel_shape")])
    return _root(_sums(_powers(x, p), windows), p)


def _powers(x: Node, p: int) -> Node:
    if p < 1:
        raise Refused(f"p = {p}")
    return op("pow.Tensor_Scalar", unary("abs", x), exponent=float(p))


def _root(total: Node, p: int) -> Node:
    return op("pow.Tensor_Scalar", total, exponent=1 / p)


def _global(aten: str) -> Callable[[Call], Node]:
    return lambda call: fold(aten, call.tensor(0), range(2, len(call.tensor(0).shape)), True)


rule("GlobalAveragePool", 1, 22, text="The mean of each image.")(_global("mean"))
rule("GlobalMaxPool", 1, 22, text="The largest element of each image.")(_global("amax"))


@rule("GlobalLpPool", 2, 22)
def global_lp_pool(call: Call) -> Node:
    """The norm of each image."""
    x, p = call.tensor(0), call.integer("p")
    return _root(fold("sum", _powers(x, p), range(2, len(x.shape)), True), p)


@rule("MaxUnpool", 9, 11, 22)
def max_unpool(call: Call) -> Node:
    """Elements where the largest of windows were, and 0 elsewhere."""
    x, index = call.tensor(0), call.tensor(1)
    shape = static_shape(x)
    rank = len(shape) - 2
    sizes = [int(n) for n in call.needed("kernel_shape")]
    strides, pads = _list(call, "strides", rank, 1), _list(call, "pads", 2 * rank, 0)
    inner = [
        (n - 1) * s - pads[i] - pads[i + rank] + k
        for i, (n, s, k) in enumerate(zip(shape[2:], strides, sizes, strict=True))
    ]
    whole = (*shape[:2], *inner)
    result = tuple(call.integers(2, "output_shape")) if call.has(2) else whole
    if result[:2] != whole[:2] or any(a < b for a, b in zip(result, whole, strict=True)):
        raise Refused(f"output_shape {list(result)} of {list(whole)}")
    flat = full((prod(whole),), 0, x.dtype)
    number = prod(shape)
    places = op("view.default", index, size=(number,))
    found = op("scatter.src", flat, places, reshape(x, (number,)), dim=0)
    return pad(reshape(found, whole), [(0, b - a) for a, b in zip(whole, result, strict=True)])
