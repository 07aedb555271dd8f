"""The threads that run the blocks of a launch.

In a process that PyTorch has brought its OpenMP runtime into, they are the team that runs PyTorch's own
operators. Its threads are still awake from the operator before, so handing work over takes about 1 us, and
no second pool competes with them for the cores. Elsewhere they are a pool of Python threads, which takes
about 50 us. So they are in a forked child: there OpenMP would wait for threads that the fork left behind.

`DEPLO_NUM_THREADS` sets their number. Else they are as many as PyTorch has now, as `torch.set_num_threads`
says; without PyTorch, as `OMP_NUM_THREADS` says, or one per core.
"""

from __future__ import annotations

import array
import ctypes
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import native_code

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

TEAM_SECONDS = 4e-6
"""Work that takes longer than this, and `THREAD_SECONDS` for each thread, is worth handing over to an OpenMP
team: twice what two threads must have to gain anything while they are awake."""
THREAD_SECONDS = 0.5e-6
"""The more threads there are, the longer they wait for each other."""
POOL_SECONDS = 100e-6
"""The same of the pool."""


def thread_count() -> int:
    """The number of threads that run blocks now; UsageError if `DEPLO_NUM_THREADS` is none."""
    return _counter("torch" in sys.modules)()


@cache
def _counter(has_torch: bool) -> Callable[[], int]:
    """What says how many threads there are now."""
    text = os.environ.get("DEPLO_NUM_THREADS")
    if text is not None:
        if not text.isdecimal() or int(text) < 1:
            raise UsageError(f"DEPLO_NUM_THREADS must be a positive integer, got {text!r}")
        return partial(int, text)
    text = os.environ.get("OMP_NUM_THREADS", "")
    usable = text.isdecimal() and int(text) > 0
    count = partial(int, text) if usable else lambda: os.cpu_count() or 1
    # PyTorch has no such function while it is being imported.
    return getattr(sys.modules["torch"], "get_num_threads", count) if has_torch else count


@dataclass(frozen=True)
class _Team:
    """GNU OpenMP's entry points: `GOMP_parallel(function, data, threads, flags)`, `omp_get_thread_num()`."""

    run: Callable[[int, int, int, int], None]
    address: int
    """That of `run`."""
    thread_number: int


@dataclass(frozen=True)
class Sharing:
    """How work is shared out in this process."""

    threads: int
    worth_seconds: float
    """Work that takes longer than this is worth asking other threads for help."""
    team: _Team | None
    """The OpenMP team, or None if there is a pool."""

    def run(
        self, driver: native_code.Driver, kernel: int, arguments: Sequence[int], blocks: range, chunk: int
    ) -> int:
        """Run a kernel's blocks on all threads, this one included; gives what it left in the status word."""
        task = self.task(kernel, arguments, blocks, chunk)
        self._run(driver, task)
        return task[native_code.STATUS]

    def run_together(self, tasks: Sequence[tuple[native_code.Driver, array.array[int]]]) -> None:
        """Run launches at once, their `task`s on all threads."""
        self._run(native_code.group_driver(), native_code.make_group(tasks, self._thread_number))

    def task(
        self, kernel: int, arguments: Sequence[int], blocks: range, chunk: int
    ) -> array.array[int]:
        """What a launch on all threads is told."""
        return native_code.make_task(kernel, arguments, blocks, chunk, self.threads, self._thread_number)

    @property
    def _thread_number(self) -> int:
        return 0 if self.team is None else self.team.thread_number

    def _run(self, driver: native_code.Driver, told: array.array[int]) -> None:
        """Call a driver in all threads, this one included."""
        address = told.buffer_info()[0]
        if self.team is not None:
            self.team.run(driver.address, address, self.threads, 0)
            return
        others = [_pool().submit(driver.function, address) for _ in range(self.threads - 1)]
        driver.function(address)
        for other in others:
            other.result()


def sharing() -> Sharing:
    """How work is shared out now."""
    return _sharing(thread_count(), "torch" in sys.modules)


@cache
def _sharing(threads: int, has_torch: bool) -> Sharing:
    team = _find_team() if has_torch and not _is_forked else None
    worth = POOL_SECONDS if team is None else TEAM_SECONDS + THREAD_SECONDS * threads
    return Sharing(threads, worth, team)


@cache
def _pool() -> ThreadPoolExecutor:
    futures = import_module("concurrent.futures")  # takes 7 ms, which few who load a program need at once
    return futures.ThreadPoolExecutor(thread_count() - 1, thread_name_prefix="deplo")


def _find_team() -> _Team | None:
    """The OpenMP team, if PyTorch brought it."""
    try:
        mapped = Path("/proc/self/maps").read_text().split()
    except OSError:
        return None
    path = next((each for each in mapped if Path(each).name.startswith("libgomp")), None)
    if path is None:
        return None
    library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD)
    run: Any = library.GOMP_parallel
    run.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    run.restype = None
    address = ctypes.cast(run, ctypes.c_void_p).value
    number = ctypes.cast(library.omp_get_thread_num, ctypes.c_void_p).value
    assert address is not None
    assert number is not None
    return _Team(run, address, number)


_is_forked = False


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    _pool.cache_clear()
    _sharing.cache_clear()


os.register_at_fork(after_in_child=_after_fork)
