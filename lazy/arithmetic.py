"""Element-wise functions that are more than one operator: powers, remainders, parts of complex numbers."""

from __future__ import annotations

from math import inf

import numpy as np

from .calls import computed
from .complex_numbers import of_parts, parts
from .dtypes import COMPLEX, FLOATING, INTEGRAL, PARTS, Number, float64
from .expression import apply
from .functions import call, meet, public, result, tensor, where
from .tensor import Tensor


@public
def real(x: Tensor, /) -> Tensor:
    """The real part; of a real tensor itself."""
    return parts(x)[0] if tensor(x, "numeric", "real").dtype in PARTS else x


@public
def imag(x: Tensor, /) -> Tensor:
    """The imaginary part of a complex tensor."""
    tensor(x, COMPLEX, "imag")
    return parts(x)[1]


@public
def conj(x: Tensor, /) -> Tensor:
    """With the imaginary part negated; of a real tensor itself."""
    if tensor(x, "numeric", "conj").dtype not in PARTS:
        return x
    re, im = parts(x)
    return of_parts(re, -im)


# --------------------------------------------------------------------------- powers


@public
def pow(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """x1 ** x2; integers wrap. What is no power of floats, or to a number from 0 to 64, is numpy's, at once.

    Raises ValueError for an integer to a negative power.
    """
    base, exponent = meet("pow", "numeric", [x1, x2])
    is_float = base.dtype.kind == FLOATING
    if isinstance(x2, int | float) and base.dtype not in PARTS and (is_float or 0 <= x2 <= 64):
        return result("pow.Tensor_Scalar", base, exponent=x2)
    if is_float:
        return Tensor.of(apply("pow.Tensor_Tensor", [base, exponent], base.dtype))
    return computed(np.power, Tensor.of(base), Tensor.of(exponent))


# --------------------------------------------------------------------------- quotients and remainders


@public
def floor_divide(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The quotient rounded down; an integer 0 stops the program. Of float64 it is numpy's, at once.

    Of an infinity and a finite number it is the quotient, as the standard says: 1 // -inf is -0.
    """
    nodes = meet("floor_divide", "real numeric", [x1, x2])
    one, other = map(Tensor.of, nodes)
    if one.dtype is float64:
        quotient = computed(np.floor_divide, one, other)
    else:
        quotient = Tensor.of(apply("div.Tensor_mode", nodes, one.dtype, {"rounding_mode": "floor"}))
    if one.dtype.kind in INTEGRAL:
        return quotient
    one_is_infinite = call("logical_xor", call("isinf", one), call("isinf", other))
    return where(one_is_infinite, one / other, quotient)


@public
def remainder(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """What floor_divide leaves, of the sign of x2 even where it is 0, as ATen's is not."""
    nodes = meet("remainder", "real numeric", [x1, x2])
    one, other = map(Tensor.of, nodes)
    if one.dtype is float64:
        return computed(np.remainder, one, other)
    left = Tensor.of(apply("remainder.Tensor", nodes, one.dtype))
    if one.dtype.kind in INTEGRAL:
        return left
    return where(call("equal", left, 0), call("copysign", abs(left), other), left)


# --------------------------------------------------------------------------- of floats


@public
def hypot(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """sqrt(x1² + x2²), which overflows only if the result does."""
    one, other = (abs(Tensor.of(node)) for node in meet("hypot", FLOATING, [x1, x2]))
    low, high = call("minimum", one, other), call("maximum", one, other)
    ratio = low / where(call("equal", high, 0.0), 1.0, high)
    return where(
        call("isinf", one) | call("isinf", other), inf, high * call("sqrt", ratio * ratio + 1)
    )


@public
def logaddexp(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """log(exp(x1) + exp(x2)), which overflows only if the result does."""
    one, other = (Tensor.of(node) for node in meet("logaddexp", FLOATING, [x1, x2]))
    high = call("maximum", one, other)
    apart = where(
        call("equal", one, other), 0.0, abs(one - other)
    )  # equal infinities are not apart
    return high + call("log1p", call("exp", -apart))


@public
def nextafter(x1: Tensor | Number, x2: Tensor | Number, /) -> Tensor:
    """The float behind x1 in the direction of x2; numpy's, at once."""
    one, other = (Tensor.of(node) for node in meet("nextafter", FLOATING, [x1, x2]))
    return computed(np.nextafter, one, other)
