"""The process that compiles, checks and times candidates: what goes wrong there harms nobody else.

It reads a request from each line of stdin and writes what became of it as a line of stdout, both JSON:

    {"module": "...", "scheduled_by": "schedule-cpu", "choices": {"block_m": 64, ...}, "rounds": 9,
     "reduction": 512, "least_seconds": 1e-5}
    {"outcome": "timed", "ratio": 0.83, "note": "412.0 us for 496.1 us"}

A candidate computes what the model's choice computes, within the judge's bound, or it has no time. The two
take turns, on inputs that together do not fit a core's caches, then on the same ones again and again, and the
worse counts. Where the model's choice itself cannot be measured the answer is `{"broken": "why"}`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from ..runtime.plan import Plan
from ..runtime.plan_parts import Array
from ..runtime.sizes import static
from ..tools.judge import error_bound
from .database import Trial, choices_of, worst
from .kernels import passes_with
from .spaces import Choices

CACHES = 4
"""Inputs take turns until they have filled this many times the second-level caches of all cores: what a
kernel reads comes from the shared cache then, as in a program of which other kernels ran in between."""

MAX_COPIES = 64
"""Sets of inputs at most."""

TURN_SECONDS = 4e-3
"""A turn is as many calls as take about this long, at least two."""

MAX_CALLS = 50
"""Calls of a turn at most."""

WARM_CALLS = 6
"""Calls after which a program knows whether other threads are worth asking."""

LONG_SECONDS = 1e-3
"""A call that takes so long surely is, which two calls tell."""

HOPELESS = 1.1
"""A candidate that takes so many times as long as the model's choice is given up early."""

EARLY_TURNS = 3
"""Turns after which that can be told."""

STEADY = 1.3
"""A measurement counts if the model's choice took at most so many times as long as it ever did."""

ATTEMPTS = 3
"""Measurements of a candidate, until one counts."""


def compile_kernel(text: str, scheduled_by: str, choices: Choices | None) -> CpuProgram:
    """A program of one kernel with the choices asked for, else as the model decides. Raises DeploError.

    `scheduled_by` is the pass that decides, as which the text is met.
    """
    context = make_context()
    module = Parser(context, text).parse_module()
    for each in passes_with(get_target("cpu"), scheduled_by, choices):
        each.apply(context, module)
    verify_module(module)
    plan = build_plan(module, "cpu", llvm_sources(module))
    return CpuProgram(Plan.from_data(json.loads(json.dumps(plan))), "torch")


def input_sets(arrays: Sequence[Array]) -> list[list[torch.Tensor]]:
    """Sets of random inputs that together are larger than a core's caches; the same in every process."""
    generator = torch.Generator().manual_seed(0)
    bytes_of_set = max(sum(array.nbytes for array in arrays), 1)
    cpu = host_cpu()
    copies = min(max(-(-CACHES * cpu.cores * cpu.l2_bytes // bytes_of_set), 2), MAX_COPIES)
    return [[_random(array, generator) for array in arrays] for _ in range(copies)]


def _random(array: Array, generator: torch.Generator) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, TORCH_DTYPES[array.dtype])
    shape = [static(extent) for extent in array.shape]
    if dtype.is_floating_point:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2, shape, generator=generator).to(dtype)


@dataclass(frozen=True)
class Reference:
    """A result of the model's choice, and how far another one may be from it."""

    value: torch.Tensor
    """In float64, as is the bound."""
    bound: torch.Tensor
    is_finite: bool

    @staticmethod
    def of(result: torch.Tensor, reduction: int) -> Reference:
        """The reference for a result; `reduction` is the length of the longest reduction that it needs."""
        value = result.double()
        bound = torch.zeros_like(value)
        if result.is_floating_point():
            bound = error_bound(value, result.dtype, reduction)
        return Reference(value, bound, bool(torch.isfinite(value).all()))


def difference(ours: Sequence[torch.Tensor], theirs: Sequence[Reference]) -> str | None:
    """Why results are not those of the model's choice, or None."""
    for number, (mine, reference) in enumerate(zip(ours, theirs, strict=True)):
        if not reference.is_finite:
            return f"result {number} of the model's choice is not finite, so it checks nothing"
        wrong = ~((mine.double() - reference.value).abs() <= reference.bound)
        if bool(wrong.any()):
            return f"{int(wrong.sum())} elements of result {number} differ"
    return None


def quiet_times(
    model: CpuProgram,
    candidate: CpuProgram,
    inputs: Sequence[Sequence[torch.Tensor]],
    rounds: int,
) -> tuple[float, float]:
    """The seconds of a call of the model's choice and of a candidate; they take turns, each first in half.

    Of a turn the fastest call counts, of the turns the lower quartile: what else the machine does only ever
    makes a call slower. A candidate that is hopeless gets fewer turns.
    """
    programs = (model, candidate)
    calls = [_calls_of_turn(program, inputs) for program in programs]
    times: tuple[list[float], list[float]] = ([], [])
    place = 0
    for turn in range(rounds):
        for number in (0, 1) if turn % 2 else (1, 0):
            times[number].append(_fastest(programs[number], inputs, place, calls[number]))
            place += calls[number]
        if turn + 1 == EARLY_TURNS and min(times[1]) > HOPELESS * max(times[0]):
            break
    ours, theirs = (sorted(each)[len(each) // 4] for each in times)
    return ours, theirs


def _calls_of_turn(program: CpuProgram, inputs: Sequence[Sequence[torch.Tensor]]) -> int:
    """How many calls a turn has; warms the program up."""
    seconds = _fastest(program, inputs, 0, 2)
    if seconds < LONG_SECONDS:
        seconds = min(seconds, _fastest(program, inputs, 2, WARM_CALLS))
    return min(max(int(TURN_SECONDS / seconds), 2), MAX_CALLS)


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


class Bench:
    """Answers requests; what the model chooses for a kernel is compiled once for all of its candidates."""

    def __init__(self) -> None:
        self.module = ""

    def _open(self, module: str, scheduled_by: str, reduction: int) -> None:
        if module != self.module:
            self.module = ""
            self.model = compile_kernel(module, scheduled_by, None)
            self.inputs = input_sets([a.array for a in self.model.plan.arguments])
            results = self.model(*self.inputs[0])
            self.expected = [Reference.of(result, reduction) for result in results]
            self.fastest: dict[int, float] = {}
            self.module = module

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What becomes of a candidate, whatever it does wrong."""
        try:
            self._open(request["module"], request["scheduled_by"], request["reduction"])
        except Exception as error:
            return {"broken": _told(error)}
        try:
            return vars(self._measure(request))
        except Exception as error:
            return vars(Trial("failed", note=_told(error)))

    def _measure(self, request: Mapping[str, Any]) -> Trial:
        try:
            choices = choices_of(request["choices"])
            candidate = compile_kernel(request["module"], request["scheduled_by"], choices)
        except DeploError as error:
            return Trial("refused", note=str(error).splitlines()[0])
        problem = difference(candidate(*self.inputs[0]), self.expected)
        if problem is not None:
            return Trial("wrong", note=problem)
        return worst(
            [self._time(candidate, each, request) for each in (self.inputs, self.inputs[:1])]
        )

    def _time(
        self,
        candidate: CpuProgram,
        inputs: Sequence[Sequence[torch.Tensor]],
        request: Mapping[str, Any],
    ) -> Trial:
        """Time a candidate beside the model's choice, on these inputs in turn."""
        fastest = self.fastest.get(len(inputs), inf)
        for _ in range(ATTEMPTS):
            model, ours = quiet_times(self.model, candidate, inputs, request["rounds"])
            fastest = self.fastest[len(inputs)] = min(fastest, model)
            if model <= fastest * STEADY:
                break
        else:
            return Trial("unsteady", note="the machine has other work to do")
        said = f"{ours * 1e6:.1f} us for {model * 1e6:.1f} us"
        if ours < request["least_seconds"]:
            return Trial("impossible", note=f"{said}; it takes {request['least_seconds']:.1e} s")
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
