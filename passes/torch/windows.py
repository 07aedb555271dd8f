"""Sliding windows: convolution and pooling, as an index map over windows and a fold.

torch.avg_pool2d %x {kernel_size = [2, 2]}
  ->  index_map (n, i, j, k, l) -> %x[n, i * 2 + k, j * 2 + l], reduce add over [3, 4], divided by 4
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.windows import LEAST_ROWS, padded_channels
from ...dialects import torch_ops as t
from ...dialects.products import Product
from ...dialects.scalars import Combiner, Function, identity, is_bool, is_float
from ...dialects.sizes import Extent, extent_expr, is_at_most, static_extent
from ...dialects.torch_base import ScalarValue, Shape, TorchOp
from ...dialects.torch_window_shapes import Slide
from ...index.affine import product
from .lowering import Lowering, Refusal, Rule, dims, element_of, shape_of

# --------------------------------------------------------------------------- convolution


@dataclass(frozen=True)
class Taps:
    """What one axis of a kernel reads for each output position: so many positions of the input, or none.

    `inside` and `has_weight` must be at least zero where a tap is inside of the input, and has a weight.
    """

    count: Extent
    position: AffineExpr
    inside: tuple[AffineExpr, ...]
    weight: AffineExpr
    has_weight: tuple[AffineExpr, ...] = ()


def _taps(slide: Slide, out: AffineExpr, k: AffineExpr, extent: Extent, count: Extent) -> Taps:
    """Those of a convolution, of whose results there are `count`."""
    position = out * slide.stride + k * slide.dilation + -slide.padding
    inside = (position, position * -1 + extent_expr(extent - 1)) if slide.padding else ()
    return Taps(slide.kernel, position, inside, k)


def _spread_taps(
    slide: Slide, out: AffineExpr, k: AffineExpr, extent: Extent, count: Extent
) -> Taps:
    """Those of a transposed convolution: it adds input position i to output i * stride + tap * dilation."""
    kernel, stride = slide.kernel, slide.stride
    if stride > 1 and slide.dilation == 1 and isinstance(kernel, int) and count % stride == 0:
        return _phase_taps(kernel, slide, out, k, extent)
    if stride == 1 and isinstance(kernel, int):
        k = k * -1 + (kernel - 1)  # positions ascend, as those of other windows
    scaled = out + k * -slide.dilation + slide.padding
    inside = (scaled, scaled * -1 + extent_expr((extent - 1) * stride))
    if stride == 1:
        return Taps(kernel, scaled, inside, k)
    return Taps(kernel, scaled // stride, (*inside, (scaled % stride) * -1), k)


def _phase_taps(kernel: int, slide: Slide, out: AffineExpr, k: AffineExpr, extent: Extent) -> Taps:
    """The taps that there are for an output position: every `stride`-th one, from its phase on."""
    stride = slide.stride
    phase = out % stride + slide.padding
    position = out // stride + phase // stride + k * -1
    weight = phase % stride + k * stride
    has_weight = (weight * -1 + (kernel - 1),) if kernel % stride else ()
    inside = (position, position * -1 + extent_expr(extent - 1))
    return Taps(-(-kernel // stride), position, inside, weight, has_weight)


def _convolution(e: Lowering, op: t.ConvolutionOp) -> SSAValue:
    """Folds, for each output position, over the input channels of its group and the kernel."""
    if is_bool(e.element):
        raise Refusal("a convolution of bools")
    value, weight = op.input, op.weight
    source, groups, slides = shape_of(value), op.integer("groups"), op.slides()
    rank, transposed = len(e.shape), op.flag("transposed")
    kernel_shape = shape_of(weight)[2:]
    batch, channel, *places = dims(rank)
    within, *kernel = dims(rank + 1 + len(kernel_shape))[rank:]
    per_group_in, in_channel, out_channel = source[1], within, channel
    if groups > 1:
        per_group_in = source[1] // groups
        per_group_out = static_extent(e.shape[1]) // groups
        in_channel = product(channel // per_group_out, extent_expr(per_group_in)) + within
        out_channel = channel % per_group_out
    find = _spread_taps if transposed else _taps
    axes = zip(slides, places, kernel, source[2:], e.shape[2:], strict=True)
    taps = [find(*axis) for axis in axes]
    wide = (*e.shape, per_group_in, *(each.count for each in taps))
    index = [batch, in_channel, *(each.position for each in taps)]
    channels = [in_channel, out_channel] if transposed else [channel, within]
    weight_index = [*channels, *(each.weight for each in taps)]
    has_weight = [guard for each in taps for guard in each.has_weight]
    # What no weight belongs to is 0 as well: 0 times an infinity would be NaN. Not so the weights of what is
    # around an input: a weight that depends on where it is used is shared by no block of results.
    inside = [*(guard for each in taps for guard in each.inside), *has_weight]
    left = _guarded(e, value, index, inside, wide, fill=0)
    right = _guarded(e, weight, weight_index, has_weight, wide, fill=0, suffix="rhs")
    folded = list(range(rank, len(wide)))
    # Widened is what is read, not the input: a contraction then finds factors of the input's type.
    widened = (e.cast(each, e.element) for each in (left, right))
    factors = widened
    if not e.on_gpu or _multiplies_matrices(groups, source[1], e.shape[1], kernel_shape):
        factors = (e.factor(each, Product.CONVOLUTION) for each in widened)
    total = e.reduce(Combiner.ADD, e.apply(Function.MUL, *factors), folded)
    result = e.squeeze(total, folded)
    if op.bias is None:
        return result
    return e.apply(Function.ADD, result, along_channels(e, e.cast(op.bias, e.element)))


def _multiplies_matrices(groups: int, channels: Extent, rows: Extent, kernel_shape: Shape) -> bool:
    """Whether a convolution is one of matrices, for tensor cores: others are no faster for being rounded."""
    if groups > 1:
        return False
    if all(extent == 1 for extent in kernel_shape):
        return True
    many = isinstance(channels, int) and padded_channels(channels) is not None
    return many and isinstance(rows, int) and rows >= LEAST_ROWS


def along_channels(e: Lowering, value: SSAValue) -> SSAValue:
    """A value per channel, axis 1 of the result."""
    return e.index_map([value], [[AffineExpr.dimension(1)]], e.shape, suffix="bc")


def _guarded(
    e: Lowering,
    value: SSAValue,
    index: Sequence[AffineExpr],
    guards: Sequence[AffineExpr],
    shape: Shape,
    fill: ScalarValue,
    suffix: str = "window",
) -> SSAValue:
    """`value[index]` where all `guards` are at least zero, else `fill`."""
    if not guards:
        return e.index_map([value], [index], shape, suffix=suffix)
    return e.index_map([value], [index], shape, conditions=[guards], fill=fill, suffix=suffix)


# --------------------------------------------------------------------------- pooling


@dataclass(frozen=True)
class Window:
    """The windows along one axis: how wide they are, and which input position each element reads."""

    width: Extent
    position: AffineExpr
    guards: tuple[AffineExpr, ...]


def _sliding(slide: Slide, extent: Extent, count: Extent, out: AffineExpr, k: AffineExpr) -> Window:
    position = out * slide.stride + k * slide.dilation + -slide.padding
    guards: list[AffineExpr] = [position] if slide.padding else []
    if not is_at_most((count - 1) * slide.stride - slide.padding + slide.span, extent):
        guards.append(position * -1 + extent_expr(extent - 1))
    return Window(slide.kernel, position, tuple(guards))


def _adaptive(size: Extent, windows: Extent, out: AffineExpr, k: AffineExpr) -> Window:
    """Window `o` of `count` covers floor(o * extent / count) to ceil((o + 1) * extent / count)."""
    if size % windows == 0:
        equal = size // windows
        return Window(equal, product(out, extent_expr(equal)) + k, ())
    extent, count = static_extent(size), static_extent(windows)
    position = (out * extent) // count + k
    end = (out * extent + (extent + count - 1)) // count
    width = max(-(-(o + 1) * extent // count) - o * extent // count for o in range(count))
    return Window(width, position, (end + position * -1 + -1,))


def _windows(e: Lowering, op: Any) -> list[Window]:
    """The windows along each pooled axis; kernel axes stand after those of the result."""
    source, rank = shape_of(op.input), len(e.shape)
    if "output_size" in op.properties:
        count = len(op.integers("output_size"))
        axes = dims(rank + count)
        return [
            _adaptive(source[axis], e.shape[axis], axes[axis], axes[count + axis])
            for axis in range(rank - count, rank)
        ]
    slides = op.slides()
    count = len(slides)
    axes = dims(rank + count)
    return [
        _sliding(slide, source[axis], e.shape[axis], axes[axis], axes[count + axis])
        for axis, slide in zip(range(rank - count, rank), slides, strict=True)
    ]


def _spread(e: Lowering, value: SSAValue, windows: Sequence[Window], fill: float) -> SSAValue:
    """Each window's elements along axes of their own, after those of the result."""
    index = [*dims(len(e.shape) - len(windows)), *(w.position for w in windows)]
    guards = [guard for w in windows for guard in w.guards]
    return _guarded(e, value, index, guards, (*e.shape, *(w.width for w in windows)), fill)


def _folded(e: Lowering, combiner: Combiner, spread: SSAValue) -> SSAValue:
    axes = list(range(len(e.shape), len(shape_of(spread))))
    return e.squeeze(e.reduce(combiner, spread, axes), axes)


def _average_pool(e: Lowering, op: Any) -> SSAValue:
    if not is_float(e.element):
        raise Refusal(f"an average of {e.result_element}")
    if 0 in e.shape:
        return e.constant(0, e.element, e.shape)
    windows = _windows(e, op)
    total = _folded(e, Combiner.ADD, _spread(e, e.cast(op.input, e.element), windows, 0))
    override = op.optional_integer("divisor_override")
    if override is not None:
        if override == 0:
            raise Refusal("divisor_override = 0")
        return e.with_number(Function.DIV, total, override)
    count = _count(e, op, windows)
    if not isinstance(count, SSAValue):
        return e.with_number(Function.DIV, total, count)
    return e.apply(Function.DIV, total, count)


def _count(e: Lowering, op: Any, windows: Sequence[Window]) -> SSAValue | Extent:
    """How many elements each window averages: a number if it is the same for all."""
    include = "count_include_pad" in op.properties and op.flag("count_include_pad")
    adaptive = "output_size" in op.properties
    slides: Sequence[Slide] = () if adaptive else op.slides()
    overhangs = not all(
        is_at_most((count - 1) * s.stride - s.padding + s.span, n + s.padding)
        for s, n, count in zip(
            slides, shape_of(op.input)[-len(windows) :], e.shape[-len(windows) :], strict=False
        )
    )
    guarded = any(w.guards for w in windows)
    if not guarded or (include and not overhangs):
        return math.prod(w.width for w in windows)
    if include:
        return _count_with_padding(e, op, slides)
    # where nothing is included but elements, count them as they are folded
    lead = len(e.shape) - len(windows)
    source = (1,) * lead + shape_of(op.input)[lead:]
    ones = e.constant(1.0, e.element, source)
    index = [*[AffineExpr.constant(0)] * lead, *(w.position for w in windows)]
    guards = [guard for w in windows for guard in w.guards]
    shape = (*e.shape, *(w.width for w in windows))
    spread = _guarded(e, ones, index, guards, shape, fill=0)
    return _folded(e, Combiner.ADD, spread)


def _count_with_padding(e: Lowering, op: Any, slides: Sequence[Slide]) -> SSAValue:
    """Elements and padding in each window; one that overhangs the padding is cut off there."""
    total: SSAValue | None = None
    first = len(e.shape) - len(slides)
    for axis, slide in enumerate(slides, first):
        start = e.with_number(Function.MUL, e.iota(axis, i64, e.shape), slide.stride)
        left = e.apply(
            Function.SUB,
            e.fill_like(start, shape_of(op.input)[axis] + 2 * slide.padding),
            start,
        )
        width = e.with_number(Function.MIN, left, slide.kernel)
        total = width if total is None else e.apply(Function.MUL, total, width)
    assert total is not None
    return e.cast(total, e.element)


def _max_pool(e: Lowering, op: Any) -> list[SSAValue]:
    """The largest of each window, NaN if there is one, and its position in the pooled axes."""
    if is_bool(e.element):
        raise Refusal("pooling of bools")
    if 0 in e.shape:
        return [e.constant(0, element, e.shape) for element in (e.element, i64)]
    windows = _windows(e, op)
    lowest = identity(Combiner.MAX, e.element)
    spread = _spread(e, e.cast(op.input, e.element), windows, lowest)
    largest = _folded(e, Combiner.MAX, spread)
    if op.results[1].first_use is None:
        return [largest, e.constant(0, i64, e.shape)]
    return [largest, _position(e, op, windows, spread, largest)]


def _position(
    e: Lowering, op: Any, windows: Sequence[Window], spread: SSAValue, largest: SSAValue
) -> SSAValue:
    """The first position of the largest, or the last NaN if there is one, as PyTorch finds it."""
    pooled = shape_of(op.input)[-len(windows) :]
    count = static_extent(math.prod(pooled))
    shape = shape_of(spread)
    number = e.reshape(e.iota(0, i64, (count,)), pooled)
    lead = len(e.shape) - len(windows)
    index = [w.position for w in windows]
    guards = [guard for w in windows for guard in w.guards]
    places = _guarded(e, number, index, guards, shape, count)
    wide = e.index_map([largest], [dims(len(shape))[: lead + len(windows)]], shape, suffix="bc")
    found = e.apply(Function.EQ, spread, wide)
    first = _folded(e, Combiner.MIN, e.select(found, places, e.fill_like(places, count)))
    if not is_float(element_of(spread)):
        return first
    is_nan = e.apply(Function.NE, spread, spread)
    last = _folded(e, Combiner.MAX, e.select(is_nan, places, e.fill_like(places, -1)))
    return e.select(e.with_number(Function.GE, last, 0), last, first)


RULES: dict[type[TorchOp], Rule] = {
    t.ConvolutionOp: _convolution,
    t.AvgPool2dOp: _average_pool,
    t.AvgPool3dOp: _average_pool,
    t.InternalAdaptiveAvgPool2dOp: _average_pool,
    t.InternalAdaptiveAvgPool3dOp: _average_pool,
    t.MaxPool2dWithIndicesOp: _max_pool,
    t.MaxPool3dWithIndicesOp: _max_pool,
    t.AdaptiveMaxPool2dOp: _max_pool,
    t.AdaptiveMaxPool3dOp: _max_pool,
}
"""The rule for each operation."""
