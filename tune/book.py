"""What compiling asks of the tuning database: the schedules that were found for kernels on this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..dialects.schedule import split_schedules
from ..errors import DeploError, UsageError
from ..machine.targets import Target
from ..program_cache import compiler_digest
from ..runtime.cache import open_cache
from ..runtime.gpus import describe_gpu
from ..runtime.nvrtc import nvrtc_version
from ..runtime.threads import thread_count
from .database import Database

FILE = "tuning.sqlite"


@dataclass(frozen=True)
class Book:
    """What kernels compute, as a digest -> the steps that were measured to be best."""

    schedules: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def lines(self) -> dict[tuple[str, ...], str]:
        """The same for `tuned_by` of the passes."""
        return {tuple(kernels.split("+")): steps for kernels, steps in self.schedules.items()}

    @property
    def digest(self) -> str:
        """What a compiled program depends on; empty if nothing was tuned."""
        listed = sorted(self.schedules.items())
        return hashlib.sha256(repr(listed).encode()).hexdigest() if listed else ""


def database_path() -> Path | None:
    """Where the database is or would be; None where nothing is kept."""
    directory = open_cache().directory
    return None if directory is None else directory / FILE


def open_book(target: Target, asked: str = "") -> Book:
    """What was tuned for a target on this machine; where that cannot be read, nothing was.

    The choices in `asked`, a schedule, are asked of all kernels, and come before it.
    """
    path = database_path()
    if path is None or not path.exists() or split_schedules(asked)[1]:
        return Book()
    try:
        machine = machine_text(target)
        database = Database(path, create=False)
        try:
            return Book(database.best(machine, versions_text(target)))
        finally:
            database.close()
    except DeploError:
        return Book()


def machine_text(target: Target) -> str:
    """What kernels are tuned for: the CPU's vectors, caches and cores, and the threads that run blocks.

    Or the target and the GPU that runs its code. Raises MissingEnvironmentError where there is none.
    """
    if target.is_gpu:
        return f"{target.name} {describe_gpu(target.name)}"
    if target.name != "cpu":
        raise UsageError(f"tuning measures on this machine; {target.name} is another: tune for cpu there")
    return f"{target.text} threads={thread_count()}"


@cache
def versions_text(target: Target) -> str:
    """What compiles and measures: deplo's own source, and LLVM's binding or NVRTC."""
    digest = hashlib.sha256(compiler_digest().encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(path.read_bytes())
    compiler = f"nvrtc {nvrtc_version()}" if target.is_gpu else f"llvmlite {_llvm_version()}"
    return f"deplo {digest.hexdigest()} {compiler}"


def _llvm_version() -> str:
    try:
        return version("llvmlite")
    except PackageNotFoundError:
        return "none"
