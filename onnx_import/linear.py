"""Products of matrices, and sums of products."""

from __future__ import annotations

from collections.abc import Sequence

from ..dialects.sizes import Extent
from ..lazy.dtypes import int32
from ..lazy.expression import Node
from ..lazy.linear import einsum as lazy_einsum
from ..lazy.tensor import Tensor
from .building import add, axis_of, cast, mul, op, permute, scalar, static_shape, sub, unsqueeze
from .dtypes import is_float
from .rules import Call, Refused, rule, same_dtype


@rule("MatMul", 1, 9, 13)
def matmul(call: Call) -> Node:
    """As numpy's."""
    a, b = call.tensor(0), call.tensor(1)
    return op("matmul.default", a, b, dtype=same_dtype(a, b))


@rule("Gemm", 7, 9, 11, 13)
def gemm(call: Call) -> Node:
    """alpha * a @ b + beta * c, with a and b transposed where that is asked for."""
    a, b, c = call.tensor(0), call.tensor(1), call.optional(2)
    dtype = same_dtype(*[each for each in (a, b, c) if each is not None])
    a = permute(a, (1, 0)) if call.flag("transA") else a
    b = permute(b, (1, 0)) if call.flag("transB") else b
    product = op("matmul.default", a, b)
    factors = [call.real("alpha"), call.real("beta")]
    if not is_float(dtype) and not all(factor.is_integer() for factor in factors):
        raise Refused(f"alpha = {factors[0]}, beta = {factors[1]} of integers")
    product = product if factors[0] == 1 else mul(product, scalar(factors[0], product))
    if c is None:
        return product
    return add(product, c if factors[1] == 1 else mul(c, scalar(factors[1], c)))


def less_zero(call: Call, x: Node, position: int, axis: int) -> Node:
    """Integers of 8 bits less their zero point, in int32: one, or one for each place of an axis."""
    wide = cast(x, int32)
    if not call.has(position):
        return wide
    zero = call.tensor(position)
    same_dtype(x, zero)
    if len(zero.shape) == 1 and static_shape(zero) != (1,):
        shape = [1] * len(x.shape)
        shape[axis_of(axis, len(x.shape))] = static_shape(zero)[0]
        zero = op("view.default", zero, size=tuple(shape))
    return sub(wide, cast(zero, int32))


@rule("MatMulInteger", 10)
def matmul_integer(call: Call) -> Node:
    """The product of matrices of 8 bits in int32."""
    a = less_zero(call, call.tensor(0), 2, -2)
    b = less_zero(call, call.tensor(1), 3, -1)
    return op("matmul.default", a, b)


@rule("Einsum", 12, 28)
def einsum(call: Call) -> Node:
    """The sum of products that an equation says."""
    operands = call.tensors()
    same_dtype(*operands)
    equation = call.text("equation").replace(" ", "")
    inputs, arrow, output = equation.partition("->")
    terms = inputs.split(",")
    if len(terms) != len(operands):
        raise Refused(f"equation '{equation}' of {len(operands)} tensors")
    letters = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in equation]
    hidden = [
        len(x.shape) - len(t.replace("...", "")) for x, t in zip(operands, terms, strict=True)
    ]
    most = max([n for n, t in zip(hidden, terms, strict=True) if "..." in t], default=0)
    if min(hidden) < 0 or most > len(letters):
        raise Refused(f"equation '{equation}'")
    named = "".join(letters[:most])
    if not arrow:
        flat = inputs.replace(",", "").replace("...", "")
        once = "".join(sorted(c for c in set(flat) if flat.count(c) == 1))
        output = ("..." if most else "") + once
    full = [t.replace("...", named[most - n :]) for n, t in zip(hidden, terms, strict=True)]
    plain: list[Tensor] = []
    for position, x in enumerate(operands):
        x, full[position] = _without_repeats(x, full[position])
        plain.append(Tensor.of(x))
    return lazy_einsum(f"{','.join(full)}->{output.replace('...', named)}", *plain).node


def _without_repeats(x: Node, term: str) -> tuple[Node, str]:
    """A tensor of which axes with one letter are their diagonal."""
    while repeated := [c for c in term if term.count(c) > 1]:
        first = term.index(repeated[0])
        second = term.index(repeated[0], first + 1)
        x = op("diagonal.default", x, offset=0, dim1=first, dim2=second)
        left = [c for i, c in enumerate(term) if i not in (first, second)]
        term = "".join([*left, repeated[0]])
    return x, term


def columns(x: Node, shape: Sequence[Extent]) -> Node:
    """A list along axis 1 of a tensor of so many axes."""
    return unsqueeze(x, *[i for i in range(len(shape)) if i != 1])
