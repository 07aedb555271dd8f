"""A beam search for the tiling of a kernel: neighbours of the best so far, the model's favourites first.

It starts from the model's choice. Each candidate is legal before it is compiled, and what was measured
before is not measured again; given the same trials the search goes the same way, so it can be resumed
anywhere. It ends when a generation brings nothing better. The winner is timed once more, longer, before it
counts.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Protocol, Self

from ..analysis.cpu_neighbours import estimated_cycles, neighbours
from ..analysis.cpu_tilings import CpuTiling
from ..errors import DeploError
from ..passes.llvm.host_cpu import host_cpu
from ..runtime.threads import thread_count
from .database import Database, Key, Trial, Tuning, choices_text
from .kernels import Tunable
from .settings import Settings

BETTER = 0.995
"""A generation that brings less than this is the last."""

CONFIRMING = 3
"""The winner is timed in so many times as many rounds."""


class OutOfTime(Exception):
    """The budget is used up; what was measured is kept."""


class Measure(Protocol):
    """Finds out what becomes of a candidate."""

    def __call__(self, kernel: Tunable, choices: Mapping[str, int], rounds: int) -> Trial:
        """Compile, check and time it."""
        ...


@dataclass
class Worker:
    """The process that measures; one that takes too long, or dies, is replaced."""

    timeout: float
    handed: int = 0
    """Candidates that were handed to it."""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)
    _lines: queue.Queue[str] = field(default_factory=queue.Queue[str], repr=False)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def __call__(self, kernel: Tunable, choices: Mapping[str, int], rounds: int) -> Trial:
        """What becomes of a candidate; a first one waits for the process to start, too."""
        patience = self.timeout
        if self._process is None or self._process.poll() is not None:
            self._start()
            patience += self.timeout
        request = {
            "module": kernel.module,
            "choices": dict(choices),
            "rounds": rounds,
            "reduction": kernel.reduction,
            "flops": flops_of(kernel),
            "element_bytes": kernel.problem.element_bytes,
        }
        self.handed += 1
        process = self._process
        assert process is not None and process.stdin is not None
        try:
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            line = self._lines.get(timeout=patience)
        except queue.Empty:
            self._stop()
            return Trial("timeout", note=f"more than {patience:.0f} s")
        except BrokenPipeError:
            line = ""
        if not line:
            self._stop()
            return Trial("failed", note="the process that measures ended")
        answer = json.loads(line)
        if "broken" in answer:
            raise DeploError(f"kernel {kernel.name} cannot be measured: {answer['broken']}")
        return Trial(**answer)

    def _start(self) -> None:
        self._stop()
        command = [sys.executable, "-m", f"{__package__}.worker"]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._lines = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._lines), daemon=True).start()

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Hand on what a process says; an empty line when it ends."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


def flops_of(kernel: Tunable) -> int:
    """The floating-point operations of a kernel's contraction."""
    p = kernel.problem
    return 2 * p.batch * p.m * p.n * p.k * p.results


Tell = Callable[[str], object]


@dataclass
class Search:
    """The search for one kernel."""

    kernel: Tunable
    key: Key
    database: Database
    settings: Settings
    measure: Measure
    deadline: float
    tell: Tell
    trials: dict[tuple[str, int], Trial] = field(default_factory=dict[tuple[str, int], Trial])
    times: dict[CpuTiling, float] = field(default_factory=dict[CpuTiling, float])
    """How long each candidate takes that was timed, as a part of what the model's choice takes."""
    unsteady: bool = False
    """Whether the machine was too busy to measure a candidate."""

    def run(self) -> Tuning:
        """Search on, and give the result so far; what is finished already is given as it is."""
        tuning = self.database.begin(self.key, self.kernel.name)
        if tuning.finished:
            return tuning
        self.trials = self.database.trials(self.key)
        self.times = {self.kernel.model: 1.0}
        try:
            self._search()
            finished = True
        except OutOfTime:
            finished = False
        self.deadline = inf  # the best so far counts, and is timed again for that
        best = self._confirm()
        self.database.settle(self.key, *best, finished=finished and not self.unsteady)
        return self.database.begin(self.key, self.kernel.name)

    def _search(self) -> None:
        """Measure neighbours of the best, generation by generation. Raises OutOfTime."""
        cpu, threads, problem = host_cpu(), thread_count(), self.kernel.problem
        times = self.times
        seen = {self.kernel.model}
        for generation in range(self.settings.generations):
            before = min(times.values())
            beam = sorted(times, key=lambda tiling: times[tiling])[: self.settings.beam]
            new = {
                n: None
                for tiling in beam
                for n in neighbours(problem, tiling, cpu)
                if n not in seen
            }
            liked = sorted(new, key=lambda n: estimated_cycles(problem, n, cpu, threads))
            for tiling in liked[: self.settings.candidates]:
                seen.add(tiling)
                trial = self._trial(tiling.choices, self.settings.rounds)
                if trial.outcome == "timed" and trial.ratio is not None:
                    times[tiling] = trial.ratio
            if not liked or (generation and min(times.values()) > before * BETTER):
                break

    def _trial(self, choices: Mapping[str, int], rounds: int) -> Trial:
        """What becomes of a candidate, measured now unless it was before. Raises OutOfTime."""
        known = self.trials.get((choices_text(choices), rounds))
        if known is not None:
            return known
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        trial = self.measure(self.kernel, choices, rounds)
        if trial.outcome == "unsteady":  # to be measured again, another time
            self.unsteady = True
        else:
            self.database.add_trial(self.key, choices, rounds, trial)
            self.trials[choices_text(choices), rounds] = trial
        took = f"{trial.ratio:.2f} of the model's, " if trial.ratio is not None else ""
        self.tell(f"{self.kernel.name}: {_said(choices)}: {trial.outcome}, {took}{trial.note}")
        return trial

    def _confirm(self) -> tuple[dict[str, int] | None, float | None]:
        """The fastest candidate that is still faster when timed longer, if there is one."""
        times, limit = self.times, 1 - self.settings.gain
        ranked = sorted((t for t in times if times[t] < limit), key=lambda t: times[t])
        for tiling in ranked[:2]:
            trial = self._trial(tiling.choices, self.settings.rounds * CONFIRMING)
            if trial.ratio is not None and trial.ratio < limit:
                return dict(tiling.choices), trial.ratio
        return None, None


def _said(choices: Mapping[str, int]) -> str:
    sizes = [f"{choices[f'block_{axis}']}" for axis in "mnk"]
    return f"blocks {' x '.join(sizes)}, tiles {choices['thread_m']} x {choices['thread_n']}"
