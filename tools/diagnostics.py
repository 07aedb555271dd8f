"""One-screen diagnostics: `file:line:col: error: message`, the source line, a caret.

`Diagnostics` prints what it is given, or collects it for `--verify-diagnostics`. `describe` turns
any exception of the compiler into one `Diagnostic` and finds the op it is about.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TextIO, cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    CallSiteLoc,
    FileLineColLoc,
    FusedLoc,
    ModuleOp,
    NameLoc,
)
from xdsl.ir import Attribute, Operation
from xdsl.utils.exceptions import MultipleSpansParseError, ParseError
from xdsl.utils.lexer import Span

from ..analysis.attached_messages import attached_messages

MAX_SOURCE_COLUMNS = 160
"""A source line longer than this is shown around the caret only."""


@dataclass(frozen=True)
class Position:
    """A place in a file; lines and columns count from 1, columns in characters."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class Diagnostic:
    """One message to the user about one place."""

    severity: str
    """`error`, `warning`, `remark` or `note`."""
    message: str
    position: Position | None = None
    notes: tuple[Diagnostic, ...] = ()
    """Further places that explain the message."""


@dataclass
class Diagnostics:
    """Prints diagnostics to `stream`, or keeps them in `collected` when `collect` is set."""

    stream: TextIO = field(default_factory=lambda: sys.stderr)
    collect: bool = False
    collected: list[Diagnostic] = field(default_factory=list[Diagnostic])
    sources: dict[str, str] = field(default_factory=dict[str, str])
    """File name -> its text, for the source line under a message."""

    def emit(self, diagnostic: Diagnostic) -> None:
        """Tell the user."""
        if self.collect:
            self.collected.append(diagnostic)
        else:
            self.show(diagnostic)

    def show(self, diagnostic: Diagnostic) -> None:
        """Print `diagnostic` with its notes, collecting or not."""
        self.stream.write(render(diagnostic, self.sources))


def render(diagnostic: Diagnostic, sources: Mapping[str, str]) -> str:
    """The lines shown for `diagnostic`: the message, the source line with a caret, the notes."""
    position = diagnostic.position
    prefix = f"{position}: " if position else ""
    text = f"{prefix}{diagnostic.severity}: {_printable(diagnostic.message)}\n"
    if position is not None and (excerpt := _excerpt(sources.get(position.file), position)):
        text += excerpt
    return text + "".join(render(note, sources) for note in diagnostic.notes)


def _excerpt(source: str | None, position: Position) -> str:
    lines = source.split("\n") if source is not None else []
    if not 1 <= position.line <= len(lines):
        return ""
    line = lines[position.line - 1].removesuffix("\r").replace("\t", " ")
    caret = min(position.column - 1, len(line))
    start = max(0, caret - MAX_SOURCE_COLUMNS // 2) if len(line) > MAX_SOURCE_COLUMNS else 0
    shown = _printable(line[start : start + MAX_SOURCE_COLUMNS])
    return f"{shown}\n{' ' * (caret - start)}^\n"


def _printable(text: str) -> str:
    """`text` without characters that would move the cursor or colour the terminal."""
    return "".join(c if c.isprintable() or c == "\n" else "\N{REPLACEMENT CHARACTER}" for c in text)


def position_of(location: Attribute) -> Position | None:
    """The file, line and column that an MLIR location leads to, if any."""
    match location:
        case FileLineColLoc():
            return Position(location.filename.data, location.line.data, location.column.data)
        case NameLoc():
            return position_of(location.location)
        case CallSiteLoc():
            return position_of(location.callee)
        case FusedLoc():
            parts = cast(ArrayAttr[Attribute], location.locations)
            return next((found for part in parts if (found := position_of(part))), None)
        case _:
            return None


def position_of_op(op: Operation) -> Position | None:
    """Where `op` comes from; an op made by a pass answers for the nearest op around it."""
    current: Operation | None = op
    while current is not None:
        if (found := position_of(current.location)) is not None:
            return found
        current = current.parent_op()
    return None


def position_of_span(span: Span[str] | Span[bytes]) -> Position:
    """Where a parser's span starts."""
    location = span.get_location()
    return Position(location.file, location.line, location.col)


def describe(error: BaseException, prefix: str = "") -> Diagnostic:
    """The diagnostic for `error`: its message after `prefix`, at the op or text it is about."""
    if isinstance(error, ParseError):
        notes: tuple[Diagnostic, ...] = ()
        if isinstance(error, MultipleSpansParseError):
            notes = tuple(
                Diagnostic("note", text or error.ref_text or "see here", position_of_span(span))
                for span, text in error.refs[:3]
            )
        return Diagnostic("error", prefix + error.msg, position_of_span(error.span), notes)
    attached = attached_messages(error)
    op = op_of(error)
    text = str(error).strip()
    if not text and attached:
        (op, text), *attached = attached
    message = prefix + (text or type(error).__name__)
    notes = tuple(Diagnostic("note", each, position_of_op(where)) for where, each in attached)
    if op is None:
        return Diagnostic("error", message, notes=notes)
    named = "" if isinstance(op, ModuleOp) or f"'{op.name}'" in message else f"'{op.name}' op "
    message = message if prefix else f"{named}{message}"
    return Diagnostic("error", message, position_of_op(op), notes)


def op_of(error: BaseException) -> Operation | None:
    """The op `error` is about: its `op` attribute, else the op the failing code was looking at.

    xDSL's exceptions do not carry an op, but the frames they pass through do: a verifier's `self`,
    a pattern's `op`.
    """
    if isinstance(op := getattr(error, "op", None), Operation):
        return op
    return next(_ops_in_frames(error), None)


def _ops_in_frames(error: BaseException) -> Iterator[Operation]:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    for frame in reversed(frames):
        for name in ("self", "op"):
            value = frame.f_locals.get(name)
            if isinstance(value, Operation) and not isinstance(value, ModuleOp):
                yield value
