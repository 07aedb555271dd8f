"""`deplo compile -o FILE.deplo`: the compiled program as a file, for one target or for several."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import UsageError
from ..machine.host_cpu import find_target
from ..program import Program
from ..saving.program_file import save
from .compiling import capture_source, load, progress

SUFFIX = ".deplo"
HELP = f"write there, not to stdout; to FILE{SUFFIX}, the compiled program with its parameters"

PRINTING = {
    "ir": "--ir",
    "stop_after": "--stop-after",
    "passes": "--passes",
    "dump_dir": "--dump-dir",
    "standalone": "--standalone",
    "json": "--json",
    "check_each_pass": "--check-each-pass",
}
"""The options that are about text."""


def is_asked_for(options: argparse.Namespace) -> bool:
    """Whether a program is to be saved. Raises UsageError for options that do not go with that."""
    if not (options.output or "").endswith(SUFFIX):
        if "," in (options.target or ""):
            raise UsageError(f"several targets go with -o FILE{SUFFIX}")
        return False
    if wrong := [said for name, said in PRINTING.items() if getattr(options, name)]:
        raise UsageError(f"{', '.join(wrong)}: -o {options.output} saves machine code, and prints nothing")
    return True


def save_program(options: argparse.Namespace) -> None:
    """Compile a program for every target asked for, this CPU if none is, and save it."""
    targets = [find_target(name) for name in dict.fromkeys((options.target or "cpu").split(","))]
    source = load(options)
    captured = capture_source(options, source)
    with progress(f"compiling {source.title}"):
        programs = [Program(captured, target, options.schedule) for target in targets]
        save(programs, options.output, Path(options.output).stem)
    size = Path(options.output).stat().st_size
    listed = ", ".join(target.name for target in targets)
    sys.stderr.write(f"wrote {options.output}, {size:,} bytes, for {listed}\n")
