"""`drop-unit-axes`: what kernels leave to each other has no innermost axes of one element.

    %s = loop.kernel @k_s(%x) : (...) -> tensor<512x2048x1xf32> { ... loop.store %v, %s[%i, %j, 0] }
    %y = loop.kernel @k_y(%s) { ... %v = loop.load %s[%i, %j, 0] ... }
becomes
    %s = loop.kernel @k_s(%x) : (...) -> tensor<512x2048xf32> { ... loop.store %v, %s[%i, %j] }
    %y = loop.kernel @k_y(%s) { ... %v = loop.load %s[%i, %j] ... }

A reduction leaves such an axis. The elements lie where they did, but now those that are neighbours differ in
the last index, as vectors of a GPU's threads and boxes of its copy engine have it. The loops of a CPU go by
offsets, whatever the axes are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...analysis.launches import open_kernels
from ...dialects.index import index_properties
from ...dialects.loop import KernelOp, LoadOp, StoreOp
from ...dialects.sizes import shape_of
from ...errors import counted
from ..decisions import record
from .narrow_results import reader_arguments


def unit_axes(memref: SSAValue) -> int:
    """How many innermost axes of an array have one element; one axis stays in any case."""
    assert isinstance(memref.type, MemRefType)
    shape = shape_of(memref.type)
    return next((n for n, extent in enumerate(shape[:0:-1]) if extent != 1), len(shape) - 1)


def drop(kernel: KernelOp, position: int) -> bool:
    """Drop the innermost axes of one element of a result that other kernels read, if it has any."""
    result, argument = kernel.outputs[position], kernel.output_args[position]
    readers = reader_arguments(result)
    count = unit_axes(argument)
    if not readers or not count:
        return False
    accesses = [use.operation for each in (argument, *readers) for use in each.uses]
    if not all(isinstance(op, LoadOp | StoreOp) for op in accesses):
        return False
    assert isinstance(result.type, TensorType)
    shape = list(result.type.shape)[:-count]
    made = TensorType(result.type.element_type, shape, result.type.encoding)
    for value in (result, argument, *readers):
        to = made if value is result else KernelOp.buffer_type(made)
        Rewriter.replace_value_with_new_type(value, to)
    for access in dict.fromkeys(accesses):
        assert isinstance(access, LoadOp | StoreOp)
        exprs, others = list(access.map.data.results)[:-count], len(access.indices)
        access.map, indices = index_properties((exprs, list(access.indices)))
        access.operands = [*access.operands[: len(access.operands) - others], *indices]
    return True


@dataclass(frozen=True)
class DropUnitAxesPass(ModulePass):
    """Drop innermost axes of one element from what a GPU's kernels leave to each other."""

    name = "drop-unit-axes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            dropped = sum(drop(kernel, position) for position in range(len(kernel.outputs)))
            reason = f"{counted(dropped, 'result')} without its innermost axes of one element"
            if not dropped:
                reason = "no result that others read ends with an axis of one element"
            record(self.name, kernel.sym_name.data, dropped > 0, reason, kernel, steps=[self])
