"""`--schedule`: choices that contractions are to make."""

from __future__ import annotations

from typing import Any

SCHEDULE_OPTION: dict[str, Any] = {
    "metavar": "KEY=VALUE,...",
    "help": "choices for contractions on a GPU, such as BM=16,BN=16,FM=2,FN=2 (docs/schedules.md); "
    "else those of the environment variable DEPLO_SCHEDULE",
}
"""The option's declaration."""
