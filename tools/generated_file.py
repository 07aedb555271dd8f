"""The command line of a tool that writes one generated file: write it or, with `--check`, compare it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path


def write_or_check(
    path: Path, generate: Callable[[], str], module: str, arguments: Sequence[str] | None
) -> int:
    """Write the text of `generate` to `path`; with `--check`, return 1 if the file has another text.

    `module` names the tool, `python -m deplo.tools.<module>`.
    """
    parser = argparse.ArgumentParser(description=f"Write {path.name}.")
    parser.add_argument("--check", action="store_true", help="only compare with the file")
    options = parser.parse_args(arguments)
    text = generate()
    if not options.check:
        path.write_text(text, encoding="utf-8")
        return 0
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return 0
    sys.stderr.write(f"{path} is out of date: run python -m deplo.tools.{module}\n")
    return 1
