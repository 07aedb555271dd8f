"""Tuning for a GPU, as far as it goes without one: spaces, keys, what compiling makes of it, and turns."""

import dataclasses
import re
from contextlib import contextmanager
from functools import cache
from math import inf
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

import deplo
from deplo.analysis import row_neighbours, tiling_neighbours
from deplo.analysis.gpu_choices import RowShape, TilingChoices
from deplo.analysis.roofline import peak
from deplo.analysis.tiling_choice import choose
from deplo.analysis.tilings import Problem
from deplo.errors import DeploError, MissingEnvironmentError
from deplo.frontend.capture import capture
from deplo.machine.host_cpu import find_target
from deplo.machine.matrix_instructions import HALVES
from deplo.machine.targets import get_target
from deplo.tools import commands
from deplo.tune import book, candidates, gpu_machine, search, worker
from deplo.tune.book import machine_text, open_book, versions_text
from deplo.tune.candidates import Candidates, plan_kernel, program_of
from deplo.tune.database import Key, choices_of, choices_text
from deplo.tune.kernels import tunable_kernels
from deplo.tune.search import Search, Worker
from deplo.tune.session import open_database, tune
from deplo.tune.settings import Settings
from deplo.tune.worker import Bench

TARGET = get_target("sm_90a")
PROBLEMS = (
    Problem(1, 512, 2048, 2048, 1, 4, 4, boxes=True),
    Problem(
        1, 32, 2048, 2048, 1, 2, 2, instruction=HALVES, boxes=True, rows_along_k=True, column_step=8
    ),
    Problem(32, 512, 64, 512, 1, 4, 4, boxes=True),
)


@pytest.fixture
def some_gpu(monkeypatch):
    """As if there were one, as far as its name goes."""
    monkeypatch.setattr(book, "describe_gpu", lambda target: "Some GPU processors=132")


def linear(x, w):
    return F.linear(x, w)


def rows(x):
    return F.softmax(x, -1)


ARGUMENTS = {
    linear: (torch.randn(48, 128), torch.randn(96, 128)),
    rows: (torch.randn(64, 1024),),
}


@cache
def kernel_of(program):
    (kernel,), others = tunable_kernels(capture(program, ARGUMENTS[program], None).module, TARGET)
    assert others == {}
    return kernel


# --------------------------------------------------------------------------- spaces


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_neighbours_are_legal_and_another_tiling_each(problem, target):
    gpu = get_target(target)
    start = tiling_neighbours.with_buffers(choose(problem, {}, gpu), problem, gpu)
    assert tiling_neighbours.misfit(problem, start, gpu) is None
    found = tiling_neighbours.neighbours(problem, start, gpu)
    assert len({start, *found}) == len(found) + 1 >= 8
    assert all(tiling_neighbours.misfit(problem, each, gpu) is None for each in found)
    assert all(tiling_neighbours.estimated_cycles(problem, each, gpu) > 0 for each in found)
    transports = {each.transport for each in (start, *found) if each.mma == start.mma}
    # Warpgroups read what the copy engine writes.
    threads_copy = {"sync", "cp_async"} if start.mma < 2 else set()
    assert transports == threads_copy | ({"tma"} if gpu.has_copy_engine else set())
    assert start.stages - 1 in {each.stages for each in found}
    kinds = {0, 1, *([2] if gpu.wgmma_per_cycle else [])} if problem.short_bytes else {0}
    assert {each.mma for each in (start, *found)} == kinds


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"block_m": 0}, "at least 1"),
        ({"block_m": 60}, "thread_m = 8 does not divide block_m = 60"),
        ({"mma": 1}, "for mma"),
        ({"split_k": 100}, "has no 100 parts of 16 each"),
        ({"transport": "post"}, "is none of sync, cp_async, tma"),
        ({"transport": "tma"}, "sm_80 has no copy engine"),
        ({"stages": 9}, "stages = 9 is not 1 to 8"),
        ({"block_k": 64, "stages": 5}, "5 buffers of"),
    ],
)
def test_what_is_illegal_is_told(change, reason):
    good = TilingChoices(64, 128, 16, 8, 8, split_k=1, mma=0, stages=3, transport="cp_async")
    assert tiling_neighbours.misfit(PROBLEMS[0], good, get_target("sm_80")) is None
    asked = dataclasses.replace(good, **change)
    assert reason in (tiling_neighbours.misfit(PROBLEMS[0], asked, get_target("sm_80")) or "")


def test_neighbours_of_rows_are_legal_and_another_shape_each():
    limits = row_neighbours.RowLimits(length=4096, sweeps=3, most_rows=64, widest=4)
    start = RowShape(128, 1, 4)
    assert row_neighbours.misfit(limits, start) is None
    found = row_neighbours.neighbours(limits, start)
    assert len({start, *found}) == len(found) + 1 >= 6
    assert all(row_neighbours.misfit(limits, each) is None for each in found)
    assert {each.keep for each in found} == {"registers", "shared", "nowhere"}
    once = dataclasses.replace(limits, sweeps=1)
    assert {each.keep for each in row_neighbours.neighbours(once, start)} == {"registers"}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"lanes": 96}, "lanes = 96 is no power of two"),
        ({"rows": 128}, "at most 64 rows"),
        ({"lanes": 1}, "one thread shares no row"),
        ({"lanes": 1024, "rows": 2}, "2048 threads"),
        ({"lanes": 8}, "8 threads are no whole warp"),
        ({"vector": 8}, "vector = 8"),
        ({"lanes": 1024, "vector": 4}, "half of 1024 threads are enough"),
        ({"keep": "safe"}, "keep = safe is none of"),
        ({"keep": "shared", "rows": 2}, "the row of a block that has one"),
    ],
)
def test_which_shape_rows_cannot_have_is_told(change, reason):
    limits = row_neighbours.RowLimits(length=2048, sweeps=2, most_rows=64, widest=4)
    asked = dataclasses.replace(RowShape(128), **change)
    assert reason in (row_neighbours.misfit(limits, asked) or "")


@pytest.mark.parametrize("program", [linear, rows])
def test_every_neighbour_is_compiled_to_another_kernel(program):
    pytest.importorskip("cuda.bindings.nvrtc")
    kernel = kernel_of(program)

    def compiled(choices):
        plan = plan_kernel(kernel.module, kernel.scheduled_by, choices, kernel.target)
        return [each.source for each in program_of(plan).plan.kernels]

    model = compiled(None)
    assert compiled(kernel.space.model) == model
    near = kernel.space.neighbours(kernel.space.model)
    assert len(near) >= 6
    for choices in near[::3]:
        assert choices_of(dict(choices)) == choices
        assert compiled(choices) != model


def test_a_kernel_needs_its_bytes_and_its_multiply_adds():
    tiling, shape = kernel_of(linear).space, kernel_of(rows).space
    assert tiling.bytes == 4 * (48 * 128 + 96 * 128 + 48 * 96)
    assert shape.bytes == 2 * 4 * 64 * 1024
    assert shape.least_seconds < shape.cold_seconds == shape.bytes / TARGET.dram_bytes_per_second
    assert tiling.cold_seconds >= tiling.least_seconds >= 2 * 48 * 96 * 128 / peak(TARGET)
    part = capture(lambda x: x[:, :10].sum(-1), (torch.randn(64, 1024),), None)
    ((kernel,), _) = tunable_kernels(part.module, TARGET)
    assert kernel.space.bytes == 4 * (64 * 10 + 64)


# --------------------------------------------------------------------------- keys


def test_target_and_device_are_part_of_where_a_tuning_holds(some_gpu, monkeypatch):
    here = machine_text(TARGET)
    assert here == "sm_90a Some GPU processors=132"
    assert machine_text(get_target("sm_80")) != here
    assert machine_text(find_target("cpu")) != here
    monkeypatch.setattr(book, "describe_gpu", lambda target: "Another GPU processors=132")
    assert machine_text(TARGET) != here


def test_what_compiles_is_part_of_it(monkeypatch):
    monkeypatch.setattr(book, "nvrtc_version", lambda: "13.1")
    book.versions_text.cache_clear()
    before = versions_text(TARGET)
    monkeypatch.setattr(book, "nvrtc_version", lambda: "13.2")
    book.versions_text.cache_clear()
    assert versions_text(TARGET) != before
    book.versions_text.cache_clear()


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_nothing_is_tuned_for_one(own_cache, capsys):
    module = capture(rows, ARGUMENTS[rows], None).module
    with pytest.raises(MissingEnvironmentError, match="kernels are tuned where they run"):
        tune(module, TARGET, 1, Settings())
    code = "F.softmax(torch.randn(64, 1024), -1)"
    assert commands.run(["tune", "-c", code, "--target", "sm_90a"]) != 0
    assert "no GPU: torch finds no CUDA device" in capsys.readouterr().err
    open_database().close()
    assert open_book(TARGET).schedules == {}


# --------------------------------------------------------------------------- what compiling makes of it


def settle(kernel, choices):
    key = Key(kernel.digest, machine_text(TARGET), versions_text(TARGET), Settings().text)
    database = open_database()
    database.begin(key, kernel.name)
    database.settle(key, kernel.steps_for(choices), 0.5, finished=True)


@pytest.mark.parametrize(
    ("program", "change"),
    [
        (linear, {"stages": 2, "transport": "tma", "block_k": 8}),
        (rows, {"lanes": 64, "rows": 2, "keep": "nowhere"}),
    ],
)
def test_a_later_compilation_uses_what_was_found(own_cache, some_gpu, program, change):
    compiled = lambda: deplo.compile(program, ARGUMENTS[program], target="sm_90a")  # noqa: E731
    plain = compiled()
    assert "as tuned" not in str(plain.compilation.decisions)
    kernel = kernel_of(program)
    choices = {**kernel.space.model, **change}
    measured = plan_kernel(kernel.module, kernel.scheduled_by, choices, kernel.target)
    settle(kernel, choices)
    tuned = compiled()
    assert "as tuned" in str(tuned.compilation.decisions)
    sources = [each.source for each in tuned.plan.kernels]
    assert sources == [each.source for each in measured.kernels]
    assert sources != [each.source for each in plain.plan.kernels]
    # The kernel of other sizes is another one.
    other = (torch.randn(40, ARGUMENTS[program][0].shape[1]), *ARGUMENTS[program][1:])
    assert "as tuned" not in str(
        deplo.compile(program, other, target="sm_90a").compilation.decisions
    )


def test_what_is_asked_for_comes_before_what_was_found(own_cache, some_gpu):
    kernel = kernel_of(linear)
    settle(kernel, {**kernel.space.model, "stages": 2, "block_k": 8})
    asked = deplo.compile(linear, ARGUMENTS[linear], target="sm_90a", schedule="BK=32")
    assert "block_k = 32" in asked.ir("tile")
    assert "as tuned" not in str(asked.compilation.decisions)


# --------------------------------------------------------------------------- searches


def test_the_same_search_finds_what_is_faster(own_cache, some_gpu):
    kernel = kernel_of(rows)

    class Clock:
        def expect(self, choices):
            self.expected = choices

        def __call__(self, kernel, choices, rounds, *, fresh):
            assert fresh or choices in self.expected
            return search.Trial("timed", choices["lanes"] / 1024)

    key = Key(kernel.digest, machine_text(TARGET), versions_text(TARGET), Settings().text)
    found = Search(kernel, key, open_database(), Settings(), Clock(), inf, lambda _: None).run()
    assert found.finished
    lanes = int(re.search(r"across=thread parts=(\d+)", found.schedule)[1])
    assert lanes < kernel.space.model["lanes"]
    assert open_book(TARGET).schedules[kernel.digest] == found.schedule
    assert open_book(find_target("cpu")).schedules == {}


class FakeMachine:
    """A GPU on which calls of the model's choice take a millisecond, those of a candidate less."""

    def __init__(self):
        self.cold = self.warm = 0.5
        self.broken = False

    def inputs(self, plan, *, positive):
        return [[torch.zeros(1)], [torch.ones(1)]]

    def turns(self, programs, inputs):
        ours = self.cold if len(inputs) > 1 else self.warm
        return [lambda: 1e-3, lambda: ours * 1e-3]

    def is_lost(self):
        return self.broken


@pytest.fixture
def bench(monkeypatch):
    """A bench on such a GPU, whose programs give what they get."""

    class Some:
        def __init__(self, *_):
            pass

        def get(self, choices, ahead=()):
            if choices is not None and choices["lanes"] == 1:
                raise DeploError("no such kernel")
            return Program(choices)

    @dataclasses.dataclass
    class Program:
        plan: object  # one for each candidate, and one for the model's choice

        def __call__(self, *arguments):
            return arguments

    monkeypatch.setattr(worker, "Candidates", Some)
    made = Bench()
    made.machine = FakeMachine()
    return made


REQUEST = {
    "module": "text",
    "target": "sm_90a",
    "ahead": [],
    "scheduled_by": "cooperative-reduce",
    "choices": RowShape(64).choices,
    "rounds": 3,
    "reduction": 1,
    "least_seconds": 1e-6,
    "cold_seconds": 1e-4,
    "fastest": {},
}


def test_the_mean_of_cold_and_warm_inputs_counts_where_neither_is_slower(bench):
    assert bench.answer(REQUEST) == {
        "outcome": "timed",
        "ratio": pytest.approx(0.5),
        "note": "500.0 us for 1000.0 us, in caches 500.0 us for 1000.0 us",
        "fastest": {"cold": 1e-3, "same": 1e-3},
    }
    bench.machine.warm = 1.04
    assert bench.answer(REQUEST)["ratio"] == pytest.approx(1.04)


def test_a_figure_above_the_roofline_is_rejected(bench):
    bench.machine.cold = 0.05
    assert bench.answer(REQUEST)["outcome"] == "impossible"
    bench.machine.cold, bench.machine.warm = 0.5, 0.05
    assert bench.answer(REQUEST)["outcome"] == "timed"  # from the cache that may be
    bench.machine.warm = 0.0005
    assert bench.answer(REQUEST)["outcome"] == "impossible"


def test_what_is_refused_or_wrong_has_no_time(bench):
    asked = {**REQUEST, "choices": RowShape(1).choices}
    assert bench.answer(asked) == {
        "outcome": "refused",
        "ratio": None,
        "note": "no such kernel",
        "fastest": {},
    }
    bench.answer(REQUEST)
    bench.expected = [dataclasses.replace(each, value=each.value + 1) for each in bench.expected]
    assert bench.answer(REQUEST)["outcome"] == "wrong"


def test_a_candidate_with_the_code_of_one_before_is_not_timed(bench):
    other = {**REQUEST, "choices": RowShape(32).choices}
    first = bench.answer(REQUEST)
    bench.plans[1] = (bench.plans[1][0], other["choices"])  # as if both had become the same
    answer = bench.answer(other)
    assert answer["outcome"] == "same"
    assert answer["note"] == f"its code is that of {choices_text(REQUEST['choices'])}"
    assert first["outcome"] == "timed"


def test_a_process_that_lost_the_gpu_is_replaced(bench, monkeypatch):
    bench.answer(REQUEST)

    def fail(*_):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    bench.machine.turns, bench.machine.broken = fail, True
    answer = bench.answer(REQUEST)
    assert (answer["outcome"], answer["lost"]) == ("failed", True)
    said = '{"outcome": "failed", "ratio": null, "note": "CUDA error", "lost": true}'
    monkeypatch.setattr(Worker, "_start", lambda self: setattr(self, "_process", Process()))
    with Worker(timeout=1.0) as process:
        process._lines.put(said)
        trial = process(kernel_of(rows), kernel_of(rows).space.model, 1, fresh=False)
        assert trial.outcome == "failed"
        assert process._process is None


def test_candidates_that_come_next_are_compiled_meanwhile(monkeypatch):
    passes = []

    def plan(text, scheduled_by, choices, target):
        passes.append(choices)
        if choices == {"lanes": 1}:
            raise DeploError("no such kernel")
        return choices

    monkeypatch.setattr(candidates, "plan_kernel", plan)
    monkeypatch.setattr(candidates, "program_of", lambda plan: plan)
    some = Candidates("text", "cooperative-reduce", "sm_90a")
    assert some.get(None) is None
    first, wrong, last = ({"lanes": lanes} for lanes in (2, 1, 4))
    assert some.get(first, [wrong, last]) == first
    assert passes == [None, first, wrong, last]
    with pytest.raises(DeploError, match="no such kernel"):
        some.get(wrong, [last])
    assert some.get(last) == last
    assert len(passes) == 4
    assert Candidates("text", "schedule-cpu", "cpu").get(first, [last]) == first
    assert len(passes) == 5


def test_the_next_process_starts_early(monkeypatch):
    started = []

    def launch():
        started.append(Process())
        return started[-1], search.queue.Queue()

    monkeypatch.setattr(search, "_launch", launch)
    with Worker(timeout=1.0, early=True) as process:
        assert len(started) == 1
        process._start()
        assert (process._process, len(started)) == (started[0], 2)
        process._start()
        assert (process._process, len(started)) == (started[1], 3)
    assert all(each.killed for each in started)
    with Worker(timeout=1.0) as process:
        process._start()
        assert len(started) == 4


class Process:
    """A process that reads everything."""

    stdin = SimpleNamespace(write=lambda text: None, flush=lambda: None)

    def poll(self):
        return None

    def kill(self):
        self.killed = True

    def wait(self):
        pass


# --------------------------------------------------------------------------- turns


class FakeCuda:
    """A GPU whose clock is the calls that graphs replay, of a microsecond each."""

    def __init__(self):
        self.now = 0.0
        self.recording = None
        self.lost = False
        cuda = self

        class Graph:
            calls = 0

            def replay(self):
                cuda.now += self.calls * 1e-3

        class Event:
            def __init__(self, enable_timing):
                assert enable_timing

            def record(self):
                self.at = cuda.now

            def synchronize(self):
                pass

            def elapsed_time(self, end):
                return end.at - self.at

        self.CUDAGraph, self.Event = Graph, Event

    @contextmanager
    def graph(self, graph, capture_error_mode):
        self.recording = graph
        yield
        self.recording = None

    def program(self, *arguments):
        self.recording.calls += 1
        return arguments

    def synchronize(self):
        if self.lost:
            raise RuntimeError("CUDA error")


def test_a_turn_is_replays_of_a_graph_of_calls(monkeypatch):
    cuda = FakeCuda()
    monkeypatch.setattr(gpu_machine, "torch_with_gpu", lambda: SimpleNamespace(cuda=cuda))
    machine = gpu_machine.GpuMachine()
    for inputs in ([[1]], [[1], [2], [3]]):
        first, second = machine.turns([cuda.program, cuda.program], inputs)
        start = cuda.now
        assert first() == pytest.approx(1e-6)
        calls = round((cuda.now - start) * 1e3)
        most = gpu_machine.MAX_COPIES if len(inputs) == 1 else len(inputs)
        assert calls == most * gpu_machine.MAX_REPLAYS
        assert second() == pytest.approx(1e-6)
    assert not machine.is_lost()
    cuda.lost = True
    assert machine.is_lost()
