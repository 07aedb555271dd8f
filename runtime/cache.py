"""Compiled code on disk: one file per entry, named by what it was made from, checked whenever it is read.

    cache = open_cache()
    key = cache_key("cubin", source, architecture, compiler_version)
    code = cache.get("cubin", key)
    if code is None:
        code = compile(...)
        cache.put("cubin", key, code)

An entry is machine code or decides which is run, so the directory must be the user's alone: one that others
own or may write to is not used. A file is written under a name of its own and then moved into its place, so
that readers see a whole entry or none, whoever writes at the same time and is killed at it. An entry that is
torn or altered is removed and made again. Nothing is unpickled. Environment variables:

    DEPLO_CACHE=0       no cache;  DEPLO_CACHE=ro  entries are read, none is written
    DEPLO_CACHE_DIR     where; else $XDG_CACHE_HOME/deplo, ~/.cache/deplo
"""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ..errors import CacheWarning, UsageError

MAGIC = b"deplo cache 1\n"
DIGEST_BYTES = hashlib.sha256().digest_size
SUFFIX = ".entry"
STALE_SECONDS = 3600
"""A file that somebody began to write so long ago will not be finished."""

MODES = ("1", "0", "ro")


def cache_key(*parts: str | bytes) -> str:
    """The name of an entry: a digest of everything that it is made from, in order."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


@dataclass(frozen=True)
class Entry:
    """One entry, as it lies on disk."""

    path: Path
    bytes: int
    used: float
    """When it was read last, or written, in seconds since the epoch."""


@dataclass(frozen=True)
class Cache:
    """A directory of entries, or none: then nothing is ever found or kept."""

    directory: Path | None
    writable: bool = True

    def get(self, kind: str, key: str) -> bytes | None:
        """What was put under a key, or None if there is no such entry, or no sound one."""
        if self.directory is None:
            return None
        path = self._path(kind, key)
        try:
            data = path.read_bytes()
        except OSError:
            return None
        payload = _payload(data, path.name)
        if payload is None:
            if self.writable:
                path.unlink(missing_ok=True)
            return None
        if self.writable:
            _touch(path)
        return payload

    def put(self, kind: str, key: str, payload: bytes) -> None:
        """Keep `payload` under a key. That a cache cannot be written is told once, and does not matter."""
        if self.directory is None or not self.writable:
            return
        path = self._path(kind, key)
        temporary = self.directory / f".{path.name}.{secrets.token_hex(16)}.tmp"
        try:
            with open(temporary, "xb") as file:
                file.write(MAGIC + _digest(path.name, payload) + payload)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            _warn(f"the cache {self.directory} cannot be written: {error.strerror}")

    def entries(self) -> Iterator[Entry]:
        """Every entry there is."""
        if self.directory is None:
            return
        for path in sorted(self.directory.glob(f"*{SUFFIX}")):
            try:
                status = path.stat()
            except FileNotFoundError:  # removed since
                continue
            yield Entry(path, status.st_size, max(status.st_atime, status.st_mtime))

    def verify(self) -> list[Path]:
        """Remove the entries that are not sound, and give them."""
        removed: list[Path] = []
        for entry in self.entries():
            if _payload(entry.path.read_bytes(), entry.path.name) is None:
                entry.path.unlink(missing_ok=True)
                removed.append(entry.path)
        return removed

    def collect(self, most_bytes: int) -> int:
        """Remove the entries used longest ago until the rest have `most_bytes`; gives how many those were."""
        self._remove_stale()
        kept, removed = 0, 0
        for entry in sorted(self.entries(), key=lambda entry: entry.used, reverse=True):
            kept += entry.bytes
            if kept > most_bytes:
                entry.path.unlink(missing_ok=True)
                removed += 1
        return removed

    def _remove_stale(self) -> None:
        """Remove what others began to write and did not finish."""
        assert self.directory is not None
        for path in self.directory.glob(".*.tmp"):
            try:
                if path.stat().st_mtime < time.time() - STALE_SECONDS:
                    path.unlink(missing_ok=True)
            except FileNotFoundError:
                continue

    def _path(self, kind: str, key: str) -> Path:
        assert self.directory is not None
        return self.directory / f"{kind}-{key}{SUFFIX}"


def _digest(name: str, payload: bytes) -> bytes:
    """Covers the name too: an entry that is put in the place of another one is not sound."""
    return hashlib.sha256(name.encode() + b"\0" + payload).digest()


def _payload(data: bytes, name: str) -> bytes | None:
    """What an entry holds, or None if it is not what was written."""
    head = len(MAGIC)
    if data[:head] != MAGIC or len(data) < head + DIGEST_BYTES:
        return None
    payload = data[head + DIGEST_BYTES :]
    return payload if data[head : head + DIGEST_BYTES] == _digest(name, payload) else None


def _touch(path: Path) -> None:
    """Note that an entry was read; file systems need not."""
    try:
        os.utime(path)
    except OSError:  # removed since, or not ours to touch: it is used all the same
        return


def _warn(message: str) -> None:
    warnings.warn(f"{message}; compiled code is not kept", CacheWarning, stacklevel=3)


# --------------------------------------------------------------------------- where


def cache_directory() -> Path:
    """Where entries lie, whether the directory is there or not."""
    if chosen := os.environ.get("DEPLO_CACHE_DIR"):
        return Path(chosen)
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base) / "deplo"
    return Path(os.path.expanduser("~")) / ".cache" / "deplo"


def open_cache() -> Cache:
    """The cache that the environment asks for, as it is at the first call.

    Raises UsageError for a value of DEPLO_CACHE that is none; warns of a directory that is not safe.
    """
    mode = os.environ.get("DEPLO_CACHE", "1")
    if mode not in MODES:
        raise UsageError(f"DEPLO_CACHE is 0 (no cache), ro (read only) or 1, not {mode!r}")
    return _open(mode, cache_directory())


@cache
def _open(mode: str, directory: Path) -> Cache:
    if mode == "0":
        return Cache(None)
    writable = mode == "1"
    try:
        if writable:
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        elif not directory.exists():
            return Cache(None)
        reason = unsafe(directory)
    except OSError as error:
        reason = f"it cannot be made: {error.strerror}"
    if reason is not None:
        _warn(f"the cache {directory} is not used, {reason}")
        return Cache(None)
    return Cache(directory, writable and os.access(directory, os.W_OK))


def unsafe(directory: Path) -> str | None:
    """Why code must not be taken from a directory, or None."""
    if not hasattr(os, "geteuid"):
        return None
    status = directory.stat()
    if not stat.S_ISDIR(status.st_mode):
        return "it is no directory"
    if status.st_uid != os.geteuid():
        return f"it belongs to another user (uid {status.st_uid}); set DEPLO_CACHE_DIR to one of your own"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"others may write to it; run chmod 700 {directory}"
    return None
