"""Tuning: the process that measures candidates, and what becomes of it."""

import dataclasses
import shutil
from math import inf

import pytest
import torch
from tuning_cases import CPU, SMALL, kernel_of

from deplo.frontend.capture import capture
from deplo.tune import pairs, search, worker
from deplo.tune.database import Trial
from deplo.tune.pairs import Comparison
from deplo.tune.search import Worker
from deplo.tune.session import open_database, tune
from deplo.tune.settings import Settings
from deplo.tune.worker import Bench, Reference, difference


def test_candidates_are_checked_and_timed(monkeypatch):
    monkeypatch.setattr(pairs, "STEADY", inf)  # this machine may be as busy as it likes
    monkeypatch.setattr(worker, "AS_FAST", inf)
    kernel, bench = kernel_of(), Bench()
    request = {
        "module": kernel.module,
        "choices": kernel.space.neighbours(kernel.space.model)[0],
        "rounds": 2,
        "reduction": kernel.reduction,
        "scheduled_by": kernel.scheduled_by,
        "least_seconds": 0.0,
        "cold_seconds": 0.0,
        "target": "cpu",
        "ahead": [],
        "fastest": {},
    }
    answer = bench.answer(request)
    assert answer["outcome"] == "timed"
    assert answer["ratio"] > 0
    answer_of_the_model = bench.answer(request | {"choices": kernel.space.model})
    assert answer_of_the_model["outcome"] == "same"
    assert answer_of_the_model["note"] == "its code is that of the model's choice"
    assert bench.answer(request | {"least_seconds": 1.0})["outcome"] == "impossible"
    assert bench.answer(request | {"cold_seconds": 1.0})["outcome"] == "impossible"
    assert bench.answer(request | {"choices": {"block_m": "64"}})["outcome"] == "refused"
    assert answer["fastest"].keys() == {"cold", "same"}
    for ratio, outcome in (0.8, "timed"), (None, "unsteady"):
        monkeypatch.setattr(worker, "compare", lambda *_, ratio=ratio: Comparison(ratio, 4.0, 2.0))
        answer = bench.answer(
            request | {"fastest": {"cold": 1.0}}
        )  # as another process has seen it
        assert answer["outcome"] == outcome
        assert answer["ratio"] == (None if ratio is None else pytest.approx(ratio))
    bench.expected = [dataclasses.replace(each, value=each.value + 1) for each in bench.expected]
    answer = bench.answer(request)
    assert answer["outcome"] == "wrong"
    assert answer["note"] == "4608 elements of result 0 differ"
    assert "broken" in bench.answer(request | {"module": "no module"})


def test_a_process_that_takes_too_long_is_replaced(own_cache):
    kernel = kernel_of()
    other = kernel.space.neighbours(kernel.space.model)[0]
    with Worker(timeout=0.01) as worker:
        assert worker(kernel, other, 1, fresh=False).outcome == "timeout"
        worker.timeout = 60.0
        assert worker(kernel, other, 1, fresh=False).outcome == "timed"


@pytest.mark.parametrize(
    ("ratios", "counts"),
    [
        ([0.9, 0.9, 0.9], 0.9),
        ([0.8, 0.9, 0.99], 0.8933),  # the geometric mean
        ([0.8, 1.01, 0.8], 1.01),  # slower in one of them
        ([0.8, None, 0.8], None),
    ],
)
def test_a_winner_is_faster_in_each_of_some_new_processes(monkeypatch, ratios, counts):
    left = iter(ratios)

    def ask(*_):
        ratio = next(left)
        return Trial("unsteady" if ratio is None else "timed", ratio)

    monkeypatch.setattr(Worker, "_ask", ask)
    with Worker(timeout=1.0) as process:
        ratio = process(kernel_of(), kernel_of().space.model, 1, fresh=True).ratio
    assert ratio == (None if counts is None else pytest.approx(counts, abs=1e-4))


def test_a_process_that_ends_is_told(own_cache, monkeypatch):
    monkeypatch.setattr(search.sys, "executable", shutil.which("true"))
    kernel = kernel_of()
    with Worker(timeout=60.0) as worker:
        trial = worker(kernel, kernel.space.model, 1, fresh=False)
    assert trial == Trial("failed", note="the process that measures ended")


def test_a_kernel_that_cannot_be_measured_leaves_the_others(own_cache):
    """Indices of random numbers are 0 and 1, and this table has one row."""
    args = (torch.randn(1, 64), torch.zeros(8, dtype=torch.int64), torch.randn(64, 64))
    program = capture(lambda table, ids, x: (table[ids], x.sum(-1)), args, None)
    done = tune(program.module, CPU, 600.0, SMALL)
    (tuning,) = done.tunings
    assert done.compiled > 1
    ((name, why),) = done.others.items()
    assert name != tuning.name
    assert why.startswith("it cannot be measured: ")
    assert "out of" in why or "index" in why


def test_variances_are_positive(own_cache):
    """Of random numbers of both signs there are no roots."""
    program = capture(
        lambda x, v: torch.rsqrt(v) * x.sum(-1), (torch.randn(64, 64), torch.ones(64)), None
    )
    done = tune(program.module, CPU, 600.0, Settings(generations=1, candidates=2))
    (tuning,) = done.tunings
    assert not done.others
    database = open_database()
    outcomes = {trial.outcome for trial in database.trials(tuning.key).values()}
    database.close()
    assert "timed" in outcomes
    assert "wrong" not in outcomes


def test_results_that_are_never_finite_check_nothing(own_cache):
    program = capture(lambda x: x.sum(-1) / 0.0, (torch.randn(64, 64),), None)
    done = tune(program.module, CPU, 600.0, SMALL)
    assert not done.tunings
    (why,) = done.others.values()
    assert why.startswith("it cannot be measured: its results of random inputs are not finite")
    database = open_database()
    assert not list(database.all())  # there is nothing to show
    database.close()


def test_what_is_not_finite_must_be_the_same():
    exact = torch.tensor([1.0, torch.inf, torch.nan, -torch.inf])
    reference = [Reference.of(exact, 1)]
    assert reference[0].finite == 0.25
    assert difference([exact.clone()], reference) is None
    for place, other in (
        (1, -torch.inf),
        (1, 3e38),
        (2, 0.0),
        (2, torch.inf),
        (0, torch.nan),
        (0, 1.1),
    ):
        changed = exact.clone()
        changed[place] = other
        assert difference([changed], reference) == "1 elements of result 0 differ"


@pytest.mark.parametrize(
    ("cold", "same", "counts"),
    [(0.5, 0.98, 0.7), (0.9, 0.9, 0.9), (0.5, 1.05, 1.05), (1.2, 0.5, 1.2), (1.01, 1.0, 1.005)],
)
def test_a_choice_is_not_taken_that_is_slower_where_inputs_lie_elsewhere(cold, same, counts):
    trial = worker.both(Trial("timed", cold), Trial("timed", same))
    assert trial.ratio == pytest.approx(counts, abs=1e-4)


@pytest.mark.parametrize("outcome", ["impossible", "unsteady"])
def test_what_was_not_timed_counts_nothing(outcome):
    assert worker.both(Trial(outcome), Trial("timed", 0.5)).outcome == outcome
    assert worker.both(Trial("timed", 0.5), Trial(outcome)).outcome == outcome
