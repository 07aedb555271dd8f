"""The environment variables of deplo, all called `DEPLO_…`.

A choice of `--schedule` may be set by a variable of its own: `DEPLO_FM=2` stands for `FM=2`. A variable that
deplo does not know is an error: a knob that is misspelt would change nothing, and nobody would notice.
"""

from __future__ import annotations

import os
from difflib import get_close_matches

from .dialects.schedule import askable
from .errors import UsageError

PREFIX = "DEPLO_"

VARIABLES = (
    "DEPLO_CACHE",
    "DEPLO_CACHE_DIR",
    "DEPLO_COMMIT",
    "DEPLO_CPU_MODEL",
    "DEPLO_LOGS",
    "DEPLO_NUM_THREADS",
    "DEPLO_RANDOM_CASES",
    "DEPLO_SCHEDULE",
    "DEPLO_UPDATE_CORPUS",
)
"""The variables that set no single choice: of the cache, the CPU, logs, benchmarks and tests."""


def knobs() -> dict[str, str]:
    """Variable -> the choice that it sets: DEPLO_FM and DEPLO_THREAD_M -> thread_m."""
    return {f"{PREFIX}{n.upper()}": choice.name for choice in askable() for n in choice.names}


def environment_choices() -> str:
    """The choices that DEPLO_SCHEDULE and the knobs ask for, as `--schedule` spells them.

    Raises UsageError for a variable that deplo does not know.
    """
    known = knobs()
    asked = [os.environ.get("DEPLO_SCHEDULE", "")]
    for name, value in os.environ.items():
        if not name.startswith(PREFIX) or name in VARIABLES:
            continue
        if name not in known:
            close = get_close_matches(name, (*VARIABLES, *known), 1)
            hint = f"did you mean {close[0]}?" if close else "see docs/schedules.md"
            raise UsageError(f"deplo has no environment variable {name}; {hint}")
        asked.append(f"{known[name]}={value}")
    return "\n".join(filter(None, asked))
