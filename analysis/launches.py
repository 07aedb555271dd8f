"""The kernels and the launches of a program."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.ir import Operation

from ..dialects.inside import ops_in, ops_of
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp


def kernels_of(module: Operation) -> Iterator[KernelOp]:
    """Yield the kernels of the module and of its functions; they stand in no other operation."""
    for op in (op for region in module.regions for block in region.blocks for op in block.ops):
        if isinstance(op, KernelOp):
            yield op
        elif isinstance(op, func.FuncOp):
            yield from kernels_of(op)


def open_kernels(module: Operation) -> list[KernelOp]:
    """The kernels whose schedule no person gave: those that passes may decide about."""
    return [
        kernel
        for kernel in ops_in(module)
        if isinstance(kernel, KernelOp)
        and not any(isinstance(op, LaunchOp) and op.is_given for op in kernel.body.ops)
    ]


def open_launches(module: Operation) -> Iterator[tuple[KernelOp, LaunchOp]]:
    """Each launch that passes may decide about, with its kernel; see `launches_of`."""
    return ((kernel, launch) for kernel, launch in launches_of(module) if not launch.is_given)


def launches_of(module: Operation) -> Iterator[tuple[KernelOp, LaunchOp]]:
    """Each launch, with its kernel. Launches may change meanwhile; new kernels are not among them."""
    for kernel in ops_of(module, KernelOp):
        for launch in ops_of(kernel, LaunchOp):
            yield kernel, launch
