"""Options of xDSL's `xdsl-opt` that `deplo-opt` takes with the same meaning.

What they print goes to stdout, in xDSL's layout: scripts that call `xdsl-opt` read it there.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ShrinkException

from .instrumentation import Instrument


def add_xdsl_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that `xdsl-opt` has and `mlir-opt` has not."""
    group = parser.add_argument_group("in place of xdsl-opt")
    add = group.add_argument
    add("--xdsl-compatible", action="store_true", help="errors, output and exit codes as xdsl-opt's")
    add("-f", "--frontend", choices=["mlir"], help="the input's language")
    flags = {
        "parsing-diagnostics": "print a syntax error on stdout and exit with code 0",
        "print-between-passes": "print the program between passes on stdout",
        "time-passes": "print the seconds of each pass on stdout",
        "shrink": "exit with code 0 only if xDSL's ShrinkException is raised",
    }
    for name, text in flags.items():
        add(f"--{name}", action="store_true", help=text)


def xdsl_instruments(args: argparse.Namespace) -> list[Instrument]:
    """The instruments that xDSL's options ask for."""
    chosen: list[Instrument] = []
    if args.print_between_passes:
        chosen.append(PrintBetween())
    if args.time_passes:
        chosen.append(TimePasses())
    return chosen


@dataclass
class PrintBetween(Instrument):
    """Prints the program between two passes, not after the last one."""

    _last: str = ""

    def begin(self, module: ModuleOp) -> None:
        """Forget the passes of another program."""
        self._last = ""

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print the program that the pass before has left."""
        if self._last:
            sys.stdout.write(f"IR after {self._last}:\n{module!s}\n\n\n\n")
        self._last = each.name


@dataclass
class TimePasses(Instrument):
    """Prints the seconds of each pass when it ends."""

    _start: float = 0.0

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print the time since `before_pass`."""
        print(f"Pass {each.name} took {time.perf_counter() - self._start} seconds")


def is_shrink(error: BaseException) -> bool:
    """Whether a pass, or the parser, raised xDSL's ShrinkException."""
    return isinstance(error, ShrinkException) or isinstance(error.__cause__, ShrinkException)


def report_shrink(found: bool) -> int:
    """Say whether the input can shrink, and return the exit code that tells it to the reducer."""
    print("Success, can shrink" if found else "Failure, can't shrink")
    return 0 if found else 1
