"""Masks as indices: the places where they hold are read, or are written to, one after the other.

torch.index %x, [%mask]          ->  gather (flat %x)[places of %mask]
torch.index_put %x, [%mask], %v  ->  select(%mask, gather %v[running sum of %mask - 1], %x)
"""

from __future__ import annotations

from math import prod
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function, is_bool
from ...dialects.sizes import Extent, Size
from ...dialects.torch import IndexOp, IndexPutOp
from ...dialects.torch_base import Shape, TorchOp
from ...dialects.torch_found_shapes import is_mask
from ...dialects.torch_shapes import broadcast_shapes
from .found import held, held_until, places_of
from .indexing import index_at
from .lowering import Lowering, Refusal, Rule, compute_element, dims, element_of, shape_of
from .scatter import put_at


def _index(e: Lowering, op: IndexOp) -> SSAValue:
    if not is_mask(op.indices[0]):
        return index_at(e, op)
    joined, first = _joined(op)
    return e.gather(e.reshape(op.input, joined), places_of(e, op.indices[0], e.shape[first]), first)


def _joined(op: Any) -> tuple[Shape, int]:
    """The shape of the input with the axes of the mask as one, and which that is."""
    (mask,), source, first = op.indices, shape_of(op.input), op.integer("dim")
    shape = shape_of(mask)
    return (*source[:first], prod(shape), *source[first + len(shape) :]), first


def _masked_select(e: Lowering, op: t.MaskedSelectOp) -> SSAValue:
    shape = broadcast_shapes(shape_of(op.input), shape_of(op.mask))
    value = e.reshape(e.broadcast(op.input, shape), (prod(shape),))
    return e.gather(value, places_of(e, e.broadcast(op.mask, shape), e.shape[0]), 0)


# --------------------------------------------------------------------------- writing


def _index_put(e: Lowering, op: IndexPutOp) -> SSAValue:
    """As many values as there are places, or one for all; any other number stops the program."""
    if not is_mask(op.indices[0]):
        return put_at(e, op)
    joined, first = _joined(op)
    flags = e.reshape(op.indices[0], (joined[first],))
    written, value = op.written_shape(), e.reshape(op.input, joined)
    if 0 in joined:
        return op.input
    values = e.broadcast(op.values, written)
    if written[first] == 1:
        values = e.broadcast(
            e.reshape(values, (*written[:first], 1, *written[first + 1 :])), joined
        )
    elif written[first] == 0:
        _hold_nowhere(e, flags)
        return op.input
    else:
        values = e.gather(values, _place_of_value(e, flags, written[first]), first)
    return e.reshape(_chosen(e, op, _along(e, flags, joined, first), values, value), e.shape)


def _hold_nowhere(e: Lowering, flags: SSAValue) -> None:
    """Have the program stop where a mask holds: there is no value for its place."""
    e.checked(e.cast(flags, i64), 1)


def _along(e: Lowering, flags: SSAValue, shape: Shape, axis: int) -> SSAValue:
    """A list along one axis, for all positions of the others."""
    return e.index_map([flags], [[dims(len(shape))[axis]]], shape, suffix="mask")


def _chosen(
    e: Lowering, op: IndexPutOp, mask: SSAValue, values: SSAValue, value: SSAValue
) -> SSAValue:
    """The new value where the mask holds: `values`, or their sum with the old one."""
    element = compute_element(element_of(value))
    value, values = e.cast(value, element), e.cast(values, element)
    if op.flag("accumulate"):
        add = Function.OR if is_bool(element) else Function.ADD
        values = e.apply(add, value, values)
    return e.select(mask, values, value)


def _place_of_value(e: Lowering, flags: SSAValue, count: Extent) -> SSAValue:
    """Which of `count` values each place gets; outside of them if there are not as many places.

    One value, as the size `count` may turn out to be, is that of all places.
    """
    until = held_until(e, flags)
    place = e.with_number(Function.SUB, until, 1)
    place = e.select(flags, place, e.fill_like(place, 0))
    fits = e.with_number(Function.EQ, held(e, flags), count)
    wrong = e.fill_like(place, -1)
    if isinstance(count, Size):
        single = e.with_number(Function.EQ, e.constant(count, i64, shape_of(until)), 1)
        wrong = e.select(single, e.fill_like(place, 0), wrong)
    return e.select(e.broadcast(fits, shape_of(place)), place, wrong)


def _masked_scatter(e: Lowering, op: t.MaskedScatterOp) -> SSAValue:
    """The n-th place where the mask holds gets the n-th element of the source."""
    if not is_bool(element_of(op.mask)):
        raise Refusal(f"mask holds {element_of(op.mask)}, not i1")
    if prod(e.shape) == 0:
        return e.broadcast(op.input, e.shape)
    flat = e.reshape(e.broadcast(op.mask, e.shape), (prod(e.shape),))
    if prod(shape_of(op.source)) == 0:
        _hold_nowhere(e, flat)
        return e.broadcast(op.input, e.shape)
    number = held_until(e, flat)
    position = e.with_number(Function.SUB, number, 1)
    position = e.select(flat, position, e.fill_like(position, 0))
    source = e.reshape(op.source, (prod(shape_of(op.source)),))
    taken = e.gather(source, position, 0)
    value = e.broadcast(op.input, e.shape)
    return e.select(e.reshape(flat, e.shape), e.reshape(taken, e.shape), value)


RULES: dict[type[TorchOp], Rule] = {
    IndexOp: _index,
    IndexPutOp: _index_put,
    t.MaskedSelectOp: _masked_select,
    t.MaskedScatterOp: _masked_scatter,
}
"""The rule for each operation."""
