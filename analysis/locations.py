"""Where operations come from, as users are told."""

from __future__ import annotations

import os

from xdsl.dialects.builtin import FileLineColLoc
from xdsl.ir import Operation


def line_of(op: Operation) -> str:
    """The user's line of an operation, `file:line`, the file relative to where we are; or nothing."""
    match op.location:
        case FileLineColLoc(filename=file, line=line):
            relative = os.path.relpath(file.data) if os.path.isabs(file.data) else file.data
            shown = file.data if relative.startswith("..") else relative
            return f"{shown}:{line.data}"
        case _:
            return ""
