"""`deplo report`: one page that shows everything about a compiled program, or the data behind it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..machine.host_cpu import find_target
from ..passes.pipelines import DEFAULT_CUDA_TARGET
from ..program import Program
from ..report.data import report_data
from ..report.page import page
from .compiling import add_compile_options, capture_source, load, progress
from .console import write_output
from .machine_rates import measured_rates
from .target_option import add_target_option

NAME = "report"
HELP = "show a program at all levels on one page: kernels, texts, schedules, accesses, memory, times"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_target_option(parser)
    add_compile_options(parser)
    parser.add_argument("-o", dest="output", metavar="FILE.html", help="where the page goes")
    parser.add_argument("--json", action="store_true", help="print the data of the page")


def main(options: argparse.Namespace) -> int:
    """Compile, describe, and write."""
    if options.output is None and not options.json:
        raise UsageError("a report needs a place: -o FILE.html, or --json for its data on stdout")
    target = find_target(options.target or DEFAULT_CUDA_TARGET)
    source = load(options)
    captured = capture_source(options, source)
    with progress(f"describing {source.title}"):
        program = Program(captured, target, options.schedule)
        data = describe(program, source.title)
    if options.output is not None:
        write_page(options.output, data)
    if options.json:
        write_output(json.dumps(data, indent=1) + "\n")
    return 0


def describe(
    program: Program,
    title: str,
    run: Mapping[str, Any] | None = None,
    seconds: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """The data of a report; the rates of this CPU are measured if the program is for it."""
    rates = measured_rates() if program.target.name == "cpu" else None
    return report_data(program, title, rates, run, seconds)


def write_page(file: str, data: Mapping[str, Any]) -> None:
    """Write a report's page. Raises UsageError where it cannot be written."""
    try:
        Path(file).write_text(page(data), encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
