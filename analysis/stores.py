"""Where a GPU's kernel stores, and what decides it."""

from __future__ import annotations

from typing import TypeAlias

from xdsl.ir import Block, Operation, SSAValue

from ..dialects import cuda, kernel, loop
from ..dialects.inside import ops_in
from ..dialects.kernel_atomic import AtomicAddBase

KernelFunc: TypeAlias = kernel.FuncOp | cuda.FuncOp

_DATA = (
    loop.LoadOp,
    cuda.LoadOp,
    kernel.VectorLoadOp,
    cuda.VectorLoadOp,
    kernel.ShuffleOp,
    cuda.ShuffleXorOp,
    cuda.VariableOp,
)


def _stores(function: KernelFunc) -> list[tuple[Operation, SSAValue, list[SSAValue]]]:
    """The stores to a kernel's arguments, each with the argument and what its index is made of."""
    found: list[tuple[Operation, SSAValue, list[SSAValue]]] = []
    for op in ops_in(function):
        if isinstance(op, loop.StoreOp | kernel.VectorStoreOp | cuda.VectorStoreOp):
            found.append((op, op.memref, list(op.indices)))
        elif isinstance(op, cuda.StoreOp):
            found.append((op, op.pointer, list(op.offset)))
    arguments = function.body.block.args
    return [store for store in found if store[1] in arguments]


def stored_arguments(function: KernelFunc) -> set[SSAValue]:
    """The arguments of a kernel that it stores to."""
    return {argument for _, argument, _ in _stores(function)} | accumulated_arguments(function)


def accumulated_arguments(function: KernelFunc) -> set[SSAValue]:
    """The arguments of a kernel that it adds to."""
    atomics = [o for o in ops_in(function) if isinstance(o, AtomicAddBase)]
    return {o.memref for o in atomics if o.memref in function.body.block.args}


def storing_operations(function: KernelFunc) -> set[Operation] | None:
    """A kernel's stores to its arguments, and all operations that decide where and whether they happen.

    None if that depends on what the kernel reads or carries around a loop, or if several threads may change
    one element.
    """
    if accumulated_arguments(function):
        return None
    needed: set[Operation] = set()
    values: list[SSAValue] = []
    for op, _, index in _stores(function):
        needed.add(op)
        values += index
        parent = op.parent_op()
        while parent is not None and parent is not function:
            needed.add(parent)
            values += [*parent.operands, *parent.results]
            parent = parent.parent_op()
    while values:
        owner = values.pop().owner
        if isinstance(owner, Block):
            continue
        if isinstance(owner, _DATA) or owner.regions:
            return None
        if owner not in needed:
            needed.add(owner)
            values += owner.operands
    return needed
