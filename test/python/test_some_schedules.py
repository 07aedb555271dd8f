"""Some programs of every kind under some schedules, on the machine; `make test-schedules` has all of them."""

import pytest
from schedule_runs import SCHEDULES, cases, check

pytest.importorskip("transformers")

EVERY = 29
"""A prime, so that all kinds and sizes have their turn."""

SOME = list(cases())[::EVERY]


@pytest.mark.parametrize(
    ("name", "schedule"),
    [(name, list(SCHEDULES)[i % len(SCHEDULES)]) for i, name in enumerate(SOME)],
)
def test_a_program_computes_the_same_under_a_schedule(name: str, schedule: str) -> None:
    check(cases()[name](), schedule)
