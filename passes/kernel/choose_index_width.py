"""`choose-index-width`: indices are computed in 32 bits where all of them are proven to fit.

    kernel.func @k(%x: memref<4x8xf32>, %y: memref<4xf32>) blocks(4) threads(1) { ... %x[%i, %k] ... }
becomes
    kernel.func @k(%x: memref<4x8xf32>, %y: memref<4xf32>) blocks(4) threads(1) index(i32) { ... }

The proof takes each index expression as C++ will compute it, with every part of it in any order, over the
whole range of its counters, whatever conditions it stands under: each part, each extent of the kernel's
buffers in elements, and the launch itself must be below 2^31. A dynamic size is what `@main` allows it to be.
What is not proven is computed in 64 bits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, ModuleOp, i32, i64
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import bounds, operand_ranges, simplify
from ...analysis.sizes import size_limits
from ...dialects import kernel, loop
from ...dialects.index import Indexed
from ...dialects.inside import ops_in
from ...dialects.sizes import extent_expr, shape_of
from ...index.ranges import symbols_within
from ..decisions import record
from .cuda_indices import flat_offset, magnitude, nonnegative

LIMIT = 1 << 31


@dataclass(frozen=True)
class _Use:
    """Index expressions over `indices`: the place of an element of `memref`, or numbers if that is None."""

    exprs: Sequence[AffineExpr]
    indices: Sequence[SSAValue]
    memref: SSAValue | None = None


def _uses(op: Operation) -> list[_Use]:
    """The index expressions of an operation."""
    match op:
        case loop.IndexOp():
            return [_Use(op.map.data.results, op.operands_)]
        case loop.TestOp():
            return [_Use(op.exprs, op.operands_)]
        case _:
            return [_use(op, index) for index in getattr(op, "INDEXED", ())]


def _use(op: Any, index: Indexed) -> _Use:
    """An index that an operation has; barriers are numbered, not elements."""
    map, indices = op.properties.get(index.map), getattr(op, index.operands)
    memory = None if index.memory is None else getattr(op, index.memory)
    is_element = memory is not None and isinstance(memory.type, MemRefType)
    return _Use(map.data.results if map else (), indices, memory if is_element else None)


def _numbers(function: kernel.FuncOp) -> Iterator[tuple[int, str]]:
    """What bounds the numbers of a kernel, and where each comes from."""
    yield bounds(extent_expr(function.blocks.data), ())[1], "the grid"
    for argument in function.body.block.args:
        yield from _elements(argument)
    for op in ops_in(function):
        hint = next((r.name_hint for r in op.results if r.name_hint), None) or op.name
        for use in _uses(op):
            ranges = operand_ranges(use.indices)
            if use.memref is None:
                exprs = [nonnegative(simplify(expr, ranges), ranges) for expr in use.exprs]
            else:
                exprs = [flat_offset(use.memref, use.exprs, ranges)]
                hint = f"an index of {use.memref.name_hint or 'a buffer'}"
            yield from ((magnitude(expr, ranges), hint) for expr in exprs)
        for value in op.results:
            yield from _elements(value)
        if isinstance(op, arith.ConstantOp) and isinstance(op.result.type, IndexType):
            assert isinstance(op.value, IntegerAttr)
            yield abs(op.value.value.data), "a constant"


def _elements(value: SSAValue) -> Iterator[tuple[int, str]]:
    """How many elements a buffer has at most."""
    if isinstance(value.type, MemRefType):
        extent = extent_expr(prod(shape_of(value.type)))
        yield bounds(extent, ())[1], f"the size of {value.name_hint or 'a buffer'}"


@dataclass(frozen=True)
class ChooseIndexWidthPass(ModulePass):
    """Say for each kernel in how many bits it computes indices."""

    name = "choose-index-width"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [o for o in op.body.block.ops if isinstance(o, kernel.FuncOp)]
        for function in functions:
            name = function.sym_name.data
            if function.index_type is not None:
                reason = f"indices are {function.index_type} already"
                record(self.name, name, False, reason, function)
                continue
            with symbols_within(size_limits(op, function)):
                large = next((where for most, where in _numbers(function) if most >= LIMIT), None)
            function.index_type = i32 if large is None else i64
            reason = "every index is below 2^31"
            if large is not None:
                reason = f"{large} may reach 2^31, so indices have 64 bits"
            record(self.name, name, large is None, reason, function)
