"""Running passes one by one, watched.

`run_passes` is the loop; an `Instrument` is told before and after each pass and prints, times or
checks something. All printing goes to a stream that is not the one the program's text goes to.
"""

from __future__ import annotations

import difflib
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ..analysis.verify import Verifier


class Instrument:
    """Watches a pipeline; the default does nothing."""

    def begin(self, module: ModuleOp) -> None:
        """Called once, before the first pass."""

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Called with the module that `each` is about to change."""

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Called with the module that `each` has changed."""

    def end(self) -> None:
        """Called once, after the last pass or after a pass that failed."""


class PassFailedError(Exception):
    """A pass raised, or left a module that is not valid; `__cause__` says which and why."""

    def __init__(self, failed: ModulePass, remaining: tuple[ModulePass, ...], invalid: bool):
        self.failed = failed
        self.remaining = remaining
        """The failed pass and those after it."""
        self.invalid = invalid
        """True if the pass ended but the module does not verify."""
        super().__init__(failed.name)


def run_passes(
    ctx: Context,
    module: ModuleOp,
    passes: Sequence[ModulePass],
    instruments: Sequence[Instrument] = (),
    *,
    verify_each: bool = True,
) -> None:
    """Apply `passes` to `module` in order; raises `PassFailedError` from whatever a pass raised.

    The last instrument is the innermost: told last before a pass and first after it.
    """
    verifier = Verifier() if verify_each else None
    for instrument in instruments:
        instrument.begin(module)
    try:
        for index, each in enumerate(passes):
            for instrument in instruments:
                instrument.before_pass(each, module)
            _apply(ctx, module, each, tuple(passes[index:]), verifier)
            for instrument in reversed(instruments):
                instrument.after_pass(each, module)
    finally:
        for instrument in instruments:
            instrument.end()


def _apply(
    ctx: Context,
    module: ModuleOp,
    each: ModulePass,
    remaining: tuple[ModulePass, ...],
    verifier: Verifier | None,
) -> None:
    try:
        each.apply(ctx, module)
    except Exception as error:
        raise PassFailedError(each, remaining, invalid=False) from error
    if verifier is None:
        return
    try:
        verifier.verify(module)
    except VerifyException as error:
        raise PassFailedError(each, remaining, invalid=True) from error


@dataclass
class PrintIR(Instrument):
    """Prints the module before or after every pass, under a line that names the pass."""

    stream: TextIO
    before: bool = False
    after: bool = False

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print it as it was."""
        if self.before:
            self.stream.write(f"{banner('Before', each)}\n{module!s}\n\n")

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print it as it became."""
        if self.after:
            self.stream.write(f"{banner('After', each)}\n{module!s}\n\n")


@dataclass
class PrintChanges(Instrument):
    """Prints what each pass changed as a unified diff, or that it changed nothing."""

    stream: TextIO
    context_lines: int = 3
    _text: str = ""

    def begin(self, module: ModuleOp) -> None:
        """Remember the program to compare with."""
        self._text = str(module)

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Print the difference that `each` made."""
        before, self._text = self._text, str(module)
        if before == self._text:
            self.stream.write(f"{banner('After', each, ' (no change)')}\n")
            return
        diff = difflib.unified_diff(
            before.splitlines(),
            self._text.splitlines(),
            f"before {each.name}",
            f"after {each.name}",
            n=self.context_lines,
            lineterm="",
        )
        self.stream.write("\n".join((banner("After", each), *diff)) + "\n\n")


@dataclass
class WriteTree(Instrument):
    """Writes the module into `directory`: `000_input.mlir`, then `001_<pass>.mlir` and so on."""

    directory: Path
    _count: int = 0

    def begin(self, module: ModuleOp) -> None:
        """Write the program as it came in."""
        self._count = 0
        self.directory.mkdir(parents=True, exist_ok=True)
        self._write("input", module)

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Write the program as `each` left it."""
        self._write(each.name, module)

    def _write(self, name: str, module: ModuleOp) -> None:
        path = self.directory / f"{self._count:03}_{name}.mlir"
        path.write_text(f"{module!s}\n", encoding="utf-8")
        self._count += 1


@dataclass
class Timing(Instrument):
    """Measures each pass and prints a table at the end; times are seconds of wall clock."""

    stream: TextIO
    rows: list[tuple[str, float]] = field(default_factory=list[tuple[str, float]])
    _start: float = 0.0

    def before_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Start the clock."""
        self._start = time.perf_counter()

    def after_pass(self, each: ModulePass, module: ModuleOp) -> None:
        """Stop the clock; verification of the result counts towards the pass."""
        self.add(each.name, time.perf_counter() - self._start)

    def add(self, name: str, seconds: float) -> None:
        """Add a row that is not a pass, such as parsing."""
        self.rows.append((name, seconds))

    def report(self) -> None:
        """Print the table."""
        self.stream.write(timing_table(self.rows))


def timing_table(rows: Iterable[tuple[str, float]]) -> str:
    """The rows with their share of the total, in the order they ran."""
    rows = list(rows)
    total = sum(seconds for _, seconds in rows)
    lines = [f"===- Execution time: {total:.4f} s -==="]
    for name, seconds in rows:
        share = 100 * seconds / total if total else 0.0
        lines.append(f"  {seconds:8.4f} s {share:5.1f} %  {name}")
    return "\n".join(lines) + "\n"


def banner(when: str, each: ModulePass, suffix: str = "") -> str:
    """The line above a dump, as mlir-opt writes it."""
    return f"// -----// IR Dump {when} {each.spec()}{suffix} //----- //"
