"""Fewer garbage collections while a program is compiled.

Python looks for garbage after every 700 new objects, and walks through all there are again and again while
their number grows. A compiler makes millions that stay, beside PyTorch's own: a fifth of the time to
compile goes into looking for garbage that is not there.

What is garbage after a program is compiled, its IR, is looked for later: the next collection would take 0.1
to 0.4 s of the first call.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

OBJECTS = 500_000
"""New objects between two collections; some 50 MB of IR."""

MOST_LEFT = 4 * OBJECTS
"""New objects that compilations leave behind, before they are looked through; some 200 MB of IR."""

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
                _put_off_collection()
                gc.set_threshold(*usual)


_left = 0
"""The new objects that were made old since they were last looked through."""


def _put_off_collection() -> None:
    """Count the new objects as old ones, which Python looks through more rarely; too many it does now."""
    global _left
    if gc.get_freeze_count():  # somebody keeps objects from being looked through: leave them so
        return
    _left += gc.get_count()[0]
    if _left > MOST_LEFT:
        _left = 0
        gc.collect()
    else:
        gc.freeze()
        gc.unfreeze()
