"""Collects everything of a program that deplo cannot express, to report all of it in one error."""

from __future__ import annotations

import functools
import linecache
import os
import re
import traceback
from dataclasses import dataclass, field
from typing import Any

import torch
from xdsl.dialects.builtin import FileLineColLoc, IntAttr, LocationAttr, StringAttr, UnknownLoc

from ..errors import UnsupportedOpError, counted
from .recurrent import ATEN_NAMES

OpOverload: Any = type(torch.ops.aten.add.Tensor)
"""The class of ATen overloads, such as `torch.ops.aten.add.Tensor`."""

_FRAME = re.compile(r'File "(?P<file>[^"]+)", line (?P<line>\d+)')
_INTERNAL = tuple(
    os.path.dirname(os.path.realpath(file)) + os.sep for file in (torch.__file__, __file__)
)
_STANDARD = os.path.dirname(os.path.realpath(os.__file__)) + os.sep
"""The directory of Python's own modules, and in some installations of site-packages."""
_WITHOUT_FILES = ("<eval_with_key>", "<frozen ")
"""What PyTorch calls the files of code that it makes, and Python modules that are part of it."""


@functools.cache
def is_internal(file: str) -> bool:
    """Whether a source file is one of PyTorch, of this package or of Python, and so not of the user."""
    if file.startswith(_WITHOUT_FILES):
        return True
    path = os.path.realpath(file)
    standard = path.startswith(_STANDARD) and "site-packages" not in path
    return standard or path.startswith(_INTERNAL)


@dataclass(frozen=True)
class SourceLine:
    """A line of the user's program."""

    file: str
    line: int

    def __str__(self) -> str:
        text = linecache.getline(self.file, self.line).strip()
        return f"{_short(self.file)}:{self.line}" + (f"  {text}" if text else "")

    def location(self) -> LocationAttr:
        """The same as a location of the IR."""
        return FileLineColLoc(StringAttr(self.file), IntAttr(self.line), IntAttr(1))


def source_line(node: torch.fx.Node) -> SourceLine | None:
    """The innermost line outside PyTorch that `node` comes from, or inside it if there is no other."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    outside = [frame for frame in frames if not is_internal(frame[0])]
    if not frames:
        return None
    file, line = (outside or frames)[-1]
    return SourceLine(file, int(line))


def raised_at(error: BaseException) -> str:
    """The last lines of the user's program on the way to an error, each below what is said of it."""
    frames = [
        SourceLine(frame.filename, frame.lineno)
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.lineno is not None and not is_internal(frame.filename) and frame.line
    ]
    return "".join(f"\n  {line}" for line in frames[-3:])


def location_of(node: torch.fx.Node) -> LocationAttr:
    """The location of `node` in the user's program."""
    source = source_line(node)
    return UnknownLoc() if source is None else source.location()


def _short(file: str) -> str:
    relative = os.path.relpath(file) if os.path.isabs(file) else file
    return file if relative.startswith("..") else relative


def operator_name(node: torch.fx.Node) -> str:
    """The operator of `node`, and the function the user called if its name differs."""
    target: Any = node.target
    if target in ATEN_NAMES:
        return ATEN_NAMES[target]
    name = (
        str(target) if isinstance(target, OpOverload) else getattr(target, "__name__", str(target))
    )
    called = str(node.meta.get("torch_fn", ("", ""))[1]).rpartition(".")[2]
    plain = name.split(".")[1] if name.count(".") else name
    return f"{name} (from {called})" if called and called != plain else name


@dataclass
class Unsupported:
    """What cannot be expressed, with the lines it comes from."""

    offers_fallback: bool = True
    """Whether running it in PyTorch is still a way out."""
    found: dict[str, list[SourceLine | None]] = field(
        default_factory=lambda: dict[str, list[SourceLine | None]]()
    )

    def add(self, node: torch.fx.Node, reason: str = "") -> None:
        """Note that `node` is not supported; `reason` says what about it, if not all of it."""
        what = f"input {node.name}" if node.op == "placeholder" else operator_name(node)
        self.add_what(f"{what}: {reason}" if reason else what, source_line(node))

    def add_what(self, what: str, line: SourceLine | None = None) -> None:
        """Note `what` is not supported, and where it stands."""
        self.found.setdefault(what, []).append(line)

    @property
    def count(self) -> int:
        """How much was noted so far."""
        return sum(map(len, self.found.values()))

    def raise_if_any(self) -> None:
        """Raise UnsupportedOpError, which lists everything noted, if there is anything."""
        if not self.found:
            return
        lines = [
            f"deplo does not support {counted(len(self.found), 'thing')} that this program uses:"
        ]
        for what, where in self.found.items():
            lines.append(f"  {what}, {counted(len(where), 'time')}")
            lines += [f"    {line}" for line in dict.fromkeys(where) if line is not None]
        lines.append(
            "Rewrite these lines, leave them out of the function that is compiled, or let PyTorch run "
            "what it can (fallback='eager')."
            if self.offers_fallback
            else "Rewrite these lines, or leave them out of the function that is compiled."
        )
        raise UnsupportedOpError("\n".join(lines))
