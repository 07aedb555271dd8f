"""Operators of complex numbers in operators of their parts.

    torch.mul(z, w)          # re: z.re * w.re - z.im * w.im, im: z.re * w.im + z.im * w.re

A real number or tensor beside a complex one has an imaginary part of 0, which counts as in eager: infinity
times it is NaN. Quotients and absolute values are scaled, so that squares neither overflow nor vanish.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .complex_values import Builder, Pair, part_dtype
from .sizes import Refused

aten = torch.ops.aten
Node = torch.fx.Node


def operand(e: Builder, value: Any, dtype: torch.dtype) -> tuple[Node, Node]:
    """The parts of an operand, whose parts are to be of `dtype`: a pair, a real tensor or a number."""
    if isinstance(value, Pair):
        re, im = e.parts(value)
        return e.cast(re, dtype), e.cast(im, dtype)
    if isinstance(value, Node) and isinstance(value.meta["val"], torch.Tensor):
        re = e.cast(value, dtype)
        return re, e.like(re, 0.0)
    if isinstance(value, Node):
        raise Refused("a number that depends on sizes beside complex numbers")
    number = complex(value)
    return e.full([], number.real, dtype), e.full([], number.imag, dtype)


def _dtype(e: Builder) -> torch.dtype:
    """The dtype of the parts of the result."""
    return part_dtype(e.node.meta["val"].dtype)


def _operands(e: Builder, *values: Any) -> list[tuple[Node, Node]]:
    return [operand(e, value, _dtype(e)) for value in values]


def _add(e: Builder, left: Any, right: Any, alpha: Any = 1) -> Pair:
    return _sum(e, aten.add.Tensor, left, right, alpha)


def _sub(e: Builder, left: Any, right: Any, alpha: Any = 1) -> Pair:
    return _sum(e, aten.sub.Tensor, left, right, alpha)


def _rsub(e: Builder, left: Any, right: Any, alpha: Any = 1) -> Pair:
    return _sum(e, aten.sub.Tensor, right, left, alpha)


def _sum(e: Builder, op: Any, left: Any, right: Any, alpha: Any) -> Pair:
    a, b = _operands(e, left, right)
    if alpha != 1:
        (factor,) = _operands(e, alpha)
        b = multiply(e, b, factor)
    return Pair(e(op, a[0], b[0]), e(op, a[1], b[1]))


def multiply(
    e: Builder, a: tuple[Any, Any], b: tuple[Any, Any], op: Any = aten.mul.Tensor
) -> tuple[Node, Node]:
    """The parts of a product, of elements or, by another operator, of matrices."""
    re = e(aten.sub.Tensor, e(op, a[0], b[0]), e(op, a[1], b[1]))
    im = e(aten.add.Tensor, e(op, a[0], b[1]), e(op, a[1], b[0]))
    return re, im


def _mul(e: Builder, left: Any, right: Any) -> Pair:
    return Pair(*multiply(e, *_operands(e, left, right)))


def _product(op: Any) -> Callable[..., Pair]:
    def of_matrices(e: Builder, left: Any, right: Any) -> Pair:
        a, b = _operands(e, left, right)
        return Pair(*multiply(e, a, b, op))

    return of_matrices


def _added_product(op: Any) -> Callable[..., Pair]:
    def added(
        e: Builder, start: Any, left: Any, right: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Pair:
        z, a, b = _operands(e, start, left, right)
        product = multiply(e, a, b, op)
        if alpha != 1:
            product = multiply(e, product, *_operands(e, alpha))
        if beta == 0:
            return Pair(*product)
        if beta != 1:
            z = multiply(e, z, *_operands(e, beta))
        return Pair(*(e(aten.add.Tensor, x, y) for x, y in zip(z, product, strict=True)))

    return added


def _linear(e: Builder, value: Any, weight: Any, bias: Any = None) -> Pair:
    a, b = _operands(e, value, weight)
    product = multiply(e, a, b, aten.linear.default)
    if bias is None:
        return Pair(*product)
    (added,) = _operands(e, bias)
    return Pair(*(e(aten.add.Tensor, x, y) for x, y in zip(product, added, strict=True)))


def _div(e: Builder, left: Any, right: Any) -> Pair:
    """Smith's quotient: divides by the part of the divisor that is larger."""
    (a, b), (c, d) = _operands(e, left, right)
    first = e(aten.ge.Tensor, e(aten.abs.default, c), e(aten.abs.default, d))
    larger, smaller = _choose(e, first, c, d), _choose(e, first, d, c)
    zero = e(aten.eq.Scalar, larger, 0)
    ratio = _choose(e, zero, e.like(larger, 0.0), e(aten.div.Tensor, smaller, larger))
    divisor = e(aten.add.Tensor, larger, e(aten.mul.Tensor, smaller, ratio))
    divisor = _choose(e, zero, e(aten.abs.default, divisor), divisor)
    a_part, b_part = e(aten.mul.Tensor, a, ratio), e(aten.mul.Tensor, b, ratio)
    re = _choose(e, first, e(aten.add.Tensor, a, b_part), e(aten.add.Tensor, a_part, b))
    im = _choose(e, first, e(aten.sub.Tensor, b, a_part), e(aten.sub.Tensor, b_part, a))
    return Pair(e(aten.div.Tensor, re, divisor), e(aten.div.Tensor, im, divisor))


def _choose(e: Builder, chosen: Node, then: Node, otherwise: Node) -> Node:
    return e(aten.where.self, chosen, then, otherwise)


def _reciprocal(e: Builder, value: Pair) -> Pair:
    return _div(e, 1, value)


def _pow(e: Builder, value: Any, exponent: Any) -> Pair:
    if not isinstance(value, Pair) or complex(exponent).imag:
        raise Refused(f"the complex power {exponent}")
    power = complex(exponent).real
    if abs(power) not in _POWERS:
        turned = e(aten.mul.Tensor, _angle(e, value), power)
        return _polar(e, e(aten.pow.Tensor_Scalar, _abs(e, value), power), turned)
    made = _POWERS[abs(power)](e, value)
    return _reciprocal(e, made) if power < 0 else made


_POWERS: dict[float, Callable[[Builder, Pair], Pair]] = {
    0.5: lambda e, value: _sqrt(e, value),
    1.0: lambda e, value: value,
    2.0: lambda e, value: _mul(e, value, value),
    3.0: lambda e, value: _mul(e, _mul(e, value, value), value),
}
"""The powers that eager does not compute by a logarithm, and their reciprocals."""


def magnitude(e: Builder, re: Node, im: Node) -> Node:
    """sqrt(re² + im²), scaled by the larger of both; infinite if one is, even beside NaN."""
    a, b = e(aten.abs.default, re), e(aten.abs.default, im)
    larger, smaller = e(aten.maximum.default, a, b), e(aten.minimum.default, a, b)
    ratio = e(aten.div.Tensor, smaller, larger)
    squares = e(aten.add.Scalar, e(aten.mul.Tensor, ratio, ratio), 1)
    scaled = e(aten.mul.Tensor, larger, e(aten.sqrt.default, squares))
    made = _choose(e, e(aten.eq.Scalar, larger, 0), larger, scaled)
    infinite = e(aten.logical_or.default, e(aten.isinf.default, re), e(aten.isinf.default, im))
    return _choose(e, infinite, e.like(made, float("inf")), made)


def _abs(e: Builder, value: Pair) -> Node:
    return magnitude(e, *e.parts(value))


def _norm(e: Builder, value: Pair, *args: Any, **kwargs: Any) -> Node:
    """The norm of the absolute values."""
    if kwargs.get("dtype") is not None:
        raise Refused("a norm of complex numbers in another dtype")
    return e(aten.linalg_vector_norm.default, _abs(e, value), *args, **kwargs)


def _var(e: Builder, value: Pair, *args: Any, **kwargs: Any) -> Node:
    """The variance, which is that of both parts together."""
    parts = (e(aten.var.correction, part, *args, **kwargs) for part in e.parts(value))
    return e(aten.add.Tensor, *parts)


def _angle(e: Builder, value: Pair) -> Node:
    re, im = e.parts(value)
    return e(aten.atan2.default, im, re)


def _sgn(e: Builder, value: Pair) -> Pair:
    re, im = e.parts(value)
    length = magnitude(e, re, im)
    zero = e(aten.eq.Scalar, length, 0)
    nothing = e.like(length, 0.0)
    return Pair(*(_choose(e, zero, nothing, e(aten.div.Tensor, p, length)) for p in (re, im)))


def _complex(e: Builder, re: Node, im: Node) -> Pair:
    shape = torch.broadcast_shapes(re.meta["val"].shape, im.meta["val"].shape)
    if list(shape) == e.shape(re) == e.shape(im):
        return Pair(re, im)
    zero = e(aten.mul.Tensor, e.like(re, 0.0), e.like(im, 0.0))
    return Pair(*(e(aten.where.self, e(aten.eq.Scalar, zero, 0), p, zero) for p in (re, im)))


def _polar(e: Builder, length: Node, angle: Node) -> Pair:
    turned = e(aten.cos.default, angle), e(aten.sin.default, angle)
    return Pair(*(e(aten.mul.Tensor, length, part) for part in turned))


def _exp(e: Builder, value: Pair) -> Pair:
    re, im = e.parts(value)
    return _polar(e, e(aten.exp.default, re), im)


def _log(e: Builder, value: Pair) -> Pair:
    return Pair(e(aten.log.default, _abs(e, value)), _angle(e, value))


def _sqrt(e: Builder, value: Pair) -> Pair:
    """The root whose real part is not negative; its larger part first, by which the other is divided."""
    re, im = e.parts(value)
    half = e(aten.mul.Tensor, magnitude(e, re, im), 0.5)
    half = e(aten.add.Tensor, half, e(aten.mul.Tensor, e(aten.abs.default, re), 0.5))
    larger = e(aten.sqrt.default, half)
    quotient = e(aten.div.Tensor, e(aten.mul.Tensor, e(aten.abs.default, im), 0.5), larger)
    smaller = _choose(e, e(aten.eq.Scalar, larger, 0), larger, quotient)
    right = e(aten.ge.Scalar, re, 0)
    size = _choose(e, right, smaller, larger)
    return Pair(_choose(e, right, larger, smaller), e(aten.copysign.Tensor, size, im))


def _eq(e: Builder, left: Any, right: Any) -> Node:
    equal = _compared(e, aten.eq.Tensor, left, right)
    return e(aten.logical_and.default, *equal)


def _ne(e: Builder, left: Any, right: Any) -> Node:
    return e(aten.logical_or.default, *_compared(e, aten.ne.Tensor, left, right))


def _compared(e: Builder, op: Any, left: Any, right: Any) -> list[Node]:
    """Both parts compared, in the precision that PyTorch promotes both sides to."""
    known = [_value(each) for each in (left, right)]
    dtype = part_dtype(torch.result_type(*known))
    a, b = (operand(e, value, dtype) for value in (left, right))
    return [e(op, a[i], b[i]) for i in range(2)]


def _value(given: Any) -> Any:
    """A tensor of the dtype of an operand, or the number that it is."""
    if isinstance(given, Pair):
        form = given.re or given.planes or given.interleaved
        assert form is not None
        dtype = form.meta["val"].dtype.to_complex()
        return torch.empty((1,) * max(len(form.meta["val"].shape), 1), dtype=dtype)
    if isinstance(given, Node):
        value = given.meta["val"]
        return torch.empty((1,) * value.ndim, dtype=value.dtype)
    return given


def _either(op: Any) -> Callable[[Builder, Pair], Node]:
    def holds(e: Builder, value: Pair) -> Node:
        return e(aten.logical_or.default, *(e(op, part) for part in e.parts(value)))

    return holds


def _logical_not(e: Builder, value: Pair) -> Node:
    return e(aten.logical_and.default, *(e(aten.eq.Scalar, part, 0) for part in e.parts(value)))


def _addcmul(e: Builder, start: Any, left: Any, right: Any, *, value: Any = 1) -> Pair:
    z, a, b = _operands(e, start, left, right)
    product = multiply(e, a, b)
    if value != 1:
        product = multiply(e, product, *_operands(e, value))
    return Pair(*(e(aten.add.Tensor, x, y) for x, y in zip(z, product, strict=True)))


RULES: dict[Any, Callable[..., Any]] = {
    aten.abs.default: _abs,
    aten.add.Scalar: _add,
    aten.add.Tensor: _add,
    aten.addcmul.default: _addcmul,
    aten.addmm.default: _added_product(aten.mm.default),
    aten.angle.default: _angle,
    aten.baddbmm.default: _added_product(aten.bmm.default),
    aten.bmm.default: _product(aten.bmm.default),
    aten.complex.default: _complex,
    aten.div.Scalar: _div,
    aten.div.Tensor: _div,
    aten.eq.Scalar: _eq,
    aten.eq.Tensor: _eq,
    aten.exp.default: _exp,
    aten.isinf.default: _either(aten.isinf.default),
    aten.isnan.default: _either(aten.isnan.default),
    aten.linalg_vector_norm.default: _norm,
    aten.linear.default: _linear,
    aten.log.default: _log,
    aten.logical_not.default: _logical_not,
    aten.matmul.default: _product(aten.matmul.default),
    aten.mm.default: _product(aten.mm.default),
    aten.mul.Scalar: _mul,
    aten.mul.Tensor: _mul,
    aten.ne.Scalar: _ne,
    aten.ne.Tensor: _ne,
    aten.polar.default: _polar,
    aten.pow.Tensor_Scalar: _pow,
    aten.reciprocal.default: _reciprocal,
    aten.rsub.Scalar: _rsub,
    aten.sgn.default: _sgn,
    aten.sqrt.default: _sqrt,
    aten.sub.Scalar: _sub,
    aten.sub.Tensor: _sub,
    aten.var.correction: _var,
}
"""Operator -> what gives its result from its arguments: pairs, nodes of real tensors, and numbers."""
