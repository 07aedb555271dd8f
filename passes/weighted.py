"""Folding weighted means, which `dialects/scalars.py` defines, in `arith` and `math`."""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import arith, math
from xdsl.ir import SSAValue

from ..dialects.syntax import scalar_attr


def combine_weighted(
    builder: Builder, first: Sequence[SSAValue], second: Sequence[SSAValue]
) -> list[SSAValue]:
    """Insert what two contributions (exponent, weight, means) give."""
    largest = builder.insert(arith.MaximumfOp(first[0], second[0])).result
    shift = exponent_shift(builder, largest)
    weights = [
        builder.insert(arith.MulfOp(weight, scaled_exp(builder, exponent, shift))).result
        for exponent, weight in (first[:2], second[:2])
    ]
    total = builder.insert(arith.AddfOp(weights[0], weights[1])).result
    shares = [share(builder, weight, total) for weight in weights]
    results: list[SSAValue] = [largest, total]
    for values in zip(first[2:], second[2:], strict=True):
        parts = [
            builder.insert(arith.MulfOp(part, value)).result
            for part, value in zip(shares, values, strict=True)
        ]
        results.append(builder.insert(arith.AddfOp(parts[0], parts[1])).result)
    return results


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


def share(builder: Builder, weight: SSAValue, total: SSAValue) -> SSAValue:
    """Insert weight / total, 0 if the total is 0."""
    zero = _constant(builder, 0, total)
    nothing = builder.insert(arith.CmpfOp(total, zero, "oeq")).result
    quotient = builder.insert(arith.DivfOp(weight, total)).result
    return builder.insert(arith.SelectOp(nothing, zero, quotient)).result


def _constant(builder: Builder, number: float, like: SSAValue) -> SSAValue:
    return builder.insert(arith.ConstantOp(scalar_attr(number, like.type))).result
