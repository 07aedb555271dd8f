"""Reductions: sums, means, extrema, truth, variance.

torch.mean %x {dim = [1]}  ->  reduce add over [1], divided by the count, axis 1 dropped
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function, is_bool, is_float
from ...dialects.torch_base import TorchOp
from ...dialects.torch_shapes import ReductionOp
from .lowering import Lowering, Refusal, Rule, compute_element, element_of, shape_of


def _dropped(e: Lowering, value: SSAValue) -> SSAValue:
    """`value`, whose folded axes have extent 1, in the result's shape."""
    return e.reshape(value, e.shape)


def _cast_first(e: Lowering, op: Any) -> SSAValue:
    """The input in the result's type, as `dtype` asks, and then in the type to compute in."""
    if compute_element(element_of(op.input)) == e.element:
        return e.cast(op.input, e.element)
    return e.cast(e.cast(op.input, e.result_element), e.element)


def _fold(combiner: Combiner) -> Rule:
    """A sum or product; those of bools and integers are in i64, which is their result's type."""

    def rule(e: Lowering, op: ReductionOp) -> SSAValue:
        if is_bool(e.element):
            raise Refusal("a bool result of a sum or product")
        return _dropped(e, e.reduce(combiner, _cast_first(e, op), op.reduced_axes()))

    return rule


def _count(value: SSAValue, axes: Sequence[int]) -> int:
    return prod(shape_of(value)[axis] for axis in axes)


def mean_over(e: Lowering, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The mean over `axes`, which stay; that of nothing is NaN."""
    total = e.reduce(Combiner.ADD, value, axes)
    return e.with_number(Function.DIV, total, float(_count(value, axes)))


def centered(e: Lowering, value: SSAValue, axes: Sequence[int]) -> tuple[SSAValue, SSAValue]:
    """The mean over `axes`, and `value` less its mean."""
    mean = mean_over(e, value, axes)
    return mean, e.apply(Function.SUB, value, e.broadcast(mean, shape_of(value)))


def squares_over(e: Lowering, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """The sum of squares over `axes`, which stay."""
    return e.reduce(Combiner.ADD, e.apply(Function.MUL, value, value), axes)


def _mean(e: Lowering, op: ReductionOp) -> SSAValue:
    return _dropped(e, mean_over(e, _cast_first(e, op), op.reduced_axes()))


def _variance(e: Lowering, op: t.VarOp) -> SSAValue:
    """Squared distances from the mean, summed, over count - correction (at least 0)."""
    axes = op.reduced_axes()
    value = e.cast(op.input, e.element)
    correction = op.optional_number("correction")
    divisor = _count(value, axes) - (1 if correction is None else correction)
    _, distance = centered(e, value, axes)
    total = squares_over(e, distance, axes)
    return _dropped(e, e.with_number(Function.DIV, total, float(max(divisor, 0))))


def extremum_over(
    e: Lowering, combiner: Combiner, value: SSAValue, axes: Sequence[int]
) -> SSAValue:
    """The largest or smallest over `axes`, which stay; NaN if there is one."""
    if is_bool(element_of(value)):
        combiner = Combiner.ANY if combiner is Combiner.MAX else Combiner.ALL
    return e.reduce(combiner, value, axes)


def _refuse_empty(value: SSAValue, axes: Sequence[int]) -> None:
    if any(shape_of(value)[axis] == 0 for axis in axes):
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
        source = op.operands[0]
        element = element_of(source)
        value = e.cast(source, i64 if is_bool(element) else compute_element(element))
        flat = "dim" not in op.properties
        if flat:
            value = e.reshape(value, (prod(shape_of(value)),))
        axes = (0,) if flat else op.reduced_axes()
        _refuse_empty(value, axes)
        if not axes:
            return e.constant(0, e.element, e.shape)
        shape = shape_of(value)
        extremum = e.broadcast(e.reduce(combiner, value, axes), shape)
        found = e.apply(Function.EQ, value, extremum)
        if is_float(element):
            found = e.apply(Function.OR, found, e.apply(Function.NE, value, value))
        index = e.iota(axes[0], i64, shape)
        never = e.fill_like(index, shape[axes[0]])
        return _dropped(e, e.reduce(Combiner.MIN, e.select(found, index, never), axes))

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
    t.VarOp: _variance,
}
"""The rule for each reduction."""
