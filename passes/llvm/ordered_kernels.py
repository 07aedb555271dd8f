"""CPU kernels whose loops run in the order they stand in: shared by what writes where data says.

    func.func @k_scatter(%i: memref<4xi64>, ..., %block_begin: index, %block_end: index, ...)
        attributes {deplo.kernel, deplo.ordered} {
      scf.for %block = %block_begin to %block_end step %c1 { ... }
    }

Blocks are independent of each other, as those of any kernel are. Inside of one a loop may read what an
earlier iteration wrote, so the passes that exchange, cut or copy loops keep away from functions with
`deplo.ordered`.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import prod
from typing import cast

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    MemRefType,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.cost import trips
from ...analysis.index import extent_range, simplify
from ...dialects.index import delinearize
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.scalars import bits_of
from ...dialects.schedule import KERNEL_ATTRIBUTE
from ...dialects.sizes import Extent, memref_of, shape_of
from ...errors import counted
from ..decisions import record
from ..host import Device
from ..lower_loops import IndexConstants, lower_loops
from .kernel_loops import ORDERED_ATTRIBUTE
from .loop_code import LoopCode, allocate

INDEX = IndexType()


class OrderedKernel:
    """A kernel under construction: `code` inserts into its blocks, `buffers` are what it gets."""

    def __init__(self, name: str, values: Sequence[SSAValue], names: Sequence[str]):
        self.name = name
        types = [bits_type(value.type) for value in values]
        self._entry = Block(arg_types=[*types, INDEX, INDEX, MemRefType(i64, [1])])
        hints = [*names, "block_begin", "block_end", "status"]
        for argument, hint in zip(self._entry.args, hints, strict=True):
            argument.name_hint = hint
        self.buffers = self._entry.args[: len(types)]
        self.constants = IndexConstants(self._entry)
        self.code = LoopCode(self._entry, self.constants)
        self._scratch: list[SSAValue] = []
        self._blocks: Extent = 1

    def scratch(self, element: Attribute, count: Extent, name: str) -> SSAValue:
        """A flat buffer of the function's own."""
        sizes = [] if isinstance(count, int) else [self.constants.get(count)]
        alloc = allocate(memref_of(element, (count,)), self.constants, sizes)
        alloc.memref.name_hint = name
        self._scratch.append(alloc.memref)
        return alloc.memref

    @contextmanager
    def blocks(self, extents: Sequence[Extent]) -> Generator[list[SSAValue]]:
        """Open the loop over blocks; gives a counter for each extent."""
        self._blocks = prod(extents)
        begin, end = self._entry.args[-3:-1]
        ranges = [extent_range(self._blocks)]
        with self.code.loop(end, "block", begin) as block:
            exprs = delinearize(AffineExpr.dimension(0), extents)
            yield [self.code.index(simplify(expr, ranges), [block]) for expr in exprs]

    def load(
        self, buffer: SSAValue, place: Sequence[AffineExpr], operands: Sequence[SSAValue]
    ) -> SSAValue:
        """An element of a buffer."""
        return self.code.insert(LoadOp(buffer, place, operands))

    def store(
        self,
        value: SSAValue,
        buffer: SSAValue,
        place: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
    ) -> None:
        """Write an element of a buffer."""
        self.code.builder.insert(StoreOp(value, buffer, place, operands))

    def finish(self, op: Operation, how: str) -> Device:
        """The function, complete: it does `op`, and `how`."""
        for buffer in self._scratch:
            self.code.builder.insert(memref.DeallocOp.get(buffer))
        self.code.builder.insert(func.ReturnOp())
        lower_loops(self._entry, self.constants)
        signature = FunctionType.from_lists(list(self._entry.arg_types), [])
        function = func.FuncOp(self.name, signature, Region(self._entry))
        function.attributes[KERNEL_ATTRIBUTE] = UnitAttr()
        function.attributes[ORDERED_ATTRIBUTE] = UnitAttr()
        blocks = trips(self._blocks)
        record("lower-tile-to-scf", self.name, True, f"{how}, in {counted(blocks, 'block')}", op)
        return Device(function, self._blocks, 1)


def place_along(
    counters: Sequence[SSAValue], axis: int, position: SSAValue
) -> tuple[list[AffineExpr], list[SSAValue]]:
    """The place at a position of an axis that a block goes along; the other axes have its counters."""
    operands = [position if i == axis else counter for i, counter in enumerate(counters)]
    return [AffineExpr.dimension(i) for i in range(len(operands))], operands


def bits_type(type: Attribute) -> MemRefType:
    """The memref that a kernel sees of a tensor or of its buffer."""
    held = cast("TensorType | MemRefType", type)
    return memref_of(bits_of(held.element_type), shape_of(held))
