"""`assign-arena`: gives each buffer that dies inside a call its place in one block of memory.

    %a = kernel.alloc : memref<32xf32>                   %a = kernel.alloc at 0 : memref<32xf32>
    kernel.launch @f(%x, %a) ...                         kernel.launch @f(%x, %a) ...
    %b = kernel.alloc : memref<32xf32>         becomes   %b = kernel.alloc at 128 : memref<32xf32>
    kernel.launch @g(%a, %b) ...                         kernel.launch @g(%a, %b) ...
    %c = kernel.alloc : memref<32xf32>                   %c = kernel.alloc at 0 : memref<32xf32>
    kernel.launch @h(%b, %c) ...                         kernel.launch @h(%b, %c) ...

A buffer is alive from the first launch that gets it to the last, and while those run that may run at once
with them (`group-launches`); one from outside of a loop that the loop uses, until the loop ends. Two that are
alive at once never overlap. Each takes the lowest free place,
aligned to 64 bytes. Buffers that the program returns, or calls PyTorch with, are not in the arena, nor are
those with sizes that PyTorch finds, which no argument says.

Where sizes are dynamic, what is free cannot be told by numbers. There the arena is a row of slots, each as
large as the first buffer in it; a buffer takes a slot that is surely large enough and whose buffers it never
meets, or else a new one at the end:

    %a = kernel.alloc at 0 : memref<?x64xf32, #sym.extents<s0>>
    %b = kernel.alloc at s0 * 256 : memref<?x16xf32, #sym.extents<s0>>
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of, trips
from ...analysis.index import always_holds
from ...analysis.launch_groups import groups_of, users_of
from ...analysis.plan import buffer_bytes
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import AllocOp, CallOp, LaunchOp, LoopOp
from ...dialects.kernel_loop import loop_around
from ...dialects.sizes import Extent, ExtentAttr, Size, extent_expr, shape_of, static_extent
from ..decisions import record

ALIGNMENT = 64
"""A cache line, and more than any vector access of a GPU needs."""


@dataclass(frozen=True)
class _Lifetime:
    """A buffer, its size, and the first and last group of launches (by number) that get it."""

    alloc: AllocOp
    size: Extent
    first: int
    last: int

    def meets(self, other: _Lifetime) -> bool:
        """Whether both are alive during some group."""
        return self.first <= other.last and other.first <= self.last


@dataclass(frozen=True)
class AssignArenaPass(ModulePass):
    """Needs host functions (`kernel.alloc`, `kernel.launch`); leaves the same with offsets."""

    name = "assign-arena"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Place the buffers of every host function."""
        with hints_of(op):
            for function in op.ops:
                if isinstance(function, func.FuncOp) and _is_host(function):
                    _place_buffers(function)


def _is_host(function: func.FuncOp) -> bool:
    return any(isinstance(op, AllocOp) for op in ops_in(function))


def _place_buffers(function: func.FuncOp) -> None:
    steps = ops_of(function, LaunchOp, CallOp)
    number: dict[Operation, int] = {
        step: i for i, group in enumerate(groups_of(steps)) for step in group
    }
    spans: dict[Operation, tuple[int, int]] = {
        step: (i, i) for step, i in number.items() if isinstance(step, LaunchOp)
    }
    spans |= {op: _span(op, number) for op in ops_in(function) if isinstance(op, LoopOp)}
    lifetimes: list[_Lifetime] = []
    said = {n for type in function.function_type.inputs for n in _symbols(type)}
    for alloc in ops_of(function, AllocOp):
        users = {_user_beside(alloc, user) for user in users_of(alloc.result)}
        if users and users <= spans.keys() and _symbols(alloc.result.type) <= said:
            size = _aligned(buffer_bytes(alloc.result.type))
            uses = [number for user in users for number in spans[user]]
            lifetimes.append(_Lifetime(alloc, size, min(uses), max(uses)))
        else:
            alloc.offset = None
    before = [lifetime.alloc.offset for lifetime in lifetimes]
    dynamic = any(isinstance(lifetime.size, Size) for lifetime in lifetimes)
    end = _slots(lifetimes) if dynamic else _first_fit(lifetimes)
    name = function.sym_name.data
    if lifetimes and before == [lifetime.alloc.offset for lifetime in lifetimes]:
        record(AssignArenaPass.name, name, False, "its buffers are placed already", function)
    elif lifetimes:
        apart = sum(trips(lifetime.size) for lifetime in lifetimes)
        reason = f"{len(lifetimes)} buffers of {apart} bytes share {trips(end)}"
        reason += " where sizes are as hinted" if dynamic else ""
        record(AssignArenaPass.name, name, True, reason, function)
    else:
        reason = "every buffer is returned, or what PyTorch is called with or says the size of"
        record(AssignArenaPass.name, name, False, reason, function)


def _span(loop: LoopOp, number: Mapping[Operation, int]) -> tuple[int, int]:
    """The numbers of the first and the last group of launches of a loop."""
    inside = [number[op] for op in ops_in(loop) if op in number]
    return min(inside, default=0), max(inside, default=0)


def _user_beside(alloc: AllocOp, user: Operation) -> Operation:
    """What uses a buffer, or the loop that this stands in where the buffer does not."""
    loop = loop_around(user)
    return user if loop is None or loop is loop_around(alloc) else loop


def _symbols(type: Attribute) -> set[int]:
    """The dynamic sizes that a buffer's extents depend on."""
    shape = shape_of(cast(MemRefType, type)) if isinstance(type, MemRefType) else ()
    return {symbol for extent in shape if isinstance(extent, Size) for symbol in extent.symbols}


def _first_fit(lifetimes: Sequence[_Lifetime]) -> int:
    """Place each buffer at the lowest free offset; the bytes that all need together.

    Larger buffers go first: the small ones then fill the gaps.
    """
    placed: list[tuple[int, int, _Lifetime]] = []
    end = 0
    for lifetime in sorted(lifetimes, key=lambda each: -static_extent(each.size)):
        size, offset = static_extent(lifetime.size), 0
        neighbours = (place for place in placed if place[2].meets(lifetime))
        for first, last, _ in sorted(neighbours, key=lambda place: place[0]):
            if offset + size <= first:
                break
            offset = max(offset, last)
        placed.append((offset, offset + size, lifetime))
        lifetime.alloc.offset = ExtentAttr(offset)
        end = max(end, offset + size)
    return end


@dataclass(frozen=True)
class _Slot:
    """Part of the arena that buffers use one after the other."""

    offset: Extent
    size: Extent
    users: list[_Lifetime]

    def is_free_for(self, lifetime: _Lifetime) -> bool:
        """Whether nobody else uses it at the time of a buffer."""
        return not any(user.meets(lifetime) for user in self.users)


def _slots(lifetimes: Sequence[_Lifetime]) -> Extent:
    """Place buffers of dynamic sizes in slots, largest first by the hints; the bytes that all need."""

    @functools.cache
    def has_room(slot: Extent, size: Extent) -> bool:
        return slot == size or always_holds(extent_expr(slot - size), ())

    slots: list[_Slot] = []
    end: Extent = 0
    for lifetime in sorted(lifetimes, key=lambda each: -trips(each.size)):
        free = (slot for slot in slots if slot.is_free_for(lifetime))
        slot = next((slot for slot in free if has_room(slot.size, lifetime.size)), None)
        if slot is None:
            slot = _Slot(end, lifetime.size, [])
            slots.append(slot)
            end = end + lifetime.size
        slot.users.append(lifetime)
        lifetime.alloc.offset = ExtentAttr(slot.offset)
    return end


def _aligned(size: Extent) -> Extent:
    return (size + (ALIGNMENT - 1)) // ALIGNMENT * ALIGNMENT
