"""`deplo run`: run a program, compare it with eager PyTorch and with float64, and time both."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch

from ..analysis.roundings import roundings
from ..errors import MismatchError, counted
from ..frontend.sources import Program as Source
from ..program import Program
from ..program_stages import make_context, passes_to, stage_of
from ..runtime.calls import is_random
from ..runtime.cpu import CpuProgram
from . import bench_command, report_command
from .changed_tensors import kept, setter, with_changes
from .check_each_pass import PassChecker
from .compiling import add_compile_options, compile_source, load
from .console import write_output
from .executors import make_checker
from .instrumentation import timing_table
from .judge import Verdict, float64_reference, judge, same_random_numbers
from .target_option import add_machine_option

NAME = "run"
HELP = "run a program and compare it with eager PyTorch"

LAUNCHES = 15
"""Runs of a program in which its launches are timed, for a page."""

TIMING_SECONDS = 0.3
"""How long eager and deplo together are timed, at least three calls each."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_machine_option(parser, "run on")
    parser.add_argument(
        "--check-each-pass",
        action="store_true",
        help="execute the program before and after each pass and compare",
    )
    add_compile_options(parser)
    parser.add_argument(
        "-b",
        "--bench",
        action="store_true",
        help="time it as `deplo bench` does, against torch.compile too",
    )
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")
    parser.add_argument("--report", metavar="FILE.html", help="write the page of `deplo report`, too")


def main(options: argparse.Namespace) -> int:
    """Run, compare, report."""
    source = load(options)
    program, compile_seconds = compile_source(options, source)
    checker = check_each_pass(program, source) if options.check_each_pass else None
    with torch.no_grad():
        with same_random_numbers():
            result = with_changes(program, source, program)
        with same_random_numbers():
            eager = with_changes(program, source, source.program)
    exact = None
    if not any(is_random(each.operator) for each in program.fallbacks):
        with kept(program, source):
            exact = float64_reference(source.program, source.args, source.kwargs)
        exact = None if exact is None else (exact, eager[1])
    verdict = judge(eager, result, exact, roundings(program.stage("loop")))
    bench = None
    if options.bench and not verdict.problem:
        bench = bench_command.measure(program, source, compile_seconds)
    times = None if verdict.problem or bench else _latency(program, source)
    if options.timing:
        sys.stderr.write(timing_table(program.compilation.seconds))
    report = _report(program, source, verdict, times, compile_seconds, checker)
    if bench is not None:
        report["bench"] = bench
    text = json.dumps(report, indent=2) if options.json else _table(report)
    if bench is not None and not options.json:
        text += "\n" + bench_command.contenders(bench)
    write_output(text + "\n")
    if options.report is not None:
        ran = {
            "seconds": None if times is None else times["deplo"],
            "eager_seconds": None if times is None else times["eager"],
            "largest_difference": verdict.difference,
            "agrees": verdict.problem is None,
        }
        seconds = _launch_seconds(program, source)
        described = report_command.describe(program, source.title, ran, seconds)
        report_command.write_page(options.report, described)
    if verdict.problem:
        raise MismatchError(f"the result differs from {source.meaning}: {verdict.problem}")
    return 0


def check_each_pass(program: Program, source: Source) -> PassChecker:
    """Compare what every stage computes; the checker knows how many do. Raises MismatchError."""
    module = program.code.module.clone()
    checker = make_checker(program.captured, source, program.target.name)
    context = make_context()
    checker.begin(module)
    last = "cuda" if program.target.is_gpu else "llvm"
    for _, passes in passes_to(last, program.target, program.schedule, stage_of(module)):
        for each in passes:
            each.apply(context, module)
            checker.after_pass(each, module)
    return checker


def _latency(program: Program, source: Source) -> dict[str, float]:
    """Median seconds of a call of eager and of the program, interleaved."""
    calls: dict[str, Callable[..., Any]] = {"eager": source.program, "deplo": program}
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    set_back = setter(program, source)
    start = time.perf_counter()
    with torch.no_grad():
        while len(seconds["deplo"]) < 3 or time.perf_counter() - start < TIMING_SECONDS:
            for name, call in calls.items():
                begin = time.perf_counter()
                call(*source.args, **source.kwargs)
                if program.target.is_gpu:
                    torch.cuda.synchronize()
                seconds[name].append(time.perf_counter() - begin)
                set_back()
    return {name: statistics.median(values) for name, values in seconds.items()}


def _launch_seconds(program: Program, source: Source) -> dict[str, float]:
    """Median seconds of a launch of each kernel on a CPU; the program's own tensors are set back."""
    executable = program.executable
    if not isinstance(executable, CpuProgram):
        return {}
    with kept(program, source), torch.no_grad():
        return executable.launch_seconds(program.arguments(source.args, source.kwargs), LAUNCHES)


def _report(
    program: Program,
    source: Source,
    verdict: Verdict,
    times: dict[str, float] | None,
    compile_seconds: float,
    checker: PassChecker | None,
) -> dict[str, Any]:
    return {
        "program": source.title,
        "compared_with": source.meaning,
        "target": program.target.name,
        "kernels": [kernel.name for kernel in program.kernels],
        "launches": program.plan.launch_count(),
        "calls": program.report()["calls"],
        "compile_seconds": compile_seconds,
        "latency_seconds": times,
        "agrees_with_eager": verdict.problem is None,
        "problem": verdict.problem,
        "max_difference_from_eager": verdict.difference,
        "max_error_against_float64": {"deplo": verdict.error, "eager": verdict.eager_error},
        "passes_checked": None if checker is None else checker.checked,
        "passes_without_effect": None if checker is None else checker.unchanged,
    }


def _table(report: dict[str, Any]) -> str:
    def number(value: float | None) -> str:
        return "none" if value is None else f"{value:.3g}"

    errors, name = report["max_error_against_float64"], report["compared_with"]
    launches = report["launches"]
    kernels = report["kernels"]
    shown = ", ".join(kernels[:4]) + (f" and {len(kernels) - 4} more" if len(kernels) > 4 else "")
    lines = [
        f"program    {report['program']}",
        f"target     {report['target']}, {counted(len(kernels), 'kernel')}, "
        f"{counted(launches, 'launch')}: {shown}",
        f"compiled   in {report['compile_seconds']:.2f} s",
    ]
    if report["calls"]:
        operators = ", ".join(call["operator"] for call in report["calls"])
        lines.insert(2, f"PyTorch    {sum(c['count'] for c in report['calls'])} calls: {operators}")
    if report["passes_checked"] is not None:
        lines.append(
            f"checked    {report['passes_checked']} stages compute the same, "
            f"{report['passes_without_effect']} of them unchanged"
        )
    if (times := report["latency_seconds"]) is not None:
        lines.append(
            f"latency    deplo {1e6 * times['deplo']:.0f} us, {name} {1e6 * times['eager']:.0f} us "
            "(medians, interleaved)"
        )
    lines += [
        f"error      deplo {number(errors['deplo'])}, {name} {number(errors['eager'])} "
        "(largest, against float64)",
        f"result     {'agrees with' if report['agrees_with_eager'] else 'DIFFERS from'} {name}, "
        f"largest difference {number(report['max_difference_from_eager'])}",
    ]
    return "\n".join(lines)
