"""`--schedule`: schedules of kernels, and choices that others are to make."""

from __future__ import annotations

import argparse
from typing import Any

from ..program_stages import asked_schedule

SCHEDULE_OPTION: dict[str, Any] = {
    "metavar": "TEXT",
    "help": "schedules of kernels as `deplo explain --schedule-only` prints them, and choices for all "
    "others on a GPU, such as BM=16,BN=16,FM=2,FN=2 (docs/schedules.md), in lines or between semicolons; "
    "else those of the environment variables DEPLO_SCHEDULE, DEPLO_BM, DEPLO_BN, ...",
}
"""The option's declaration."""


def add_schedule_options(parser: argparse.ArgumentParser) -> None:
    """Add `--schedule`, and the switches of other passes, which stand among its choices."""
    parser.add_argument("--schedule", **SCHEDULE_OPTION)
    for flag, choice, text in (
        ("--atomics", "atomics=1", "add the parts of a split K to the result atomically, on a GPU"),
        ("--no-fusion-guard", "fusion_guard=0", "merge kernels however much that recomputes"),
    ):
        parser.add_argument(
            flag, action="append_const", dest="switches", const=choice, default=[], help=text
        )


def settle_schedule(options: argparse.Namespace) -> None:
    """Write what the environment and the switches ask for into `options.schedule`. Raises UsageError."""
    asked = [asked_schedule(options.schedule), *options.switches]
    options.schedule = "\n".join(filter(None, asked))
