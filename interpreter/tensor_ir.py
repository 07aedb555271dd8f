"""What `tensor_ir` means: each operation as a numpy expression over whole arrays.

A tensor that repeats along an axis, as most results of `index_map` do, takes no memory for it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import BFloat16Type
from xdsl.ir import Operation
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
)

from ..dialects.index import condition_exprs, dims_in_order
from ..dialects.scalars import NO_PROBABILITY, Combiner, Function, identity, is_integer
from ..dialects.sizes import static_extent, static_shape
from ..dialects.syntax import tensor_type
from ..dialects.tensor_ir import (
    CastOp,
    ConstantOp,
    ElementwiseOp,
    IndexMapOp,
    IotaOp,
    ReduceOp,
    SizeOp,
)
from ..dialects.tensor_ir_indexed import GatherOp, NthElementOp, ScatterOp, SortOp
from .numpy_types import Array, convert, numpy_dtype
from .product import Product, Value, as_array, multiply
from .scalar_ops import COMBINER_OPS, FUNCTION_OPS, NotExecutable, fold
from .views import MAX_ELEMENTS, Place, compact, linear_terms, require


class ProgramError(Exception):
    """The program itself fails, as eager would: an index out of range, an integer division by zero."""


class ProgramFault(ProgramError):
    """The program does what its IR forbids at any data: `message` says what, `op` does it."""

    def __init__(self, message: str, op: Operation):
        self.message = message
        self.op = op
        super().__init__(f"{op.location}: {message}")


def evaluate_index(expr: AffineExpr, dims: Sequence[Array]) -> Array:
    """The value of an index expression where `dims` are integer arrays; they broadcast."""
    match expr:
        case AffineConstantExpr(value=value):
            return np.asarray(value, np.int64)
        case AffineDimExpr(position=position):
            return dims[position]
        case AffineBinaryOpExpr(kind=kind, lhs=lhs, rhs=rhs):
            left, right = evaluate_index(lhs, dims), evaluate_index(rhs, dims)
            match kind:
                case AffineBinaryOpKind.Add:
                    return left + right
                case AffineBinaryOpKind.Mul:
                    return left * right
                case AffineBinaryOpKind.FloorDiv:
                    return left // right
                case AffineBinaryOpKind.CeilDiv:
                    return -(-left // right)
                case AffineBinaryOpKind.Mod:
                    return left % right
        case _:
            raise NotExecutable(f"index expression {expr}")


def _static_shape(op: Operation) -> tuple[int, ...]:
    return static_shape(tensor_type(op.results[0]))


def _elementwise(op: ElementwiseOp, args: Sequence[Array]) -> Value:
    function = op.function.data
    integers = is_integer(tensor_type(op.result).element_type)
    small = [compact(array) for array in args]
    if function in _DIVISIONS and integers and np.any(small[1] == 0):
        raise ProgramError("integer division by zero")
    if function is Function.PROBABILITY and not np.all((small[0] >= 0) & (small[0] <= 1)):
        raise ProgramError(NO_PROBABILITY)
    if function is Function.MUL and not integers:
        result = multiply(small[0], small[1], MAX_ELEMENTS)
        if isinstance(result, Product):
            return result
    else:
        require(np.broadcast_shapes(*(array.shape for array in small)), MAX_ELEMENTS)
        with np.errstate(all="ignore"):
            result = np.asarray(FUNCTION_OPS[function](*small))
    return np.broadcast_to(result, _static_shape(op))


_DIVISIONS = (Function.FLOORDIV, Function.TRUNCDIV, Function.REMAINDER, Function.FMOD)


def _reduce(op: ReduceOp, arg: Value) -> Array:
    combiner = op.combiner.data
    axes = [int(axis) for axis in op.axes.get_values()]
    shape = static_shape(tensor_type(op.input))
    if combiner is Combiner.ADD and isinstance(arg, Product):
        kept = [axis for axis in range(len(shape)) if axis not in axes]
        total = arg.transpose([*kept, *axes])
        for axis in reversed(axes):
            total = total.sum_last(shape[axis])
        return np.broadcast_to(
            np.expand_dims(as_array(total, MAX_ELEMENTS), axes), _static_shape(op)
        )
    empty = identity(combiner, tensor_type(op.result).element_type)
    result = as_array(arg, MAX_ELEMENTS)
    for axis in axes:
        result = fold(combiner, result, axis, keepdims=True, empty=empty)
    return result


def _index_map(op: IndexMapOp, args: Sequence[Array]) -> Array:
    shape = _static_shape(op)
    if (view := _view(op, shape, args)) is not None:
        return np.broadcast_to(view, shape)
    exprs = [e for m in op.maps for e in m.data.results]
    exprs += [e for c in op.conditions for e in condition_exprs(c.data)]
    used = dims_in_order(exprs)
    small = tuple(n if axis in used else min(n, 1) for axis, n in enumerate(shape))
    require(small, MAX_ELEMENTS)
    return np.broadcast_to(_gathered(op, small, args), shape)


def _view(op: IndexMapOp, shape: tuple[int, ...], args: Sequence[Array]) -> Array | None:
    """The result as a view of the first operand, if all of it is read there by linear indices."""
    if not args or condition_exprs(op.conditions.data[0].data):
        return None
    terms = [linear_terms(e, len(shape)) for e in op.maps.data[0].data.results]
    linear = [term for term in terms if term is not None]
    if len(linear) < len(terms):
        return None
    place = Place(tuple(c for _, c in linear), tuple(tuple(f) for f, _ in linear), shape)
    return place.of(args[0]) if place.inside(args[0].shape) else None


def _gathered(op: IndexMapOp, shape: tuple[int, ...], args: Sequence[Array]) -> Array:
    """The result over the dims that its indices and conditions use; the others have extent 1."""
    dims = [
        np.arange(n).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        for axis, n in enumerate(shape)
    ]
    fill = 0 if op.fill is None else op.fill.value.data
    result = np.full(shape, fill, numpy_dtype(tensor_type(op.result).element_type))
    open_ = np.ones(shape, bool)
    for source, map_attr, set_attr in zip(args, op.maps, op.conditions, strict=True):
        chosen = open_.copy()
        for expr in condition_exprs(set_attr.data):
            chosen &= evaluate_index(expr, dims) >= 0
        open_ &= ~chosen
        indices = [
            np.broadcast_to(evaluate_index(e, dims), shape)[chosen] for e in map_attr.data.results
        ]
        for axis, (index, extent) in enumerate(zip(indices, source.shape, strict=True)):
            if index.size and (index.min() < 0 or index.max() >= extent):
                raise ProgramFault(
                    f"reads index {index.min()}..{index.max()} of axis {axis}, whose extent is {extent}",
                    op,
                )
        result[chosen] = source[tuple(indices)]
    return result


def _gather(op: GatherOp, args: Sequence[Array]) -> Array:
    source, indices = args
    extent = source.shape[op.axis.value.data]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise ProgramError(f"index out of range: {indices.min()}..{indices.max()} below {extent}")
    require(_static_shape(op), MAX_ELEMENTS)
    return np.take(source, indices.astype(np.int64), axis=op.axis.value.data)


def _scatter(op: ScatterOp, args: Sequence[Array]) -> Array:
    result, indices, updates = args[0].copy(), args[1], args[2]
    axis, extent = op.axis.value.data, args[0].shape[op.axis.value.data]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise ProgramError(f"index out of range: {indices.min()}..{indices.max()} below {extent}")
    combiner = op.update.data.combiner
    places = [*np.ogrid[tuple(slice(0, n) for n in updates.shape)]]
    for i in range(updates.shape[axis]):  # those of one `i` change different elements
        places[axis] = np.take(indices, [i], axis)
        values = np.take(updates, [i], axis)
        with np.errstate(all="ignore"):
            if combiner is not None:
                values = COMBINER_OPS[combiner](result[tuple(places)], values)
        result[tuple(places)] = values
    return result


def _constant(op: ConstantOp) -> Array:
    element = tensor_type(op.result).element_type
    value = np.asarray(op.value.value.data).astype(numpy_dtype(element))
    value = convert(value, element) if isinstance(element, BFloat16Type) else value
    return np.broadcast_to(value, _static_shape(op))


def _iota(op: IotaOp) -> Array:
    shape = _static_shape(op)
    axis = op.axis.value.data
    counter = np.arange(shape[axis], dtype=numpy_dtype(tensor_type(op.result).element_type))
    return np.broadcast_to(
        counter.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape
    )


def _sort(op: SortOp, source: Array) -> list[Value]:
    axis = op.axis.value.data
    if op.descending is None:
        order = np.argsort(source, axis, kind="stable")
    else:  # backwards, so that equal values, of which the last comes first, end up in order
        last = source.shape[axis] - 1
        order = last - np.flip(np.argsort(np.flip(source, axis), axis, kind="stable"), axis)
    first = order.take(range(static_shape(tensor_type(op.values))[axis]), axis)
    return [np.take_along_axis(source, first, axis), first]


def _nth_element(op: NthElementOp, places: Array, source: Array) -> Array:
    axis = op.axis.value.data
    inside = np.clip(places, 0, source.shape[axis] - 1)
    return np.take_along_axis(np.argsort(source, axis, kind="stable"), inside, axis)


def evaluate_tensor_op(op: Operation, args: Sequence[Value]) -> Sequence[Value] | None:
    """The results of a `tensor_ir` operation, or None if `op` is of another dialect.

    Raises TooWide if it needs an array of more than `MAX_ELEMENTS`.
    """
    if isinstance(op, SortOp):
        return _sort(op, as_array(args[0], MAX_ELEMENTS))
    if isinstance(op, ReduceOp):
        return [_reduce(op, args[0])]
    result = _evaluate_one(op, [as_array(arg, MAX_ELEMENTS) for arg in args])
    return None if result is None else [result]


def _evaluate_one(op: Operation, arrays: Sequence[Array]) -> Value | None:
    match op:
        case ElementwiseOp():
            return _elementwise(op, arrays)
        case IndexMapOp():
            return _index_map(op, arrays)
        case CastOp():
            converted = convert(compact(arrays[0]), tensor_type(op.result).element_type)
            return np.broadcast_to(converted, arrays[0].shape)
        case ConstantOp():
            return _constant(op)
        case SizeOp():
            dtype = numpy_dtype(tensor_type(op.result).element_type)
            extent = np.asarray(static_extent(op.extent.data)).astype(dtype)
            return np.broadcast_to(extent, _static_shape(op))
        case IotaOp():
            return _iota(op)
        case GatherOp():
            return _gather(op, arrays)
        case ScatterOp():
            return _scatter(op, arrays)
        case NthElementOp():
            return _nth_element(op, *arrays)
        case _:
            return None
