"""The process that compiles, checks and times candidates: what goes wrong there harms nobody else.

It reads a request from each line of stdin and writes what became of it as a line of stdout, both JSON:

    {"module": "...", "choices": {"block_m": 64, ...}, "rounds": 9, "reduction": 512,
     "flops": 2000000000, "element_bytes": 4}
    {"outcome": "timed", "ratio": 0.83, "note": "412.0 us for 496.1 us"}

A candidate computes what the model's choice computes, within the judge's bound, or it has no time. The two
take turns, on inputs that together do not fit the caches. Where the model's choice itself cannot be measured
the answer is `{"broken": "why"}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from math import inf
from typing import Any

import torch
from xdsl.parser import Parser

from ..analysis.plan import build_plan
from ..analysis.targets import get_target
from ..analysis.verify import verify_module
from ..errors import DeploError
from ..passes.llvm.host_cpu import host_cpu
from ..passes.llvm.translate import llvm_sources
from ..program_stages import make_context
from ..runtime.arrays import TORCH_DTYPES
from ..runtime.cpu import CpuProgram
from ..runtime.plan import Array, Plan
from ..runtime.sizes import static
from ..runtime.threads import thread_count
from ..tools.judge import error_bound
from .database import Trial, choices_of
from .kernels import split_passes, with_choices

COLD_BYTES = 128 << 20
"""Inputs take turns until they have filled this much."""

MAX_COPIES = 64
"""Sets of inputs at most."""

TURN_SECONDS = 4e-3
"""A turn is as many calls as take about this long, at least two."""

MAX_CALLS = 50
"""Calls of a turn at most."""

WARM_CALLS = 6
"""Calls after which a program knows whether other threads are worth asking."""

STEADY = 1.3
"""A measurement counts if the model's choice took at most so many times as long as it ever did."""

ATTEMPTS = 3
"""Measurements of a candidate, until one counts."""

FASTEST_CLOCK = 6.5e9
"""Cycles in a second that no CPU exceeds."""

FASTEST_FMAS = 2
"""Vector multiply-adds in a cycle that no core exceeds."""


def compile_kernel(text: str, choices: Mapping[str, int] | None) -> CpuProgram:
    """A program of one kernel with the choices asked for, else as the model decides. Raises DeploError."""
    context = make_context()
    module = Parser(context, text).parse_module()
    _, scheduling, after = split_passes(get_target("cpu"))
    if choices is not None:
        scheduling = with_choices(scheduling, dict(choices))
    for each in (scheduling, *after):
        each.apply(context, module)
    verify_module(module)
    plan = build_plan(module, "cpu", llvm_sources(module))
    return CpuProgram(Plan.from_data(json.loads(json.dumps(plan))), "torch")


def input_sets(arrays: Sequence[Array]) -> list[list[torch.Tensor]]:
    """Sets of random inputs that together are larger than the caches; the same in every process."""
    generator = torch.Generator().manual_seed(0)
    bytes_of_set = max(sum(array.nbytes for array in arrays), 1)
    copies = min(max(-(-COLD_BYTES // bytes_of_set), 2), MAX_COPIES)
    return [[_random(array, generator) for array in arrays] for _ in range(copies)]


def _random(array: Array, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, TORCH_DTYPES[array.dtype])
    shape = [static(extent) for extent in array.shape]
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


def difference(
    ours: Sequence[torch.Tensor], theirs: Sequence[torch.Tensor], reduction: int
) -> str | None:
    """Why results are not those of the model's choice, or None."""
    for number, (mine, reference) in enumerate(zip(ours, theirs, strict=True)):
        if not bool(torch.isfinite(reference.double()).all()):
            return f"result {number} of the model's choice is not finite, so it checks nothing"
        bound = torch.zeros(reference.shape, dtype=torch.float64)
        if reference.is_floating_point():
            bound = error_bound(reference.double(), reference.dtype, reduction)
        wrong = ~((mine.double() - reference.double()).abs() <= bound)
        if bool(wrong.any()):
            return f"{int(wrong.sum())} elements of result {number} differ"
    return None


def quiet_times(
    programs: Sequence[CpuProgram], inputs: Sequence[Sequence[torch.Tensor]], rounds: int
) -> list[float]:
    """The seconds of a call of each program; they take turns, each time the other one first.

    Of a turn the fastest call counts, of the turns the lower quartile: what else the machine does only ever
    makes a call slower.
    """
    calls: list[int] = []
    for program in programs:
        for number in range(WARM_CALLS):
            program(*inputs[number % len(inputs)])
        calls.append(min(max(int(TURN_SECONDS / _fastest(program, inputs, 0, 3)), 2), MAX_CALLS))
    times: list[list[float]] = [[] for _ in programs]
    place = 0
    for turn in range(rounds):
        order = list(range(len(programs)))
        for number in order if turn % 2 else reversed(order):
            times[number].append(_fastest(programs[number], inputs, place, calls[number]))
            place += calls[number]
    return [sorted(each)[len(each) // 4] for each in times]


def _fastest(
    program: CpuProgram, inputs: Sequence[Sequence[torch.Tensor]], place: int, calls: int
) -> float:
    """The seconds of the fastest of some calls."""
    fastest = float("inf")
    for number in range(place, place + calls):
        chosen = inputs[number % len(inputs)]
        start = time.perf_counter()
        program(*chosen)
        fastest = min(fastest, time.perf_counter() - start)
    return fastest


def fastest_flops(element_bytes: int) -> float:
    """Floating-point operations in a second that the machine cannot exceed."""
    lanes = host_cpu().lanes(element_bytes)
    return thread_count() * lanes * 2 * FASTEST_FMAS * FASTEST_CLOCK


class Bench:
    """Answers requests; what the model chooses for a kernel is compiled once for all of its candidates."""

    def __init__(self) -> None:
        self.module = ""

    def _open(self, module: str) -> None:
        if module != self.module:
            self.model = compile_kernel(module, None)
            self.inputs = input_sets([a.array for a in self.model.plan.arguments])
            self.expected = self.model(*self.inputs[0])
            self.fastest = inf
            self.module = module

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What becomes of a candidate, whatever it does wrong."""
        try:
            self._open(request["module"])
        except Exception as error:
            return {"broken": _told(error)}
        try:
            return vars(self._measure(request))
        except Exception as error:
            return vars(Trial("failed", note=_told(error)))

    def _measure(self, request: Mapping[str, Any]) -> Trial:
        try:
            candidate = compile_kernel(request["module"], choices_of(request["choices"]))
        except DeploError as error:
            return Trial("refused", note=str(error).splitlines()[0])
        problem = difference(candidate(*self.inputs[0]), self.expected, request["reduction"])
        if problem is not None:
            return Trial("wrong", note=problem)
        for _ in range(ATTEMPTS):
            model, ours = quiet_times((self.model, candidate), self.inputs, request["rounds"])
            self.fastest = min(self.fastest, model)
            if model <= self.fastest * STEADY:
                break
        else:
            return Trial("unsteady", note="the machine has other work to do")
        said = f"{ours * 1e6:.1f} us for {model * 1e6:.1f} us"
        limit = fastest_flops(request["element_bytes"])
        if request["flops"] / ours > limit:
            return Trial("impossible", note=f"{said}, above {limit / 1e9:.0f} GFLOP/s")
        return Trial("timed", ours / model, said)


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0]


def main() -> None:
    """Answer until there is no more to read."""
    # Whatever else writes to stdout goes to stderr.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    bench = Bench()
    for line in sys.stdin:
        answers.write(json.dumps(bench.answer(json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
