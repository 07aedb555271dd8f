"""`assign-arena`: gives each buffer that dies inside a call its place in one block of memory.

    %a = kernel.alloc : memref<32xf32>                   %a = kernel.alloc at 0 : memref<32xf32>
    kernel.launch @f(%x, %a) ...                         kernel.launch @f(%x, %a) ...
    %b = kernel.alloc : memref<32xf32>         becomes   %b = kernel.alloc at 128 : memref<32xf32>
    kernel.launch @g(%a, %b) ...                         kernel.launch @g(%a, %b) ...
    %c = kernel.alloc : memref<32xf32>                   %c = kernel.alloc at 0 : memref<32xf32>
    kernel.launch @h(%b, %c) ...                         kernel.launch @h(%b, %c) ...

A buffer is alive from the first launch that gets it to the last; two that are alive at once never
overlap. Each takes the lowest free place, aligned to 64 bytes. Buffers that the program returns, or calls
PyTorch with, are not in the arena.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from ...analysis.plan import buffer_bytes
from ...dialects.kernel import AllocOp, LaunchOp
from ..decisions import record

ALIGNMENT = 64
"""A cache line, and more than any vector access of a GPU needs."""


@dataclass(frozen=True)
class _Lifetime:
    """A buffer, its size, and the first and last launch (by number) that get it."""

    alloc: AllocOp
    size: int
    first: int
    last: int

    def meets(self, other: _Lifetime) -> bool:
        """Whether both are alive during some launch."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class AssignArenaPass(ModulePass):
    """Needs host functions (`kernel.alloc`, `kernel.launch`); leaves the same with offsets."""

    name = "assign-arena"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Place the buffers of every host function."""
        for function in op.ops:
            if isinstance(function, func.FuncOp) and _is_host(function):
                _place_buffers(function)


def _is_host(function: func.FuncOp) -> bool:
    return any(isinstance(op, AllocOp) for op in function.walk())


def _place_buffers(function: func.FuncOp) -> None:
    launches = [op for op in function.walk() if isinstance(op, LaunchOp)]
    number = {launch: i for i, launch in enumerate(launches)}
    lifetimes: list[_Lifetime] = []
    for alloc in [op for op in function.walk() if isinstance(op, AllocOp)]:
        users = [use.operation for use in alloc.result.uses]
        uses = sorted(number[user] for user in users if isinstance(user, LaunchOp))
        if len(uses) == len(users) and uses:
            size = buffer_bytes(alloc.result.type)
            lifetimes.append(_Lifetime(alloc, size, uses[0], uses[-1]))
        else:
            alloc.offset = None
    end = _first_fit(lifetimes)
    name = function.sym_name.data
    if lifetimes:
        apart = sum(_aligned(lifetime.size) for lifetime in lifetimes)
        reason = f"{len(lifetimes)} buffers of {apart} bytes share {end}"
        record(AssignArenaPass.name, name, True, reason, function)
    else:
        reason = "every buffer is returned or what PyTorch is called with"
        record(AssignArenaPass.name, name, False, reason, function)


def _first_fit(lifetimes: Sequence[_Lifetime]) -> int:
    """Place each buffer at the lowest free offset; the bytes that all need together.

    Larger buffers go first: the small ones then fill the gaps.
    """
    placed: list[tuple[int, _Lifetime]] = []
    end = 0
    for lifetime in sorted(lifetimes, key=lambda each: -each.size):
        offset = 0
        neighbours = ((at, other) for at, other in placed if other.meets(lifetime))
        for at, other in sorted(neighbours, key=lambda pair: pair[0]):
            if offset + lifetime.size <= at:
                break
            offset = max(offset, _aligned(at + other.size))
        placed.append((offset, lifetime))
        lifetime.alloc.offset = IntegerAttr(offset, i64)
        end = max(end, offset + _aligned(lifetime.size))
    return end


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT
