"""Operations that find an extent in their data: how many places there are, then which.

    torch.nonzero %mask : (tensor<6xi1>) -> tensor<?x1xi64, #sym.extents<s0>>

becomes

    %n     = reduce add(%mask) over [0]
    %all   = call "deplo.size.default"(count = %n) : … -> tensor<?xi8, #sym.extents<s0>>
    %until = … running sum of %mask                // tensor<6xi64>: how many there are up to each place
    %at    = the first place where %until is k + 1, for each k of s0

The plan is cut behind the call: what follows is made when its size is known. On a CPU the places are
scattered, each to where it comes, in order; on a GPU each result searches its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import i8, i64
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineExpr

from ...dialects import torch_ops as t
from ...dialects.calls import SIZE, OperandAttr
from ...dialects.scalars import Combiner, Function, Update, is_bool
from ...dialects.sizes import Extent, extent_expr, tensor_of
from ...dialects.tensor_ir import CallOp
from ...dialects.torch_base import Shape, TorchOp
from .indexing import fold_until
from .lowering import Lowering, Rule, compute_element, dims, element_of, shape_of
from .search import places_in_order
from .sort import in_order


def held_until(e: Lowering, flags: SSAValue) -> SSAValue:
    """How many of a list of bools are true up to each place, with it."""
    if shape_of(flags) == (0,):
        return e.constant(0, i64, (0,))
    return fold_until(e, e.cast(flags, i64), 0, Combiner.ADD)


def held(e: Lowering, flags: SSAValue) -> SSAValue:
    """How many of a list of bools are true, as a list of one."""
    return e.reduce(Combiner.ADD, e.cast(flags, i64), [0])


def find_size(e: Lowering, count: SSAValue, extent: Extent) -> None:
    """Let `extent`, a size or the number that it is, be what `count` says, a list of one."""
    call = CallOp(SIZE, {"count": OperandAttr(0)}, [count], [tensor_of(i8, (extent,))])
    e.place(call)
    call.outputs[0].name_hint = f"{e.hint}_all"


def places_of(e: Lowering, mask: SSAValue, count: Extent) -> SSAValue:
    """The places where a tensor of bools is true, in row-major order, `count` of them."""
    flags = e.reshape(mask, (prod(shape_of(mask)),))
    find_size(e, held(e, flags), count)  # also where the places are known: as many calls for all sizes
    known = e.places.get(mask)
    if known is not None and known.owner.parent is e.op.parent and shape_of(known) == (count,):
        return known
    places = e.places[mask] = _packed(e, flags, held_until(e, flags), count)
    return places


def _packed(e: Lowering, flags: SSAValue, until: SSAValue, count: Extent) -> SSAValue:
    """The places where a list of bools is true, `count` of them; `until` is `held_until`."""
    (extent,) = shape_of(flags)
    if count == 0:
        return e.constant(0, i64, (0,))
    if e.in_order:
        # one place more, for those that are not wanted
        index = e.select(flags, e.with_number(Function.SUB, until, 1), e.fill_like(until, count))
        start = e.constant(0, i64, (count + 1,))
        places = e.scatter(Update.REPLACE, start, index, e.iota(0, i64, (extent,)), 0)
        return e.index_map([places], [dims(1)], (count,), suffix="wanted")
    wanted = e.with_number(Function.ADD, e.iota(0, i64, (count,)), 1)
    return places_in_order(e, until, wanted)


# --------------------------------------------------------------------------- places


def _nonzero(e: Lowering, op: t.NonzeroOp) -> SSAValue:
    shape = shape_of(op.input)
    places = places_of(e, e.truth(op.input), e.shape[0])
    indices: list[SSAValue] = []
    for axis in reversed(range(len(shape))):
        before = e.with_number(Function.FLOORDIV, places, shape[axis]) if axis else None
        if before is None:
            indices.insert(0, places)
            break
        whole = e.with_number(Function.MUL, before, shape[axis])
        indices.insert(0, e.apply(Function.SUB, places, whole))
        places = before
    return _columns(e, indices, e.shape)


def _columns(e: Lowering, columns: Sequence[SSAValue], shape: Shape) -> SSAValue:
    """A matrix of lists of one extent."""
    if not columns:
        return e.constant(0, i64, shape)
    row, column = dims(2)
    conditions = [[column * -1 + i] for i in range(len(columns) - 1)] + [[]]
    indices: list[list[AffineExpr]] = [[row]] * len(columns)
    return e.index_map(columns, indices, shape, conditions=conditions, suffix="columns")


def _repeat_interleave(e: Lowering, op: t.RepeatInterleaveOp) -> SSAValue:
    """Without users, its extent is all that is asked for. A negative number stops the program."""
    (extent,), (count,) = shape_of(op.repeats), e.shape
    if extent == 0:
        find_size(e, e.constant(0, i64, (1,)), count)
        return e.constant(0, i64, e.shape)
    repeats = e.cast(op.repeats, i64)
    if extent != 1:  # a single one is the size, which cannot be negative
        e.checked(e.cast(e.with_number(Function.LT, repeats, 0), i64), 1)
    find_size(e, e.reduce(Combiner.ADD, repeats, [0]), count)
    if count == 0 or not op.result.uses:
        return e.constant(0, i64, e.shape)
    until = fold_until(e, repeats, 0, Combiner.ADD)
    return places_in_order(e, until, e.iota(0, i64, e.shape), right=True)


# --------------------------------------------------------------------------- values


def _unique(e: Lowering, op: Any) -> list[SSAValue]:
    """NaN differs from itself, so each is a value of its own."""
    given, (_, inverse_type, counts_type) = shape_of(op.input), op.results
    extent, count = prod(given), e.shape[0]
    element = element_of(op.input)
    value = e.cast(
        e.reshape(op.input, (extent,)), i8 if is_bool(element) else compute_element(element)
    )
    order = None
    if isinstance(op, t.InternalUnique2Op) and extent != 0:
        value, order = in_order(e, value, 0, extent)
    flags = _differs_from_last(e, value)
    until = held_until(e, flags)
    find_size(e, held(e, flags), count)
    places = _packed(e, flags, until, count)
    results = [e.gather(value, places, 0)]
    if shape_of(inverse_type) == (0,) != given:
        results.append(e.constant(0, i64, (0,)))
    else:
        inverse = e.with_number(Function.SUB, until, 1) if extent != 0 else until
        if order is not None:
            inverse = e.scatter(Update.REPLACE, e.fill_like(inverse, 0), order, inverse, 0)
        results.append(e.reshape(inverse, given))
    if shape_of(counts_type) == (0,) != (count,):
        return [*results, e.constant(0, i64, (0,))]
    return [*results, _distances(e, places, extent)]


def _differs_from_last(e: Lowering, value: SSAValue) -> SSAValue:
    """Whether each element of a list differs from the one before; the first does."""
    shape, (here,) = shape_of(value), dims(1)
    before = e.index_map([value], [[here + -1]], shape, conditions=[[here + -1]], fill=0)
    first = e.with_number(Function.EQ, e.iota(0, i64, shape), 0)
    return e.apply(Function.OR, first, e.apply(Function.NE, value, before))


def _distances(e: Lowering, places: SSAValue, end: Extent) -> SSAValue:
    """From each place of a list to the next, from the last one to `end`."""
    (count,), (here,) = shape_of(places), dims(1)
    if count == 0:
        return places
    behind = extent_expr(count - 2) + here * -1
    following = e.index_map([places], [[here + 1]], (count,), conditions=[[behind]], fill=0)
    last = e.with_number(Function.EQ, e.iota(0, i64, (count,)), count - 1)
    following = e.select(last, e.fill_like(places, end), following)
    return e.apply(Function.SUB, following, places)


RULES: dict[type[TorchOp], Rule] = {
    t.NonzeroOp: _nonzero,
    t.RepeatInterleaveOp: _repeat_interleave,
    t.InternalUnique2Op: _unique,
    t.UniqueConsecutiveOp: _unique,
}
"""The rule for each operation."""
