"""Fewer garbage collections while a program is compiled.

Python looks for garbage after every 700 new objects, and walks through all there are again and again while
their number grows. A compiler makes millions that stay, beside PyTorch's own: a fifth of the time to
compile goes into looking for garbage that is not there.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 500_000
"""New objects between two collections; some 50 MB of IR."""

_lock = threading.Lock()
_usual: list[tuple[int, int, int]] = []
"""The thresholds from before, one for each compilation that runs now."""


@contextmanager
def fewer_collections() -> Generator[None]:
    """Collect garbage less often; compilations may be nested, and run in several threads at once."""
    with _lock:
        _usual.append(_usual[0] if _usual else gc.get_threshold())
        if 0 < gc.get_threshold()[0] < OBJECTS:
            gc.set_threshold(OBJECTS, *gc.get_threshold()[1:])
    try:
        yield
    finally:
        with _lock:
            usual = _usual.pop()
            if not _usual:
                gc.set_threshold(*usual)
