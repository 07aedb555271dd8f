"""Tuning: what compiling makes of what was found, the choices of each kind of kernel, and the command."""

import dataclasses
import json
import re
import sqlite3

import pytest
import torch
import torch.nn.functional as F
from tuning_cases import CPU, Clock, captured, kernel_of, run, taller_is_better

import deplo
from deplo.analysis import cpu_rows, cpu_softmax
from deplo.analysis.verify import verify_module
from deplo.errors import DeploError, UsageError
from deplo.frontend.capture import capture
from deplo.machine.cpus import CPUS
from deplo.machine.host_cpu import find_target, host_cpu
from deplo.passes.decisions import recording
from deplo.passes.tile.apply_schedules import ApplySchedulesPass
from deplo.passes.tuned import tuned_by
from deplo.program_stages import make_context
from deplo.program_texts import module_at
from deplo.tools import commands
from deplo.tools.judge import error_bound
from deplo.tune import exports, search, worker
from deplo.tune.book import database_path, machine_text, open_book, versions_text
from deplo.tune.candidates import Candidates
from deplo.tune.database import Database, Key
from deplo.tune.kernels import tunable_kernels
from deplo.tune.session import open_database, tune
from deplo.tune.settings import Settings, seconds_of
from deplo.tune.worker import Bench

# --------------------------------------------------------------------------- what compiling makes of it


def test_a_later_compilation_uses_what_was_found(own_cache, monkeypatch):
    _, args = captured()
    f = lambda a, b: a @ b  # noqa: E731
    plain = deplo.compile(f, args, target="cpu")
    assert "as tuned" not in str(plain.compilation.decisions)
    kernel = kernel_of()
    choices = {**kernel.space.model, "block_m": kernel.space.model["thread_m"]}
    wanted = kernel.steps_for(choices)
    assert f"block_m={choices['block_m']} " in wanted
    monkeypatch.setattr(
        search.Worker, "__call__", lambda *_: pytest.fail("nothing is to be measured")
    )
    key = Key(kernel.digest, machine_text(CPU), versions_text(CPU), Settings().text)
    database = open_database()
    database.begin(key, kernel.name)
    database.settle(key, wanted, 0.5, finished=True)
    tuned = deplo.compile(f, args, target="cpu", tune="1s")
    assert "as tuned" in str(tuned.compilation.decisions)
    assert f"block_m = {choices['block_m']}," in tuned.ir("tile")
    torch.testing.assert_close(tuned(*args), args[0] @ args[1])
    # What does not fit the kernel is not used, and what was found elsewhere is not found.
    illegal = re.sub(r"thread_n=\d+", "thread_n=5", wanted)
    database.settle(key, illegal, 0.5, finished=True)
    decisions = map(str, deplo.compile(f, args, target="cpu").compilation.decisions)
    (told,) = [each for each in decisions if each.startswith("apply-schedules") and "legacy" in each]
    assert re.search(r"declined: schedule of k_\w+: legacy: ", told)
    other = dataclasses.replace(key, versions="older")
    database.begin(other, kernel.name)
    database.settle(other, wanted, 0.4, finished=True)
    assert open_book(CPU).schedules == {kernel.digest: illegal}


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
    assert found.schedule is not None
    assert found.schedule != kernel.steps_for(kernel.space.model)
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
    assert len(kernel.digests) == kernel.module.count("loop.kernel") >= 3
    assert others == {}
    longer = tuple(torch.randn(2, 3, 201, 40) for _ in range(3))
    (other,), _ = tunable_kernels(capture(attention, longer, None).module, CPU)
    assert other.digest != kernel.digest
    shorter_parts = Clock(lambda choices, _: choices["block_k"] / 1000)
    found = run(kernel, open_database(), shorter_parts, Settings())
    parts = re.search(r"block_k=(\d+)", found.schedule)
    assert int(parts[1]) < kernel.space.model["block_k"]
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


def test_rows_that_are_to_come_side_by_side_ask_for_nothing_ahead():
    """Of long ones nothing can be, so that both must change at once, for any difference at all."""
    problem = cpu_rows.RowProblem(points=1024, work=4097, bytes=1 << 24)
    alone = cpu_rows.RowChoices(4096, 4096, 256)
    found = cpu_rows.neighbours(problem, alone, CPUS["avx2"])
    assert {each.prefetch for each in found if each.rows > 1} == {0}
    assert {each.prefetch for each in found if each.rows == 1 and each.interleave} == {4096}
    brief = dataclasses.replace(alone, rows=4, interleave=1)
    found = cpu_rows.neighbours(problem, brief, CPUS["avx2"])
    assert {each.prefetch for each in found if each.rows > 1 and each.interleave > 1} == {4096}


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


@pytest.mark.parametrize(("core", "loops"), [("avx2:znver3", 1), ("avx512", 2)])
def test_llvm_is_told_which_loops_to_interleave(own_cache, monkeypatch, core, loops):
    """The loop over whole vectors and, of longer vectors, one over those that end a row."""
    monkeypatch.setenv("DEPLO_CPU_MODEL", core)
    rows, columns = torch.randn(30, 600), torch.randn(600)

    def both(x, y):
        return torch.exp(x * y), x.sum(-1)

    chains, sums = deplo.compile(both, (rows, columns), target="cpu").kernels
    assert chains.source.count("!llvm.loop !") == loops
    assert '!{!"llvm.loop.interleave.count", i32 4}' in chains.source
    assert "llvm.loop" not in sums.source


def test_what_cannot_be_read_is_as_if_nothing_was_tuned(own_cache):
    path = database_path()
    path.write_text("this is no database, whatever it is called" * 100)
    assert open_book(CPU).schedules == {}
    with pytest.raises(DeploError, match="cannot be used"):
        open_database()
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("pragma user_version = 99")
    with pytest.raises(DeploError, match="format 99"):
        open_database()


def test_what_an_older_version_measured_is_dropped_and_said(own_cache):
    with sqlite3.connect(database_path()) as connection:
        connection.executescript(
            "create table tunings (key text, choices text); insert into tunings values ('k', '{}');"
            "create table trials (key text); pragma user_version = 4"
        )
    assert open_book(CPU).schedules == {}
    with pytest.warns(UserWarning, match=r"1 tuning of an older format \(4, now 5\) dropped from"):
        database = open_database()
    run(kernel_of(200, 64, 96), database, Clock(taller_is_better))
    assert len(list(open_database().all())) == 1


def test_tunings_travel_as_text(own_cache, tmp_path):
    database = open_database()
    run(kernel_of(200, 64, 96), database, Clock(taller_is_better))
    text = exports.export(database)
    other = Database(tmp_path / "other.sqlite")
    assert exports.load(other, text) == 1
    assert exports.export(other) == text
    data = json.loads(text)
    hostile = []
    for steps in ("__import__('os')", "legacy{block_m=x}", "tileify;tileify", "cse", 7, ["tileify"]):
        data["tunings"][0]["schedule"] = steps
        hostile.append(json.dumps(data))
    data = json.loads(text)
    data["tunings"][0]["trials"][0]["choices"]["block_m"] = "__import__"
    empty = Database(tmp_path / "empty.sqlite")
    other_format = text.replace('"format": 5', '"format": 4')
    for wrong in (*hostile, json.dumps(data), other_format, "[]", "{"):
        with pytest.raises(UsageError, match="no export of tunings"):
            exports.load(empty, wrong)
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
    assert " times as fast with tileify,legacy{" in capsys.readouterr().out


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


# --------------------------------------------------------------------------- names


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize(
    ("program", "renamed", "shapes"),
    [
        (lambda x, y: x @ y, lambda i, j: torch.matmul(i, j), [(33, 64), (64, 40)]),
        (lambda x: x.softmax(-1), lambda row: torch.softmax(row, 1), [(40, 300)]),
        (lambda x, y: x.T + y, lambda k, bias: torch.add(k.mT, bias), [(64, 96), (96, 64)]),
        (lambda x: x.mean(), lambda k_x: k_x.mean(), [(100_003,)]),
        (attention, lambda k, v, q: attention(k, v, q), [(2, 3, 200, 40)] * 3),
    ],
)
def test_the_line_of_a_kernel_is_that_of_all_that_compute_the_same(
    program, renamed, shapes, target
):
    args, machine = tuple(map(torch.randn, shapes)), find_target(target)
    kernels, others = tunable_kernels(capture(program, args, None).module, machine)
    lines = {kernel.digests: kernel.steps_for(kernel.space.model) for kernel in kernels}
    module = module_at("loop", capture(renamed, args, None).module, machine, "")
    with tuned_by(lines), recording() as decisions:
        ApplySchedulesPass().apply(make_context(), module)
    verify_module(module)
    tuned = [each for each in decisions if each.reason == "as tuned"]
    assert len(tuned) == len(kernels) >= 1 - len(others)
    assert not [each for each in decisions if "schedule of" in each.reason]
