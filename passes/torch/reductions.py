"""Reductions: sums, means, extrema, truth, variance.

torch.mean %x {dim = [1]}  ->  reduce add over [1], divided by the count, axis 1 dropped
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import bf16, f32, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function, is_bool, is_float
from ...dialects.sizes import Extent, Size
from ...dialects.torch_base import ScalarValue, TorchOp
from ...dialects.torch_shapes import ReductionOp
from .lowering import Lowering, Refusal, Rule, compute_element, element_of, shape_of


def _dropped(e: Lowering, value: SSAValue) -> SSAValue:
    """`value`, whose folded axes have extent 1, in the result's shape."""
    return e.reshape(value, e.shape)


def cast_first(e: Lowering, op: Any) -> SSAValue:
    """The input rounded to the result's type, as `dtype` asks, and then in the type to compute in."""
    return e.cast(e.cast(op.input, e.result_element), e.element)


def _fold(combiner: Combiner) -> Rule:
    """A sum or product; where `dtype` asks for bools, whether any or all are true."""

    def rule(e: Lowering, op: ReductionOp) -> SSAValue:
        fold = combiner
        if is_bool(e.element):
            fold = Combiner.ANY if combiner is Combiner.ADD else Combiner.ALL
        return _dropped(e, e.reduce(fold, cast_first(e, op), op.reduced_axes()))

    return rule


def _count(value: SSAValue, axes: Sequence[int]) -> Extent:
    return prod(shape_of(value)[axis] for axis in axes)


def mean_over(e: Lowering, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The mean over `axes`, which stay; that of nothing is NaN."""
    total = e.reduce(Combiner.ADD, value, axes)
    return e.with_number(Function.DIV, total, _count(value, axes))


def centered(e: Lowering, value: SSAValue, axes: Sequence[int]) -> tuple[SSAValue, SSAValue]:
    """The mean over `axes`, and `value` less its mean."""
    mean = mean_over(e, value, axes)
    return mean, e.apply(Function.SUB, value, e.broadcast(mean, shape_of(value)))


def squares_over(e: Lowering, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The sum of squares over `axes`, which stay."""
    return e.reduce(Combiner.ADD, e.apply(Function.MUL, value, value), axes)


def _mean(e: Lowering, op: t.MeanOp | t.MeanDefaultOp) -> SSAValue:
    """On a CPU the input is not rounded to a half type first (`mean` in ATen/native/ReduceOps.cpp)."""
    value = cast_first(e, op) if e.on_gpu else e.cast(op.input, e.element)
    return _dropped(e, mean_over(e, value, op.reduced_axes()))


def accumulator_of(e: Lowering, element: Attribute) -> Attribute:
    """The type that squares and running sums of `element` are added up in: on a CPU f64 for f32 and bf16.

    The sums of these leave the range of f32 where the result does not; those of f16 do not. On a GPU,
    where f64 is slow, it is f32. Source: eager, `WelfordOps<scalar_t, double>` in
    ATen/native/cpu/ReduceOpsKernel.cpp and `acc_type` in ATen/AccumulateType.h; for running sums of bf16 it
    takes f32, and stays infinite.
    """
    return f64 if element in (f32, bf16) and not e.on_gpu else compute_element(element)


def _moments(e: Lowering, op: Any) -> tuple[SSAValue, SSAValue]:
    """The variance, squared distances from the mean over count - correction (at least 0), and the mean."""
    axes = op.reduced_axes()
    value = e.cast(op.input, accumulator_of(e, e.result_element))
    correction = op.optional_number("correction")
    divisor = _less(_count(value, axes), 1 if correction is None else correction)
    mean, distance = centered(e, value, axes)
    total = squares_over(e, distance, axes)
    variance = e.with_number(Function.DIV, total, divisor)
    return _dropped(e, variance), _dropped(e, mean)


def _variance(e: Lowering, op: Any) -> list[SSAValue]:
    """The variance, and for `var_mean` the mean."""
    return list(_moments(e, op))[: len(op.results)]


def _deviation(e: Lowering, op: Any) -> list[SSAValue]:
    """The standard deviation, and for `std_mean` the mean; the variance may be no f32."""
    variance, *mean = _moments(e, op)[: len(op.results)]
    return [e.apply(Function.SQRT, variance), *mean]


def _less(count: Extent, correction: ScalarValue) -> ScalarValue | Size:
    """count - correction, at least 0."""
    if not isinstance(count, Size):
        return max(count - correction, 0)
    if correction != int(correction):
        raise Refusal(f"correction = {correction} for a count that is known only at run time")
    return max(count - int(correction), 0)


def _vector_norm(e: Lowering, op: t.LinalgVectorNormOp) -> SSAValue:
    """(sum |x|^p)^(1/p); for p = 0 the number of elements that are not 0.

    Of single elements it is |x|, as in PyTorch, even where |x|^p is too large or too small for a float.
    """
    axes, order = op.reduced_axes(), float(op.number("ord"))
    size = e.apply(Function.ABS, cast_first(e, op))
    if math.isinf(order):
        _refuse_empty(size, axes)
        combiner = Combiner.MAX if order > 0 else Combiner.MIN
        return _dropped(e, e.reduce(combiner, size, axes))
    if order == 0:
        counted = e.cast(e.with_number(Function.NE, size, 0), e.element)
        return _dropped(e, e.reduce(Combiner.ADD, counted, axes))
    if order == 1 or all(shape_of(size)[axis] == 1 for axis in axes):
        return _dropped(e, e.reduce(Combiner.ADD, size, axes))
    if order == 2:
        return e.apply(Function.SQRT, _dropped(e, squares_over(e, size, axes)))
    total = e.reduce(Combiner.ADD, e.with_number(Function.POW, size, order), axes)
    return _dropped(e, e.with_number(Function.POW, total, 1 / order))


def extremum_over(
    e: Lowering, combiner: Combiner, value: SSAValue, axes: Sequence[int]
) -> SSAValue:
    """The largest or smallest over `axes`, which stay; NaN if there is one."""
    if is_bool(element_of(value)):
        combiner = Combiner.ANY if combiner is Combiner.MAX else Combiner.ALL
    return e.reduce(combiner, value, axes)


def _refuse_empty(value: SSAValue, axes: Sequence[int]) -> None:
    if any(shape_of(value)[axis] < 1 for axis in axes):
        raise Refusal("the largest or smallest of no elements")


def _extremum(combiner: Combiner) -> Rule:
    def rule(e: Lowering, op: ReductionOp) -> SSAValue:
        axes = op.reduced_axes()
        _refuse_empty(op.operands[0], axes)
        return _dropped(e, extremum_over(e, combiner, e.cast(op.operands[0], e.element), axes))

    return rule


def _position(combiner: Combiner) -> Rule:
    """The first position of the extremum; of the first NaN, if there is one."""

    def rule(e: Lowering, op: ReductionOp) -> SSAValue:
        value = _comparable(e, op.operands[0])
        flat = "dim" not in op.properties
        if flat:
            value = e.reshape(value, (prod(shape_of(value)),))
        axes = (0,) if flat else op.reduced_axes()
        _refuse_empty(value, axes)
        if not axes:
            return e.constant(0, e.element, e.shape)
        extremum = e.reduce(combiner, value, axes)
        return _dropped(e, _first_position(e, value, extremum, axes[0]))

    return rule


def _comparable(e: Lowering, source: SSAValue) -> SSAValue:
    """`source` in a type that has an order: bools as integers, half types as f32."""
    element = element_of(source)
    return e.cast(source, i64 if is_bool(element) else compute_element(element))


def _first_position(e: Lowering, value: SSAValue, extremum: SSAValue, axis: int) -> SSAValue:
    """Where along `axis`, which stays, `extremum` stands first; NaN equals NaN here."""
    shape = shape_of(value)
    found = e.apply(Function.EQ, value, e.broadcast(extremum, shape))
    if is_float(element_of(value)):
        found = e.apply(Function.OR, found, e.apply(Function.NE, value, value))
    index = e.iota(axis, i64, shape)
    never = e.fill_like(index, shape[axis])
    return e.reduce(Combiner.MIN, e.select(found, index, never), [axis])


def _extremum_and_position(combiner: Combiner) -> Rule:
    """The extremum along one axis and its first position."""

    def rule(e: Lowering, op: ReductionOp) -> list[SSAValue]:
        axes = op.reduced_axes()
        value = _comparable(e, op.operands[0])
        _refuse_empty(value, axes)
        if not axes:
            return [op.operands[0], e.constant(0, i64, e.shape)]
        extremum = e.reduce(combiner, value, axes)
        position = _first_position(e, value, extremum, axes[0])
        return [_dropped(e, extremum), _dropped(e, position)]

    return rule


def _truth(combiner: Combiner) -> Rule:
    def rule(e: Lowering, op: ReductionOp) -> SSAValue:
        return _dropped(e, e.reduce(combiner, e.cast(op.operands[0], i1), op.reduced_axes()))

    return rule


_ROWS: Sequence[tuple[Callable[[Combiner], Rule], Combiner, Sequence[type[TorchOp]]]] = (
    (_fold, Combiner.ADD, (t.SumOp, t.SumDefaultOp)),
    (_fold, Combiner.MUL, (t.ProdOp, t.ProdDefaultOp)),
    (_extremum, Combiner.MAX, (t.AmaxOp, t.MaxOp)),
    (_extremum, Combiner.MIN, (t.AminOp, t.MinOp)),
    (_position, Combiner.MAX, (t.ArgmaxOp,)),
    (_position, Combiner.MIN, (t.ArgminOp,)),
    (_truth, Combiner.ANY, (t.AnyOp, t.AnyDimsOp, t.AnyDefaultOp)),
    (_truth, Combiner.ALL, (t.AllOp, t.AllDimsOp, t.AllDefaultOp)),
)

RULES: dict[type[TorchOp], Rule] = {
    **{op: make(combiner) for make, combiner, ops in _ROWS for op in ops},
    t.MeanOp: _mean,
    t.MeanDefaultOp: _mean,
    t.MaxDimOp: _extremum_and_position(Combiner.MAX),
    t.MinDimOp: _extremum_and_position(Combiner.MIN),
    t.VarOp: _variance,
    t.VarMeanOp: _variance,
    t.StdOp: _deviation,
    t.StdMeanOp: _deviation,
    t.LinalgVectorNormOp: _vector_norm,
}
"""The rule for each reduction."""
