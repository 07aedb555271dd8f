"""Tunings as text: what was measured on one machine for another of the same kind."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from ..errors import DeploError, UsageError
from ..passes.tile.apply_schedules import read_steps
from ..passes.tuned import check_names
from .database import FORMAT, OUTCOMES, Database, Key, Trial, Tuning, choices_of


def export(database: Database) -> str:
    """All tunings of a database as JSON text."""
    rows = [
        {
            **asdict(tuning.key),
            "name": tuning.name,
            "schedule": tuning.schedule,
            "ratio": tuning.ratio,
            "finished": tuning.finished,
            "trials": [
                {"choices": json.loads(choices), "rounds": rounds, **asdict(trial)}
                for (choices, rounds), trial in sorted(database.trials(tuning.key).items())
            ],
        }
        for tuning in database.all()
    ]
    rows.sort(key=lambda row: json.dumps(row, sort_keys=True))
    return json.dumps({"format": FORMAT, "tunings": rows}, indent=1) + "\n"


def load(database: Database, text: str) -> int:
    """Put the tunings of an export into a database, all or none; gives their number. Raises UsageError."""
    try:
        data = json.loads(text)
        if data["format"] != FORMAT:
            raise ValueError(f"format {data['format']}, not {FORMAT}")
        read = [_read(row) for row in data["tunings"]]
    except (ValueError, KeyError, TypeError, AttributeError, DeploError) as error:
        raise UsageError(f"that is no export of tunings: {error}") from error
    for tuning, trials in read:
        database.begin(tuning.key, tuning.name)
        for choices, rounds, trial in trials:
            database.add_trial(tuning.key, choices, rounds, trial)
        database.settle(tuning.key, tuning.schedule, tuning.ratio, finished=tuning.finished)
    return len(read)


def _read(row: dict[str, Any]) -> tuple[Tuning, list[tuple[dict[str, Any], int, Trial]]]:
    """A tuning of an export, everything in it looked at."""
    texts = [row[name] for name in ("kernel", "machine", "versions", "settings", "name")]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("a key that is no text")
    if (schedule := row["schedule"]) is not None:
        read_steps(check_names(schedule))
    trials = [
        (
            choices_of(trial["choices"]),
            int(trial["rounds"]),
            Trial(_outcome(trial["outcome"]), _ratio(trial["ratio"]), str(trial["note"])),
        )
        for trial in row["trials"]
    ]
    key = Key(*texts[:4])
    return Tuning(key, texts[4], schedule, _ratio(row["ratio"]), bool(row["finished"])), trials


def _outcome(value: Any) -> str:
    if value not in OUTCOMES:
        raise ValueError(f"an outcome {value!r}")
    return value


def _ratio(value: Any) -> float | None:
    if value is None or (isinstance(value, int | float) and 0 < value < 1e9):
        return value
    raise ValueError(f"a ratio {value!r}")
