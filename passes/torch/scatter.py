"""Writing at computed positions: each is a `tensor_ir.scatter`.

    torch.index_put %x, [%i, %j], %v  ->  scatter replace (flat %x)[%i * columns + %j] from (flat %v)

Indices outside their axis stop the program, and of several values for one element the last one stays, or all
are folded in order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import i1, i8, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.orders import scatter_work
from ...dialects import torch_ops as t
from ...dialects.scalars import Function, Update, identity, is_bool, is_float, ui8
from ...dialects.sizes import extent_expr, hinted
from ...dialects.torch import IndexPutOp
from ...dialects.torch_base import Shape, TorchOp
from ...dialects.torch_shapes import normalize_axis
from .indexing import joined_index
from .lowering import Lowering, Refusal, Rule, compute_element, dims, element_of, shape_of
from .squares import check_comparisons

PYTORCH_UPDATES_PER_SECOND = 3e8
PYTORCH_ADDS_PER_SECOND = 5e9
"""What PyTorch writes, and what it adds slice by slice."""

FOLDS = {
    "sum": Update.ADD,
    "mean": Update.ADD,
    "prod": Update.MUL,
    "amax": Update.MAX,
    "amin": Update.MIN,
}
"""What PyTorch calls the ways to fold."""


def _write(
    e: Lowering,
    update: Update,
    value: SSAValue,
    index: SSAValue,
    updates: SSAValue,
    axis: int,
    pytorch_rate: float = PYTORCH_UPDATES_PER_SECOND,
) -> SSAValue:
    """`value` in the type to compute in, changed along `axis`; the operands have one rank."""
    if not e.in_order:
        shape, indices, count = shape_of(value), shape_of(index), shape_of(updates)[axis]
        replaces = update is Update.REPLACE
        work = scatter_work(shape, indices, count, axis, replaces=replaces)
        pytorch_seconds = hinted(prod(shape_of(updates))) / pytorch_rate
        check_comparisons(e, "a scatter", work, pytorch_seconds)
    if update is Update.REPLACE:
        return e.scatter(update, value, index, updates, axis)
    element = compute_element(element_of(value))
    if is_bool(element):  # sums of bools are "or", products are "and"
        element = i8
        update = {Update.ADD: Update.MAX, Update.MUL: Update.MIN}.get(update, update)
    value, updates = e.cast(value, element), e.cast(updates, element)
    return e.scatter(update, value, index, updates, axis)


def _one_axis(e: Lowering, *values: SSAValue) -> list[SSAValue]:
    """A 0-d tensor as one of extent 1."""
    return [value if shape_of(value) else e.reshape(value, (1,)) for value in values]


# --------------------------------------------------------------------------- one index per element


def _scatter(e: Lowering, op: Any) -> SSAValue:
    """`scatter`, `scatter_add` and `scatter_reduce`."""
    reduce, include_self = None, True
    if isinstance(op, t.ScatterAddOp):
        reduce = "sum"
    elif isinstance(op, t.ScatterReduceOp):
        reduce, include_self = op.string("reduce"), op.flag("include_self")
    if reduce is not None and reduce not in FOLDS:
        raise Refusal(f"reduce = {reduce!r}")
    if prod(shape_of(op.index)) == 0:
        return op.input
    value, index = _one_axis(e, op.input, e.cast(op.index, i64))
    axis, count = normalize_axis(op.integer("dim"), len(e.shape)), shape_of(index)
    if isinstance(op, t.ScatterValueOp):
        updates = e.constant(op.number("value"), e.result_element, count)
    else:
        (updates,) = _one_axis(e, op.src)
        updates = _corner(e, updates, count)
    whole = shape_of(value)
    reached = tuple(
        n if i == axis else m for i, (n, m) in enumerate(zip(whole, count, strict=True))
    )
    corner = _corner(e, value, reached)
    changed = _folded(e, reduce, include_self, corner, index, updates, axis)
    changed = _put_back(e, e.cast(changed, e.result_element), value)
    return e.reshape(changed, e.shape)


def _corner(e: Lowering, value: SSAValue, shape: Shape) -> SSAValue:
    """The first `shape` elements along each axis."""
    if shape_of(value) == shape:
        return value
    return e.index_map([value], [dims(len(shape))], shape, suffix="corner")


def _put_back(e: Lowering, corner: SSAValue, value: SSAValue) -> SSAValue:
    """`value` with `corner` in place of its first elements along each axis."""
    shape, reached = shape_of(value), shape_of(corner)
    if shape == reached:
        return corner
    here = dims(len(shape))
    inside = [
        d * -1 + extent_expr(m - 1) for d, n, m in zip(here, shape, reached, strict=True) if m != n
    ]
    return e.index_map([corner, value], [here, here], shape, conditions=[inside, []], suffix="put")


def _folded(
    e: Lowering,
    reduce: str | None,
    include_self: bool,
    value: SSAValue,
    index: SSAValue,
    updates: SSAValue,
    axis: int,
) -> SSAValue:
    """`value` with `updates` written, or folded in as PyTorch's `reduce` says."""
    if reduce is None:
        return _write(e, Update.REPLACE, value, index, updates, axis)
    start = value
    hit: SSAValue | None = None
    if not include_self:
        true = e.constant(True, i1, shape_of(updates))
        hit = _write(e, Update.REPLACE, e.constant(False, i1, shape_of(value)), index, true, axis)
        neutral = _neutral(e, FOLDS[reduce], element_of(value))
        start = e.select(hit, e.constant(neutral, element_of(value), shape_of(value)), value)
    result = _write(e, FOLDS[reduce], start, index, updates, axis)
    if reduce == "mean":
        result = _divided(e, result, hit, index, updates, axis)
    return result


def _neutral(e: Lowering, update: Update, element: Attribute) -> float:
    """What leaves any value of `element` unchanged."""
    if is_bool(element):
        return update in (Update.MUL, Update.MIN)
    combiner = update.combiner
    assert combiner is not None
    return identity(combiner, element)


def _divided(
    e: Lowering,
    total: SSAValue,
    hit: SSAValue | None,
    index: SSAValue,
    updates: SSAValue,
    axis: int,
) -> SSAValue:
    """Each sum over the number of its addends; what is in place counts as one unless it is hit.

    Integers are divided with the quotient rounded down.
    """
    if is_bool(element_of(updates)) or element_of(updates) == ui8:
        raise Refusal(f"a mean of {'bools' if is_bool(element_of(updates)) else 'uint8'}")
    element, shape = element_of(total), shape_of(total)
    first = e.constant(1, element, shape)
    if hit is not None:
        first = e.select(hit, e.constant(0, element, shape), first)
    ones = e.constant(1, element, shape_of(updates))
    count = _write(e, Update.ADD, first, index, ones, axis)
    return e.apply(Function.DIV if is_float(element) else Function.FLOORDIV, total, count)


# --------------------------------------------------------------------------- one index per slice


def _along(e: Lowering, index: SSAValue, axis: int, rank: int) -> SSAValue:
    """A list of indices as those along one axis, for all positions of the others."""
    shape = tuple(prod(shape_of(index)) if i == axis else 1 for i in range(rank))
    return e.reshape(index, shape)


def put_at(e: Lowering, op: IndexPutOp) -> SSAValue:
    """Negative indices count from the end of their axis."""
    whole, first = shape_of(op.input), op.integer("dim")
    last = first + len(op.indices)
    index = joined_index(e, op.indices, whole[first:last])
    joined = (*whole[:first], prod(whole[first:last]), *whole[last:])
    count = prod(shape_of(index))
    updates = e.broadcast(e.cast(op.values, e.result_element), op.written_shape())
    updates = e.reshape(updates, (*whole[:first], count, *whole[last:]))
    index = _along(e, index, first, len(joined))
    update = Update.ADD if op.flag("accumulate") else Update.REPLACE
    changed = _write(e, update, e.reshape(op.input, joined), index, updates, first)
    return e.reshape(e.cast(changed, e.result_element), e.shape)


def _index_add(e: Lowering, op: t.IndexAddOp) -> SSAValue:
    source, alpha = op.source, op.number("alpha")
    if alpha != 1:
        element = element_of(source)
        if is_bool(element):
            raise Refusal(f"alpha = {alpha} for bools")
        wide = e.cast(source, compute_element(element))
        source = e.cast(e.with_number(Function.MUL, wide, alpha), element)
    value, index, source = _one_axis(e, op.input, e.cast(op.index, i64), source)
    axis = normalize_axis(op.integer("dim"), len(shape_of(value)))
    index = _along(e, index, axis, len(shape_of(value)))
    rate = PYTORCH_ADDS_PER_SECOND
    changed = _write(e, Update.ADD, value, index, source, axis, rate)
    return e.reshape(e.cast(changed, e.result_element), e.shape)


def _index_reduce(e: Lowering, op: t.IndexReduceOp) -> SSAValue:
    reduce = op.string("reduce")
    if reduce not in FOLDS or reduce == "sum":
        raise Refusal(f"reduce = {reduce!r}")
    value, index, source = _one_axis(e, op.input, e.cast(op.index, i64), op.source)
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    index = _along(e, index, axis, len(shape_of(value)))
    changed = _folded(e, reduce, op.flag("include_self"), value, index, source, axis)
    return e.reshape(e.cast(changed, e.result_element), e.shape)


# --------------------------------------------------------------------------- at positions known before


def _diagonal_scatter(e: Lowering, op: t.DiagonalScatterOp) -> SSAValue:
    (row, column), offset = op.axes(), op.integer("offset")
    here = dims(len(e.shape))
    beyond = here[column] + here[row] * -1 + -offset
    place = here[row] + min(offset, 0)
    index = [d for i, d in enumerate(here) if i not in (row, column)] + [place]
    source = e.cast(op.src, e.result_element)
    conditions: Sequence[Sequence[AffineExpr]] = [[beyond, beyond * -1], []]
    return e.index_map(
        [source, op.input], [index, here], e.shape, conditions=conditions, suffix="diagonal"
    )


def _as_strided(e: Lowering, op: Any) -> SSAValue:
    """The front end has made sure that PyTorch's input is contiguous, as all tensors are here."""
    _, strides, offset = op.view()
    position: AffineExpr = AffineExpr.constant(offset)
    for d, stride in zip(dims(len(e.shape)), strides, strict=True):
        position = position + d * stride
    flat = e.reshape(op.input, (prod(shape_of(op.input)),))
    return e.index_map([flat], [[position]], e.shape, suffix="strided")


def _as_strided_scatter(e: Lowering, op: t.AsStridedScatterOp) -> SSAValue:
    """Each element of the input finds its place in the source digit by digit, the slowest axis first."""
    size, strides, offset = op.view()
    if 0 in size:
        return op.input
    count = prod(e.shape)
    (position,) = dims(1)
    rest: AffineExpr = position + -offset
    place: list[AffineExpr] = [AffineExpr.constant(0)] * len(size)
    conditions, gap = [rest], count
    for gap, axis in sorted(((strides[i], i) for i, n in enumerate(size) if n > 1), reverse=True):
        place[axis], rest = rest // gap, rest % gap
        conditions.append(place[axis] * -1 + (size[axis] - 1))
    if gap > 1:
        conditions.append(rest * -1)
    flat, source = e.reshape(op.input, (count,)), e.cast(op.src, e.result_element)
    changed = e.index_map(
        [source, flat], [place, [position]], (count,), conditions=[conditions, []], suffix="strided"
    )
    return e.reshape(changed, e.shape)


RULES: dict[type[TorchOp], Rule] = {
    t.ScatterOp: _scatter,
    t.ScatterValueOp: _scatter,
    t.ScatterAddOp: _scatter,
    t.ScatterReduceOp: _scatter,
    t.IndexAddOp: _index_add,
    t.IndexReduceOp: _index_reduce,
    t.DiagonalScatterOp: _diagonal_scatter,
    t.AsStridedOp: _as_strided,
    t.AsStridedCopyOp: _as_strided,
    t.AsStridedScatterOp: _as_strided_scatter,
}
"""The rule for each operation."""
