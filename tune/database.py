"""What was measured, kept: one SQLite file beside the compiled code, text and numbers only.

A *tuning* is the search for one kernel: its key is a digest of what the kernel computes, the machine, the
versions of what compiles and measures, and the settings of the search. Nothing else may change its result,
which is the line of a schedule (`passes/tuned.py`). A *trial* is one candidate of it, by its choices. Each is
written as soon as it is known, so a search that is killed loses no more than the candidate it was at.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, fields
from pathlib import Path
from typing import Any

from ..analysis.cpu_rows import RowChoices
from ..analysis.cpu_softmax import SoftmaxChoices
from ..analysis.cpu_tiles import CpuTiling
from ..analysis.gpu_choices import RowShape, TilingChoices
from ..dialects.schedule import CHOICES
from ..errors import DeploError, counted

Choices = Mapping[str, Any]
"""What is chosen for a kernel, by name: numbers, and words that `CHOICES` has."""

CHOICE_NAMES = tuple(
    tuple(field.name for field in fields(choices))
    for choices in (CpuTiling, RowChoices, SoftmaxChoices, TilingChoices, RowShape)
)
"""The names of what is chosen for a kernel, by the pass that chooses."""

FORMAT = 5
OUTCOMES = ("timed", "same", "refused", "failed", "wrong", "impossible", "timeout")
"""What may become of a candidate and is kept; one that other work disturbed is not."""

_TABLES = """
create table if not exists tunings (
  key text primary key, kernel text not null, name text not null, machine text not null,
  versions text not null, settings text not null, schedule text, ratio real, finished integer not null);
create table if not exists trials (
  key text not null, choices text not null, rounds integer not null, outcome text not null, ratio real,
  note text not null, primary key (key, choices, rounds));
create index if not exists tunings_by_kernel on tunings (kernel, machine, versions);
"""


@dataclass(frozen=True)
class Key:
    """What a search is for, and how it goes on."""

    kernel: str
    """The digest of what a kernel computes; of kernels that become one, all of them, with `+` between."""
    machine: str
    versions: str
    settings: str

    @property
    def digest(self) -> str:
        """The name of the tuning."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True)
class Trial:
    """What became of a candidate; `ratio` is how long it took, as a part of what the model's choice took."""

    outcome: str
    ratio: float | None = None
    note: str = ""


def worst(trials: Sequence[Trial]) -> Trial:
    """The one that has no time, else the slowest."""
    untimed = [trial for trial in trials if trial.ratio is None]
    return (untimed or sorted(trials, key=lambda trial: trial.ratio or 0.0))[-1]


@dataclass(frozen=True)
class Tuning:
    """The result of a search so far: the best schedule's steps, or None where the model's own is best."""

    key: Key
    name: str
    schedule: str | None
    ratio: float | None
    finished: bool


def choices_text(choices: Choices) -> str:
    """Choices as text that is the same for the same choices."""
    return json.dumps(dict(choices), sort_keys=True)


def choices_of(data: Any) -> dict[str, Any]:
    """Choices from JSON data. Raises DeploError if they are none."""
    if isinstance(data, dict) and any(set(data) == set(names) for names in CHOICE_NAMES):
        if all(_is_choice(name, value) for name, value in data.items()):
            return data
    raise DeploError(f"the tuning database has choices that are none: {json.dumps(data)[:100]}")


def _is_choice(name: str, value: Any) -> bool:
    """Whether a choice of that name may be this."""
    if name in CHOICES and CHOICES[name].values:
        return value in CHOICES[name].values
    return type(value) is int and 0 <= value < 1 << 31


class Database:
    """The file; several processes may use it at once."""

    def __init__(self, path: Path, *, create: bool = True):
        """Open the file. Raises DeploError if it is no database of deplo's, or of another format."""
        self.path = path
        try:
            name = path if create else f"file:{path}?mode=ro"
            self._connection = sqlite3.connect(name, timeout=30, uri=not create)
            if create:
                path.chmod(0o600)
                (found,) = self._connection.execute("pragma user_version").fetchone()
                if 0 < found < FORMAT:
                    self._drop(found)
                if found < FORMAT:
                    self._connection.executescript(_TABLES)
                    self._connection.execute(f"pragma user_version = {FORMAT}")
            (found,) = self._connection.execute("pragma user_version").fetchone()
        except (sqlite3.Error, OSError) as error:
            raise DeploError(
                f"the tuning database {path} cannot be used: {error}; remove it to begin anew"
            ) from error
        if found != FORMAT:
            raise DeploError(
                f"the tuning database {path} has format {found}, not {FORMAT}; remove it to begin anew"
            )

    def _drop(self, format: int) -> None:
        """Forget what another version of deplo measured in its own way, and say so."""
        (count,) = self._connection.execute("select count(*) from tunings").fetchone()
        self._connection.executescript("drop table tunings; drop table if exists trials;")
        warnings.warn(
            f"{counted(count, 'tuning')} of an older format ({format}, now {FORMAT}) dropped from "
            f"{self.path}: tune again",
            stacklevel=3,
        )

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    # ------------------------------------------------------------------ searches

    def begin(self, key: Key, name: str) -> Tuning:
        """The tuning of that key; one that was never begun is new."""
        with self._connection as connection:
            connection.execute(
                "insert or ignore into tunings values (?, ?, ?, ?, ?, ?, null, null, 0)",
                (key.digest, key.kernel, name, key.machine, key.versions, key.settings),
            )
        (found,) = self._tunings("key = ?", key.digest)
        return found

    def add_trial(self, key: Key, choices: Choices, rounds: int, trial: Trial) -> None:
        """Keep what became of a candidate that was to be timed in so many rounds."""
        with self._connection as connection:
            connection.execute(
                "insert or replace into trials values (?, ?, ?, ?, ?, ?)",
                (key.digest, choices_text(choices), rounds, *astuple(trial)),
            )

    def trials(self, key: Key) -> dict[tuple[str, int], Trial]:
        """What became of all candidates so far, by `choices_text` and rounds."""
        rows = self._connection.execute(
            "select choices, rounds, outcome, ratio, note from trials where key = ?", (key.digest,)
        )
        return {(choices, rounds): Trial(*found) for choices, rounds, *found in rows}

    def settle(
        self, key: Key, schedule: str | None, ratio: float | None, *, finished: bool
    ) -> None:
        """Keep what is best so far: steps without names."""
        with self._connection as connection:
            connection.execute(
                "update tunings set schedule = ?, ratio = ?, finished = ? where key = ?",
                (schedule, ratio, int(finished), key.digest),
            )

    def forget(self, key: Key) -> None:
        """As if a tuning was never begun, if nothing was measured for it."""
        with self._connection as connection:
            connection.execute(
                "delete from tunings where key = ? and key not in (select key from trials)",
                (key.digest,),
            )

    # ------------------------------------------------------------------ answers

    def all(self) -> Iterator[Tuning]:
        """Every tuning."""
        yield from self._tunings("1 = ?", 1)

    def best(self, machine: str, versions: str) -> dict[str, str]:
        """The steps that were found for each kernel, by its digest: the fastest, whatever the settings."""
        best: dict[str, str] = {}
        ratios: dict[str, float] = {}
        for tuning in self._tunings("machine = ? and versions = ? order by key", machine, versions):
            if tuning.schedule is not None and tuning.ratio is not None:
                if tuning.ratio < ratios.get(tuning.key.kernel, 1.0):
                    best[tuning.key.kernel] = tuning.schedule
                    ratios[tuning.key.kernel] = tuning.ratio
        return best

    def _tunings(self, condition: str, *values: Any) -> Iterator[Tuning]:
        rows = self._connection.execute(
            "select kernel, machine, versions, settings, name, schedule, ratio, finished from tunings "
            f"where {condition}",
            values,
        )
        for kernel, machine, versions, settings, name, schedule, ratio, finished in rows.fetchall():
            key = Key(kernel, machine, versions, settings)
            yield Tuning(key, name, schedule, ratio, bool(finished))
