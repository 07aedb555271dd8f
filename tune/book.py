"""What compiling asks of the tuning database: the choices that were found for a kernel on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import DeploError
from ..passes.llvm.host_cpu import host_cpu
from ..program_cache import compiler_digest
from ..runtime.cache import open_cache
from ..runtime.threads import thread_count
from .database import Database, choices_text, digest_of

FILE = "tuning.sqlite"


@dataclass(frozen=True)
class Book:
    """Kernel digest -> the choices that were measured to be best."""

    choices: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])

    def answer(self, canonical: str) -> Mapping[str, int] | None:
        """The choices for a kernel, by its canonical text."""
        return self.choices.get(digest_of(canonical)) if self.choices else None

    @property
    def digest(self) -> str:
        """What a compiled program depends on; empty if nothing was tuned."""
        listed = sorted((kernel, choices_text(c)) for kernel, c in self.choices.items())
        return hashlib.sha256(repr(listed).encode()).hexdigest() if listed else ""


def database_path() -> Path | None:
    """Where the database is or would be; None where nothing is kept."""
    directory = open_cache().directory
    return None if directory is None else directory / FILE


def open_book() -> Book:
    """What was tuned for this machine; where that cannot be read, nothing was."""
    path = database_path()
    if path is None or not path.exists():
        return Book()
    try:
        database = Database(path, create=False)
        try:
            return Book(database.best(machine_text(), versions_text()))
        finally:
            database.close()
    except DeploError:
        return Book()


def machine_text() -> str:
    """What kernels are tuned for: the CPU's vectors, caches and cores, and the threads that run blocks."""
    return f"cpu {host_cpu()} threads={thread_count()}"


@cache
def versions_text() -> str:
    """What compiles and measures: deplo's own source, and LLVM's binding."""
    digest = hashlib.sha256(compiler_digest().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    try:
        llvm = version("llvmlite")
    except PackageNotFoundError:
        llvm = "none"
    return f"deplo {digest.hexdigest()} llvmlite {llvm}"
