"""Where a GPU's kernel accesses memory, and what decides it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, i1
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ..dialects import cuda, kernel, loop
from ..dialects.inside import ops_in
from ..dialects.stored import accumulated_in, stores_of

KernelFunc: TypeAlias = kernel.FuncOp | cuda.FuncOp

_DATA = (loop.LoadOp, kernel.VectorLoadOp, kernel.ShuffleOp)


def storing_operations(function: KernelFunc) -> set[Operation] | None:
    """A kernel's stores to its arguments, and all operations that decide where and whether they happen.

    None if that depends on what the kernel reads or carries around a loop, or if several threads may change
    one element.
    """
    if accumulated_in(function.body):
        return None
    needed: set[Operation] = set()
    values: list[SSAValue] = []
    for op in stores_of(function.body):
        needed.add(op)
        values += op.indices
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


def addresses_depend_on_data(function: KernelFunc) -> bool:
    """Whether what a kernel reads may decide which elements it accesses, or which way its threads go."""
    seen: set[SSAValue] = set()
    values = [
        value
        for op in ops_in(function)
        if not isinstance(op, kernel.AssertOp)
        for value in op.operands
        if isinstance(value.type, IndexType) or (value.type == i1 and _decides(op))
    ]
    while values:
        value = values.pop()
        if value in seen:
            continue
        seen.add(value)
        if isinstance(value.owner, _DATA):
            return True
        values += _sources(value)
    return False


def _decides(op: Operation) -> bool:
    """Whether a condition among an operation's operands decides what is executed or accessed."""
    return bool(op.regions) or not op.results


def _sources(value: SSAValue) -> Sequence[SSAValue]:
    """The values that a value is made of: those it is computed from, and what a loop or a branch hands on."""
    op = value.block.parent_op() if isinstance(value, BlockArgument) else value.owner
    match op, value:
        case scf.ForOp(), BlockArgument(index=0):
            return (op.lb, op.ub, op.step)
        case scf.ForOp(), BlockArgument() | OpResult():
            position = value.index - 1 if isinstance(value, BlockArgument) else value.index
            return (op.iter_args[position], _yielded(op.body)[position])
        case scf.IfOp(), OpResult():
            branches = (op.true_region, op.false_region)
            return (op.cond, *(_yielded(region)[value.index] for region in branches))
        case kernel.FuncOp() | cuda.FuncOp(), _:
            return ()
        case Operation(), _:
            return op.operands
        case _:
            return ()


def _yielded(region: Region) -> Sequence[SSAValue]:
    terminator = region.block.last_op
    return terminator.operands if isinstance(terminator, scf.YieldOp) else ()
