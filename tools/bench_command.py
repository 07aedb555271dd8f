"""`deplo bench`: time a program against eager PyTorch and torch.compile.

The three take turns on the same inputs; a result that the judge does not accept is not timed. What a program
changes is set back after each call, which is part of the time.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import torch

from ..analysis.roundings import roundings
from ..errors import MismatchError, UsageError, counted
from ..frontend.sources import Program as Source
from ..program import Program
from ..runtime.calls import is_random
from ..runtime.threads import thread_count
from .changed_tensors import kept, setter, with_changes
from .compiling import add_compile_options, compile_source, load
from .console import write_output
from .judge import float64_reference, judge, same_random_numbers
from .measuring import (
    Call,
    Case,
    CpuClock,
    GpuClock,
    inductor,
    interleaved,
    machine,
    summary,
    work_of,
)
from .target_option import add_machine_option

NAME = "bench"
HELP = "time a program against eager PyTorch and torch.compile"

ROUNDS = 15


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_machine_option(parser, "run on")
    parser.add_argument(
        "--rounds",
        type=int,
        default=ROUNDS,
        metavar="N",
        help=f"turns of each contender ({ROUNDS})",
    )
    parser.add_argument("--no-inductor", action="store_true", help="leave torch.compile out")
    add_compile_options(parser)
    parser.add_argument("--json", action="store_true", help="print the report as JSON")


def main(options: argparse.Namespace) -> int:
    """Compile, compare, time, report."""
    if options.rounds < 1:
        raise UsageError(f"--rounds is at least 1, got {options.rounds}")
    source = load(options)
    program, compile_seconds = compile_source(options, source)
    report = measure(
        program,
        source,
        compile_seconds,
        rounds=options.rounds,
        with_inductor=not options.no_inductor,
    )
    write_output((json.dumps(report, indent=2) if options.json else table(report)) + "\n")
    if "deplo" in report["problems"]:
        raise MismatchError(f"the result differs from {source.meaning}: {report['problems']['deplo']}")
    return 0


def measure(
    program: Program,
    source: Source,
    compile_seconds: float,
    *,
    rounds: int = ROUNDS,
    with_inductor: bool = True,
) -> dict[str, Any]:
    """The report of `deplo bench`, as data."""
    case = Case(source.title, source.program, source.args, source.kwargs)
    calls: dict[str, Call] = {source.meaning: case.run}
    problems: dict[str, str] = {}
    on_gpu = program.target.is_gpu
    with torch.no_grad():
        if with_inductor and source.meaning == "eager":
            with kept(program, source):
                theirs = inductor(case)
            if isinstance(theirs, str):
                problems["torch.compile"] = theirs
            else:
                calls["torch.compile"] = theirs
        calls["deplo"] = lambda: program(*case.args, **case.kwargs)
        problems |= _differences(program, source, calls)
        slow = {} if source.meaning == "eager" else {source.meaning: "it says what is right"}
        right = {name: call for name, call in calls.items() if name not in problems | slow}
        clock = GpuClock() if on_gpu else CpuClock()
        with kept(program, source):
            moved, flops = work_of(case)
        times = summary(interleaved(_from_one_state(program, source, right), clock, rounds))
    medians = times["median_us"]
    return {
        "program": source.title,
        "target": program.target.name,
        "threads": None if on_gpu else thread_count(),
        "kernels": len(program.kernels),
        "launches": program.plan.launch_count(),
        "compile_seconds": compile_seconds,
        "rounds": rounds,
        "bytes": moved,
        "flops": flops,
        **times,
        "speedup": {
            name: value / medians["deplo"] for name, value in medians.items() if "deplo" in medians
        },
        "problems": problems,
        "machine": machine(),
    }


def _from_one_state(
    program: Program, source: Source, calls: dict[str, Call]
) -> dict[str, Call]:
    """Calls after which what the program changes is set back, in the time that is measured."""
    if not program.captured.updates:
        return calls
    set_back = setter(program, source)
    return {name: lambda call=call: (call(), set_back()) for name, call in calls.items()}


def _differences(program: Program, source: Source, calls: dict[str, Call]) -> dict[str, str]:
    """What is wrong with a contender's result, of those of which something is."""
    with same_random_numbers():
        eager = with_changes(program, source, source.program)
    exact = None
    if not any(is_random(each.operator) for each in program.fallbacks):
        with kept(program, source):
            exact = float64_reference(source.program, source.args, source.kwargs)
        exact = None if exact is None else (exact, eager[1])
    reduction = roundings(program.stage("loop"))
    found: dict[str, str] = {}
    for name, call in calls.items():
        if name == source.meaning:
            continue
        with same_random_numbers():
            result = with_changes(program, source, lambda *_, call=call, **__: call())
        if problem := judge(eager, result, exact, reduction).problem:
            found[name] = problem
    return found


def table(report: dict[str, Any]) -> str:
    """The report as text."""
    threads = f", {report['threads']} threads" if report["threads"] else ""
    return "\n".join(
        [
            f"program    {report['program']}",
            f"target     {report['target']}{threads}, {counted(report['kernels'], 'kernel')}, "
            f"{counted(report['launches'], 'launch')}",
            f"compiled   in {report['compile_seconds']:.2f} s",
            contenders(report),
        ]
    )


def contenders(report: dict[str, Any]) -> str:
    """A line for each contender: its median, its quartiles, its rate, and how many times as long it takes."""
    lines = [f"{'':13}{'median':>12}{'quartiles':>30}{'rate':>18}{'of deplo':>14}"]
    work, unit = report["bytes"] / 1e3, "GB/s"
    if report["flops"]:
        work, unit = report["flops"] / 1e3, "GFLOP/s"
    for name, median in report["median_us"].items():
        low, high = report["quartiles_us"][name]
        speedup = report["speedup"].get(name)
        line = f"{name:13}{f'{median:.1f} us':>12}{f'{low:.1f} us to {high:.1f} us':>30}"
        line += f"{f'{work / median:.2f} {unit}':>18}"
        lines.append(line + ("" if speedup is None else f"{f'{speedup:.2f} x':>14}"))
    lines += [f"{name:13}not timed: {problem}" for name, problem in report["problems"].items()]
    return "\n".join(lines)
