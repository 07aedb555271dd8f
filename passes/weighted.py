"""Folding weighted means, which `dialects/scalars.py` defines, in `arith` and `math`."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.dialects.utils import FastMathFlag
from xdsl.ir import SSAValue

from ..dialects.scalars import Combiner
from ..dialects.syntax import scalar_attr


def combine_weighted(
    builder: Builder,
    combiners: Sequence[Combiner],
    first: Sequence[SSAValue],
    second: Sequence[SSAValue],
) -> list[SSAValue]:
    """Insert what two contributions (exponent, weight, further weights and means) give."""
    largest = builder.insert(arith.MaximumfOp(first[0], second[0])).result
    shift = exponent_shift(builder, largest)
    scales = [scaled_exp(builder, each[0], shift) for each in (first, second)]
    weights, total = _weighted_sum(builder, scales, (first[1], second[1]))
    results: list[SSAValue] = [largest, total]
    shares: list[SSAValue] = []
    for combiner, *values in zip(combiners[2:], first[2:], second[2:], strict=True):
        if combiner is Combiner.WEIGHT:
            results.append(_weighted_sum(builder, scales, values)[1])
            continue
        shares = shares or [share(builder, weight, total) for weight in weights]
        results.append(_weighted_sum(builder, shares, values)[1])
    return results


def keep_weighted(builder: Builder, first: Sequence[SSAValue], largest: SSAValue) -> list[SSAValue]:
    """Insert what a contribution (exponent and weights) is to one whose exponent is at least as large."""
    scale = scaled_exp(builder, first[0], exponent_shift(builder, largest))
    return [builder.insert(arith.MulfOp(weight, scale)).result for weight in first[1:]]


def _weighted_sum(
    builder: Builder, scales: Sequence[SSAValue], values: Sequence[SSAValue]
) -> tuple[list[SSAValue], SSAValue]:
    """Insert two products and their sum."""
    first, second = (
        builder.insert(arith.MulfOp(value, scale)).result
        for scale, value in zip(scales, values, strict=True)
    )
    return [first, second], builder.insert(arith.AddfOp(first, second)).result


def exponent_shift(builder: Builder, largest: SSAValue) -> SSAValue:
    """Insert what is subtracted from exponents: the largest, but 0 for minus infinity."""
    low = _constant(builder, -numbers.inf, largest)
    nothing = builder.insert(arith.CmpfOp(largest, low, "oeq")).result
    zero = _constant(builder, 0, largest)
    return builder.insert(arith.SelectOp(nothing, zero, largest)).result


def scaled_exp(builder: Builder, exponent: SSAValue, shift: SSAValue) -> SSAValue:
    """Insert exp(exponent - shift)."""
    difference = builder.insert(arith.SubfOp(exponent, shift)).result
    return builder.insert(math.ExpOp(difference)).result


def approximate_exp(builder: Builder, exponent: SSAValue, shift: SSAValue) -> SSAValue:
    """Insert exp(exponent - shift) as what is rounded to a short float anyway may have it.

    As a power of two, whose instruction a GPU has: of a difference d it is off by a factor of 1 + d * 2^-24.
    """
    difference = builder.insert(arith.SubfOp(exponent, shift)).result
    scale = _constant(builder, numbers.log2(numbers.e), difference)
    power = builder.insert(arith.MulfOp(difference, scale)).result
    flags = arith.FastMathFlagsAttr([FastMathFlag.APPROX_FUNC])
    return builder.insert(math.Exp2Op(power, flags)).result


def share(builder: Builder, weight: SSAValue, total: SSAValue) -> SSAValue:
    """Insert weight / total, 0 if the total is 0."""
    zero = _constant(builder, 0, total)
    nothing = builder.insert(arith.CmpfOp(total, zero, "oeq")).result
    quotient = builder.insert(arith.DivfOp(weight, total)).result
    return builder.insert(arith.SelectOp(nothing, zero, quotient)).result


def _constant(builder: Builder, number: float, like: SSAValue) -> SSAValue:
    return builder.insert(arith.ConstantOp(scalar_attr(number, like.type))).result
