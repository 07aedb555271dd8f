"""A beam search for the choices of a kernel: neighbours of the best so far, the model's favourites first.

It starts from the model's choice, and from what the model would choose on other cores. Each candidate is
legal before it is compiled, and what was measured before is not measured again; given the same trials the
search goes the same way, so it can be resumed anywhere. It ends when a generation brings nothing better. The
best few are timed again, longer, and the winner in new processes before it counts.
"""

from __future__ import annotations

import json
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from statistics import geometric_mean
from typing import Protocol, Self

from ..errors import DeploError
from ..machine.host_cpu import find_target
from .database import Choices, Database, Key, Trial, Tuning, choices_text, worst
from .kernels import Tunable
from .settings import Settings

BETTER = 0.995
"""A generation that brings less than this is the last."""

CONFIRMING = 3
"""The winner is timed in so many times as many rounds."""

CONFIRMED = 3
"""Candidates that get the chance, the fastest first."""

FINALISTS = 6
"""Those that are timed again to find out which are the fastest: of many, one is lucky the first time."""

FINAL = 2
"""They are timed in so many times as many rounds."""

PROCESSES, GPU_PROCESSES = 3, 1
"""It is timed in so many new processes, and is faster in each: where pages lie in a CPU's caches differs."""

WAIT_SECONDS = 5.0
"""Where the machine is too busy to time the best ones, a search waits so long, and tries again."""

EXTRA_SECONDS = 30.0
"""It does so until its budget is used up, and at most so much longer."""


class OutOfTime(Exception):
    """The budget is used up; what was measured is kept."""


class Measure(Protocol):
    """Finds out what becomes of a candidate."""

    def __call__(self, kernel: Tunable, choices: Choices, rounds: int, *, fresh: bool) -> Trial:
        """Compile, check and time it; `fresh` asks for more certainty, in new processes."""
        ...

    def expect(self, choices: Sequence[Choices]) -> None:
        """Say which candidates come next."""
        ...


class CannotMeasure(DeploError):
    """The model's choice for a kernel does not run, or not with inputs of random numbers."""


_Started = tuple[subprocess.Popen[str], queue.Queue[str]]
"""A process that measures, and the lines that it says."""


@dataclass
class Worker:
    """The process that measures; one that takes too long, or dies, is replaced."""

    timeout: float
    handed: int = 0
    """Candidates that were handed to it."""
    expected: list[Choices] = field(default_factory=list[Choices])
    """Those that it may compile ahead."""
    early: bool = False
    """Whether the next process starts while one measures: on a CPU it would be in the way."""
    _fastest: dict[str, dict[str, float]] = field(
        default_factory=dict[str, dict[str, float]], repr=False
    )
    """What the model's choice ever took, by the digest of the kernel."""
    _process: subprocess.Popen[str] | None = field(default=None, repr=False)
    _lines: queue.Queue[str] = field(default_factory=queue.Queue[str], repr=False)
    _next: _Started | None = field(default=None, repr=False)

    def __enter__(self) -> Self:
        if self.early:
            self._next = _launch()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._next is not None:
            self._process, self._next = self._next[0], None
            self._stop()

    def __call__(self, kernel: Tunable, choices: Choices, rounds: int, *, fresh: bool) -> Trial:
        """What becomes of a candidate; if `fresh`, in new processes: on average, if it is faster in each."""
        self.handed += 1
        if not fresh:
            return self._ask(kernel, choices, rounds)
        processes = GPU_PROCESSES if find_target(kernel.target).is_gpu else PROCESSES
        trials: list[Trial] = []
        while len(trials) < processes and all((t.ratio or inf) < 1 for t in trials):
            self._stop()
            trials.append(self._ask(kernel, choices, rounds))
        ratios = [trial.ratio for trial in trials if trial.ratio is not None]
        if len(ratios) < processes or max(ratios) >= 1:
            return worst(trials)
        return replace(worst(trials), ratio=geometric_mean(ratios))

    def expect(self, choices: Sequence[Choices]) -> None:
        """Say which candidates come next."""
        self.expected = list(choices)

    def _ask(self, kernel: Tunable, choices: Choices, rounds: int) -> Trial:
        """What becomes of a candidate in the process that there is; the first waits for it to start, too."""
        patience = self.timeout
        if self._process is None or self._process.poll() is not None:
            self._start()
            patience += self.timeout
        self.expected = [each for each in self.expected if each != choices]
        request = {
            "module": kernel.module,
            "target": kernel.target,
            "scheduled_by": kernel.scheduled_by,
            "choices": dict(choices),
            "ahead": [dict(each) for each in self.expected],
            "rounds": rounds,
            "reduction": kernel.reduction,
            "least_seconds": kernel.space.least_seconds,
            "cold_seconds": kernel.space.cold_seconds,
            "fastest": self._fastest.get(kernel.digest, {}),
        }
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
        if answer.pop("lost", False):
            self._stop()
        self._fastest.setdefault(kernel.digest, {}).update(answer.pop("fastest", {}))
        if "broken" in answer:
            raise CannotMeasure(f"it cannot be measured: {answer['broken']}")
        return Trial(**answer)

    def _start(self) -> None:
        self._stop()
        self._process, self._lines = self._next or _launch()
        self._next = _launch() if self.early else None

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _launch() -> _Started:
    """Start a process, and the thread that reads what it says."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"{__package__}.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    lines: queue.Queue[str] = queue.Queue()
    threading.Thread(target=_read, args=(process, lines), daemon=True).start()
    return process, lines


def _read(process: subprocess.Popen[str], lines: queue.Queue[str]) -> None:
    """Hand on what a process says; an empty line when it ends."""
    assert process.stdout is not None
    for line in process.stdout:
        lines.put(line)
    lines.put("")


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
    times: dict[str, float] = field(default_factory=dict[str, float])
    """How long each candidate takes that was timed, as a part of what the model's takes; by its text."""
    seen: dict[str, Choices] = field(default_factory=dict[str, Choices])
    """The candidates so far, and what they may lead to, by their text."""
    unsteady: set[str] = field(default_factory=set[str])
    """The candidates that the machine was too busy to measure."""

    def run(self) -> Tuning:
        """Search on, and give the result so far; what is finished already is given as it is."""
        tuning = self.database.begin(self.key, self.kernel.name)
        if tuning.finished:
            return tuning
        self.trials = self.database.trials(self.key)
        model = self.kernel.space.model
        self.times = {choices_text(model): 1.0}
        self.seen = {choices_text(model): model}
        try:
            self._search()
            while self.unsteady:  # the machine may have less to do by now
                self.unsteady.clear()
                self._search()
            finished = True
        except OutOfTime:
            finished = False
        until = self.deadline + EXTRA_SECONDS
        self.deadline = inf  # the best so far counts, and is timed again for that
        best = self._confirm(until)
        self.database.settle(self.key, *best, finished=finished and not self.unsteady)
        return self.database.begin(self.key, self.kernel.name)

    def _search(self) -> None:
        """Measure neighbours of the best, generation by generation. Raises OutOfTime."""
        space, seen = self.kernel.space, self.seen
        times = {choices_text(space.model): 1.0}
        asked = set(times)
        seeds = {choices_text(each): each for each in space.seeds}
        seen.update(seeds)
        rounds = self.settings.rounds
        for generation in range(self.settings.generations):
            before = min(times.values())
            beam = sorted(times, key=lambda text: times[text])[: self.settings.beam]
            found = [each for text in beam for each in space.neighbours(seen[text])]
            near = {choices_text(each): each for each in found}
            seen.update(near)
            new = [text for text in near if text not in asked and text not in seeds]
            liked = sorted(new, key=lambda text: space.estimate(near[text]))
            chosen = [text for text in seeds if text not in asked]
            chosen += liked[: self.settings.candidates]
            untried = [seen[text] for text in chosen if (text, rounds) not in self.trials]
            self.measure.expect(untried)
            asked.update(chosen)
            for text in chosen:
                trial = self._trial(seen[text], rounds)
                if trial.outcome == "timed" and trial.ratio is not None:
                    times[text] = self.times[text] = trial.ratio
            if not chosen or (generation and min(times.values()) > before * BETTER):
                break

    def _trial(self, choices: Choices, rounds: int, *, fresh: bool = False) -> Trial:
        """What becomes of a candidate, measured now unless it was before. Raises OutOfTime."""
        known = self.trials.get((choices_text(choices), rounds))
        if known is not None:
            return known
        if time.monotonic() >= self.deadline:
            raise OutOfTime
        trial = self.measure(self.kernel, choices, rounds, fresh=fresh)
        self.unsteady.discard(choices_text(choices))
        if trial.outcome == "unsteady":  # to be measured again, another time
            self.unsteady.add(choices_text(choices))
        else:
            self.database.add_trial(self.key, choices, rounds, trial)
            self.trials[choices_text(choices), rounds] = trial
        took = f"{trial.ratio:.2f} of the model's, " if trial.ratio is not None else ""
        self.tell(f"{self.kernel.name}: {_said(choices)}: {trial.outcome}, {took}{trial.note}")
        return trial

    def _confirm(self, until: float) -> tuple[str | None, float | None]:
        """The schedule of the fastest candidate that is still faster when timed longer, if there is one."""

        def final(text: str, rounds: int, *, fresh: bool = False) -> Trial:
            trial = self._trial(self.seen[text], rounds, fresh=fresh)
            while trial.outcome == "unsteady" and time.monotonic() < until:
                time.sleep(WAIT_SECONDS)
                trial = self._trial(self.seen[text], rounds, fresh=fresh)
            return trial

        limit, rounds = 1 - self.settings.gain, self.settings.rounds
        finalists = self._faster(self.times, limit)[:FINALISTS]
        self.measure.expect([self.seen[text] for text in finalists])
        times = {text: final(text, rounds * FINAL).ratio for text in finalists}
        self.measure.expect([])
        for text in self._faster(times, limit)[:CONFIRMED]:
            trial = final(text, rounds * CONFIRMING, fresh=True)
            if trial.ratio is None or trial.ratio >= limit:
                continue
            try:
                return self.kernel.steps_for(self.seen[text]), trial.ratio
            except DeploError as error:
                self.tell(f"{self.kernel.name}: {_said(self.seen[text])}: not kept: {error}")
        return None, None

    @staticmethod
    def _faster(times: Mapping[str, float | None], limit: float) -> list[str]:
        """The candidates that take less than so much of what the model's choice does, the fastest first."""
        known = {text: time for text, time in times.items() if time is not None and time < limit}
        return sorted(known, key=lambda text: known[text])


def _said(choices: Choices) -> str:
    return ",".join(f"{name}={value}" for name, value in choices.items())
