"""Order along an axis: sorting, the largest, the middle; running extrema.

torch.topk %x {k = 3}  ->  tensor_ir.sort %x along 0 descending, which gives the first 3
"""

from __future__ import annotations

import math
from math import prod
from typing import Any

from xdsl.dialects.builtin import i8, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.orders import sort_work
from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function, is_bool, is_float
from ...dialects.sizes import Extent, hinted, is_at_most, largest
from ...dialects.torch_base import TorchOp
from ...dialects.torch_shapes import normalize_axis
from .indexing import fold_until
from .lowering import Lowering, Refusal, Rule, compute_element, dims, element_of, shape_of
from .reductions import accumulator_of
from .squares import check_comparisons

LONGEST_SORT = 1 << 15

FEW = 4
"""Powers that a step of a running sum adds up: 24 for each of 4096 elements. With 8 and 16, rows of 2000 and
4000 took 1.1 and 1.3 times as long (one core of a Xeon with AVX-512)."""

PYTORCH_SORTS_PER_SECOND = 5e7
PYTORCH_PICKS_PER_SECOND = 1e9
"""Elements that PyTorch puts in order, or looks at to find the first few."""


def _comparable(e: Lowering, value: SSAValue) -> SSAValue:
    """`value` in a type that has an order; a half type is read as f32, which changes no value."""
    return e.cast(value, compute_element(element_of(value)))


def _check_work(e: Lowering, value: SSAValue, axis: int, count: Extent) -> None:
    if e.in_order:
        return
    extent = hinted(shape_of(value)[axis])
    if extent > LONGEST_SORT:
        raise Refusal(f"the order of {extent} elements, more than {LONGEST_SORT}")
    elements = hinted(prod(shape_of(value)))
    few = hinted(count) * 4 < extent or not isinstance(e.op, t.SortOp | t.SortStableOp)
    pytorch_seconds = elements / (PYTORCH_PICKS_PER_SECOND if few else PYTORCH_SORTS_PER_SECOND)
    check_comparisons(e, "an order", sort_work(shape_of(value), axis), pytorch_seconds)


def in_order(
    e: Lowering, value: SSAValue, axis: int, count: Extent, *, descending: bool = False
) -> tuple[SSAValue, SSAValue]:
    """The first `count` values along `axis` in order, and their positions."""
    _check_work(e, value, axis, count)
    return e.sort(value, axis, count, descending=descending)


def _sort(e: Lowering, op: Any) -> list[SSAValue]:
    """`sort` is stable here, whatever is asked; the order of equal values of `topk` is that of `sort`."""
    value = _comparable(e, op.input)
    if not e.shape:
        return [value, e.constant(0, i64, ())]
    if prod(e.shape) == 0:
        return [e.constant(0, element_of(value), e.shape), e.constant(0, i64, e.shape)]
    descending = op.flag("largest") if isinstance(op, t.TopkOp) else op.flag("descending")
    axis = op.axis()
    return [*in_order(e, value, axis, e.shape[axis], descending=descending)]


# --------------------------------------------------------------------------- one place of the order


def _at_places(
    e: Lowering, value: SSAValue, axis: int, places: SSAValue
) -> tuple[SSAValue, SSAValue]:
    """The values at places of the order along `axis`, and their positions, in the result's shape."""
    _check_work(e, value, axis, 1)
    positions = e.nth_element(places, value, axis)
    values = e.gather_along(value, positions, axis)
    return e.reshape(values, e.shape), e.reshape(positions, e.shape)


def _at_place(e: Lowering, value: SSAValue, axis: int, place: Extent) -> tuple[SSAValue, SSAValue]:
    shape = tuple(1 if i == axis else n for i, n in enumerate(shape_of(value)))
    return _at_places(e, value, axis, e.constant(place, i64, shape))


def _kth_value(e: Lowering, op: t.KthvalueOp) -> list[SSAValue]:
    value, count = _comparable(e, op.input), op.extent("k")
    if not shape_of(value):
        return [value, e.constant(0, i64, ())]
    (axis,) = op.reduced_axes()
    if not is_at_most(count, extent := shape_of(value)[axis]):
        raise Refusal(f"value {count} in the order of {extent}, which may be fewer")
    return [*_at_place(e, value, axis, count - 1)]


def _flat_or_given(e: Lowering, op: Any) -> tuple[SSAValue, int]:
    """The input and the axis to order it along; without an axis, all of it."""
    value = _comparable(e, op.input)
    if "dim" not in op.properties or not shape_of(value):
        return e.reshape(value, (prod(shape_of(value)),)), 0
    (axis,) = op.reduced_axes()
    return value, axis


def _median(e: Lowering, op: Any) -> list[SSAValue]:
    """The lower of the two middle values; NaN, and where the first one is, if there is any."""
    value, axis = _flat_or_given(e, op)
    extent = shape_of(value)[axis]
    if extent < 1:
        return _of_nothing(e, op, value)
    at, position = _at_place(e, value, axis, (extent - 1) // 2)
    if is_float(element_of(value)):
        nan = e.apply(Function.NE, value, value)
        index = e.iota(axis, i64, shape_of(value))
        first = e.select(nan, index, e.fill_like(index, extent))
        first = e.reshape(e.reduce(Combiner.MIN, first, [axis]), e.shape)
        found = e.with_number(Function.LT, first, extent)
        at = e.select(found, e.fill_like(at, math.nan), at)
        position = e.select(found, first, position)
    return [at, position][: len(op.results)]


def _of_nothing(e: Lowering, op: Any, value: SSAValue) -> list[SSAValue]:
    if len(op.results) > 1 or not is_float(element_of(value)):
        raise Refusal("the median of no elements")
    return [e.constant(math.nan, element_of(value), e.shape)]


def _nan_median(e: Lowering, op: Any) -> list[SSAValue]:
    """The lower of the two middle numbers; NaN if there is no number."""
    value, axis = _flat_or_given(e, op)
    if not is_float(element_of(value)):
        return _median(e, op)
    extent = shape_of(value)[axis]
    if extent < 1:
        return _of_nothing(e, op, value)
    number = e.cast(e.apply(Function.EQ, value, value), i64)
    last = e.with_number(Function.SUB, e.reduce(Combiner.ADD, number, [axis]), 1)
    middle = e.with_number(Function.TRUNCDIV, last, 2)
    return [*_at_places(e, value, axis, middle)][: len(op.results)]


# --------------------------------------------------------------------------- running extrema


def _running_extremum(combiner: Combiner) -> Rule:
    """At each position the extremum of what is at or before it, and the last position where it stands."""

    def rule(e: Lowering, op: Any) -> list[SSAValue]:
        value = _comparable(e, op.input)
        if is_bool(element_of(value)):
            value = e.cast(value, i8)
        if not e.shape:
            return [value, e.constant(0, i64, ())]
        axis = op.axis()
        extremum = fold_until(e, value, axis, combiner)
        # It stands where it changes or comes again: at the last such position it still does.
        stands = e.apply(Function.EQ, value, extremum)
        if is_float(element_of(value)):
            stands = e.apply(Function.OR, stands, e.apply(Function.NE, value, value))
        index = e.iota(axis, i64, e.shape)
        places = e.select(stands, index, e.fill_like(index, 0))
        return [extremum, fold_until(e, places, axis, Combiner.MAX)]

    return rule


def _log_sum_exp_until(e: Lowering, op: t.LogcumsumexpOp) -> SSAValue:
    """log(sum(exp(x))) of what is at or before each position: of up to 4, then of 4 such, and so on."""
    value = e.cast(op.input, accumulator_of(e, e.result_element))
    if not e.shape:
        return value
    axis, distance = normalize_axis(op.integer("dim"), len(e.shape)), 1
    while distance < largest(e.shape[axis]):
        value = _log_sum_exp_of_few(e, value, axis, distance)
        distance *= FEW
    return value


def _log_sum_exp_of_few(e: Lowering, value: SSAValue, axis: int, distance: int) -> SSAValue:
    """The same of `FEW` elements, so far from each other, less their maximum so that nothing overflows."""
    last, index = len(e.shape), dims(len(e.shape))
    index[axis] += AffineExpr.dimension(last) * -distance
    few, conditions = (*e.shape, FEW), [[index[axis]]]
    each = e.index_map([value], [index], few, conditions=conditions, fill=-math.inf, suffix="earlier")
    most = e.squeeze(e.reduce(Combiner.MAX, each, [last]), [last])
    infinite = e.with_number(Function.EQ, e.apply(Function.ABS, most), math.inf)
    most = e.select(infinite, e.fill_like(most, 0.0), most)
    less = e.apply(Function.SUB, each, e.index_map([most], [dims(last)], few, suffix="here"))
    total = e.squeeze(e.reduce(Combiner.ADD, e.apply(Function.EXP, less), [last]), [last])
    return e.apply(Function.ADD, e.apply(Function.LOG, total), most)


RULES: dict[type[TorchOp], Rule] = {
    t.SortOp: _sort,
    t.SortStableOp: _sort,
    t.TopkOp: _sort,
    t.KthvalueOp: _kth_value,
    t.MedianOp: _median,
    t.MedianDimOp: _median,
    t.NanmedianOp: _nan_median,
    t.NanmedianDimOp: _nan_median,
    t.CummaxOp: _running_extremum(Combiner.MAX),
    t.CumminOp: _running_extremum(Combiner.MIN),
    t.LogcumsumexpOp: _log_sum_exp_until,
}
"""The rule for each operation."""
