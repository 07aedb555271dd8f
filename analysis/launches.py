"""The launches of a program."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ..dialects.inside import ops_in
from ..dialects.loop import KernelOp
from ..dialects.tile import LaunchOp


def launches_of(module: Operation) -> Iterator[tuple[KernelOp, LaunchOp]]:
    """Each launch, with its kernel. Launches may change meanwhile; new kernels are not among them."""
    for kernel in [op for op in ops_in(module) if isinstance(op, KernelOp)]:
        for launch in [op for op in ops_in(kernel) if isinstance(op, LaunchOp)]:
            yield kernel, launch
