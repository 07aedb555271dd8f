"""What a search may be told; all of it is part of the key under which its result is kept."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, fields

from ..errors import UsageError


@dataclass(frozen=True)
class Settings:
    """How a search goes on. Raises UsageError for numbers that make no sense."""

    beam: int = 4
    """Tilings whose neighbours are looked at next."""
    generations: int = 8
    """How often neighbours are looked at, at most."""
    candidates: int = 16
    """Neighbours that are measured each time: those that the model likes best."""
    rounds: int = 25
    """Turns, at most, of a candidate and of the model's choice, one after the other."""
    timeout: float = 30.0
    """Seconds that compiling, checking and timing one candidate may take."""
    gain: float = 0.03
    """A candidate must be faster than the model's choice by this part to take its place."""

    def __post_init__(self):
        for field in fields(self):
            value = getattr(self, field.name)
            if not 0 < value < 1e6 or (field.name == "gain" and value >= 1):
                raise UsageError(f"tuning: {field.name} cannot be {value}")

    @property
    def text(self) -> str:
        """The settings as text that is the same for the same settings."""
        return json.dumps(asdict(self), sort_keys=True)


def seconds_of(budget: str) -> float:
    """The seconds that `60s`, `5m` or `1h` stands for. Raises UsageError."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)(s|m|h)", budget)
    if match is None or float(match[1]) == 0:
        raise UsageError(f"a tuning budget is a time such as 60s, 5m or 1h, not {budget!r}")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]
