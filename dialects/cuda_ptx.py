"""CUDA C++ text of the operations in `cuda_async.py`: one inline PTX statement each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import Operation, SSAValue

from . import cuda


class Names(Protocol):
    """What the text of an operation is made of; `CudaPrinter` has it."""

    def name(self, value: SSAValue) -> str:
        """The C++ name of a value."""
        ...

    def element(self, pointer: SSAValue, map: AffineMapAttr, operands: Sequence[SSAValue]) -> str:
        """The C++ text of an element of memory."""
        ...


def asm(text: str, *inputs: tuple[str, str]) -> str:
    """Inline PTX that touches memory, with (register, expression) inputs."""
    listed = ", ".join(f'"{register}"({expression})' for register, expression in inputs)
    return (
        f'asm volatile("{text}" :: {listed} : "memory");'
        if inputs
        else (f'asm volatile("{text}" ::: "memory");')
    )


def shared_address(element: str) -> tuple[str, str]:
    """The address of an element of shared memory as an input of PTX."""
    return "r", f"(unsigned)__cvta_generic_to_shared(&{element})"


def _cp_async(names: Names, op: cuda.CpAsyncOp) -> str:
    size = op.bytes.value.data
    cache = "cg" if size == 16 else "ca"  # a whole sector is not kept in L1
    inputs = [
        shared_address(names.element(op.destination, op.map, op.offset)),
        ("l", f"&{names.element(op.source, op.source_map, op.source_offset)}"),
    ]
    if op.condition is not None:
        inputs.append(("r", f"{names.name(op.condition)} ? {size} : 0"))
    source_size = "" if op.condition is None else ", %2"
    return asm(f"cp.async.{cache}.shared.global [%0], [%1], {size}{source_size};", *inputs)


PTX_STATEMENTS: dict[type[Operation], Callable[[Names, Any], str]] = {
    cuda.CpAsyncOp: _cp_async,
    cuda.CpAsyncCommitOp: lambda names, op: asm("cp.async.commit_group;"),
    cuda.CpAsyncWaitOp: lambda names, op: asm(f"cp.async.wait_group {op.pending.value.data};"),
}
"""The statement of each operation."""
