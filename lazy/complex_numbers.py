"""Complex numbers, which no IR has: operators of the real and the imaginary part.

    z * w        # real: z.re * w.re - z.im * w.im, imaginary: z.re * w.im + z.im * w.re

Quotients and absolute values are scaled, so that squares neither overflow nor vanish. Functions that would
need a cut or a series of their own are numpy's, computed when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import log, nan
from typing import Any

from .calls import numpy_call
from .dtypes import COMPLEX, PARTS, DType, bool_
from .expression import RULES, Argument, Node, apply, joined, parts_of
from .functions import call, where
from .tensor import Tensor

NUMBERS = {
    "constant_pad_nd.default": ("value",),
    "full.default": ("fill_value",),
}
"""Operators that do the same to both parts, and to those of numbers among their properties."""

PARTWISE = {
    *("add.Tensor", "sub.Tensor", "neg.default", "round.default", "mean.dim", "cumsum.default"),
    *("sum.dim_IntList", "where.self", "view.default", "permute.default", "expand.default"),
    *("flip.default", "cat.default", "stack.default", "select.int", "slice.Tensor"),
    *("repeat.default", "index.Tensor", "gather.default", "scatter.src", "transpose.int"),
    *("tril.default", "triu.default", "diagonal.default"),
} | {*NUMBERS}
"""Operators that do the same to both parts. Bools and integers say where: they are the same for both."""


def of_parts(re: Tensor, im: Tensor) -> Tensor:
    """The complex tensor of two parts of one shape."""
    dtype = next(whole for whole, part in PARTS.items() if part is re.dtype)
    return Tensor.of(joined(re.node, im.node, dtype))


def parts(z: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary part."""
    re, im = parts_of(z.node)
    return Tensor.of(re), Tensor.of(im)


def _partwise(
    operator: str,
    arguments: Sequence[Argument],
    dtype: DType,
    properties: Mapping[str, Any],
) -> Node:
    def part(value: Any, index: int) -> Any:
        if isinstance(value, tuple) and any(isinstance(each, Node) for each in value):
            return tuple(part(each, index) for each in value)
        if isinstance(value, Node):
            return parts_of(value)[index] if value.dtype.kind == COMPLEX else value
        if isinstance(value, DType):
            return PARTS.get(value, value)
        return value

    def number(name: str, value: Any, index: int) -> Any:
        if name in NUMBERS.get(operator, ()):
            return (complex(value).real, complex(value).imag)[index]
        return part(value, index)

    re, im = (
        apply(
            operator,
            [part(each, i) for each in arguments],
            PARTS[dtype],
            {name: number(name, value, i) for name, value in properties.items()},
        )
        for i in range(2)
    )
    return joined(re, im, dtype)


# --------------------------------------------------------------------------- arithmetic


def product(a: Tensor, b: Tensor, of: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
    """The product of elements or, by another function of the parts, of matrices."""
    (a_re, a_im), (b_re, b_im) = parts(a), parts(b)
    return of_parts(of(a_re, b_re) - of(a_im, b_im), of(a_re, b_im) + of(a_im, b_re))


def _multiply(a: Tensor, b: Tensor) -> Tensor:
    return product(a, b, lambda x, y: x * y)


def _divide(z: Tensor, w: Tensor) -> Tensor:
    """Smith's quotient: divides by the part of the divisor that is larger."""
    (a, b), (c, d) = parts(z), parts(w)
    first = abs(c) >= abs(d)
    larger, smaller = where(first, c, d), where(first, d, c)
    zero = call("equal", larger, 0.0)
    ratio = where(zero, 0.0, smaller / larger)
    divisor = larger + smaller * ratio
    divisor = where(zero, abs(divisor), divisor)
    re = where(first, a + b * ratio, a * ratio + b)
    im = where(first, b - a * ratio, b * ratio - a)
    return of_parts(re / divisor, im / divisor)


def _reciprocal(z: Tensor) -> Tensor:
    return _divide(of_parts(call("ones_like", parts(z)[0]), parts(z)[0] * 0.0), z)


def _abs(z: Tensor) -> Tensor:
    return call("hypot", *parts(z))


def _sign(z: Tensor) -> Tensor:
    length = _abs(z)
    zero = call("equal", length, 0.0)
    re, im = (where(zero, 0.0, part / where(zero, 1.0, length)) for part in parts(z))
    return of_parts(re, im)


def _product_along(z: Tensor, *, dim: int, keepdim: bool, dtype: DType | None = None) -> Tensor:
    """The product along an axis, halves by halves."""
    z = z if dtype is None else Tensor(z, dtype)
    moved = call("moveaxis", z, dim, 0)
    if moved.shape[0] == 0:
        moved = call("ones", (1, *moved.shape[1:]), dtype=z.dtype)
    while (extent := int(moved.shape[0])) > 1:
        half = extent // 2
        pairs = _multiply(moved[:half], moved[half : 2 * half])
        moved = call("concat", [pairs, moved[2 * half :]]) if extent % 2 else pairs
    return call("moveaxis", moved, 0, dim) if keepdim else moved[0]


# --------------------------------------------------------------------------- elementary functions


def _turns(z: Tensor) -> tuple[Tensor, Tensor]:
    """The angle of exp(z), 0 where a length of 0 or infinity has none; and exp(z)'s imaginary part."""
    re, im = parts(z)
    lost = call("isinf", re) & ~call("isfinite", im)
    angle = where(lost, 0.0, im)
    length = _length(re, call("sin", angle))
    sine = where(call("equal", angle, 0.0), angle, length)
    return angle, where(lost & (re > 0.0), nan, sine)


def _length(re: Tensor, factor: Tensor) -> Tensor:
    """exp(re) times a factor, which overflows only if the product does."""
    length, half = call("exp", re), call("exp", re * 0.5)
    return where(call("isinf", length), half * factor * half, length * factor)


def _exp(z: Tensor) -> Tensor:
    angle, im = _turns(z)
    return of_parts(_length(parts(z)[0], call("cos", angle)), im)


def _expm1(z: Tensor) -> Tensor:
    """exp(z) - 1: the real part is expm1(re) · cos(im) - 2 · sin(im / 2)², without a difference of ones."""
    angle, im = _turns(z)
    half = call("sin", angle * 0.5)
    re = call("expm1", parts(z)[0]) * call("cos", angle) - half * half * 2.0
    return of_parts(where(call("equal", re, 0.0), 0.0, re), im)


def _log(z: Tensor) -> Tensor:
    re, im = parts(z)
    return of_parts(call("log", _abs(z)), call("atan2", im, re))


def _log_of_base(base: float) -> Callable[[Tensor], Tensor]:
    def function(z: Tensor) -> Tensor:
        re, im = parts(_log(z))
        return of_parts(re * (1 / log(base)), im * (1 / log(base)))

    return function


def _sqrt(z: Tensor) -> Tensor:
    """The root whose real part is not negative; its larger part first, by which the other is divided."""
    re, im = parts(z)
    larger = call("sqrt", _abs(z) * 0.5 + abs(re) * 0.5)
    smaller = where(call("equal", larger, 0.0), larger, abs(im) * 0.5 / larger)
    right = re >= 0.0
    size = where(right, smaller, larger)
    return of_parts(where(right, larger, smaller), call("copysign", size, im))


def _tanh(z: Tensor) -> Tensor:
    """numpy's, but at infinities of the real part the imaginary part is 0 with the sign of the argument's.

    So the standard says; C, and numpy, give it the sign of sin(2 im).
    """
    re, im = parts(z)
    re_of, im_of = parts(numpy_call("tanh")(z))
    flat = call("isinf", re) & call("isfinite", im)
    return of_parts(re_of, where(flat, call("copysign", im_of, im), im_of))


def _tan(z: Tensor) -> Tensor:
    """tan(z) is -i tanh(i z)."""
    re, im = parts(z)
    re_of, im_of = parts(_tanh(of_parts(-im, re)))
    return of_parts(im_of, -re_of)


def _either(name: str) -> Callable[[Tensor], Tensor]:
    def holds(z: Tensor) -> Tensor:
        re, im = parts(z)
        return call(name, re) | call(name, im)

    return holds


def _equal(z: Tensor, w: Tensor) -> Tensor:
    (a, b), (c, d) = parts(z), parts(w)
    return call("equal", a, c) & call("equal", b, d)


def _cast(z: Tensor, *, dtype: DType) -> Tensor:
    re, im = parts(z)
    if dtype.kind == COMPLEX:
        return of_parts(Tensor(re, PARTS[dtype]), Tensor(im, PARTS[dtype]))
    if dtype is bool_:
        return call("not_equal", re, 0.0) | call("not_equal", im, 0.0)
    raise TypeError(f"{z.dtype} becomes no {dtype}: take real(x) or abs(x)")


OPERATORS: dict[str, Callable[..., Tensor]] = {
    "_to_copy.default": _cast,
    "abs.default": _abs,
    "cumprod.default": lambda z, *, dim, dtype: numpy_call("cumprod")(z, axis=dim),
    "div.Tensor": _divide,
    "eq.Tensor": _equal,
    "exp.default": _exp,
    "expm1.default": _expm1,
    "isinf.default": _either("isinf"),
    "isnan.default": _either("isnan"),
    "log.default": _log,
    "log10.default": _log_of_base(10),
    "log2.default": _log_of_base(2),
    "matmul.default": lambda a, b: product(a, b, lambda x, y: x @ y),
    "mul.Tensor": _multiply,
    "ne.Tensor": lambda z, w: ~_equal(z, w),
    "prod.dim_int": _product_along,
    "reciprocal.default": _reciprocal,
    "sign.default": _sign,
    "sqrt.default": _sqrt,
    "tan.default": _tan,
    "tanh.default": _tanh,
}
"""ATen's operators of complex tensors."""

CALLED = "acos acosh asin asinh atan atanh cos cosh log1p sin sinh".split()
"""Functions of complex numbers that are numpy's."""

_NUMPY_NAMES = {f"a{name}": f"arc{name}" for name in "cos cosh sin sinh tan tanh".split()}


def rule(
    operator: str,
    arguments: Sequence[Argument],
    dtypes: Sequence[DType],
    properties: Mapping[str, Any],
    index: int,
) -> Node:
    """What an operator of complex numbers is. Raises TypeError if it is not of these."""
    if operator in PARTWISE:
        return _partwise(operator, arguments, dtypes[0], properties)
    tensors = [Tensor.of(each) for each in arguments if isinstance(each, Node)]
    name = operator.partition(".")[0]
    if operator in OPERATORS:
        return OPERATORS[operator](*tensors, **properties).node
    if name in CALLED:
        return numpy_call(_NUMPY_NAMES.get(name, name))(*tensors).node
    raise TypeError(f"{operator} is not computed of complex numbers")


RULES.update(dict.fromkeys(PARTS, rule))
