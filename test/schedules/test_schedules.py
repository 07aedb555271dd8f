"""Every program of the corpus, small layers, and products of awkward sizes, each under every schedule.

`make test-schedules` runs this; `test/python/test_some_schedules.py` has a part of it.
"""

import pytest
from schedule_runs import SCHEDULES, cases, check


@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", cases())
def test_a_program_computes_the_same_under_a_schedule(name: str, schedule: str) -> None:
    check(cases()[name](), schedule)
