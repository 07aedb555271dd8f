"""The launches of a program."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp


def launches_of(module: Operation) -> Iterator[tuple[KernelOp, LaunchOp]]:
    """Each launch, with its kernel. Launches may change meanwhile; new kernels are not among them."""
    for kernel in [op for op in module.walk() if isinstance(op, KernelOp)]:
        for launch in [op for op in kernel.walk() if isinstance(op, LaunchOp)]:
            yield kernel, launch
