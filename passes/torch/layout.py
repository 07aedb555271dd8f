"""Changes of layout: each is one index map.

torch.flip %x {dims = [0]}  ->  tensor_ir.index_map (i) -> %x[-i + 3]
"""

from __future__ import annotations

from typing import Any

from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import torch_ops as t
from ...dialects.sizes import Extent, extent_expr, is_at_most
from ...dialects.torch_base import TorchOp
from ...dialects.torch_layout_shapes import PermuteShapeOp
from ...dialects.torch_shapes import normalize_axes, normalize_axis
from ...index.affine import remainder
from .lowering import Lowering, Rule, dims, shape_of


def _view(e: Lowering, op: Any) -> SSAValue:
    return e.reshape(op.input, e.shape)


def _permute(e: Lowering, op: PermuteShapeOp) -> SSAValue:
    return e.permute(op.operands[0], op.permutation())


def _expand(e: Lowering, op: t.ExpandOp) -> SSAValue:
    return e.broadcast(op.input, e.shape)


def _slice(e: Lowering, op: t.SliceOp) -> SSAValue:
    axis, start, _, step = op.bounds()
    index = dims(len(e.shape))
    index[axis] = index[axis] * step + extent_expr(start)
    return e.index_map([op.input], [index], e.shape, suffix="slice")


def _select(e: Lowering, op: t.SelectOp) -> SSAValue:
    axis, position = op.position()
    index = dims(len(e.shape))
    index.insert(axis, extent_expr(position))
    return e.index_map([op.input], [index], e.shape, suffix="select")


def _flip(e: Lowering, op: t.FlipOp) -> SSAValue:
    index = dims(len(e.shape))
    for axis in normalize_axes(op.integers("dims"), len(e.shape)):
        if e.shape:
            index[axis] = index[axis] * -1 + extent_expr(e.shape[axis] - 1)
    return e.index_map([op.input], [index], e.shape, suffix="flip")


def _repeat(e: Lowering, op: t.RepeatOp) -> SSAValue:
    source = shape_of(op.input)
    lead = len(e.shape) - len(source)
    index = [
        remainder(d, extent_expr(n if n != 0 else 1))
        for d, n in zip(dims(len(e.shape))[lead:], source, strict=True)
    ]
    return e.index_map([op.input], [index], e.shape, suffix="repeat")


def _pad(e: Lowering, op: t.ConstantPadNdOp) -> SSAValue:
    source, fill = shape_of(op.input), op.number("value")
    index, guards = dims(len(e.shape)), list[AffineExpr]()
    for axis, (before, after) in enumerate(op.padding()):
        index[axis] = index[axis] + extent_expr(-before)
        if not is_at_most(before, 0):
            guards.append(index[axis])
        if not is_at_most(after, 0):
            guards.append(index[axis] * -1 + extent_expr(source[axis] - 1))
    if not guards:
        return e.index_map([op.input], [index], e.shape, suffix="pad")
    return e.index_map([op.input], [index], e.shape, conditions=[guards], fill=fill, suffix="pad")


def join(e: Lowering, values: list[SSAValue], axis: int) -> SSAValue:
    """Values one after another along `axis`."""
    values = [v for v in values if shape_of(v)[axis] != 0] or values[:1]
    rank = len(shape_of(values[0]))
    offset: Extent = 0
    indices: list[list[AffineExpr]] = []
    guards: list[list[AffineExpr]] = []
    for value in values:
        index = dims(rank)
        index[axis] = index[axis] + extent_expr(-offset)
        offset += shape_of(value)[axis]
        indices.append(index)
        guards.append([dims(rank)[axis] * -1 + extent_expr(offset - 1)])
    guards[-1] = []
    shape = shape_of(values[0])
    joined = (*shape[:axis], offset, *shape[axis + 1 :])
    return e.index_map(values, indices, joined, conditions=guards, suffix="cat")


def _cat(e: Lowering, op: t.CatOp) -> SSAValue:
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    values = [v for v in op.tensors if shape_of(v) != (0,)] or list(op.tensors)[:1]
    return join(e, [e.cast(v, e.result_element) for v in values], axis)


def _stack(e: Lowering, op: t.StackOp) -> SSAValue:
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    one = (*e.shape[:axis], 1, *e.shape[axis + 1 :])
    values = [e.reshape(e.cast(v, e.result_element), one) for v in op.tensors]
    return join(e, values, axis)


def _split(e: Lowering, op: t.SplitWithSizesOp) -> list[SSAValue]:
    axis = normalize_axis(op.integer("dim"), len(e.shape))
    pieces: list[SSAValue] = []
    offset: Extent = 0
    for result, size in zip(op.pieces, op.extents("split_sizes"), strict=True):
        index = dims(len(e.shape))
        index[axis] = index[axis] + extent_expr(offset)
        offset += size
        pieces.append(e.index_map([op.input], [index], shape_of(result), suffix="split"))
    return pieces


def _triangle(e: Lowering, op: Any, sign: int) -> SSAValue:
    """Zero where `column - row` is beyond the diagonal; `sign` is 1 to keep what is above it."""
    row, column = dims(len(e.shape))[-2:]
    distance = column + row * -1 + extent_expr(-op.extent("diagonal"))
    return e.index_map(
        [op.input],
        [dims(len(e.shape))],
        e.shape,
        conditions=[[distance * sign]],
        fill=0,
        suffix="tri",
    )


def _diagonal(e: Lowering, op: t.DiagonalOp) -> SSAValue:
    offset, (row, column) = op.integer("offset"), op.axes()
    place = dims(len(e.shape))[-1]
    index = dims(len(e.shape))[:-1]
    for axis in sorted((row, column)):
        start = -min(offset, 0) if axis == row else max(offset, 0)
        index.insert(axis, place + start)
    return e.index_map([op.input], [index], e.shape, suffix="diagonal")


def _unfold(e: Lowering, op: t.UnfoldOp) -> SSAValue:
    if not shape_of(op.input):
        return e.reshape(op.input, e.shape)
    axis = normalize_axis(op.integer("dimension"), len(e.shape) - 1)
    *index, within = dims(len(e.shape))
    index[axis] = index[axis] * op.integer("step") + within
    return e.index_map([op.input], [index], e.shape, suffix="unfold")


RULES: dict[type[TorchOp], Rule] = {
    t.ViewOp: _view,
    t.InternalUnsafeViewOp: _view,
    t.UnsqueezeOp: _view,
    t.SqueezeOp: _view,
    t.SqueezeDimOp: _view,
    t.SqueezeDefaultOp: _view,
    t.PermuteOp: _permute,
    t.TransposeOp: _permute,
    t.TOp: _permute,
    t.ExpandOp: _expand,
    t.SliceOp: _slice,
    t.SelectOp: _select,
    t.FlipOp: _flip,
    t.RepeatOp: _repeat,
    t.ConstantPadNdOp: _pad,
    t.CatOp: _cat,
    t.StackOp: _stack,
    t.SplitWithSizesOp: _split,
    t.DiagonalOp: _diagonal,
    t.UnfoldOp: _unfold,
    t.TrilOp: lambda e, op: _triangle(e, op, sign=-1),
    t.TriuOp: lambda e, op: _triangle(e, op, sign=1),
}
"""The rule for each change of layout."""
