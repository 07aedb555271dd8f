"""What no kernel of a GPU can be faster than: the rates of the machine, and the bytes that must move."""

from __future__ import annotations

from math import prod

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..dialects.inside import ops_of
from ..dialects.loop import ForOp, KernelOp, LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import shape_of
from ..dialects.tile import LaunchOp
from ..machine.matrix_instructions import MatrixInstruction
from ..machine.targets import Target
from .cost import size_bytes, trips

CACHE_BYTES_PER_CYCLE = 128
"""What no L2 cache gives one multiprocessor more of."""

MATRIX_RATE = 2
"""Tensor cores do at most so many times what is known of them."""


def peak(target: Target, instruction: MatrixInstruction | None = None) -> float:
    """Additions and multiplications that a GPU does in a second, two in a multiply-add.

    Those of tensor cores by an instruction whose cost is known, else those of f32 by 128 lanes of each
    multiprocessor.
    """
    each: float = 128
    if instruction is not None and instruction.cost is not None:
        each = max(target.mma_per_cycle, target.wgmma_per_cycle) / instruction.cost
    return target.processors * each * 2 * target.clock


def seconds_from_memory(count: int, target: Target) -> float:
    """The seconds that so many bytes need if they come from memory."""
    return count / target.dram_bytes_per_second


def seconds_from_cache(count: int, target: Target) -> float:
    """The same if they are in the L2 cache."""
    return count / (target.processors * CACHE_BYTES_PER_CYCLE * target.clock)


def least_bytes(kernel: KernelOp) -> int:
    """Bytes that a kernel moves at least, each element once: its results, and what it reads in any case.

    Of what it reads under a condition nothing counts, and of rows that an index from memory says one.
    """
    read: dict[SSAValue, int] = {}
    for load in ops_of(kernel, LoadOp):
        if load.memref in kernel.input_args and not _is_conditional(load):
            size = storage_bytes(load.result.type) * _elements_read(load)
            read[load.memref] = max(size, read.get(load.memref, 0))
    return sum(read.values()) + sum(size_bytes(result.type) for result in kernel.output_args)


def _elements_read(load: LoadOp) -> int:
    """Different elements of an array that a load reads in one run of its kernel."""
    assert isinstance(load.memref.type, MemRefType)
    places = load.map.data.results
    counts = [prod(_values(load.indices[dim]) for dim in place.used_dims()) for place in places]
    return prod(map(min, counts, map(trips, shape_of(load.memref.type))))


def _values(index: SSAValue) -> int:
    """Values that an index takes: as many as the loop or the axis has that it counts, else one."""
    if not isinstance(index, BlockArgument):
        return 1
    match index.owner.parent_op():
        case ForOp() as loop:
            return trips(loop.extent.data)
        case LaunchOp() as launch:
            return trips(launch.axes.data[index.index].extent.data)
        case _:
            return 1


def _is_conditional(op: Operation) -> bool:
    """Whether an operation of a kernel may not run."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        if isinstance(parent, scf.IfOp):
            return True
        parent = parent.parent_op()
    return False
