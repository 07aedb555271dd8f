"""Tuning: what is kept, under which key, and how a search goes on, with a clock of its own."""

import dataclasses
import json
import shutil
import sqlite3
import time
from functools import cache
from math import inf

import pytest
import torch
import torch.nn.functional as F

import deplo
from deplo.analysis import cpu_rows, cpu_softmax
from deplo.analysis.cpu_neighbours import misfit, neighbours
from deplo.analysis.cpu_tiles import CpuProblem, CpuTiling
from deplo.analysis.cpu_tilings import choose_cpu_tiling, tiling_cycles
from deplo.analysis.cpus import CPUS
from deplo.analysis.targets import get_target
from deplo.errors import DeploError, UsageError
from deplo.frontend.capture import capture
from deplo.passes.llvm.host_cpu import host_cpu
from deplo.passes.tile.schedule_cpu import ScheduleCpuPass
from deplo.program_passes import module_at
from deplo.program_stages import make_context
from deplo.tools import commands
from deplo.tools.judge import error_bound
from deplo.tune import search, worker
from deplo.tune.book import database_path, machine_text, open_book, versions_text
from deplo.tune.candidates import Candidates
from deplo.tune.database import Database, Key, Trial, choices_text
from deplo.tune.kernels import tunable_kernels
from deplo.tune.search import Search, Worker
from deplo.tune.session import open_database, tune
from deplo.tune.settings import Settings, seconds_of
from deplo.tune.worker import Bench, Reference, difference

CPU = get_target("cpu")
KEY = Key("kernel", "machine", "versions", Settings().text)
CHOICES = {"block_m": 64, "block_n": 64, "block_k": 64, "thread_m": 4, "thread_n": 32}
SMALL = Settings(generations=3, candidates=4)
OTHERS = {"beam": 2, "generations": 2, "candidates": 3, "rounds": 5, "timeout": 9.0, "gain": 0.1}


@pytest.fixture
def own_cache(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("DEPLO_CACHE", "1")
    monkeypatch.setenv("DEPLO_CACHE_DIR", str(tmp_path))
    return tmp_path


def captured(m=48, k=64, n=96):
    args = (torch.randn(m, k), torch.randn(k, n))
    return capture(lambda a, b: a @ b, args, None), args


@cache
def kernel_of(m=48, k=64, n=96):
    (kernel,), _ = tunable_kernels(captured(m, k, n)[0].module, CPU)
    return kernel


class Clock:
    """A measurement that knows how long each tiling takes, and counts what it is asked."""

    def __init__(self, ratio, stop_after=None):
        self.ratio = ratio
        self.asked = []
        self.stop_after = stop_after

    def expect(self, choices):
        pass

    def __call__(self, kernel, choices, rounds, *, fresh):
        if len(self.asked) == self.stop_after:
            raise KeyboardInterrupt
        self.asked.append((choices_text(choices), rounds))
        found = self.ratio(choices, rounds)
        return found if isinstance(found, Trial) else Trial("timed", found)


def run(kernel, database, clock, settings=None, deadline=inf):
    settings = settings or SMALL
    key = Key(kernel.digest, machine_text(CPU), versions_text(CPU), settings.text)
    return Search(kernel, key, database, settings, clock, deadline, lambda _: None).run()


def taller_is_better(tiling, rounds):
    return 1 - tiling["block_m"] / 1000


def shorter_is_better(tiling, rounds):
    return tiling["block_m"] / 1000


# --------------------------------------------------------------------------- keys


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Settings)])
def test_each_setting_changes_the_key(field):
    other = Settings(**{field: OTHERS[field]})
    assert dataclasses.replace(KEY, settings=other.text).digest != KEY.digest


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Key)])
def test_kernel_machine_and_versions_change_the_key(field):
    assert dataclasses.replace(KEY, **{field: "other"}).digest != KEY.digest


def test_a_kernel_is_what_it_computes_not_what_it_is_called():
    x, w = torch.randn(48, 64), torch.randn(64, 96)

    def other_names(left, right):
        product = torch.matmul(left, right)
        return product

    (renamed,), _ = tunable_kernels(capture(other_names, (x, w), None).module, CPU)
    assert renamed.digest == kernel_of().digest
    assert kernel_of(n=97).digest != kernel_of().digest


def test_threads_and_versions_are_part_of_where_a_tuning_holds(monkeypatch):
    from deplo.tune import book

    assert str(host_cpu()) in machine_text(CPU)
    before = machine_text(CPU)
    monkeypatch.setattr(book, "thread_count", lambda: 77)
    assert machine_text(CPU) != before
    book.versions_text.cache_clear()
    before = versions_text(CPU)
    monkeypatch.setattr(book, "compiler_digest", lambda: "another compiler")
    book.versions_text.cache_clear()
    assert versions_text(CPU) != before
    book.versions_text.cache_clear()


# --------------------------------------------------------------------------- candidates


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
@pytest.mark.parametrize("shape", [(1, 512, 512, 512), (8, 7, 33, 100), (1, 4, 2048, 64)])
def test_neighbours_are_legal_and_another_tiling_each(cpu, shape):
    problem = CpuProblem(*shape, results=1, rows=1, columns=1, element_bytes=4)
    start = choose_cpu_tiling(problem, cpu)
    assert misfit(problem, start, cpu) is None
    found = neighbours(problem, start, cpu)
    assert len(found) >= 3
    assert len({start, *found}) == len(found) + 1
    assert all(misfit(problem, each, cpu) is None for each in found)
    assert all(tiling_cycles(problem, each, cpu) > 0 for each in found)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"block_m": 0}, "at least 1"),
        ({"thread_n": 33}, "not a multiple of the 16 elements"),
        ({"thread_m": 32, "block_m": 128}, "does not fit 32 registers"),
        ({"block_m": 65}, "not made of register tiles"),
        ({"block_k": 65}, "block_k = 65 is not a multiple"),
        ({"block_n": 4096}, "twice the extent, 512, or more"),
        ({"block_m": 512, "block_n": 512, "block_k": 2048}, "twice the L2 cache"),
        ({"ahead": -1}, "ahead = -1 lies behind"),
    ],
)
def test_what_is_illegal_is_told(change, reason):
    problem = CpuProblem(1, 512, 512, 2048, results=1, rows=1, columns=1, element_bytes=4)
    cpu = CPUS["avx512"]
    tiling = dataclasses.replace(CpuTiling(64, 64, 256, 8, 32), **change)
    assert reason in (misfit(problem, tiling, cpu) or "")


@pytest.mark.parametrize("pairs", [False, True])
def test_bf16_stays_in_place_only_in_pairs(pairs):
    cpu = dataclasses.replace(CPUS["avx512"], pairs=pairs)
    problem = CpuProblem(
        *(1, 64, 2048, 2048, 1, 1, 1, 4), rows_along=True, columns_along=True, pairs=True
    )
    problem = dataclasses.replace(problem, rows_stay=True, columns_stay=True)
    best = choose_cpu_tiling(problem, cpu)
    assert (best.in_place, best.pairs, best.turned) == (pairs, pairs, 1)
    found = [best, *neighbours(problem, best, cpu)]
    assert len(found) > 3
    assert all(each.in_place == each.pairs for each in found)
    wrong = dataclasses.replace(best, in_place=1, pairs=int(not pairs))
    assert misfit(problem, wrong, cpu) is not None


def test_the_pass_names_the_neighbours_of_what_it_chooses():
    program, _ = captured()
    module = module_at("loop", program.module, CPU, "")
    from deplo.passes.tile.tileify import TileifyPass

    TileifyPass().apply(make_context(), module)
    space = ScheduleCpuPass.schedule_space(make_context(), module)
    best = CpuTiling(1, 1, 1, 1, 1)
    assert len(space) >= 3
    assert all(getattr(each, name) is not None for each in space for name in best.choices)


# --------------------------------------------------------------------------- searches


def test_a_search_finds_what_is_faster_and_does_not_measure_twice(own_cache):
    kernel, clock = kernel_of(200, 64, 96), Clock(shorter_is_better)
    database = open_database()
    found = run(kernel, database, clock)
    assert found.finished
    assert found.choices is not None
    assert found.choices["block_m"] < kernel.space.model["block_m"]
    assert found.ratio == found.choices["block_m"] / 1000
    assert len(set(clock.asked)) == len(clock.asked)
    again = Clock(shorter_is_better)
    assert run(kernel, database, again) == found
    assert again.asked == []


@pytest.mark.parametrize("part", [0, 0.2, 0.6, 0.99])
def test_a_search_that_is_killed_goes_on_where_it_was(own_cache, part):
    kernel, whole = kernel_of(200, 64, 96), Clock(taller_is_better)
    expected = run(kernel, Database(own_cache / "whole.sqlite"), whole)
    stop_after = int(part * len(whole.asked))
    first, database = Clock(taller_is_better, stop_after), open_database()
    with pytest.raises(KeyboardInterrupt):
        run(kernel, database, first)
    database.close()
    second = Clock(taller_is_better)
    assert run(kernel, open_database(), second) == expected
    assert first.asked + second.asked == whole.asked


def test_a_search_that_runs_out_of_time_is_to_be_continued(own_cache):
    kernel, clock = kernel_of(), Clock(taller_is_better)
    database = open_database()
    found = run(kernel, database, clock, deadline=0)
    assert (found.finished, found.choices, clock.asked) == (False, None, [])
    assert run(kernel, database, clock).finished


@pytest.mark.parametrize("outcome", ["wrong", "refused", "failed", "impossible", "timeout"])
def test_only_what_was_timed_can_win(own_cache, outcome):
    clock = Clock(lambda tiling, rounds: Trial(outcome, note="no"))
    found = run(kernel_of(), open_database(), clock)
    assert found.finished
    assert found.choices is None


def test_a_machine_that_is_busy_is_asked_again_later(own_cache):
    busy = Clock(lambda tiling, rounds: Trial("unsteady"))
    database = open_database()
    soon = time.monotonic() + 0.05
    assert not run(kernel_of(200, 64, 96), database, busy, deadline=soon).finished
    calm = Clock(taller_is_better)
    assert run(kernel_of(200, 64, 96), database, calm).finished
    assert calm.asked[0] == busy.asked[0]


def test_what_a_busy_machine_could_not_measure_is_measured_while_there_is_time(own_cache):
    left = 3

    def busy_at_first(tiling, rounds):
        nonlocal left
        left -= 1
        return Trial("unsteady") if left >= 0 else taller_is_better(tiling, rounds)

    kernel = kernel_of(200, 64, 96)
    clock, calm = Clock(busy_at_first), Clock(taller_is_better)
    found = run(kernel, open_database(), clock)
    assert found.finished
    assert set(clock.asked[:3]) < set(clock.asked[3:])
    settings = dataclasses.replace(SMALL, timeout=29.0)  # as another search
    assert found.ratio <= run(kernel, open_database(), calm, settings).ratio


def test_a_winner_is_waited_for(own_cache, monkeypatch):
    monkeypatch.setattr(search.time, "sleep", waited := [].append)
    busy = search.WAITS - 1

    def busy_at_the_end(tiling, rounds):
        nonlocal busy
        if rounds == SMALL.rounds * search.CONFIRMING and busy:
            busy -= 1
            return Trial("unsteady")
        return taller_is_better(tiling, rounds)

    found = run(kernel_of(200, 64, 96), open_database(), Clock(busy_at_the_end))
    assert found.choices is not None
    assert waited.__self__ == [search.WAIT_SECONDS] * (search.WAITS - 1)


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


def test_what_was_fast_by_chance_does_not_win(own_cache):
    settings = Settings()
    clock = Clock(lambda tiling, rounds: 0.5 if rounds == settings.rounds else 1.0)
    assert run(kernel_of(), open_database(), clock).choices is None


def test_of_the_best_few_the_one_wins_that_is_fastest_again(own_cache):
    kernel, settings = kernel_of(200, 64, 96), SMALL
    by_chance: list[str] = []

    def time(tiling, rounds):
        text = choices_text(tiling)
        if rounds == settings.rounds:
            by_chance.append(text)
            return 0.5 + 0.01 * len(by_chance)
        return 0.9 - 0.01 * by_chance.index(text)

    found = run(kernel, open_database(), Clock(time))
    assert found.choices is not None
    assert choices_text(found.choices) == by_chance[search.FINALISTS - 1]


# --------------------------------------------------------------------------- the process that measures


def test_candidates_are_checked_and_timed(monkeypatch):
    monkeypatch.setattr(worker, "STEADY", inf)  # this machine may be as busy as it likes
    monkeypatch.setattr(worker, "HOPELESS", inf)
    monkeypatch.setattr(worker, "PAUSES", (0.0, 0.0))
    kernel, bench = kernel_of(), Bench()
    request = {
        "module": kernel.module,
        "choices": kernel.space.model,
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
    assert bench.answer(request | {"least_seconds": 1.0})["outcome"] == "impossible"
    assert bench.answer(request | {"cold_seconds": 1.0})["outcome"] == "impossible"
    assert bench.answer(request | {"choices": {"block_m": "64"}})["outcome"] == "refused"
    assert answer["fastest"].keys() == {"cold", "same"}
    for times, outcome in (
        ([(5.0, 4.0), (6.0, 5.5)], "timed"),  # the worst of several that agree
        ([(5.0, 6.0), (6.0, 6.9)], "timed"),
        ([(5.0, 4.0), (6.0, 6.1)], "unsteady"),
    ):
        turns = iter(times * 2)
        monkeypatch.setattr(worker, "STEADY", 1.3)
        monkeypatch.setattr(worker, "HOPELESS", 1.05)
        monkeypatch.setattr(worker, "quiet_times", lambda *_, turns=turns: next(turns))
        fastest = {"cold": 1.0, "same": 1.0}  # as another process has seen it
        answer = bench.answer(request | {"fastest": fastest})
        assert answer["outcome"] == outcome
        if outcome == "timed":
            assert answer["ratio"] == pytest.approx(max(ours / model for model, ours in times))
    bench.expected = [dataclasses.replace(each, value=each.value + 1) for each in bench.expected]
    answer = bench.answer(request)
    assert answer["outcome"] == "wrong"
    assert answer["note"] == "4608 elements of result 0 differ"
    assert "broken" in bench.answer(request | {"module": "no module"})


def test_a_process_that_takes_too_long_is_replaced(own_cache):
    kernel = kernel_of()
    with Worker(timeout=0.01) as worker:
        assert worker(kernel, kernel.space.model, 1, fresh=False).outcome == "timeout"
        worker.timeout = 60.0
        assert worker(kernel, kernel.space.model, 1, fresh=False).outcome == "timed"


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


# --------------------------------------------------------------------------- what compiling makes of it


def test_a_later_compilation_uses_what_was_found(own_cache, monkeypatch):
    _, args = captured()
    f = lambda a, b: a @ b  # noqa: E731
    plain = deplo.compile(f, args, target="cpu")
    assert "as tuned" not in str(plain.compilation.decisions)
    kernel = kernel_of()
    wanted = {**kernel.space.model, "block_m": kernel.space.model["thread_m"]}
    monkeypatch.setattr(
        search.Worker, "__call__", lambda *_: pytest.fail("nothing is to be measured")
    )
    key = Key(kernel.digest, machine_text(CPU), versions_text(CPU), Settings().text)
    database = open_database()
    database.begin(key, kernel.name)
    database.settle(key, wanted, 0.5, finished=True)
    tuned = deplo.compile(f, args, target="cpu", tune="1s")
    assert f"blocks of {wanted['block_m']} by" in str(tuned.compilation.decisions)
    assert "as tuned" in str(tuned.compilation.decisions)
    assert f"block_m = {wanted['block_m']}," in tuned.ir("tile")
    torch.testing.assert_close(tuned(*args), args[0] @ args[1])
    # What does not fit the kernel is not used, and what was found elsewhere is not found.
    database.settle(key, {**wanted, "thread_n": 5}, 0.5, finished=True)
    assert "as tuned" not in str(deplo.compile(f, args, target="cpu").compilation.decisions)
    other = dataclasses.replace(key, versions="older")
    database.begin(other, kernel.name)
    database.settle(other, wanted, 0.4, finished=True)
    assert open_book(CPU).choices == {kernel.digest: {**wanted, "thread_n": 5}}


def test_rows_are_tuned_too_by_choices_of_their_own(own_cache):
    x = torch.randn(1024, 1100)
    program = capture(lambda x: x.sum(-1), (x,), None)
    (kernel,), others = tunable_kernels(program.module, CPU)
    assert kernel.scheduled_by == "schedule-rows"
    assert others == {}
    assert kernel.space.least_seconds > 0
    near = kernel.space.neighbours(kernel.space.model)
    assert {frozenset(each) for each in near} == {frozenset(cpu_rows.RowChoices(1, 0, 512).choices)}
    found = run(kernel, open_database(), Clock(lambda choices, _: 1 - choices["grain"] / 1e6))
    assert found.choices is not None
    assert found.choices["grain"] > kernel.space.model["grain"]
    tuned = deplo.compile(lambda x: x.sum(-1), (x,), target="cpu")
    assert "as tuned" in str(tuned.compilation.decisions)
    exact = x.double().sum(-1)
    assert bool(((tuned(x) - exact).abs() <= error_bound(exact, x.dtype, 1100)).all())


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def test_a_softmax_and_what_is_merged_with_it_are_tuned_as_one(own_cache):
    args = tuple(torch.randn(2, 3, 200, 40) for _ in range(3))
    program = capture(attention, args, None)
    (kernel,), others = tunable_kernels(program.module, CPU)
    assert kernel.scheduled_by == "online-softmax"
    assert kernel.module.count("loop.kernel") >= 3
    assert others == {}
    longer = tuple(torch.randn(2, 3, 201, 40) for _ in range(3))
    (other,), _ = tunable_kernels(capture(attention, longer, None).module, CPU)
    assert other.digest != kernel.digest
    shorter_parts = Clock(lambda choices, _: choices["block_k"] / 1000)
    found = run(kernel, open_database(), shorter_parts, Settings())
    assert found.choices is not None
    assert found.choices["block_k"] < kernel.space.model["block_k"]
    tuned = deplo.compile(attention, args, target="cpu")
    assert "as tuned" in str(tuned.compilation.decisions)
    torch.testing.assert_close(tuned(*args), attention(*args))


@pytest.mark.parametrize("outcome", ["timed", "wrong"])
def test_a_softmax_is_measured_and_checked(own_cache, monkeypatch, outcome):
    args = tuple(torch.randn(4, 160, 32) for _ in range(3))
    (kernel,), _ = tunable_kernels(capture(attention, args, None).module, CPU)
    bench = Bench()
    if outcome == "wrong":
        monkeypatch.setattr(worker, "difference", lambda *_: "3 elements of result 0 differ")
    request = {
        "module": kernel.module,
        "scheduled_by": kernel.scheduled_by,
        "choices": kernel.space.neighbours(kernel.space.model)[0],
        "rounds": 1,
        "reduction": kernel.reduction,
        "least_seconds": kernel.space.least_seconds,
        "cold_seconds": kernel.space.cold_seconds,
        "target": "cpu",
        "ahead": [],
        "fastest": {},
    }
    assert bench.answer(request)["outcome"] in (outcome, "unsteady")


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
@pytest.mark.parametrize(
    "shape", [(8, 256, 256, 64, 64), (1, 17, 130, 5, 3), (2, 4096, 4096, 128, 128)]
)
def test_neighbours_of_a_softmax_are_legal_and_another_choice_each(cpu, shape):
    problem = cpu_softmax.SoftmaxProblem(*shape, element_bytes=4)
    start = cpu_softmax.choose_softmax(problem, cpu)
    found = cpu_softmax.neighbours(problem, start, cpu)
    assert len({start, *found}) == len(found) + 1 >= 3
    assert all(cpu_softmax.misfit(problem, each, cpu) is None for each in [start, *found])
    assert all(cpu_softmax.estimated_cycles(problem, each, cpu, 2) > 0 for each in found)


def test_of_a_table_only_what_can_be_read_counts(own_cache):
    args = (torch.randn(50_000, 64), torch.arange(16))
    program = capture(lambda table, ids: table[ids] * 2, args, None)
    ((kernel,), _) = tunable_kernels(program.module, CPU)
    assert kernel.space.problem.bytes < 16 * 64 * 4 * 10


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
def test_neighbours_of_rows_are_legal_and_another_choice_each(cpu):
    problem = cpu_rows.RowProblem(points=1024, work=4097, bytes=1 << 24)
    start = cpu_rows.choose_rows(problem, cpu)
    found = cpu_rows.neighbours(problem, start, cpu)
    assert len({start, *found}) == len(found) + 1 >= 6
    assert all(cpu_rows.misfit(problem, each, cpu) is None for each in [start, *found])


def test_strips_of_columns_are_a_choice(own_cache):
    captured = capture(lambda x: x.mean(0), (torch.randn(512, 1024),), None)
    (kernel,), _ = tunable_kernels(captured.module, CPU)
    space = kernel.space
    problem = space.problem
    place = problem.strips.index(space.model["strip"])
    near = {each["strip"] for each in space.neighbours(space.model)}
    assert near == set(problem.strips[place - 1 : place + 2])
    said = cpu_rows.misfit(problem, cpu_rows.RowChoices(4096, 0, 512, strip=100), host_cpu())
    assert said == "strip = 100 is none of 16, 32, 64, 128, 256, 512, 1024"


def test_dividing_is_a_choice_of_what_divides(own_cache):
    divided, summed = (
        tunable_kernels(capture(f, (torch.randn(64, 200),), None).module, CPU)[0][0]
        for f in (lambda x: x.softmax(-1), lambda x: x.sum(-1))
    )
    assert {each["divide"] for each in divided.space.neighbours(divided.space.model)} == {0, 1}
    assert {each["divide"] for each in summed.space.neighbours(summed.space.model)} == {0}
    asked = cpu_rows.RowChoices(4096, 0, 512, divide=1)
    said = cpu_rows.misfit(summed.space.problem, asked, host_cpu())
    assert said == "divide = 1, and nothing is divided"
    x = torch.randn(64, 200)
    for choices in divided.space.neighbours(divided.space.model):
        if choices["divide"]:
            program = Candidates(divided.module, divided.scheduled_by, "cpu").get(choices)
            torch.testing.assert_close(program(x)[0], x.softmax(-1))


def test_llvm_is_told_how_wide_vectors_are(own_cache):
    program = deplo.compile(lambda x: x.sum(-1), (torch.randn(8, 64),), target="cpu")
    (kernel,) = program.kernels
    bits = host_cpu().vector_bytes * 8
    assert f'"prefer-vector-width"="{bits}"' in kernel.source


def test_llvm_is_told_which_loops_to_interleave(own_cache):
    rows, columns = torch.randn(30, 64), torch.randn(64)

    def both(x, y):
        return torch.exp(x * y), x.sum(-1)

    chains, sums = deplo.compile(both, (rows, columns), target="cpu").kernels
    assert chains.source.count("!llvm.loop !") == 1
    assert '!{!"llvm.loop.interleave.count", i32 4}' in chains.source
    assert "llvm.loop" not in sums.source


def test_what_cannot_be_read_is_as_if_nothing_was_tuned(own_cache):
    path = database_path()
    path.write_text("this is no database, whatever it is called" * 100)
    assert open_book(CPU).choices == {}
    with pytest.raises(DeploError, match="cannot be used"):
        open_database()
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(DeploError, match="format 99"):
        open_database()


def test_tunings_travel_as_text(own_cache, tmp_path):
    database = open_database()
    run(kernel_of(200, 64, 96), database, Clock(taller_is_better))
    text = database.export()
    other = Database(tmp_path / "other.sqlite")
    assert other.load(text) == 1
    assert other.export() == text
    data = json.loads(text)
    data["tunings"][0]["choices"]["block_m"] = "__import__"
    empty = Database(tmp_path / "empty.sqlite")
    for wrong in (json.dumps(data), text.replace('"format": 4', '"format": 5'), "[]", "{"):
        with pytest.raises(UsageError, match="no export of tunings"):
            empty.load(wrong)
    assert list(empty.all()) == []


# --------------------------------------------------------------------------- the command line


def test_the_command_shows_exports_and_imports(own_cache, tmp_path, capsys):
    assert commands.run(["tune", "--show"]) == 0
    assert capsys.readouterr().out == "nothing yet\n"
    run(kernel_of(200, 64, 96), open_database(), Clock(taller_is_better))
    file = str(tmp_path / "tunings.json")
    assert commands.run(["tune", "--export", file]) == 0
    assert commands.run(["tune", "--import", file]) == 0
    assert capsys.readouterr().out == "took 1 tuning\n"
    assert commands.run(["tune", "--show"]) == 0
    assert " times as fast with block_m=" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "name one program to tune"),
        (["--show", "-c", "torch.zeros(3)"], "name one program to tune"),
        (["-c", "torch.zeros(3)", "--budget", "soon"], "60s, 5m or 1h, not 'soon'"),
        (["-c", "torch.zeros(3)", "--beam", "0"], "beam cannot be 0"),
        (["--import", "/nowhere"], "cannot read or write /nowhere"),
    ],
)
def test_wrong_usage_is_told(own_cache, arguments, said, capsys):
    assert commands.run(["tune", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_tuning_needs_a_place_to_keep_what_it_finds(own_cache, monkeypatch):
    module = captured()[0].module
    monkeypatch.setenv("DEPLO_CACHE", "0")
    with pytest.raises(UsageError, match="there is none that can be written to"):
        tune(module, CPU, 1, Settings())
    assert seconds_of("1.5m") == 90
