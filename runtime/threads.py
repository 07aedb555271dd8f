"""The threads that run the blocks of a launch.

In a process that PyTorch has brought its OpenMP runtime into, they are the team that runs PyTorch's own
operators. Its threads are still awake from the operator before, so handing work over takes about 3 us, and
no second pool competes with them for the cores. Elsewhere they are a pool of Python threads, which takes
about 50 us. So they are in a forked child: there OpenMP would wait for threads that the fork left behind.

`DEPLO_NUM_THREADS` sets their number; the default is one per core.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .jit import Driver

TEAM_SECONDS = 20e-6
"""Work that takes longer than this is worth handing over to an OpenMP team."""
POOL_SECONDS = 100e-6
"""The same of the pool."""


@cache
def thread_count() -> int:
    """The number of threads that run blocks."""
    text = os.environ.get("DEPLO_NUM_THREADS")
    if text is None:
        return os.cpu_count() or 1
    if not text.isdecimal() or int(text) < 1:
        raise UsageError(f"DEPLO_NUM_THREADS must be a positive integer, got {text!r}")
    return int(text)


def worth_sharing() -> float:
    """Seconds of work from which on other threads are asked to help."""
    return POOL_SECONDS if _team() is None else TEAM_SECONDS


def share(driver: Driver, task: int) -> None:
    """Run a task on all threads, this one included; each takes the next chunk when it is free."""
    team = _team()
    if team is not None:
        team(driver.address, task, thread_count(), 0)
        return
    others = [_pool().submit(driver.function, task) for _ in range(thread_count() - 1)]
    driver.function(task)
    wait(others)
    for other in others:
        other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(thread_count() - 1, thread_name_prefix="deplo")


def _team() -> Callable[..., None] | None:
    """GNU OpenMP's entry point `GOMP_parallel(function, data, threads, flags)`, if PyTorch brought it."""
    return _find_team() if not _is_forked and "torch" in sys.modules else None


@cache
def _find_team() -> Callable[..., None] | None:
    try:
        mapped = Path("/proc/self/maps").read_text().split()
    except OSError:
        return None
    path = next((each for each in mapped if Path(each).name.startswith("libgomp")), None)
    if path is None:
        return None
    entry: Any = ctypes.CDLL(path, mode=os.RTLD_NOLOAD).GOMP_parallel
    entry.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint)
    entry.restype = None
    return entry


_is_forked = False


def _after_fork() -> None:
    global _is_forked
    _is_forked = True
    _pool.cache_clear()


os.register_at_fork(after_in_child=_after_fork)
