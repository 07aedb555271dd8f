"""Calls that are like an earlier one: one check for all arguments, one native call for all launches.

Where PyTorch runs an operator in between, there is a native call for the launches before it, and one for
those behind.

What a call has to find out, its arguments' dtypes, shapes and strides and which launches are worth other
threads' help, an earlier call has found out. PyTorch's own guard, the one that Dynamo puts in front of
compiled functions, says whether arguments are like those of that call; `deplo_run` goes through the launches.
"""

from __future__ import annotations

import array
import ctypes
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from operator import call
from typing import Any, cast

from . import native_code
from .native_loops import NativeMoves
from .own_calls import BoundCall
from .threads import Sharing


@dataclass(frozen=True)
class NativeLaunch:
    """A launch with everything settled."""

    driver: int
    kernel: int
    blocks: int
    chunk: int
    threads: int
    """How many threads share it; 1 for the calling one alone."""
    arrays: tuple[int, ...]
    """Its arrays, by their position among the values of a call."""
    sizes: tuple[int, ...]
    messages: tuple[str, ...]
    """What its checks say when they fail."""
    more: bool = False
    """Whether the next launch runs at once with it."""


NativeStep = NativeLaunch | NativeMoves
"""What a native call does."""


@dataclass(frozen=True)
class PreparedCall:
    """Runs a plan on tensors like those that `fits` was made of."""

    shared: Sharing
    count: int
    """How many arguments there are."""
    fits: Callable[..., bool]
    """Whether so many arguments are like those of the earlier call: their types, dtypes, shapes, strides."""
    arena_bytes: int
    run: Callable[[Sequence[Any], int], tuple[Any, ...] | str]
    """The results for arguments and the address of the arena, or what a check says that failed."""
    parts: Sequence[BoundCall | NativePart]
    """What it consists of; `run` has only the addresses of their programs."""


def nothing() -> None:
    """Makes what takes the place of a tensor that a call of PyTorch will make."""


def prepare(
    shared: Sharing,
    count: int,
    fits: Callable[..., bool],
    pointer: Callable[[Any], int],
    makers: Sequence[Callable[[], Any]],
    arena_bytes: int,
    offsets: Sequence[int],
    numbers: Sequence[int],
    steps: Sequence[NativeStep | BoundCall],
    results: Sequence[int],
) -> PreparedCall:
    """A call of these steps with `count` arguments that fit. A launch of several threads needs a team.

    Behind the arguments stand new tensors, one of each of `makers`, and behind these places in the arena, at
    `offsets`, and then `numbers`, which loops need. Launches name their arrays by these positions, as do
    calls of PyTorch, which know the tensors only, and `results`, which are not in the arena.
    """
    launches = [step for step in steps if isinstance(step, NativeLaunch)]
    addresses = count + len(makers) + len(offsets) + len(numbers)
    sizes = [*numbers, *(size for each in launches for size in each.sizes)]
    pack = struct.Struct(f"{addresses + len(sizes) - len(numbers)}q").pack
    native = deplo_run()
    parts: list[BoundCall | NativePart] = []
    for is_call, group in groupby(steps, lambda step: isinstance(step, BoundCall)):
        if is_call:
            parts += cast(Iterable[BoundCall], group)
        else:
            part = NativePart.of(shared, list(cast(Iterable[NativeStep], group)), addresses)
            addresses += part.sizes
            parts.append(part)

    # This is what every call costs: builtins and names of this function are what is fastest.
    def run(arguments: Sequence[Any], arena: int) -> tuple[Any, ...] | str:
        tensors = [*arguments, *map(call, makers)]
        places = [arena + offset for offset in offsets] if offsets else ()
        if failed := native(address, pack(*map(pointer, tensors), *places, *sizes)):
            return messages[failed >> 32][(failed & 0xFFFFFFFF) - 1]
        return tuple([tensors[i] for i in results])

    def run_parts(arguments: Sequence[Any], arena: int) -> tuple[Any, ...] | str:
        tensors = [*arguments, *map(call, makers)]
        places = [arena + offset for offset in offsets]
        for part in parts:
            if isinstance(part, BoundCall):
                part.run(tensors)
                continue
            pointers = [0 if each is None else pointer(each) for each in tensors]
            if failed := native(part.address, pack(*pointers, *places, *sizes)):
                return part.messages[failed >> 32][(failed & 0xFFFFFFFF) - 1]
        return tuple([tensors[i] for i in results])

    if len(parts) == 1 and isinstance(parts[0], NativePart):
        address, messages = parts[0].address, parts[0].messages
        return PreparedCall(shared, count, fits, arena_bytes, run, parts)
    return PreparedCall(shared, count, fits, arena_bytes, run_parts, parts)


@dataclass(frozen=True)
class NativePart:
    """What one native call runs."""

    program: array.array[int]
    """What `deplo_run` is told of the launches; it has only the address of it."""
    sizes: int
    """How many sizes the launches have."""
    messages: tuple[tuple[str, ...], ...]
    """What each step's checks say when they fail."""

    @property
    def address(self) -> int:
        """Where the program is."""
        return self.program.buffer_info()[0]

    @staticmethod
    def of(shared: Sharing, steps: Sequence[NativeStep], first_size: int) -> NativePart:
        """The part of these steps; the launches' sizes are among a call's values from `first_size` on."""
        groups: list[list[int]] = []
        program: list[int] = []
        starts: list[int] = []
        size, joins = first_size, False
        for number, each in enumerate(steps):
            starts.append(len(program))
            if isinstance(each, NativeMoves):
                program += each.words(len(program) - starts[number - each.back])
                continue
            positions = (*each.arrays, *range(size, size + len(each.sizes)))
            size += len(each.sizes)
            numbered = 0 if each.threads == 1 or shared.team is None else shared.team.thread_number
            task = (each.kernel, 0, each.blocks, each.chunk, each.threads, numbered)
            program += (each.driver, int(each.more), *task, len(positions), *positions)
            if not joins:
                groups.append([])
            joins = each.more
            words = native_code.TASK_WORDS + len(positions) + 8 + native_code.COUNTER_WORDS * each.threads
            groups[-1].append(words)
        team = 0 if shared.team is None else shared.team.address
        members = max(map(len, groups), default=0)
        grouped = native_code.group_driver().address if members > 1 else 0
        head = (len(steps), max(map(sum, groups), default=0), members, team, grouped)
        text = array.array("q", (*head, *program))
        said = (each.messages if isinstance(each, NativeLaunch) else () for each in steps)
        return NativePart(text, size - first_size, tuple(said))


@cache
def deplo_run() -> Callable[[int, bytes], int]:
    """`deplo_run(program, values)`; it releases the GIL.

    It writes to `values` if there are loops, so these must be bytes that nobody else has.
    """
    compiled = native_code.compile_kernel("deplo_run", RUN)
    kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_char_p)
    return kind(compiled.address)


_HEAD = 6
"""The words of a task that a program says; the next two begin as 0."""

# A program is its number of steps, the words of the largest group's tasks, how many these are at most and
# the addresses of GOMP_parallel and of the driver of groups; then for each launch its driver, whether the
# next is in its group, the head of its task, and how many arguments it has and which. A step with 0 in place
# of a driver moves places: how many words and steps to go back, the position of the number of turns left,
# and how many moves there are and which.
RUN = f"""
define i64 @deplo_run(ptr noalias %program, ptr noalias %values) {{
  %count = load i64, ptr %program
  %program1 = getelementptr i64, ptr %program, i64 1
  %words = load i64, ptr %program1
  %program2 = getelementptr i64, ptr %program, i64 2
  %members = load i64, ptr %program2
  %program3 = getelementptr i64, ptr %program, i64 3
  %team = load ptr, ptr %program3
  %program4 = getelementptr i64, ptr %program, i64 4
  %grouped = load ptr, ptr %program4
  %first = getelementptr i64, ptr %program, i64 5
  %room = add i64 %words, 8
  %memory = alloca i64, i64 %room, align 64
  %pairs = shl i64 %members, 1
  %group_room = add i64 %pairs, {native_code.GROUP_WORDS}
  %group = alloca i64, i64 %group_room, align 64
  %group1 = getelementptr i64, ptr %group, i64 1
  %group2 = getelementptr i64, ptr %group, i64 2
  %group3 = getelementptr i64, ptr %group, i64 {native_code.GROUP_WORDS}
  br label %launches
launches:
  %n = phi i64 [ 0, %0 ], [ %following, %passed ], [ %goes_on, %moved ]
  %at = phi ptr [ %first, %0 ], [ %after, %passed ], [ %goes_on_at, %moved ]
  %waiting = phi i64 [ 0, %0 ], [ %left_waiting, %passed ], [ 0, %moved ]
  %free = phi ptr [ %memory, %0 ], [ %left_free, %passed ], [ %memory, %moved ]
  %any = icmp slt i64 %n, %count
  br i1 %any, label %step, label %done
step:
  %driver = load ptr, ptr %at
  %is_launch = icmp ne ptr %driver, null
  br i1 %is_launch, label %launch, label %moves
moves:
  %moves1 = getelementptr i64, ptr %at, i64 1
  %words_back = load i64, ptr %moves1
  %moves2 = getelementptr i64, ptr %at, i64 2
  %steps_back = load i64, ptr %moves2
  %moves3 = getelementptr i64, ptr %at, i64 3
  %turns_at = load i64, ptr %moves3
  %moves4 = getelementptr i64, ptr %at, i64 4
  %move_count = load i64, ptr %moves4
  %first_move = getelementptr i64, ptr %at, i64 5
  br label %next_move
next_move:
  %m = phi i64 [ 0, %moves ], [ %m1, %move ]
  %triple = mul i64 %m, 3
  %move_at = getelementptr i64, ptr %first_move, i64 %triple
  %moves_more = icmp slt i64 %m, %move_count
  br i1 %moves_more, label %move, label %all_moved
move:
  %to = load i64, ptr %move_at
  %move_at1 = getelementptr i64, ptr %move_at, i64 1
  %from = load i64, ptr %move_at1
  %move_at2 = getelementptr i64, ptr %move_at, i64 2
  %add = load i64, ptr %move_at2
  %from_at = getelementptr i64, ptr %values, i64 %from
  %from_value = load i64, ptr %from_at
  %add_at = getelementptr i64, ptr %values, i64 %add
  %add_value = load i64, ptr %add_at
  %to_value = add i64 %from_value, %add_value
  %to_at = getelementptr i64, ptr %values, i64 %to
  store i64 %to_value, ptr %to_at
  %m1 = add i64 %m, 1
  br label %next_move
all_moved:
  %counts = icmp sge i64 %turns_at, 0
  br i1 %counts, label %count_turn, label %moved
count_turn:
  %turns_place = getelementptr i64, ptr %values, i64 %turns_at
  %turns = load i64, ptr %turns_place
  %turns_left = sub i64 %turns, 1
  store i64 %turns_left, ptr %turns_place
  %again = icmp sgt i64 %turns_left, 0
  br label %moved
moved:
  %goes_back = phi i1 [ false, %all_moved ], [ %again, %count_turn ]
  %steps_gone = sub i64 0, %steps_back
  %words_gone = sub i64 0, %words_back
  %back_at = getelementptr i64, ptr %at, i64 %words_gone
  %step_before = add i64 %n, %steps_gone
  %step_behind = add i64 %n, 1
  %goes_on = select i1 %goes_back, i64 %step_before, i64 %step_behind
  %goes_on_at = select i1 %goes_back, ptr %back_at, ptr %move_at
  br label %launches
launch:
  %at1 = getelementptr i64, ptr %at, i64 1
  %next = load i64, ptr %at1
  %head = getelementptr i64, ptr %at, i64 2
  %placed = getelementptr i64, ptr %at, i64 {_HEAD + 2}
  %arguments = load i64, ptr %placed
  %positions = getelementptr i64, ptr %at, i64 {_HEAD + 3}
  %short = sub i64 0, %arguments
  %skipped = and i64 %short, 7
  %task = getelementptr i64, ptr %free, i64 %skipped
  call void @llvm.memcpy.p0.p0.i64(ptr %task, ptr %head, i64 {8 * _HEAD}, i1 false)
  %drawn = getelementptr i64, ptr %task, i64 {_HEAD}
  store i64 0, ptr %drawn
  %status = getelementptr i64, ptr %task, i64 {native_code.STATUS}
  store i64 0, ptr %status
  %own = getelementptr i64, ptr %task, i64 {native_code.TASK_WORDS}
  br label %gather
gather:
  %i = phi i64 [ 0, %launch ], [ %i1, %copy ]
  %more = icmp slt i64 %i, %arguments
  br i1 %more, label %copy, label %counters
copy:
  %which = getelementptr i64, ptr %positions, i64 %i
  %position = load i64, ptr %which
  %source = getelementptr i64, ptr %values, i64 %position
  %value = load i64, ptr %source
  %target = getelementptr i64, ptr %own, i64 %i
  store i64 %value, ptr %target
  %i1 = add i64 %i, 1
  br label %gather
counters:
  %sharing = getelementptr i64, ptr %task, i64 4
  %threads = load i64, ptr %sharing
  %lines = mul i64 %threads, {8 * native_code.COUNTER_WORDS}
  %counted = getelementptr i64, ptr %own, i64 %arguments
  call void @llvm.memset.p0.i64(ptr %counted, i8 0, i64 %lines, i1 false)
  %narrow = trunc i64 %threads to i32
  %in_group = or i64 %next, %waiting
  %several = icmp ne i64 %in_group, 0
  br i1 %several, label %join, label %single
join:
  %twice = shl i64 %waiting, 1
  %pair = getelementptr i64, ptr %group3, i64 %twice
  %behind = getelementptr i64, ptr %pair, i64 1
  store ptr %driver, ptr %pair
  store ptr %task, ptr %behind
  %joined = add i64 %waiting, 1
  %past = getelementptr i8, ptr %counted, i64 %lines
  %is_last = icmp eq i64 %next, 0
  br i1 %is_last, label %start, label %passed
start:
  store i64 %joined, ptr %group
  store i64 0, ptr %group1
  %numbering = getelementptr i64, ptr %task, i64 5
  %numbered = load i64, ptr %numbering
  store i64 %numbered, ptr %group2
  call void %team(ptr %grouped, ptr %group, i32 %narrow, i32 0)
  %before = sub i64 %n, %waiting
  br label %look
look:
  %k = phi i64 [ 0, %start ], [ %k1, %good ]
  %all = icmp eq i64 %k, %joined
  br i1 %all, label %passed, label %status_of
status_of:
  %twice_k = shl i64 %k, 1
  %pair_k = getelementptr i64, ptr %group3, i64 %twice_k
  %behind_k = getelementptr i64, ptr %pair_k, i64 1
  %task_k = load ptr, ptr %behind_k
  %status_k = getelementptr i64, ptr %task_k, i64 {native_code.STATUS}
  %left_k = load i64, ptr %status_k
  %which_k = add i64 %before, %k
  %failed_k = icmp ne i64 %left_k, 0
  br i1 %failed_k, label %broken, label %good
good:
  %k1 = add i64 %k, 1
  br label %look
single:
  %shared = icmp sgt i64 %threads, 1
  br i1 %shared, label %together, label %alone
together:
  call void %team(ptr %driver, ptr %task, i32 %narrow, i32 0)
  br label %ran
alone:
  call void %driver(ptr %task)
  br label %ran
ran:
  %left = load i64, ptr %status
  %failed = icmp ne i64 %left, 0
  br i1 %failed, label %broken, label %passed
broken:
  %launch_number = phi i64 [ %n, %ran ], [ %which_k, %status_of ]
  %message = phi i64 [ %left, %ran ], [ %left_k, %status_of ]
  %high = shl i64 %launch_number, 32
  %said = or i64 %high, %message
  ret i64 %said
passed:
  %left_waiting = phi i64 [ 0, %ran ], [ %joined, %join ], [ 0, %look ]
  %left_free = phi ptr [ %memory, %ran ], [ %past, %join ], [ %memory, %look ]
  %following = add i64 %n, 1
  %after = getelementptr i64, ptr %positions, i64 %arguments
  br label %launches
done:
  ret i64 0
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
"""
