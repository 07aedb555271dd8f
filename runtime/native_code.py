"""Machine code in this process: the functions of kernels, and of what launches them.

A function is compiled when it is first asked for (`jit.py`), unless its code came from a file. Code lives as
long as the process: a function pointer never outlives its code.
"""

from __future__ import annotations

import array
import ctypes
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from string import Template
from typing import Any

_lock = threading.RLock()
_kernels: dict[tuple[str, str], CompiledKernel] = {}


@dataclass(frozen=True)
class CompiledKernel:
    """Machine code of one kernel: `f(buffers..., sizes..., block_begin, block_end, status)`."""

    name: str
    address: int
    keep_alive: Any = field(repr=False)


@dataclass(frozen=True)
class Driver:
    """Machine code that runs a launch, called in each of the threads that share it.

    Each thread has a part of the blocks, neighbours, and takes them in chunks; when it is done with its own
    part it goes on with chunks of the others'. So a thread walks along memory and does the same part in every
    call, and nobody waits for one that is late.
    """

    address: int
    function: Callable[[int], None] = field(repr=False)
    """Takes a task's address, and releases the GIL."""
    keep_alive: Any = field(repr=False)


TASK_WORDS = 8
"""Words of a task in front of the kernel's arguments."""
STATUS = 7
"""The word of a task that a kernel whose check fails stores a number to."""
COUNTER_WORDS = 8
"""A counter has a cache line of its own, or threads would wait for each other's."""


def make_task(
    kernel: int,
    arguments: Sequence[int],
    blocks: range,
    chunk: int,
    threads: int = 1,
    thread_number: int = 0,
) -> array.array[int]:
    """What a driver is told: 64-bit words.

    The kernel's address, the blocks, how many to take at once, the number of threads, the address of
    a function that gives the calling thread's number, or 0, how many threads came so far, and the status; the
    kernel's arguments; and for each thread how many of its blocks are taken.
    """
    head = (kernel, blocks.start, blocks.stop, chunk, threads, thread_number, 0, 0)
    return array.array("q", (*head, *arguments, *(0,) * (COUNTER_WORDS * threads)))


@cache
def driver(arguments: int) -> Driver:
    """The driver of kernels with so many buffers and sizes."""
    return _driver(*driver_text(arguments))


@cache
def group_driver() -> Driver:
    """The driver of launches that may run at once, called in each of the threads that share them.

    A thread begins with the launch of its own number, goes on with the next, and waits in between for nobody.
    """
    return _driver("deplo_drive_group", GROUP)


def _driver(name: str, source: str) -> Driver:
    compiled = compile_kernel(name, source)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(compiled.address)
    return Driver(compiled.address, function, compiled)


GROUP_WORDS = 3
"""Words of a group in front of its launches, each of which has two: its driver and its task."""


def make_group(
    tasks: Sequence[tuple[Driver, array.array[int]]], thread_number: int
) -> array.array[int]:
    """What the driver of a group is told: 64-bit words.

    How many launches there are, how many threads came so far, the address of a function that gives the
    calling thread's number, or 0; and of each launch the addresses of its driver and its task.
    """
    pairs = [word for driver, task in tasks for word in (driver.address, task.buffer_info()[0])]
    return array.array("q", (len(tasks), 0, thread_number, *pairs))


GROUP = f"""
define void @deplo_drive_group(ptr %group) {{
  %count = load i64, ptr %group
  %drawn = getelementptr i64, ptr %group, i64 1
  %place = getelementptr i64, ptr %group, i64 2
  %first = getelementptr i64, ptr %group, i64 {GROUP_WORDS}
  %number = load ptr, ptr %place
  %numbered = icmp ne ptr %number, null
  br i1 %numbered, label %ask, label %ticket
ask:
  %asked = call i32 %number()
  %wide = sext i32 %asked to i64
  br label %launches
ticket:
  %ticket1 = atomicrmw add ptr %drawn, i64 1 monotonic
  br label %launches
launches:
  %own = phi i64 [ %wide, %ask ], [ %ticket1, %ticket ]
  br label %launch
launch:
  %turn = phi i64 [ 0, %launches ], [ %following, %launch ]
  %sum = add i64 %own, %turn
  %which = urem i64 %sum, %count
  %twice = shl i64 %which, 1
  %pair = getelementptr i64, ptr %first, i64 %twice
  %behind = getelementptr i64, ptr %pair, i64 1
  %driver = load ptr, ptr %pair
  %task = load ptr, ptr %behind
  call void %driver(ptr %task)
  %following = add i64 %turn, 1
  %any = icmp slt i64 %following, %count
  br i1 %any, label %launch, label %done
done:
  ret void
}}
"""


def driver_text(arguments: int) -> tuple[str, str]:
    """The name and the LLVM IR of the driver of kernels with so many buffers and sizes.

    A pointer is passed as an i64, which is the same to the machines there are.
    """
    name, words = f"deplo_drive_{arguments}", TASK_WORDS + arguments
    loads = (
        f"  %p{n} = getelementptr i64, ptr %task, i64 {n}\n  %w{n} = load i64, ptr %p{n}"
        for n in range(words)
    )
    own = "".join(f"i64 %w{n}, " for n in range(TASK_WORDS, words))
    text = _DRIVER.substitute(name=name, loads="\n".join(loads), own=own, counters=words)
    return name, text


_DRIVER = Template(
    f"""
define void @$name(ptr %task) {{
$loads
  %kernel = inttoptr i64 %w0 to ptr
  %count = sub i64 %w2, %w1
  %counters = getelementptr i64, ptr %task, i64 $counters
  %numbered = icmp ne i64 %w5, 0
  br i1 %numbered, label %ask, label %ticket
ask:
  %number = inttoptr i64 %w5 to ptr
  %asked = call i32 %number()
  %wide = sext i32 %asked to i64
  br label %start
ticket:
  %drawn = atomicrmw add ptr %p6, i64 1 monotonic
  br label %start
start:
  %own = phi i64 [ %wide, %ask ], [ %drawn, %ticket ]
  br label %part
part:
  %turn = phi i64 [ 0, %start ], [ %following, %exhausted ]
  %any = icmp slt i64 %turn, %w4
  br i1 %any, label %enter, label %done
enter:
  %sum = add i64 %own, %turn
  %whose = urem i64 %sum, %w4
  %next = add i64 %whose, 1
  %scaled = mul i64 %whose, %count
  %scaled_next = mul i64 %next, %count
  %offset = udiv i64 %scaled, %w4
  %offset_next = udiv i64 %scaled_next, %w4
  %first = add i64 %w1, %offset
  %last = add i64 %w1, %offset_next
  %place = mul i64 %whose, {COUNTER_WORDS}
  %counter = getelementptr i64, ptr %counters, i64 %place
  br label %take
take:
  %taken = atomicrmw add ptr %counter, i64 %w3 monotonic
  %begin = add i64 %first, %taken
  %some = icmp slt i64 %begin, %last
  br i1 %some, label %run, label %exhausted
run:
  %past = add i64 %begin, %w3
  %end = call i64 @llvm.smin.i64(i64 %past, i64 %last)
  call void %kernel(${{own}}i64 %begin, i64 %end, ptr %p{STATUS})
  br label %take
exhausted:
  %following = add i64 %turn, 1
  br label %part
done:
  ret void
}}
declare i64 @llvm.smin.i64(i64, i64)
"""
)


def compile_kernel(name: str, source: str) -> CompiledKernel:
    """Compile the function `name` of the LLVM IR `source`; the same text is compiled once."""
    with _lock:
        key = (name, source)
        if key not in _kernels:
            jit = import_module(".jit", __package__)
            _kernels[key] = CompiledKernel(name, *jit.load(name, jit.compile_object(source)))
        return _kernels[key]


def adopt(name: str, source: str, address: int, keep_alive: object) -> None:
    """Have `compile_kernel` give machine code that is there already."""
    with _lock:
        _kernels.setdefault((name, source), CompiledKernel(name, address, keep_alive))


def is_known(name: str, source: str) -> bool:
    """Whether the machine code of a function is there."""
    return (name, source) in _kernels
