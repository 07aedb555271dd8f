"""Tuning: under which key it is kept, which candidates there are, and how a search goes on."""

import dataclasses
import itertools
import json
import re

import pytest
import torch
from tuning_cases import (
    CPU,
    KEY,
    OTHERS,
    SMALL,
    Clock,
    Seeded,
    captured,
    kernel_of,
    run,
    shorter_is_better,
    taller_is_better,
)

from deplo.analysis.cpu_neighbours import misfit, neighbours
from deplo.analysis.cpu_tiles import CpuProblem, CpuTiling
from deplo.analysis.cpu_tilings import choose_cpu_tiling, tiling_cycles
from deplo.errors import UsageError
from deplo.frontend.capture import capture
from deplo.machine.cpus import CPUS, MEASURED, OWN, with_habits_of_others
from deplo.machine.host_cpu import find_target, host_cpu
from deplo.passes.tile.schedule_cpu import ScheduleCpuPass
from deplo.program_stages import make_context
from deplo.program_texts import module_at
from deplo.tune import search
from deplo.tune.book import machine_text, versions_text
from deplo.tune.database import Database, Key, Trial, choices_text
from deplo.tune.kernels import tunable_kernels
from deplo.tune.session import open_database
from deplo.tune.settings import Settings
from deplo.tune.spaces import TilingSpace

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

    assert host_cpu().text in machine_text(CPU)
    before = machine_text(CPU)
    monkeypatch.setattr(book, "thread_count", lambda: 77)
    assert machine_text(CPU) != before
    book.versions_text.cache_clear()
    before = versions_text(CPU)
    monkeypatch.setattr(book, "compiler_digest", lambda: "another compiler")
    book.versions_text.cache_clear()
    assert versions_text(CPU) != before
    book.versions_text.cache_clear()


def test_what_was_measured_of_a_core_can_be_left_out_and_is_part_of_where_a_tuning_holds(
    monkeypatch,
):
    from deplo.machine import host_cpu as module

    monkeypatch.setattr(module, "_host_name", lambda: "znver3")
    monkeypatch.setattr(module, "_host_vectors", lambda: "avx2")
    monkeypatch.setattr(module, "_host_cpu", module._host_cpu.__wrapped__)
    monkeypatch.delenv("DEPLO_CPU_MODEL", raising=False)
    known, where = host_cpu(), machine_text(find_target("cpu"))
    assert known.chains == MEASURED["znver3"]["chains"]
    monkeypatch.setenv("DEPLO_CPU_MODEL", "measured")
    assert host_cpu() == known
    monkeypatch.setenv("DEPLO_CPU_MODEL", "typical")
    assert host_cpu().chains == CPUS[known.name].chains != known.chains
    assert (host_cpu().l2_bytes, host_cpu().cores) == (known.l2_bytes, known.cores)
    assert machine_text(find_target("cpu")) != where
    monkeypatch.setenv("DEPLO_CPU_MODEL", "avx512:znver5")
    assert host_cpu().l2_bytes == CPUS["avx512"].l2_bytes
    assert host_cpu().scales
    for unknown in ("guess", "avx512:guess", "avx1024"):
        monkeypatch.setenv("DEPLO_CPU_MODEL", unknown)
        with pytest.raises(UsageError, match=f"unknown CPU '{unknown}'; it is vectors"):
            host_cpu()


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


@pytest.mark.parametrize("cpu", CPUS.values(), ids=lambda cpu: cpu.name)
def test_a_core_may_have_the_habits_of_others_not_their_vectors_and_caches(cpu):
    here = dataclasses.replace(cpu, l2_bytes=3 * 2**20)
    others = with_habits_of_others(here)
    assert here not in others
    assert len(set(others)) == len(others) > 2
    assert len({each.shared_bytes for each in others}) > 1
    assert all(getattr(each, name) == getattr(here, name) for each in others for name in OWN)


def test_what_the_model_says_of_other_cores_is_legal_here():
    problem = CpuProblem(1, 8, 5632, 2048, results=1, rows=1, columns=1, element_bytes=4)
    problem = dataclasses.replace(problem, rows_along=True, columns_along=True)
    problem = dataclasses.replace(problem, rows_stay=True, columns_stay=True)
    measured = dataclasses.replace(CPUS["avx2"], **MEASURED["znver3"])
    typical, known = (TilingSpace(problem, cpu, 2) for cpu in (CPUS["avx2"], measured))
    assert known.model != typical.model
    assert known.model in typical.seeds
    assert typical.model in known.seeds
    assert all(misfit(problem, CpuTiling(**each), measured) is None for each in known.seeds)


# --------------------------------------------------------------------------- searches


def test_what_the_model_says_of_other_cores_is_measured_first(own_cache):
    kernel, clock = kernel_of(200, 64, 96), Clock(taller_is_better)
    seed = {**kernel.space.model, "block_m": 8, "thread_m": 2}
    assert seed not in kernel.space.neighbours(kernel.space.model)
    seeded = dataclasses.replace(kernel, space=Seeded(kernel.space, [kernel.space.model, seed]))
    run(seeded, open_database(), clock)
    assert clock.asked[0] == (choices_text(seed), SMALL.rounds)
    assert [text for text, _ in clock.asked].count(choices_text(kernel.space.model)) == 0


def test_a_search_finds_what_is_faster_and_does_not_measure_twice(own_cache):
    kernel, clock = kernel_of(200, 64, 96), Clock(shorter_is_better)
    database = open_database()
    found = run(kernel, database, clock)
    assert found.finished
    rows = int(re.search(r"block_m=(\d+)", found.schedule)[1])
    assert rows == min(json.loads(text)["block_m"] for text, _ in clock.asked)
    assert found.ratio == rows / 1000
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
    assert (found.finished, found.schedule, clock.asked) == (False, None, [])
    assert run(kernel, database, clock).finished


@pytest.mark.parametrize("outcome", ["wrong", "refused", "failed", "impossible", "timeout"])
def test_only_what_was_timed_can_win(own_cache, outcome):
    clock = Clock(lambda tiling, rounds: Trial(outcome, note="no"))
    found = run(kernel_of(), open_database(), clock)
    assert found.finished
    assert found.schedule is None


def test_a_machine_that_is_busy_is_asked_again_later(own_cache, monkeypatch):
    busy = Clock(lambda tiling, rounds: Trial("unsteady"))
    database = open_database()
    monkeypatch.setattr(search.time, "monotonic", itertools.count().__next__)
    assert not run(kernel_of(200, 64, 96), database, busy, deadline=5).finished
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


@pytest.mark.parametrize("minutes", [0, 5])
def test_a_winner_is_waited_for_a_while(own_cache, monkeypatch, minutes):
    now = 0.0

    def sleep(seconds):
        nonlocal now
        now += seconds

    def busy_at_the_end(tiling, rounds):
        busy = rounds == SMALL.rounds * search.CONFIRMING and now < 60 * minutes + 10
        return Trial("unsteady") if busy else taller_is_better(tiling, rounds)

    monkeypatch.setattr(search.time, "sleep", sleep)
    monkeypatch.setattr(search.time, "monotonic", lambda: now)
    kernel = kernel_of(200, 64, 96)
    found = run(kernel, open_database(), Clock(busy_at_the_end), deadline=20.0)
    assert found.finished == (minutes == 0)
    assert (found.schedule is None) == (minutes > 0)
    assert now == (10 if minutes == 0 else 20 + search.EXTRA_SECONDS)


def test_what_was_fast_by_chance_does_not_win(own_cache):
    settings = Settings()
    clock = Clock(lambda tiling, rounds: 0.5 if rounds == settings.rounds else 1.0)
    assert run(kernel_of(), open_database(), clock).schedule is None


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
    best = json.loads(by_chance[search.FINALISTS - 1])
    assert found.schedule == kernel.steps_for(best)
