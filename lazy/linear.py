"""Products of tensors."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from ..dialects.sizes import Extent
from .dtypes import bfloat16, float16, float32, promoted
from .expression import apply
from .functions import astype, axes_of, call, meet, public, result, tensor
from .manipulation import broadcast_to, permute_dims, reshape
from .tensor import Tensor


@public
def matmul(x1: Tensor, x2: Tensor, /) -> Tensor:
    """The product of matrices, with leading axes that broadcast."""
    nodes = meet("matmul", "numeric", [tensor_of(x1, "matmul"), tensor_of(x2, "matmul")])
    return Tensor.of(apply("matmul.default", nodes, nodes[0].dtype))


def tensor_of(x: Tensor, name: str) -> Tensor:
    """`x`, which must be a tensor with axes."""
    if not tensor(x, "numeric", name).shape:
        raise ValueError(f"{name} takes tensors with axes")
    return x


@public
def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes exchanged."""
    if len(tensor(x, name="matrix_transpose").shape) < 2:
        raise ValueError(f"matrix_transpose takes matrices, not a tensor of {x.ndim} axes")
    return result("transpose.int", x.node, dim0=-2, dim1=-1)


@public
def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """The sum of the products, of the first conjugated, along an axis, counted from the end."""
    for x in (x1, x2):
        axes_of(axis, tensor_of(x, "vecdot").ndim)
    if axis >= 0 or x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"vecdot: axis {axis} is not one of {list(x1.shape)} and {list(x2.shape)}")
    dtype = promoted(x1.dtype, x2.dtype)
    product = call("multiply", _wide(call("conj", x1)), _wide(x2))
    return astype(call("sum", product, axis=axis, dtype=product.dtype), dtype)


def _wide(x: Tensor) -> Tensor:
    """A factor in the dtype in which products are summed: half types are rounded once, at the end."""
    return astype(x, float32) if x.dtype in (float16, bfloat16) else x


@public
def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """The sum of the products over axes: the last of x1 with the first of x2, or those that are named."""
    left, right = tensor(x1, "numeric", "tensordot").shape, tensor(x2, "numeric", "tensordot").shape
    if isinstance(axes, int):
        axes = (range(len(left) - axes, len(left)), range(axes))
    of_left, of_right = axes_of(axes[0], len(left)), axes_of(axes[1], len(right))
    if [left[i] for i in of_left] != [right[i] for i in of_right]:
        raise ValueError(f"tensordot: {list(left)} and {list(right)} do not fit over {axes}")
    free_left = [i for i in range(len(left)) if i not in of_left]
    free_right = [i for i in range(len(right)) if i not in of_right]
    count = prod(left[i] for i in of_left)
    rows, columns = [left[i] for i in free_left], [right[i] for i in free_right]
    first = reshape(permute_dims(x1, [*free_left, *of_left]), (prod(rows), count))
    second = reshape(permute_dims(x2, [*of_right, *free_right]), (count, prod(columns)))
    return reshape(matmul(first, second), (*rows, *columns))


def einsum(equation: str, /, *operands: Tensor) -> Tensor:
    """The sum of products that an equation such as "bik,bkj->bij" says; no axis twice in one operand."""
    inputs, arrow, output = equation.replace(" ", "").partition("->")
    terms = inputs.split(",")
    letters = "".join(terms)
    if not arrow:
        output = "".join(sorted(c for c in set(letters) if letters.count(c) == 1))
    extents: dict[str, Extent] = {}
    for term, x in zip(terms, operands, strict=True):
        if len(set(term)) < len(term) or len(term) != len(tensor(x, "numeric", "einsum").shape):
            raise ValueError(f"einsum: '{term}' does not name the {x.ndim} axes of an operand once")
        for letter, extent in zip(term, x.shape, strict=True):
            if extents.setdefault(letter, extent) != extent:
                raise ValueError(f"einsum: '{letter}' is {extents[letter]} and {extent}")
    if len(set(output)) < len(output) or not set(output) <= set(extents):
        raise ValueError(f"einsum: '{output}' does not name axes of the operands once")
    order = [*output, *(letter for letter in extents if letter not in output)]
    product: Tensor | None = None
    for term, x in zip(terms, operands, strict=True):
        placed = permute_dims(x, [term.index(letter) for letter in order if letter in term])
        wide = reshape(_wide(placed), [extents[c] if c in term else 1 for c in order])
        product = wide if product is None else call("multiply", product, wide)
    assert product is not None
    full = broadcast_to(product, [extents[letter] for letter in order])
    axes = tuple(range(len(output), len(order)))
    return astype(
        call("sum", full, axis=axes, dtype=product.dtype), promoted(*(x.dtype for x in operands))
    )


public(einsum, method=False)
