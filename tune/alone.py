"""Kernels as a program of their own."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType, ModuleOp
from xdsl.ir import Block, Region, SSAValue

from ..dialects.loop import KernelOp


def alone(kernels: Sequence[KernelOp]) -> ModuleOp:
    """A program that is these kernels, and gives what the last one computes."""
    made = {value for kernel in kernels for value in kernel.outputs}
    read = dict.fromkeys(value for kernel in kernels for value in kernel.inputs)
    inputs = [value for value in read if value not in made]
    block = Block(arg_types=[value.type for value in inputs])
    values: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for value, argument in zip(inputs, block.args, strict=True):
        argument.name_hint = value.name_hint
    for kernel in kernels:
        block.add_op(kernel.clone(value_mapper=values))
    results = [values[value] for value in kernels[-1].outputs]
    block.add_op(func.ReturnOp(*results))
    types = FunctionType.from_lists([v.type for v in inputs], [v.type for v in results])
    return ModuleOp([func.FuncOp("main", types, Region(block))])
