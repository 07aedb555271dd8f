"""Operations on memory in a `cuda.func`: rows of elements, and indices as C++ computes them.

A part of `lower-to-cuda`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from xdsl.dialects import arith
from xdsl.dialects.builtin import DenseArrayBase, IndexType, MemRefType, i64
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.index import known_extent, operand_ranges, simplify
from ...dialects import kernel, loop
from ...dialects.index import Indexed, index_properties
from ...dialects.sizes import extent_expr, memref_of, shape_of
from .cuda_indices import flat_offset, nonnegative


def flat(type: Attribute) -> Attribute:
    """A type, that of memory as one row of elements."""
    if not isinstance(type, MemRefType):
        return type
    count = prod(shape_of(type))
    if isinstance(count, int):
        return MemRefType(type.element_type, [count], memory_space=type.memory_space)
    return memref_of(type.element_type, [count])


def flat_form(op: Operation, place: int | None) -> Sequence[Operation]:
    """What stands for an operation in a `cuda.func`, the last for its results; nothing if it stays.

    Shared memory lies at `place` in what the launch asks for.
    """
    match op:
        case loop.IndexOp():
            expr = nonnegative(op.map.data.results[0], operand_ranges(op.operands_))
            return [loop.IndexOp(expr, op.operands_)]
        case loop.TestOp():
            ranges = operand_ranges(op.operands_)
            return [loop.TestOp([nonnegative(e, ranges) for e in op.exprs], op.operands_)]
        case arith.MinSIOp() if isinstance(op.result.type, IndexType):
            return _least(op)
        case kernel.SharedOp():
            memref = flat(op.result.type)
            assert isinstance(memref, MemRefType)
            return [kernel.SharedOp(memref, None if op.align is None else op.alignment, place)]
        case loop.RegistersOp():
            return [_rebuilt(op)]
        case kernel.WgmmaOp():
            return [_rebuilt(op, extents=DenseArrayBase.from_list(i64, op.shape))]
        case _:
            return [_rebuilt(op)] if hasattr(op, "INDEXED") else []


def _least(op: arith.MinSIOp) -> Sequence[Operation]:
    """A computed end of a loop, at most an extent."""
    if (most := known_extent(op.rhs)) is None:
        return []
    end = loop.IndexOp(extent_expr(most), [])
    less = loop.TestOp([extent_expr(most) + AffineExpr.dimension(0) * -1], [op.lhs])
    return [end, less, arith.SelectOp(less.result, op.lhs, end.result)]


def _rebuilt(op: Operation, **properties: Attribute) -> Operation:
    """An operation with offsets in rows of elements, and some other properties."""
    definition: Any = type(op)
    operands = {n: getattr(op, n) for n, _ in definition.get_irdl_definition().operands}
    said: dict[str, Attribute | None] = {**op.properties, **properties}
    said.pop("operandSegmentSizes", None)
    for index in getattr(op, "INDEXED", ()):
        if index.map in op.properties:
            said[index.map], operands[index.operands] = _offset(op, index)
    return definition.build(
        operands=[*operands.values()],
        properties=said,
        attributes=op.attributes,
        result_types=_result_types(op),
    )


def _result_types(op: Operation) -> list[Any]:
    """The types of the results of an operation, as one, or those of a group."""
    definition: Any = type(op)
    groups = [getattr(op, name) for name, _ in definition.get_irdl_definition().results]
    return [flat(g.type) if isinstance(g, SSAValue) else [flat(v.type) for v in g] for g in groups]


def _offset(op: Any, index: Indexed) -> tuple[Attribute, Sequence[SSAValue]]:
    """An index of an operation as C++ computes it: an offset if it is one of elements."""
    indices, exprs = getattr(op, index.operands), op.properties[index.map].data.results
    memory = None if index.memory is None else getattr(op, index.memory)
    ranges = operand_ranges(indices)
    if memory is not None and isinstance(memory.type, MemRefType):
        exprs = [flat_offset(memory, exprs, ranges)]
    else:
        exprs = [nonnegative(simplify(expr, ranges), ranges) for expr in exprs]
    return index_properties((exprs, indices))
