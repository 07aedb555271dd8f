"""The process that compiles, checks and times candidates: what goes wrong there harms nobody else.

It reads a request from each line of stdin and writes what became of it as a line of stdout, both JSON:

    {"module": "...", "target": "cpu", "scheduled_by": "schedule-cpu", "choices": {"block_m": 64, ...},
     "ahead": [], "rounds": 25, "reduction": 512, "least_seconds": 1e-5, "cold_seconds": 2e-5,
     "fastest": {"cold": 5e-4, "same": 4.9e-4}}
    {"outcome": "timed", "ratio": 0.83, "note": "412.0 us for 496.1 us", "fastest": {...}}

A candidate computes what the model's choice computes, within the judge's bound, or it has no time. Nor has
one whose code is that of the model's choice, or of a candidate before it: it is the `same`. The others are
compared with the model's choice in pairs of turns (`pairs.py`), on inputs that together do not fit the
caches, then on the same ones again and again; the mean of both counts, but the worse where that is slower
than the model's choice. `fastest` is what that ever took, in any process. Where the model's choice itself
cannot be measured the answer is `{"broken": "why"}`. With `"lost": true` the process is of no more use: a
kernel failed on a GPU.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from typing import Any

import torch

from ..errors import DeploError
from ..machine.host_cpu import find_target
from ..runtime.cpu import CpuProgram
from ..runtime.cuda import CudaProgram
from ..tools.judge import error_bound
from .candidates import Candidates
from .cpu_machine import CpuMachine
from .database import Trial, choices_of, choices_text, worst
from .gpu_machine import GpuMachine
from .machines import Inputs, Machine
from .pairs import compare

AS_FAST = 1.02
"""A candidate that takes at most so many times as long as the model's choice is no slower."""

FINITE = 0.25
"""The share of each result's elements that is finite, at least, of inputs that check anything."""


@dataclass(frozen=True)
class Reference:
    """A result of the model's choice, and how far another one may be from it."""

    value: torch.Tensor
    """In float64, as is the bound."""
    bound: torch.Tensor
    finite: float
    """The share of elements that are finite."""

    @staticmethod
    def of(result: torch.Tensor, reduction: int) -> Reference:
        """The reference for a result; `reduction` is the length of the longest reduction that it needs."""
        value = result.double()
        bound = torch.zeros_like(value)
        if result.is_floating_point():
            bound = error_bound(value, result.dtype, reduction)
        finite = int(torch.isfinite(value).sum()) / value.numel() if value.numel() else 1.0
        return Reference(value, bound, finite)


def both(cold: Trial, same: Trial) -> Trial:
    """What becomes of a candidate that was timed on changing inputs and on the same ones."""
    slower = worst((cold, same))
    if cold.ratio is None or same.ratio is None or (slower.ratio or inf) > AS_FAST:
        return slower
    return Trial("timed", sqrt(cold.ratio * same.ratio), f"{cold.note}, in caches {same.note}")


def difference(ours: Sequence[torch.Tensor], theirs: Sequence[Reference]) -> str | None:
    """Why results are not those of the model's choice, or None."""
    for number, (mine, reference) in enumerate(zip(ours, theirs, strict=True)):
        value, exact = mine.double(), reference.value
        same = (value == exact) | (value.isnan() & exact.isnan())
        close = exact.isfinite() & ((value - exact).abs() <= reference.bound)
        wrong = ~(same | close)
        if bool(wrong.any()):
            return f"{int(wrong.sum())} elements of result {number} differ"
    return None


class Bench:
    """Answers requests; what the model chooses for a kernel is compiled once for all of its candidates."""

    def __init__(self) -> None:
        self.module = ""
        self.machine: Machine | None = None

    def _open(self, request: Mapping[str, Any]) -> Machine:
        """Make sure that the model's choice for a kernel is there to compare with."""
        if self.machine is None:
            self.machine = GpuMachine() if find_target(request["target"]).is_gpu else CpuMachine()
        if request["module"] != self.module:
            self.module = ""
            asked = (request["module"], request["scheduled_by"], request["target"])
            self.candidates = Candidates(*asked)
            self.model = self.candidates.get(None)
            self.inputs, self.expected = self._checked(self.machine, request["reduction"])
            self.fastest: dict[str, float] = {}
            self.plans = [("the model's choice", self.model.plan)]
            self.module = request["module"]
        for name, seconds in request["fastest"].items():
            self.fastest[name] = min(self.fastest.get(name, inf), seconds)
        return self.machine

    def _checked(self, machine: Machine, reduction: int) -> tuple[Inputs, list[Reference]]:
        """Inputs of which the model's choice makes finite numbers, and these. Raises DeploError."""
        found: dict[float, tuple[Inputs, list[Reference]]] = {}
        for positive in (False, True):
            inputs = machine.inputs(self.model.plan, positive=positive)
            expected = [Reference.of(result, reduction) for result in self.model(*inputs[0])]
            share = min((each.finite for each in expected), default=1.0)
            found.setdefault(share, (inputs, expected))
            if share == 1.0:
                break
        if max(found) < FINITE:
            raise DeploError("its results of random inputs are not finite, so they check nothing")
        return found[max(found)]

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """What becomes of a candidate, whatever it does wrong."""
        try:
            machine = self._open(request)
        except Exception as error:
            return self._after({"broken": _told(error)})
        try:
            return {**vars(self._measure(request, machine)), "fastest": self.fastest}
        except Exception as error:
            return self._after(vars(Trial("failed", note=_told(error))))

    def _after(self, answer: dict[str, Any]) -> dict[str, Any]:
        """An answer after something went wrong, which may be the end of this process."""
        lost = self.machine is not None and self.machine.is_lost()
        return {**answer, "lost": True} if lost else answer

    def _measure(self, request: Mapping[str, Any], machine: Machine) -> Trial:
        try:
            ahead = [choices_of(each) for each in request["ahead"]]
            candidate = self.candidates.get(choices_of(request["choices"]), ahead)
        except DeploError as error:
            return Trial("refused", note=str(error).splitlines()[0])
        name = choices_text(request["choices"])
        first = next((other for other, plan in self.plans if plan == candidate.plan), None)
        if first is None:
            self.plans.append((name, candidate.plan))
        elif first != name:
            return Trial("same", note=f"its code is that of {first}")
        problem = difference(candidate(*self.inputs[0]), self.expected)
        if problem is not None:
            return Trial("wrong", note=problem)
        cold = self._time(candidate, "cold", request, machine)
        if (cold.ratio or inf) > AS_FAST:
            return cold
        return both(cold, self._time(candidate, "same", request, machine))

    def _time(
        self,
        candidate: CpuProgram | CudaProgram,
        which: str,
        request: Mapping[str, Any],
        machine: Machine,
    ) -> Trial:
        """Time a candidate beside the model's choice, on all inputs in turn or on the `same` ones."""
        same = which == "same"
        turns = machine.turns((self.model, candidate), self.inputs[:1] if same else self.inputs)
        compared = compare(turns, request["rounds"], self.fastest.get(which, inf))
        self.fastest[which] = compared.fastest
        if compared.ratio is None:
            return Trial("unsteady", note="the machine has other work to do")
        ours, ratio = compared.seconds, compared.ratio
        said = f"{ours * 1e6:.1f} us for {ours / ratio * 1e6:.1f} us"
        least = request["least_seconds" if same else "cold_seconds"]
        if ours < least:
            return Trial("impossible", note=f"{said}; it takes {least:.1e} s")
        return Trial("timed", ratio, said)


def _told(error: Exception) -> str:
    kind = "" if isinstance(error, DeploError) else f"{type(error).__name__}: "
    return f"{kind}{error}".splitlines()[0]


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
