"""Reading at computed positions: each is one gather from a flattened source.

    torch.index %x, [%i, %j]  ->  gather(flat %x)[%i * columns + %j]

PyTorch checks every index against its own axis. A flat index would miss an error that lands inside the
source, so an index outside its axis becomes -1, which the gather refuses.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import torch_ops as t
from ...dialects.scalars import Combiner, Function, identity, is_bool
from ...dialects.sizes import Extent, extent_expr, hinted
from ...dialects.torch import IndexOp
from ...dialects.torch_base import Shape, TorchOp
from ...dialects.torch_shapes import broadcast_shapes, normalize_axis
from .lowering import Lowering, Refusal, Rule, dims, element_of, shape_of
from .reductions import accumulator_of, cast_first

SHORT_RUN, PART = 64, 16
"""A longer axis comes in parts: a running sum is one of its part, and that of the parts before, in turn.

So do the last axis, and the parts, where a call says how many there are and more than `PART` are expected:
the sums of columns stand side by side in a vector, others do not.
"""

LONG_ROW, ROW_PART, COLUMN_PART = 8192, 2048, 512
"""On a GPU a block has a whole part (`scan-rows`), or a row that is not too long for that."""


def _inside(e: Lowering, index: SSAValue, extent: Extent) -> SSAValue:
    """Whether each index is one of an axis of `extent`."""
    above = e.with_number(Function.GE, index, 0)
    return e.apply(Function.AND, above, e.with_number(Function.LT, index, extent))


def _flat_index(e: Lowering, indices: Sequence[SSAValue], shape: Shape) -> SSAValue:
    """The row-major position of `indices`, one per axis of `shape`; -1 if one is outside its axis."""
    flat = e.fill_like(indices[0], 0)
    inside: SSAValue | None = None
    for index, extent in zip(indices, shape, strict=True):
        flat = e.apply(Function.ADD, e.with_number(Function.MUL, flat, extent), index)
        fits = _inside(e, index, extent)
        inside = fits if inside is None else e.apply(Function.AND, inside, fits)
    assert inside is not None
    return e.select(inside, flat, e.fill_like(flat, -1))


def _gather(e: Lowering, op: t.GatherOp) -> SSAValue:
    source, shape = shape_of(op.input), e.shape
    if len(source) < 2:
        op_input = e.reshape(op.input, source or (1,))
        return e.gather(op_input, e.cast(op.index, i64), 0)
    axis = normalize_axis(op.integer("dim"), len(source))
    indices = [
        e.cast(op.index, i64) if i == axis else e.iota(i, i64, shape) for i in range(len(shape))
    ]
    flat = e.reshape(op.input, (prod(source),))
    return e.gather(flat, _flat_index(e, indices, source), 0)


def joined_index(e: Lowering, values: Sequence[SSAValue], extents: Shape) -> SSAValue:
    """The row-major position of indices that broadcast, one for each axis of `extents`.

    Negative ones count from the end of their axis.
    """
    shape = broadcast_shapes(*(shape_of(v) for v in values))
    indices: list[SSAValue] = []
    for value, extent in zip(values, extents, strict=True):
        index = e.broadcast(e.cast(value, i64), shape)
        from_end = e.with_number(Function.ADD, index, extent)
        below = e.with_number(Function.LT, index, 0)
        indices.append(e.select(below, from_end, index))
    return indices[0] if len(indices) == 1 else _flat_index(e, indices, extents)


def index_at(e: Lowering, op: IndexOp) -> SSAValue:
    """`index` by tensors of positions."""
    source, first = shape_of(op.input), op.integer("dim")
    last = first + len(op.indices)
    joined = (*source[:first], prod(source[first:last]), *source[last:])
    flat = joined_index(e, op.indices, source[first:last])
    return e.gather(e.reshape(op.input, joined), flat, first)


def _index_select(e: Lowering, op: t.IndexSelectOp) -> SSAValue:
    """A 0-d input or index counts as one of extent 1."""
    index = e.cast(op.index, i64)
    if not shape_of(op.index):
        index = e.reshape(index, (1,))
    if not shape_of(op.input):
        return e.reshape(e.gather(e.reshape(op.input, (1,)), index, 0), e.shape)
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    return e.gather(op.input, index, axis)


def _embedding(e: Lowering, op: t.EmbeddingOp) -> SSAValue:
    return e.gather(op.weight, op.indices, 0)


def _running(combiner: Combiner) -> Rule:
    """At each position the fold of what is at or before it."""

    def rule(e: Lowering, op: Any) -> SSAValue:
        if is_bool(e.element):
            raise Refusal("a running sum or product of bools as bools")
        value = cast_first(e, op)
        if not e.shape:
            return value
        # What underflows before a part times what overflows in it would be NaN in f32.
        product = combiner is Combiner.MUL and e.element == f32
        value = e.cast(value, f64 if product else accumulator_of(e, e.result_element))
        folded = fold_until(e, value, normalize_axis(op.integer("dim"), len(e.shape)), combiner)
        return e.cast(folded, e.element)

    return rule


def fold_until(e: Lowering, value: SSAValue, axis: int, combiner: Combiner) -> SSAValue:
    """At each position of `axis` the fold of what is at or before it."""
    shape = shape_of(value)
    columns, known = axis < len(shape) - 1, isinstance(shape[axis], int)
    if e.on_gpu:
        part = COLUMN_PART if columns else ROW_PART
        whole = (COLUMN_PART if columns else LONG_ROW) if known else PART
        return _fold_in_parts(e, value, axis, combiner, whole, part)
    return _fold_in_parts(e, value, axis, combiner, SHORT_RUN if columns or known else PART, PART)


def _fold_in_parts(
    e: Lowering, value: SSAValue, axis: int, combiner: Combiner, whole: int, part: int
) -> SSAValue:
    """The same in parts of `part`; an axis of up to `whole` elements is one part."""
    extent = shape_of(value)[axis]
    if hinted(extent) <= whole:
        return _fold_run(e, value, axis, combiner, extent)
    parts = _fold_parts(e, value, axis, combiner, part)
    if not e.on_gpu:
        whole = SHORT_RUN if isinstance(extent, int) else PART
    until = _fold_in_parts(e, parts, axis, combiner, whole, part)
    index = dims(len(shape_of(value)))
    index[axis] = before = index[axis] // part + -1
    until_part = e.index_map(
        [until],
        [index],
        shape_of(value),
        conditions=[[before]],
        fill=identity(combiner, element_of(value)),
        suffix="before",
    )
    within = _fold_run(e, value, axis, combiner, part)
    return e.apply(Function(combiner.value), until_part, within)


def _fold_run(
    e: Lowering, value: SSAValue, axis: int, combiner: Combiner, part: Extent
) -> SSAValue:
    """At each position of `axis` the fold of what of its part is at or before it."""
    shape = shape_of(value)
    rank, index = len(shape), dims(len(shape))
    place, run = index[axis], AffineExpr.dimension(rank)
    index[axis] = run
    if part != shape[axis]:
        assert isinstance(part, int)
        index[axis], place = place // part * part + run, place % part
    spread = e.index_map(
        [value],
        [index],
        (*shape, part),
        conditions=[[place + run * -1]],
        fill=identity(combiner, element_of(value)),
        suffix="until",
    )
    return e.squeeze(e.reduce(combiner, spread, [rank]), [rank])


def _fold_parts(e: Lowering, value: SSAValue, axis: int, combiner: Combiner, part: int) -> SSAValue:
    """The fold of each part of `axis`; the last one may be shorter."""
    shape = shape_of(value)
    rank, extent = len(shape), shape[axis]
    index = dims(rank)
    index[axis] = index[axis] * part + AffineExpr.dimension(rank)
    spread = e.index_map(
        [value],
        [index],
        (*shape[:axis], (extent + (part - 1)) // part, *shape[axis + 1 :], part),
        conditions=[[index[axis] * -1 + extent_expr(extent - 1)]],
        fill=identity(combiner, element_of(value)),
        suffix="parts",
    )
    return e.squeeze(e.reduce(combiner, spread, [rank]), [rank])


RULES: dict[type[TorchOp], Rule] = {
    t.GatherOp: _gather,
    t.IndexSelectOp: _index_select,
    t.EmbeddingOp: _embedding,
    t.CumsumOp: _running(Combiner.ADD),
    t.CumprodOp: _running(Combiner.MUL),
}
"""The rule for each operation."""
