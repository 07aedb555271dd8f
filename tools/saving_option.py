"""`deplo compile -o FILE.deplo`: the compiled program as a file, for one target or for several."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..errors import UsageError
from ..machine.host_cpu import find_target
from ..program import Program
from ..saving.c_library import save_c_library
from ..saving.c_names import is_function_name
from ..saving.program_file import save
from .compiling import capture_source, load, progress

SUFFIX = ".deplo"
FORMATS = ("program", "c-library")
AS_HELP = (
    f"what to save: a program file (what -o FILE{SUFFIX} means), or libNAME.so, NAME.h and an example in C "
    "in the directory -o DIR"
)
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
    if options.format is None and not (options.output or "").endswith(SUFFIX):
        if "," in (options.target or ""):
            raise UsageError(f"several targets go with -o FILE{SUFFIX}")
        if options.with_ir:
            raise UsageError(f"--with-ir goes with -o FILE{SUFFIX}")
        return False
    if options.output is None:
        raise UsageError(f"--as {options.format} needs a place to write to: -o")
    if wrong := [said for name, said in PRINTING.items() if getattr(options, name)]:
        raise UsageError(f"{', '.join(wrong)}: -o {options.output} saves machine code, and prints nothing")
    return True


def save_program(options: argparse.Namespace) -> None:
    """Compile a program for every target asked for, this CPU if none is, and save it."""
    targets = [find_target(name) for name in dict.fromkeys((options.target or "cpu").split(","))]
    source = load(options)
    captured = capture_source(options, source)
    path = Path(options.output)
    with progress(f"compiling {source.title}"):
        programs = [Program(captured, target, options.schedule) for target in targets]
        if options.format == "c-library":
            _save_library(programs, path, options)
        else:
            save(programs, path, path.stem, ir=options.with_ir)
            sys.stderr.write(f"wrote {path}, {path.stat().st_size:,} bytes")
    listed = ", ".join(target.name for target in targets)
    sys.stderr.write(f", for {listed}\n")


def _save_library(programs: Sequence[Program], directory: Path, options: argparse.Namespace) -> None:
    """Save a C library, named like the program, or where that has no name like the directory."""
    if len(programs) > 1:
        raise UsageError("a C library is for one target")
    named = Path((options.source or "").rpartition(":")[2]).stem or directory.name
    name = re.sub("[^a-z0-9_]", "_", named.lower())
    name = name if is_function_name(name) else f"program_{name}"
    save_c_library(programs[0], directory, name)
    sys.stderr.write(f"wrote {directory}/lib{name}.so, {name}.h, example.c")
