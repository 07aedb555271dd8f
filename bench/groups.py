"""Do independent kernels run at once? The median call, on one thread and on all.

    nice -n -15 python bench/groups.py      # measures, writes bench/results/groups.json
    python bench/groups.py --show           # prints the results file

`pair` are two independent products of 512 by 512, kernels of several blocks each; `products` are the same
with a third that reads both, (a @ b) @ (c @ d). `sums` are two sums over vectors, which deplo does not split
on a CPU: each is a kernel of one block, which one thread computes. `in turn` is the plan without its groups,
on all threads. That two run at once is tested by test/python/test_launch_groups.py, without a clock.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import deplo
from deplo.runtime import cpu, threads
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.cpu_kernels import TIMED_CALLS
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Step
from deplo.tools.measuring import ROOT, machine

RESULT = ROOT / "bench" / "results" / "groups.json"
ROUNDS = 60


def products(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
    """Two products, which a third reads."""
    return (a @ b) @ (c @ d)


def pair(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
    """Two products alone."""
    return a @ b, c @ d


def sums(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor, d: torch.Tensor) -> Any:
    """Two sums of a kernel of one block each."""
    return a.sin().sum(), (c + 1).sin().sum()


def in_turn(plan: Plan) -> Plan:
    """The plan without groups."""
    steps = (replace(s, group=None) if isinstance(s, Step) else s for s in plan.steps)
    return replace(plan, steps=tuple(steps))


def prepared(plan: Plan, count: int, inputs: list[torch.Tensor]) -> tuple[Any, CpuProgram]:
    """A program of a plan that has seen enough calls to be prepared, for a number of threads."""
    shared = replace(threads.sharing(), threads=count)
    cpu.sharing = lambda: shared  # pyright: ignore[reportPrivateImportUsage]
    program = CpuProgram(plan)
    for _ in range(TIMED_CALLS + 1):
        program(*inputs)
    return shared, program


def measured(function: Callable[..., Any], inputs: list[torch.Tensor]) -> dict[str, Any]:
    """A program's medians in microseconds, and its groups of kernels."""
    count = threads.thread_count()
    plan = deplo.compile(function, inputs).plan
    ways: dict[str, tuple[Any, Callable[..., Any]]] = {
        "one thread": prepared(plan, 1, inputs),
        "in turn": prepared(in_turn(plan), count, inputs),
        "at once": prepared(plan, count, inputs),
    }
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, (shared, program) in ways.items():
            cpu.sharing = lambda shared=shared: shared  # pyright: ignore[reportPrivateImportUsage]
            start = time.perf_counter()
            program(*inputs)
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(each) * 1e6 for name, each in seconds.items()}
    return {"median_us": medians, "groups": kernels(plan)}


def table(result: dict[str, Any]) -> str:
    """The result as text."""
    lines = [f"{'':10} {'one thread':>12} {'in turn':>12} {'at once':>12}   at once / one thread"]
    for name, row in result["programs"].items():
        medians = list(row["median_us"].values())
        said = " ".join(f"{value:9.1f} us" for value in medians)
        lines.append(f"{name:10} {said}   {medians[-1] / medians[0]:.2f}")
    where = result["machine"]
    lines.append(
        f"medians of {result['rounds']} calls, {where['threads']} threads of {where['cpu']}, "
        f"{where['commit']}"
    )
    return "\n".join(lines)


def main() -> None:
    """Measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument("--out", type=Path, default=RESULT, help="the results file")
    options = parser.parse_args()
    if options.show:
        print(table(json.loads(options.out.read_text())))
        return
    torch.manual_seed(0)
    inputs = [torch.randn(512, 512) for _ in range(4)]
    where = {**machine(), "threads": threads.thread_count(), "load_before": os.getloadavg()[0]}
    programs = {f.__name__: measured(f, inputs) for f in (pair, products, sums)}
    result = {"rounds": ROUNDS, "machine": where, "programs": programs}
    options.out.parent.mkdir(exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    print(table(result))


def kernels(plan: Plan) -> list[list[str]]:
    """The kernels and their blocks, group by group."""
    steps = [[plan.steps[i] for i in group] for group in plan.groups]
    return [[f"{s.kernel}({s.blocks})" for s in g if isinstance(s, Step)] for g in steps]


if __name__ == "__main__":
    main()
