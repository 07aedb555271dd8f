"""Products of matrices: a product over broadcast axes, folded over the shared one.

torch.mm %a, %b  ->  reduce add over [2] of mul(%a[i, k], %b[k, j]) at (i, j, k)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import torch_ops as t
from ...dialects.products import Product
from ...dialects.scalars import Combiner, Function, is_bool
from ...dialects.torch_base import ScalarValue, Shape, TorchOp
from ...dialects.torch_shapes import broadcast_shapes
from .lowering import Lowering, Refusal, Rule, dims, shape_of


def _batch(source: Shape, rank: int) -> list[AffineExpr]:
    """Indices of batch axes `source` in a result with `rank` of them; an extent of 1 is repeated."""
    axes = dims(rank)[rank - len(source) :]
    return [AffineExpr.constant(0) if n == 1 else d for n, d in zip(source, axes, strict=True)]


def product(e: Lowering, left: SSAValue, right: SSAValue, *, transposed: bool = False) -> SSAValue:
    """left[…, m, k] times right[…, k, n], or right[…, n, k] if `transposed`; batch axes broadcast."""
    left, right = (e.factor(value, Product.MATMUL) for value in (left, right))
    rows, depth = shape_of(left)[-2:]
    columns = shape_of(right)[-2 if transposed else -1]
    batches = [shape_of(v)[:-2] for v in (left, right)]
    batch = broadcast_shapes(*batches)
    rank = len(batch)
    m, n, k = dims(rank + 3)[rank:]
    shape = (*batch, rows, columns, depth)
    tail = [n, k] if transposed else [k, n]
    # the maps are always built: they say which operand an axis belongs to
    wide_left = e.index_map([left], [[*_batch(batches[0], rank), m, k]], shape, suffix="lhs")
    wide_right = e.index_map([right], [[*_batch(batches[1], rank), *tail]], shape, suffix="rhs")
    total = e.reduce(Combiner.ADD, e.apply(Function.MUL, wide_left, wide_right), [rank + 2])
    return e.squeeze(total, [rank + 2])


def scaled(e: Lowering, value: SSAValue, factor: ScalarValue) -> SSAValue:
    """`value * factor`, or `value` itself for a factor of 1."""
    return value if factor == 1 else e.with_number(Function.MUL, value, factor)


def _operands(e: Lowering, values: Sequence[SSAValue]) -> list[SSAValue]:
    if is_bool(e.element):
        raise Refusal("a product of bools")
    return [e.cast(v, e.element) for v in values]


def _linear(e: Lowering, op: t.LinearOp) -> SSAValue:
    left, weight = _operands(e, [op.input, op.weight])
    source, features = shape_of(left), shape_of(weight)
    left = e.reshape(left, (1, *source) if len(source) == 1 else source)
    weight = e.reshape(weight, (1, *features) if len(features) == 1 else features)
    # weight has no batch axes, so it is read alike by each batch
    result = e.reshape(product(e, left, weight, transposed=True), e.shape)
    if op.bias is None:
        return result
    return e.apply(Function.ADD, result, e.argument(op.bias))


def _matmul(e: Lowering, op: t.MatmulOp) -> SSAValue:
    left, right = _operands(e, [op.input, op.other])
    if len(shape_of(left)) == 1:
        left = e.reshape(left, (1, *shape_of(left)))
    if len(shape_of(right)) == 1:
        right = e.reshape(right, (*shape_of(right), 1))
    return e.reshape(product(e, left, right), e.shape)


def _mm(e: Lowering, op: TorchOp) -> SSAValue:
    left, right = _operands(e, op.operands[-2:])
    return product(e, left, right)


def _addmm(e: Lowering, op: TorchOp) -> SSAValue:
    """alpha * product + beta * input; with beta = 0 the input is not read, as in PyTorch."""
    left, right = _operands(e, op.operands[-2:])
    result = scaled(e, product(e, left, right), op.number("alpha"))
    beta = op.number("beta")
    if beta == 0:
        return result
    return e.apply(Function.ADD, result, scaled(e, e.argument(op.operands[0]), beta))


RULES: dict[type[TorchOp], Rule] = {
    t.LinearOp: _linear,
    t.MatmulOp: _matmul,
    t.MmOp: _mm,
    t.BmmOp: _mm,
    t.AddmmOp: _addmm,
    t.BaddbmmOp: _addmm,
}
"""The rule for each product."""
