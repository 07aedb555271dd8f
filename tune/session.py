"""Tuning a program: each of its kernels in turn, the one with the most work first."""

from __future__ import annotations

import time
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ..errors import UsageError
from ..machine.targets import Target
from ..runtime.cache import open_cache
from .book import database_path, machine_text, versions_text
from .database import Database, Key, Tuning
from .kernels import tunable_kernels
from .search import CannotMeasure, Search, Tell, Worker
from .settings import Settings


@dataclass(frozen=True)
class Session:
    """What tuning a program gave."""

    tunings: tuple[Tuning, ...]
    others: dict[str, str]
    """Why the other kernels were not tuned."""
    compiled: int
    """Candidates that were compiled."""


def open_database() -> Database:
    """The database, made if there is none. Raises UsageError where nothing is kept."""
    path = database_path()
    if path is None or not open_cache().writable:
        raise UsageError(
            "tuning keeps what it finds in the cache, and there is none that can be written to "
            "(DEPLO_CACHE, DEPLO_CACHE_DIR)"
        )
    return Database(path)


def tune(
    module: ModuleOp,
    target: Target,
    seconds: float,
    settings: Settings,
    tell: Tell = lambda _: None,
) -> Session:
    """Tune the kernels of a program in Torch IR for so many seconds at most.

    What was measured before is not measured again. Raises MissingEnvironmentError for a GPU that is not
    there, UsageError without a cache.
    """
    deadline = time.monotonic() + seconds
    here = (machine_text(target), versions_text(target))
    database = open_database()
    try:
        tunings: list[Tuning] = []
        with Worker(settings.timeout, early=target.is_gpu) as worker:
            kernels, others = tunable_kernels(module, target)
            for kernel in sorted(kernels, key=lambda k: k.space.least_seconds, reverse=True):
                key = Key(kernel.digest, *here, settings.text)
                search = Search(kernel, key, database, settings, worker, deadline, tell)
                try:
                    tunings.append(search.run())
                except CannotMeasure as error:
                    others[kernel.name] = str(error)
                    database.forget(key)
        return Session(tuple(tunings), others, worker.handed)
    finally:
        database.close()
