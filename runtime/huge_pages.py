"""Huge pages under large results.

malloc maps a block of 32 MiB or more anew for every call and unmaps it when its tensor is freed. The first
write to each of its pages is then a page fault, and 4 KiB a fault takes longer than most kernels take to fill
them. Where the system leaves it to programs to ask (`/sys/kernel/mm/transparent_hugepage/enabled` says
`madvise`), deplo asks for pages of 2 MiB, as numpy does for its own arrays. Smaller blocks malloc keeps.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable
from functools import cache
from pathlib import Path

LARGE_BYTES = 32 << 20
"""Blocks from here on malloc always maps (glibc's DEFAULT_MMAP_THRESHOLD_MAX)."""

_PAGE_BYTES = Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")


def whole_pages(address: int, size: int, page: int) -> tuple[int, int]:
    """The first page boundary in a block, and how many bytes from there on are whole pages; 0 if none are."""
    first = -(-address // page) * page
    return first, max((address + size) // page * page - first, 0)


def ask_for_huge_pages(address: int, size: int) -> None:
    """Ask the system for huge pages under a new block of memory; it may not have any, which is no error."""
    if size < LARGE_BYTES or (found := _advise()) is None:
        return
    advise, page = found
    first, length = whole_pages(address, size, page)
    if length:
        advise(first, length, mmap.MADV_HUGEPAGE)


@cache
def _advise() -> tuple[Callable[[int, int, int], int], int] | None:
    """`madvise` and the size of a huge page, where there are any."""
    if not hasattr(mmap, "MADV_HUGEPAGE"):
        return None
    try:
        page = int(_PAGE_BYTES.read_text())
    except OSError:
        return None
    kind = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    return kind(("madvise", ctypes.CDLL(None))), page
