"""Clocks and comparisons that the benchmarks, `deplo bench` and `bench/*.py`, have in common.

Contenders compute the same. They take turns, so that what else the machine does meets all of them alike; each
result is compared with float64 first, and one that is wrong is not timed.
"""

from __future__ import annotations

import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, Protocol

import torch
from torch.utils import _pytree as pytree
from torch.utils.flop_counter import FlopCounterMode

from .judge import float64_reference

Shape = Sequence[int]
Call = Callable[[], Any]

ROOT = Path(__file__).resolve().parent.parent

SETTLE_SECONDS = 0.005
"""On a CPU each turn begins with this long of calls that are not timed: the threads of the contender before
go on spinning for a while, and its data is in the caches."""

BATCH_SECONDS = 0.001
"""On a CPU calls are timed together until they take about this long, at most `MAX_BATCH`."""
MAX_BATCH = 50


@dataclass(frozen=True)
class Case:
    """A program with its inputs, on a device."""

    name: str
    program: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict[str, Any])
    needed: float = 1.0
    """The part of the operations that the result depends on, as of a causal mask."""

    def run(self) -> Any:
        """What eager PyTorch makes of it."""
        return self.program(*self.args, **self.kwargs)


class Clock(Protocol):
    """Times one turn of a contender."""

    def time(self, call: Call) -> Callable[[], float]:
        """Run or start a call; gives what says how many seconds it took."""
        ...


class GpuClock:
    """Times calls with events, after the L2 cache was overwritten."""

    def __init__(self) -> None:
        size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
        self.junk = torch.empty(size, dtype=torch.int8, device="cuda")

    def time(self, call: Call) -> Callable[[], float]:
        """Start a call; gives what waits for it and says how many seconds it took."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self.junk.zero_()
        begin.record()
        call()
        end.record()

        def seconds() -> float:
            end.synchronize()
            return begin.elapsed_time(end) / 1000

        return seconds


class CpuClock:
    """Times calls with the processor's clock, once what ran before has settled."""

    def time(self, call: Call) -> Callable[[], float]:
        """Run calls; gives what says how many seconds one of them took."""
        start, calls = time.perf_counter(), 0
        while calls == 0 or time.perf_counter() - start < SETTLE_SECONDS:
            call()
            calls += 1
        one = (time.perf_counter() - start) / calls
        batch = min(max(int(BATCH_SECONDS / one), 1), MAX_BATCH)
        start = time.perf_counter()
        for _ in range(batch):
            call()
        taken = (time.perf_counter() - start) / batch
        return lambda: taken


def interleaved(calls: Mapping[str, Call], clock: Clock, rounds: int) -> dict[str, list[float]]:
    """Seconds of each call in each round; the calls take turns."""
    for call in calls.values():
        for _ in range(3):
            call()
    waiting: dict[str, list[Callable[[], float]]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            waiting[name].append(clock.time(call))
    return {name: [seconds() for seconds in times] for name, times in waiting.items()}


def relative_error(result: Any, exact: Any) -> float:
    """The largest ||result - exact|| / ||exact|| of the results; NaN if any is NaN or has another shape."""
    errors: list[float] = []
    ours, theirs = pytree.tree_leaves(result), pytree.tree_leaves(exact)
    if len(ours) != len(theirs):
        return math.nan
    for mine, reference in zip(ours, theirs, strict=True):
        if not torch.is_tensor(reference):
            continue
        if mine.shape != reference.shape:
            return math.nan
        distance = (mine.double() - reference.double()).norm()
        errors.append(float(distance / reference.double().norm().clamp_min(1e-30)))
    return math.nan if any(map(math.isnan, errors)) else max(errors, default=0.0)


def _attention_flops(query: Shape, key: Shape, value: Shape, *_: Any, **__: Any) -> int:
    """Of both products of an attention, whose heads of queries may share those of keys."""
    *batch, rows, depth = query
    return 2 * prod(batch) * rows * key[-2] * (depth + value[-1])


def work_of(case: Case) -> tuple[int, int]:
    """The bytes of a case's inputs, parameters and results, and the floating-point operations it needs."""
    attention = {
        getattr(torch.ops.aten, f"_scaled_dot_product_{kind}"): _attention_flops
        for kind in (
            "flash_attention",
            "flash_attention_for_cpu",
            "efficient_attention",
            "cudnn_attention",
        )
    }
    with FlopCounterMode(display=False, custom_mapping=attention) as counter:
        results = case.run()
    held = [v for v in pytree.tree_leaves((case.args, case.kwargs, results)) if torch.is_tensor(v)]
    if isinstance(case.program, torch.nn.Module):
        held += list(case.program.parameters())
    moved = sum(v.numel() * v.element_size() for v in held)
    return moved, int(counter.get_total_flops() * case.needed)


def inductor(case: Case) -> Call | str:
    """A call of what `torch.compile` makes of the case, already compiled, or why there is none."""
    if not shutil.which(os.environ.get("CXX", "g++")):
        return "torch.compile needs a C++ compiler, and there is none"
    torch.compiler.reset()
    compiled = torch.compile(case.program)

    def call() -> Any:
        return compiled(*case.args, **case.kwargs)

    try:
        call()
    except RuntimeError as error:
        return f"torch.compile failed: {str(error).strip().splitlines()[0]}"
    return call


def compare(
    case: Case,
    calls: Mapping[str, Call],
    rounds: int,
    tolerance: float,
    *,
    clock: Clock | None = None,
    timed: Callable[[dict[str, Call]], dict[str, Call]] = lambda right: right,
) -> dict[str, Any]:
    """Microseconds of each contender whose result is right, and the error of each.

    `timed` may add other ways to call a contender.
    """
    exact = float64_reference(case.program, case.args, case.kwargs)
    if exact is None:
        exact = case.run()
    errors = {name: relative_error(call(), exact) for name, call in calls.items()}
    wrong = [name for name, error in errors.items() if not error <= tolerance]
    right = {name: call for name, call in calls.items() if name not in wrong}
    times = interleaved(timed(right), clock or CpuClock(), rounds)
    return {"error": errors, "wrong": wrong, **summary(times)}


def summary(times: Mapping[str, Sequence[float]]) -> dict[str, dict[str, Any]]:
    """The median, the spread and the quartiles of each contender's seconds, in microseconds."""
    return {
        "median_us": {n: statistics.median(v) * 1e6 for n, v in times.items()},
        "spread_us": {n: (max(v) - min(v)) * 1e6 for n, v in times.items()},
        "quartiles_us": {n: [q * 1e6 for q in quartiles(v)] for n, v in times.items()},
    }


def quartiles(values: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile."""
    if len(values) < 2:
        return values[0], values[0]
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def geometric_mean(ratios: Sequence[float]) -> float:
    """The geometric mean; NaN of none."""
    return statistics.geometric_mean(ratios) if ratios else math.nan


def machine() -> dict[str, Any]:
    """What the numbers hold for."""
    models = [
        line.partition(":")[2].strip()
        for line in _lines("/proc/cpuinfo")
        if line.startswith("model name")
    ]
    # The results of one benchmark do not change what the next one measures.
    changed = _git("status", "--porcelain", "-uno", "--", ".", ":(exclude)bench/results")
    commit = _git("describe", "--always") + ("-dirty" if changed else "")
    return {
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "commit": commit or os.environ.get("DEPLO_COMMIT", "unknown"),
    }


def _git(*arguments: str) -> str:
    """What git prints; nothing where there is no repository."""
    ran = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=False)
    return ran.stdout.strip()


def _lines(path: str) -> list[str]:
    try:
        return Path(path).read_text().splitlines()
    except OSError:
        return []
