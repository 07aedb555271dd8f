"""Where values belong in sequences that are in order: each value counts what comes before it.

torch.bucketize %x, %b  ->  reduce add(not %b[j] >= %x[i]) over j
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.orders import Work
from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function
from ...dialects.sizes import hinted
from ...dialects.torch_base import TorchOp
from .lowering import Lowering, Refusal, Rule, compute_element, dims, shape_of
from .promotion import common_element
from .squares import check_comparisons

COMPARISONS_PER_SECOND = 5e10
PYTORCH_SEARCHES_PER_SECOND = 5e7


def _search(e: Lowering, op: Any) -> SSAValue:
    """Left of what is equal, or right of it. NaN comes last, as it does for PyTorch's binary search."""
    sequence, searched = op.sequences(), op.searched()
    element = compute_element(common_element([sequence, searched]))
    sorter = getattr(op, "sorter", None)
    if sorter is not None:
        axis = len(shape_of(sequence)) - 1
        order = e.checked(e.cast(sorter, i64), shape_of(sequence)[axis])
        sequence = e.gather_along(sequence, order, axis)
    sequence = e.cast(sequence, element)
    value = e.argument(searched, element, e.shape)
    last, extent = len(e.shape), shape_of(sequence)[-1]
    square = (*e.shape, extent)
    comparisons = hinted(prod(square))
    work = Work(comparisons, comparisons / COMPARISONS_PER_SECOND)
    pytorch_seconds = hinted(prod(e.shape)) / PYTORCH_SEARCHES_PER_SECOND
    check_comparisons(e, "a search", work, pytorch_seconds)
    index = [*dims(last)[:-1], AffineExpr.dimension(last)][-len(shape_of(sequence)) :]
    bound = e.index_map([sequence], [index], square, suffix="bound")
    here = e.index_map([value], [dims(last)], square, suffix="here")
    right = op.flag("right") or op.string("side") == "right"
    if op.string("side") == "left" and op.flag("right"):
        raise Refusal("side = 'left' and right = True")
    beyond = e.apply(Function.GT if right else Function.GE, bound, here)
    before = e.cast(e.apply(Function.NOT, beyond), i32)
    return e.squeeze(e.reduce(Combiner.ADD, before, [last]), [last])


RULES: dict[type[TorchOp], Rule] = {
    t.SearchsortedOp: _search,
    t.SearchsortedScalarOp: _search,
    t.BucketizeOp: _search,
    t.BucketizeScalarOp: _search,
}
"""The rule for each operation."""
