"""`deplo repro`: see the failure of a reproducer again."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

from . import deplo_opt
from .console import write_output
from .reproducer import ENVIRONMENT_NAME, environment, file_of, load_reproducer

NAME = "repro"
HELP = "run a reproducer, a directory deplo-repro-… or a file, and say whether it still fails"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("reproducer", type=Path, metavar="DIR", help="what deplo wrote")


def main(options: argparse.Namespace) -> int:
    """Run it; exits with the failure's code, or with 0 if there is none any more."""
    path: Path = options.reproducer
    load_reproducer(path)
    for line in _differences(path / ENVIRONMENT_NAME):
        sys.stderr.write(f"note: {line}\n")
    code = deplo_opt.run([str(file_of(path)), "--run-reproducer", "-o", os.devnull])
    write_output(f"it fails, with exit code {code}\n" if code else "it does not fail any more\n")
    return code


def _differences(file: Path) -> list[str]:
    """How the machine that the reproducer was written on differs from this one."""
    try:
        written: dict[str, str] = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    return [
        f"written with {name} {version}, this is {now}"
        for name, now in environment().items()
        if (version := written.get(name, now)) != now
    ]
