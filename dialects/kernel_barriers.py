"""Barriers of a block's threads in `kernel`: all of them, or some that give theirs a number.

    kernel.barrier
    scf.if %first_warps {
      kernel.named_barrier 1 threads 64
    }
"""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, UnitAttr, i64
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
)
from xdsl.traits import MemoryReadEffect, MemoryWriteEffect
from xdsl.utils.exceptions import VerifyException

from .tile import MAX_THREADS

WARP = 32
"""Threads that run in lockstep and can shuffle (CUDA C++ Programming Guide, "SIMT Architecture")."""

NAMED_BARRIERS = 16
"""Barriers that a block has (PTX ISA, "bar"); number 0 is the one for all of its threads."""


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait for all threads of the block and make their stores visible: `kernel.barrier`.

    `kernel.barrier cluster` waits for those of all blocks of a cluster. `kernel.barrier cluster relaxed` does
    so and makes no stores visible: what was read before may be written behind it.
    """

    name = "kernel.barrier"

    cluster = opt_prop_def(UnitAttr)
    relaxed = opt_prop_def(UnitAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "(`cluster` $cluster^)? (`relaxed` $relaxed^)? attr-dict"

    def __init__(self, cluster: bool = False):
        super().__init__(properties={"cluster": UnitAttr() if cluster else None})

    def verify_(self) -> None:
        if self.relaxed is not None and self.cluster is None:
            raise VerifyException("only a barrier of a cluster can be relaxed")


@irdl_op_definition
class NamedBarrierOp(IRDLOperation):
    """Wait for some threads of the block and make their stores visible to each other.

    `kernel.named_barrier 1 threads 64`: so many threads come, whole warps that follow each other, all to
    this operation.
    """

    name = "kernel.named_barrier"

    number = prop_def(IntegerAttr.constr(i64))
    threads = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "$number `threads` $threads attr-dict"

    def __init__(self, number: int, threads: int):
        super().__init__(
            properties={"number": IntegerAttr(number, i64), "threads": IntegerAttr(threads, i64)}
        )

    def verify_(self) -> None:
        number, threads = self.number.value.data, self.threads.value.data
        if not 0 < number < NAMED_BARRIERS:
            raise VerifyException(f"number must be 1 to {NAMED_BARRIERS - 1}, got {number}")
        if threads % WARP or not 0 < threads <= MAX_THREADS:
            raise VerifyException(
                f"waits for whole warps: threads must be a multiple of {WARP} up to {MAX_THREADS}, "
                f"got {threads}"
            )
