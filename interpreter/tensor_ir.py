"""What `tensor_ir` means: each operation as a numpy expression over whole arrays."""

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

from ..dialects.index import condition_exprs
from ..dialects.scalars import Function, identity, is_integer
from ..dialects.syntax import tensor_type
from ..dialects.tensor_ir import (
    CastOp,
    ConstantOp,
    ElementwiseOp,
    GatherOp,
    IndexMapOp,
    IotaOp,
    ReduceOp,
)
from .numpy_types import Array, convert, numpy_dtype
from .scalar_ops import FUNCTION_OPS, NotExecutable, fold


class ProgramError(Exception):
    """The program itself fails, as eager would: an index out of range, an integer division by zero."""


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
    shape = tensor_type(op.results[0]).get_shape()
    if any(extent < 0 for extent in shape):
        raise NotExecutable(f"'{op.name}' with dynamic extents")
    return shape


def _elementwise(op: ElementwiseOp, args: Sequence[Array]) -> Array:
    function = op.function.data
    divides = function in (
        Function.FLOORDIV,
        Function.TRUNCDIV,
        Function.REMAINDER,
        Function.FMOD,
    )
    if divides and is_integer(tensor_type(op.result).element_type) and np.any(args[1] == 0):
        raise ProgramError("integer division by zero")
    with np.errstate(all="ignore"):
        return np.asarray(FUNCTION_OPS[function](*args))


def _reduce(op: ReduceOp, args: Sequence[Array]) -> Array:
    combiner = op.combiner.data
    empty = identity(combiner, tensor_type(op.result).element_type)
    result = args[0]
    for axis in op.axes.get_values():
        result = fold(combiner, result, axis, keepdims=True, empty=empty)
    return result


def _index_map(op: IndexMapOp, args: Sequence[Array]) -> Array:
    shape = _static_shape(op)
    result_type = tensor_type(op.result)
    dims = [
        np.arange(n).reshape([-1 if d == axis else 1 for d in range(len(shape))])
        for axis, n in enumerate(shape)
    ]
    fill = 0 if op.fill is None else op.fill.value.data
    result = np.full(shape, fill, numpy_dtype(result_type.element_type))
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
                raise ProgramError(
                    f"index_map reads index {index.min()}..{index.max()} of axis {axis}, "
                    f"whose extent is {extent}"
                )
        result[chosen] = source[tuple(indices)]
    return result


def _gather(op: GatherOp, args: Sequence[Array]) -> Array:
    source, indices = args
    extent = source.shape[op.axis.value.data]
    if indices.size and (indices.min() < 0 or indices.max() >= extent):
        raise ProgramError(f"index out of range: {indices.min()}..{indices.max()} below {extent}")
    return np.take(source, indices.astype(np.int64), axis=op.axis.value.data)


def _constant(op: ConstantOp, args: Sequence[Array]) -> Array:
    element = tensor_type(op.result).element_type
    value = np.full(_static_shape(op), op.value.value.data, numpy_dtype(element))
    return convert(value, element) if isinstance(element, BFloat16Type) else value


def _iota(op: IotaOp, args: Sequence[Array]) -> Array:
    shape = _static_shape(op)
    axis = op.axis.value.data
    counter = np.arange(shape[axis], dtype=numpy_dtype(tensor_type(op.result).element_type))
    return np.broadcast_to(
        counter.reshape([-1 if d == axis else 1 for d in range(len(shape))]), shape
    ).copy()


def evaluate_tensor_op(op: Operation, args: Sequence[Array]) -> Array | None:
    """The result of a `tensor_ir` operation on arrays, or None if `op` is of another dialect."""
    match op:
        case ElementwiseOp():
            return _elementwise(op, args)
        case ReduceOp():
            return _reduce(op, args)
        case IndexMapOp():
            return _index_map(op, args)
        case CastOp():
            return convert(args[0], tensor_type(op.result).element_type)
        case ConstantOp():
            return _constant(op, args)
        case IotaOp():
            return _iota(op, args)
        case GatherOp():
            return _gather(op, args)
        case _:
            return None
