"""Files that are written beside their places and moved there: nobody sees half of one."""

from __future__ import annotations

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from uuid import uuid4


@contextmanager
def new_file(path: str | os.PathLike[str]) -> Generator[Path]:
    """Where to write what is to be the file at `path`, or where a link there leads.

    Whoever reads, maps or runs the file that was there goes on with that. Raises OSError, as what writes
    does, also if what is there is no file.
    """
    place = Path(os.path.realpath(path))
    if not place.name or (place.exists() and not place.is_file()):
        raise OSError(None, "it is no file")
    temporary = place.with_name(f".deplo-{uuid4().hex}.tmp")
    try:
        yield temporary
        os.replace(temporary, place)
    finally:
        with suppress(OSError):
            temporary.unlink()
