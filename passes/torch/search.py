"""Where values belong in sequences that are in order: each value halves its sequence until one place is left.

torch.bucketize %x, %b  ->  start, end = 0, 7; three times:
                            middle = (start + end) / 2; before = not %b[middle] >= %x
                            start, end = before ? (middle + 1, end) : (start, middle)

The steps are PyTorch's, so the results are as well where a sequence is in no order, or has NaN.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function
from ...dialects.sizes import largest
from ...dialects.torch_base import TorchOp
from ...dialects.torch_promotion import common_element
from .lowering import Lowering, Refusal, Rule, compute_element, element_of, shape_of


def _search(e: Lowering, op: Any) -> SSAValue:
    """Left of what is equal, or right of it. NaN comes last, as it does for PyTorch's binary search."""
    right = op.flag("right") or op.string("side") == "right"
    if op.string("side") == "left" and op.flag("right"):
        raise Refusal("side = 'left' and right = True")
    sequence, searched = op.sequences(), op.searched()
    element = compute_element(common_element([sequence, searched]))
    axis = len(shape_of(sequence)) - 1
    sorter = getattr(op, "sorter", None)
    if sorter is not None:
        sequence = e.gather_along(sequence, e.checked(e.cast(sorter, i64), shape_of(sequence)[axis]), axis)
    return places_in_order(e, sequence, e.argument(searched, element, e.shape), right=right)


def places_in_order(
    e: Lowering, sequence: SSAValue, value: SSAValue, *, right: bool = False
) -> SSAValue:
    """The first place along the last axis of `sequence`, which is in order, of no less than each value.

    With `right`, of more.
    """
    axis = len(shape_of(sequence)) - 1
    extent, element, shape = shape_of(sequence)[axis], element_of(value), shape_of(value)
    start, end = (e.constant(place, i64, shape) for place in (0, extent))
    for _ in range(largest(extent).bit_length()):
        middle = e.with_number(Function.SHR, e.apply(Function.ADD, start, end), 1)
        searching = e.apply(Function.LT, start, end)
        place = e.with_number(Function.MIN, middle, extent - 1)
        bound = e.cast(e.gather_along(sequence, place, axis), element)
        beyond = e.apply(Function.GT if right else Function.GE, bound, value)
        before = e.apply(Function.AND, searching, e.apply(Function.NOT, beyond))
        behind = e.with_number(Function.ADD, middle, 1)
        start, end = e.select(before, behind, start), e.select(before, end, middle)
    return start


RULES: dict[type[TorchOp], Rule] = {
    t.SearchsortedOp: _search,
    t.SearchsortedScalarOp: _search,
    t.BucketizeOp: _search,
    t.BucketizeScalarOp: _search,
}
"""The rule for each operation."""
