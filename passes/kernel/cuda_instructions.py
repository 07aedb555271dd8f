"""Operations of `kernel` and accesses in a `cuda.func`: what they are, on rows of elements and C++'s values.

A part of `lower-to-cuda`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Protocol

from xdsl.builder import Builder
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, UnitAttr, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...analysis.index import operand_ranges, simplify
from ...dialects import cuda, kernel
from ...dialects.index import Indexed, index_properties
from ...dialects.sizes import memref_of, shape_of
from .cuda_indices import flat_offset, nonnegative


class Lowering(Protocol):
    """What the lowering of an operation is made of; `lower_to_cuda.py` has it."""

    values: dict[SSAValue, SSAValue]
    builder: Builder


def flat(type: Attribute) -> Attribute:
    """A type, that of memory as one row of elements."""
    if not isinstance(type, MemRefType):
        return type
    count = prod(shape_of(type))
    if isinstance(count, int):
        return MemRefType(type.element_type, [count], memory_space=type.memory_space)
    return memref_of(type.element_type, [count])


def lower_instruction(state: Lowering, op: Operation) -> None:
    """Insert an operation as it is."""
    new = _rebuilt(state, op)
    state.builder.insert(new)
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
        state.values[old] = result


def lower_product(state: Lowering, op: kernel.WgmmaOp) -> None:
    """Insert a product of slabs, onto variables if its sums are some."""
    onto = _onto_variables(state, op.sums)
    new = _rebuilt(state, op, onto=onto, extents=DenseArrayBase.from_list(i64, op.shape))
    _put_totals(state, op.products, new)


def lower_wait(state: Lowering, op: kernel.WgmmaWaitOp) -> None:
    """Insert a wait for products, onto variables if their sums are some."""
    _put_totals(state, op.results_, _rebuilt(state, op, onto=_onto_variables(state, op.sums)))


def _rebuilt(state: Lowering, op: Operation, **properties: Attribute | None) -> Any:
    """An operation on the values of C++, with offsets in rows of elements, and some other properties."""
    definition: Any = type(op)
    groups = definition.get_irdl_definition()
    operands = {
        name: _each(getattr(op, name), state.values.__getitem__) for name, _ in groups.operands
    }
    said: dict[str, Attribute | None] = {**op.properties, **properties}
    said.pop("operandSegmentSizes", None)
    for index in getattr(op, "INDEXED", ()):
        if index.map in op.properties:
            said[index.map], operands[index.operands] = _offset(state, op, index)
    results = [_each(getattr(op, name), lambda v: flat(v.type)) for name, _ in groups.results]
    if properties.get("onto") is not None:
        results = [[]]
    return definition.build(operands=[*operands.values()], properties=said, result_types=results)


def _each(held: SSAValue | Sequence[SSAValue] | None, get: Callable[[SSAValue], Any]) -> Any:
    """What stands for one value, for none or for each of several."""
    if held is None or isinstance(held, SSAValue):
        return None if held is None else get(held)
    return [get(value) for value in held]


def _offset(state: Lowering, op: Any, index: Indexed) -> tuple[Attribute, list[SSAValue]]:
    """An index of an operation as C++ computes it: an offset if it is one of elements."""
    indices, exprs = getattr(op, index.operands), op.properties[index.map].data.results
    memory = None if index.memory is None else getattr(op, index.memory)
    ranges = operand_ranges(indices)
    if memory is not None and isinstance(memory.type, MemRefType):
        exprs = [flat_offset(memory, exprs, ranges)]
    else:
        exprs = [nonnegative(simplify(expr, ranges), ranges) for expr in exprs]
    return index_properties((exprs, [state.values[value] for value in indices]))


def _onto_variables(state: Lowering, sums: Sequence[SSAValue]) -> UnitAttr | None:
    """Whether sums are variables that nothing else reads: a product may be added onto them.

    A copy of one whose product is on its way would have the tensor cores wait for each other.
    """
    variables = all(isinstance(state.values[v].owner, cuda.VariableOp) for v in sums)
    return UnitAttr() if variables and all(v.has_one_use() for v in sums) else None


def _put_totals(
    state: Lowering,
    results: Sequence[SSAValue],
    new: kernel.WgmmaOp | kernel.WgmmaWaitOp,
) -> None:
    """Insert an operation whose totals stand for some results."""
    state.builder.insert(new)
    for old, total in zip(results, new.totals, strict=True):
        total.name_hint = total.name_hint or old.name_hint
        state.values[old] = total
