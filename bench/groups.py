"""Do independent kernels run at once? Seconds of the median call, on one thread and on all.

    nice -n -15 python bench/groups.py

`pair` are two independent products of 512 by 512, kernels of several blocks each; `products` are the same
with a third that reads both, (a @ b) @ (c @ d). `sums` are two sums over vectors, which deplo does not split
on a CPU: each is a kernel of one block, which one thread computes. `in turn` is the plan without its groups,
on all threads.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

import deplo
from deplo.runtime import cpu, threads
from deplo.runtime.cpu import TIMED_CALLS, CpuProgram
from deplo.runtime.plan import Plan, Step

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


def main() -> None:
    """Print a table."""
    torch.manual_seed(0)
    inputs = [torch.randn(512, 512) for _ in range(4)]
    count = threads.thread_count()
    print(f"{'':10} {'one thread':>12} {'in turn':>12} {'at once':>12}   at once / one thread")
    for function in (pair, products, sums):
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
        medians = [statistics.median(each) for each in seconds.values()]
        said = " ".join(f"{value * 1e6:9.1f} us" for value in medians)
        print(
            f"{function.__name__:10} {said}   {medians[-1] / medians[0]:.2f}   groups: {kernels(plan)}"
        )


def kernels(plan: Plan) -> list[list[str]]:
    """The kernels and their blocks, group by group."""
    steps = [[plan.steps[i] for i in group] for group in plan.groups]
    return [[f"{s.kernel}({s.blocks})" for s in g if isinstance(s, Step)] for g in steps]


if __name__ == "__main__":
    main()
