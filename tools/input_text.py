"""Reading a program: a file or stdin, decoded and split; anything else is refused in one line."""

from __future__ import annotations

import os
import re
import stat
import sys
from dataclasses import dataclass
from typing import BinaryIO

from ..errors import DeploError, UsageError

MAX_INPUT_BYTES = 64 << 20
"""More text than this would not parse in minutes."""
_SPLIT = re.compile(r"^// -----[ \t]*\r?$", re.MULTILINE)


@dataclass(frozen=True)
class Chunk:
    """A part of the input that is a program of its own."""

    text: str
    """The part below as many empty lines as stand above it in the file: lines keep their number."""


def read_text(path: str | None) -> str:
    """The text of the file at `path`, or of stdin if it is `None` or `-`."""
    name = path or "-"
    if name == "-":
        if sys.stdin is None:
            raise UsageError("stdin is closed and no input file is given")
        return _decode(_read(sys.stdin.buffer, "<stdin>"), "<stdin>")
    try:
        _check_kind(name)
        with open(name, "rb") as stream:
            return _decode(_read(stream, name), name)
    except OSError as error:
        raise UsageError(f"cannot read {name}: {error.strerror or error}") from error
    except ValueError as error:
        raise UsageError(f"cannot read {name!r}: {error}") from error


def split(text: str, wanted: bool) -> list[Chunk]:
    """The chunks of `text` between lines `// -----`, or all of it as one."""
    if not wanted:
        return [Chunk(text)]
    chunks: list[Chunk] = []
    start = 0
    for match in _SPLIT.finditer(text):
        chunks.append(_chunk(text, start, match.start()))
        start = match.end()
    return [*chunks, _chunk(text, start, len(text))]


def _chunk(text: str, start: int, end: int) -> Chunk:
    return Chunk("\n" * text.count("\n", 0, start) + text[start:end])


def _check_kind(path: str) -> None:
    """Refuse what is not a file to be read: a FIFO without a writer would block for ever."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise UsageError(f"cannot read {path}: it is a directory")
    is_descriptor = path.startswith(("/dev/fd/", "/dev/stdin", "/proc/self/fd/"))
    if not stat.S_ISREG(mode) and not is_descriptor:
        raise UsageError(f"cannot read {path}: it is not a regular file")


def _read(stream: BinaryIO, name: str) -> bytes:
    data = stream.read(MAX_INPUT_BYTES + 1)
    if len(data) > MAX_INPUT_BYTES:
        raise UsageError(f"{name} is larger than {MAX_INPUT_BYTES >> 20} MiB")
    return data


def _decode(data: bytes, name: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
        raise InvalidUtf8Error(
            f"{name}:{line}:{column}: error: invalid UTF-8 at byte {error.start} "
            f"(0x{data[error.start]:02x})"
        ) from error


class InvalidUtf8Error(DeploError):
    """The input is not text; the message is complete, as there is no source line to show."""
