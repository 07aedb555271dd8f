"""What tuning gains: rows and contractions of `bench/cpu.py`, as modelled and as tuned, or kernels of a GPU.

    python bench/tuning.py               # tunes and measures, writes bench/results/tuning.json
    python bench/tuning.py --model typical # the same of a core that nobody has measured: tuning-typical.json
    python bench/tuning.py --only linear # prints the cases whose name or group is this, writes nothing
    python bench/tuning.py --show        # prints the results file
    python bench/tuning.py --gpu --total 400  # the GPU's cases, in so many seconds: tuning-gpu.json

Each case is tuned from nothing, in a cache of its own, and a second time, which must measure nothing where
the first was finished. Then programs take turns, on the same inputs and on others each time, which do not fit
the cores' own caches: the model's and the tuned one. Medians count, of some comparisons the mean of those in
which the machine was least busy, and of both ways the geometric mean. What is one and the same program is
timed once. What tuning finds on many kernels becomes part of what the model knows of a core: what it finds on
a core that nobody has measured, `--model typical` says (DEPLO_CPU_MODEL), and compares the program of the
model with all that was measured of this core besides. With the budget that there is by default all of it
takes about an hour. On a GPU programs are replays of CUDA graphs, each time after the L2 cache was
overwritten. The file is written after each case.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from math import inf
from pathlib import Path
from typing import Any
from unittest.mock import patch

THREADS = 2
os.environ.setdefault("DEPLO_NUM_THREADS", str(THREADS))

import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from cpu import TOLERANCE  # noqa: E402
from cpu_cases import cases  # noqa: E402
from gpu import graphed  # noqa: E402
from torch import nn  # noqa: E402
from tuning_table import MEASURED, OTHERS, gain, table  # noqa: E402

import deplo  # noqa: E402
from deplo.errors import DeploError  # noqa: E402
from deplo.frontend.capture import capture  # noqa: E402
from deplo.machine.host_cpu import find_target  # noqa: E402
from deplo.program import choose_target, module_for  # noqa: E402
from deplo.tools.measuring import (  # noqa: E402
    ROOT,
    Call,
    Case,
    CpuClock,
    GpuClock,
    compare,
    geometric_mean,
    machine,
)
from deplo.tune.cpu_machine import copies_beyond_caches  # noqa: E402
from deplo.tune.session import Session, tune  # noqa: E402
from deplo.tune.settings import Settings  # noqa: E402

RESULT = ROOT / "bench" / "results" / "tuning.json"
TYPICAL_RESULT = ROOT / "bench" / "results" / "tuning-typical.json"
GPU_RESULT = ROOT / "bench" / "results" / "tuning-gpu.json"
ROUNDS = 31
COMPARISONS, PAUSE = 12, 2.0
"""Both programs are compared so often at most on a CPU, so many seconds apart: other work comes and goes."""
QUIET, ENOUGH = 1.15, 5
"""Comparisons count in which calls took at most so many times as long as ever; so many are enough, and the
least busy ones if there are fewer."""
BUDGET = 60.0
TOTAL = 600.0
GROUPS = ("rows", "contractions", "rows of models", "contractions of models")
REFERENCE = "reference"
"""The model's program once more, which tells how busy the machine is."""
GPU_TOLERANCE = 1e-2
"""Of ||ours - exact|| / ||exact||: results of bf16 are rounded to 8 bits."""
AFTER = 20.0
"""Seconds that a GPU's case is given for what follows the search: to confirm the winner, and to compare."""

Named = tuple[str, str, Callable[[], Case]]
"""The group of a case, its name, and what makes it."""


def gpu_cases() -> Iterator[Named]:
    """What is measured on a GPU."""

    def case(name: str, program: Any, *shapes: tuple[int, ...], dtype: Any = torch.float32) -> Case:
        torch.manual_seed(0)
        if isinstance(program, nn.Module):
            program = program.to("cuda", dtype).eval()
        return Case(name, program, tuple(torch.randn(s, device="cuda").to(dtype) for s in shapes))

    def rows(name: str, program: Callable[[], Any], *shape: int) -> Named:
        return "rows", name, lambda: case(name, program(), shape)

    yield rows("softmax 4096x4096", lambda: nn.Softmax(-1), 4096, 4096)
    yield rows("rms_norm 512x2048", lambda: nn.RMSNorm(2048), 512, 2048)
    yield rows("layer_norm 4096x1024", lambda: nn.LayerNorm(1024), 4096, 1024)
    for dtype in (torch.float32, torch.bfloat16):
        kind = "f32" if dtype is torch.float32 else "bf16"
        for m, k, n in (32, 2048, 2048), (512, 2048, 2048), (512, 3584, 3584), (4096, 4096, 4096):
            name = f"linear {m}x{k}x{n} {kind}"

            def make(name: str = name, m: int = m, k: int = k, n: int = n, d: Any = dtype) -> Case:
                return case(name, nn.Linear(k, n, bias=False), (m, k), dtype=d)

            yield "contractions", name, make
    name = "attention 1x32x512x64 f32"
    shape = (1, 32, 512, 64)
    yield "contractions", name, lambda: case(name, F.scaled_dot_product_attention, *[shape] * 3)


def replays(calls: dict[str, Call]) -> dict[str, Call]:
    """The calls as replays of graphs."""
    return {name: graphed(call) or call for name, call in calls.items()}


@dataclass(frozen=True)
class Place:
    """Where cases are measured."""

    cases: Callable[[], Iterator[Named]]
    groups: tuple[str, ...]
    result: Path
    tolerance: float
    timing: Callable[[], dict[str, Any]]
    """What `compare` is told besides."""
    model: str = MEASURED
    """What its model knows of a core, where that can be chosen."""


CPU = Place(cases, GROUPS, RESULT, TOLERANCE, dict)
TYPICAL = replace(CPU, result=TYPICAL_RESULT, model="typical")
GPU = Place(
    gpu_cases,
    ("rows", "contractions"),
    GPU_RESULT,
    GPU_TOLERANCE,
    lambda: {"clock": GpuClock(), "timed": replays},
)


def measure(case: Case, place: Place, seconds: float, rounds: int) -> dict[str, Any]:
    """Tune a case, then compare the programs that there are."""
    captured = capture(case.program, case.args, case.kwargs)
    target = choose_target("auto", captured) if place is GPU else find_target("cpu")
    compiled = partial(deplo.compile, case.program, case.args, case.kwargs, target=target.name)
    baseline: list[float] = []
    programs: dict[str, Any] = {}
    clock = CpuClock()

    def tell_and_time(line: str) -> None:
        tell(line)
        if place is not GPU:  # what the model's program takes when the machine has least to do
            baseline.append(clock.time(turn(programs["model"], [case.args], case))() * 1e6)

    def search() -> Session:
        return tune(module_for(captured, target), target, seconds, Settings(), tell_and_time)

    with model_of(place.model):
        programs["model"] = compiled()
        programs["model"](*case.args, **case.kwargs)
        start = time.perf_counter()
        session = search()
        spent = time.perf_counter() - start
        finished = all(each.finished for each in session.tunings)
        again = search() if finished else None
        programs["deplo"] = compiled()
    if place is TYPICAL:
        with model_of(MEASURED):
            programs[MEASURED] = compiled()
    first = {name: first_of(programs, name) for name in programs}
    different = {name: programs[name] for name in first.values()}
    if place is GPU or len(different) == 1:
        calls = calls_of(different, case, place)
        rounds = rounds if len(different) > 1 else 1
        row = compare(case, calls, rounds, place.tolerance, **place.timing())
    else:
        row = compare_quietly(case, different, rounds, min(baseline))
    times = row["median_us"]
    for name, same in first.items():
        for inputs in ("", OTHERS):
            if f"{same}{inputs}" in times:
                times[f"{name}{inputs}"] = times[f"{same}{inputs}"]
    kernels = [
        {
            "kernel": each.name,
            "schedule": each.schedule,
            "ratio": each.ratio,
            "finished": each.finished,
        }
        for each in session.tunings
    ]
    return {
        **row,
        "same": {name: same for name, same in first.items() if same != name},
        "kernels": kernels,
        "others": session.others,
        "candidates": session.compiled,
        "second_run": None if again is None else again.compiled,
        "tuning_seconds": spent,
    }


def first_of(programs: dict[str, Any], name: str) -> str:
    """The first of the programs that is one and the same as that of this name."""
    return next(other for other in programs if sources(programs[other]) == sources(programs[name]))


def calls_of(programs: dict[str, Any], case: Case, place: Place) -> dict[str, Call]:
    """A call of each program; on a CPU also one that takes other inputs each time, all of them new copies.

    Where pages lie in the caches is another matter in each.
    """
    if place is GPU:
        return {name: turn(program, [case.args], case) for name, program in programs.items()}
    sets = new_inputs(case)
    same = {name: turn(program, sets[:1], case) for name, program in programs.items()}
    return same | {f"{n}{OTHERS}": turn(program, sets, case) for n, program in programs.items()}


def compare_quietly(
    case: Case, programs: dict[str, Any], rounds: int, baseline: float
) -> dict[str, Any]:
    """Comparisons while the machine has little else to do, as one: geometric means of their medians.

    Whether it has, a reference tells that is nobody's time: who is chosen for being fast was lucky, too.
    `baseline` are the microseconds that it took at best, now and then during the search. What is said of a
    contender besides is of the comparison in which the reference took least.
    """
    rows: list[dict[str, Any]] = []
    quiet: list[dict[str, Any]] = []
    while len(rows) < COMPARISONS and len(quiet) < ENOUGH:
        time.sleep(PAUSE)
        calls = calls_of(programs, case, CPU)
        calls[REFERENCE] = turn(programs["model"], [case.args], case)
        rows.append(compare(case, calls, rounds, TOLERANCE))
        rows.sort(key=_busy)
        quiet = [row for row in rows if _busy(row) <= QUIET * min(baseline, _busy(rows[0]))]
    counted = rows[:ENOUGH]
    medians = {
        name: geometric_mean([row["median_us"][name] for row in counted])
        for name in counted[0]["median_us"]
        if name != REFERENCE
    }
    return {**counted[0], "median_us": medians, "comparisons": len(rows), "quiet": len(quiet)}


def _busy(row: dict[str, Any]) -> float:
    """The microseconds that the reference took."""
    return row["median_us"].get(REFERENCE, inf)


def turn(program: Callable[..., Any], sets: Sequence[Sequence[Any]], case: Case) -> Call:
    """A call of a program, each time on the next set of inputs."""
    supply = cycle(sets)
    return lambda: program(*next(supply), **case.kwargs)


def new_inputs(case: Case) -> list[Sequence[Any]]:
    """Copies of the case's inputs, so many that they do not fit the cores' own caches."""
    tensors = [each for each in case.args if torch.is_tensor(each)]
    copies = copies_beyond_caches(sum(each.nbytes for each in tensors))
    return [[x.clone() if torch.is_tensor(x) else x for x in case.args] for _ in range(copies)]


def tell(line: str) -> None:
    """Say what became of a candidate, for who looks on."""
    sys.stderr.write(f"{line}\n")


@contextmanager
def model_of(knowledge: str) -> Generator[None]:
    """Meanwhile the model knows of this core what is `measured`, or only what is `typical`."""
    with patch.dict(os.environ, DEPLO_CPU_MODEL=knowledge):
        yield


def sources(program: Any) -> list[str]:
    """The code of a program's kernels."""
    return [kernel.source for kernel in program.kernels]


def here(place: Place) -> dict[str, Any]:
    """What the numbers hold for."""
    if place is GPU:
        return {**machine(), "device": torch.cuda.get_device_name(), "cuda": torch.version.cuda}
    return {**machine(), "threads": THREADS, "model": place.model}


def main() -> int:
    """Tune and measure, or show."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--show", action="store_true", help="print the results file and leave")
    parser.add_argument(
        "--only", metavar="NAME", help="cases whose name holds this, or of this group; no file"
    )
    parser.add_argument("--budget", type=float, default=BUDGET, help=f"seconds each ({BUDGET:.0f})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"turns of each ({ROUNDS})")
    parser.add_argument(
        "--model",
        choices=(MEASURED, TYPICAL.model),
        default=MEASURED,
        help="what the model knows of this CPU: what was measured, or what is typical (%(default)s)",
    )
    parser.add_argument("--gpu", action="store_true", help="the GPU's cases, on a GPU")
    parser.add_argument(
        "--total",
        type=float,
        default=None,
        help=f"seconds for all cases, shared out ({TOTAL:.0f} for a GPU)",
    )
    options = parser.parse_args()
    if options.gpu and options.model != MEASURED:
        parser.error("--model says what is known of a CPU; leave out --gpu or --model")
    place = GPU if options.gpu else TYPICAL if options.model == TYPICAL.model else CPU
    if options.show:
        if not place.result.exists():
            parser.error(f"there is no {place.result.relative_to(ROOT)} yet; run without --show")
        print(table(json.loads(place.result.read_text())))
        return 0
    if options.gpu and not torch.cuda.is_available():
        print("error: torch finds no GPU; --gpu measures on one", file=sys.stderr)
        return 4
    if options.gpu:
        os.environ["DEPLO_NUM_THREADS"] = str(os.cpu_count())  # for NVRTC
    else:
        torch.set_num_threads(THREADS)
    result = run(place, options)
    print(table(result))
    return 0


def run(place: Place, options: argparse.Namespace) -> dict[str, Any]:
    """Tune and measure all cases that are asked for, as long as there is time."""
    total = options.total or (TOTAL if place is GPU else None)
    end = None if total is None else time.perf_counter() + total
    result: dict[str, Any] = {
        "rounds": options.rounds,
        "budget": options.budget,
        "machine": here(place),
        "cases": {},
    }
    asked = options.only
    chosen = [
        (name, make)
        for group, name, make in place.cases()
        if (group in place.groups if asked is None else asked == group or asked in name)
    ]
    chosen.sort(key=lambda named: "convolution" in named[0])  # the last ones, where time runs out
    for number, (name, make) in enumerate(chosen):
        seconds = options.budget
        if end is not None:
            left = end - time.perf_counter()
            seconds = min(seconds, left / (len(chosen) - number) - AFTER)
            if seconds <= 0:
                print(f"no time is left for {', '.join(n for n, _ in chosen[number:])}")
                break
        with tempfile.TemporaryDirectory() as cache:
            os.environ["DEPLO_CACHE_DIR"] = cache
            with torch.no_grad():
                try:
                    result["cases"][name] = measure(make(), place, seconds, options.rounds)
                except (DeploError, RuntimeError) as error:
                    result["cases"][name] = {"failed": f"{type(error).__name__}: {error}"}
        print(name, gain(result["cases"][name]), flush=True)
        if asked is None:
            place.result.write_text(json.dumps(result, indent=1) + "\n")
    return result


if __name__ == "__main__":
    raise SystemExit(main())
