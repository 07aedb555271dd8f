"""The arguments of a GPU's kernel that it changes."""

from __future__ import annotations

from xdsl.ir import Region, SSAValue

from .inside import ops_in
from .kernel_atomic import AtomicAddOp
from .kernel_vector import VectorStoreOp
from .loop_access import StoreOp


def stores_of(body: Region) -> list[StoreOp | VectorStoreOp]:
    """The stores to the arguments of a kernel."""
    arguments = body.block.args
    stores = [op for op in ops_in(body) if isinstance(op, StoreOp | VectorStoreOp)]
    return [op for op in stores if op.memref in arguments]


def accumulated_in(body: Region) -> set[SSAValue]:
    """The arguments of a kernel that it adds to."""
    added = {op.memref for op in ops_in(body) if isinstance(op, AtomicAddOp)}
    return added.intersection(body.block.args)


def stored_in(body: Region) -> set[SSAValue]:
    """The arguments of a kernel that it stores or adds to."""
    return {op.memref for op in stores_of(body)} | accumulated_in(body)
