"""Tuning on a GPU: small searches, and what compiling makes of them. Skipped, visibly, without one."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

import torch.nn.functional as F  # noqa: E402

import deplo  # noqa: E402
from deplo.frontend.capture import capture  # noqa: E402
from deplo.program import choose_target, module_for  # noqa: E402
from deplo.tools.judge import error_bound  # noqa: E402
from deplo.tune.book import open_book  # noqa: E402
from deplo.tune.kernels import tunable_kernels  # noqa: E402
from deplo.tune.session import open_database, tune  # noqa: E402
from deplo.tune.settings import Settings  # noqa: E402
from deplo.tune.worker import Bench  # noqa: E402

SMALL = Settings(generations=2, candidates=3, timeout=60.0)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    tmp_path.chmod(0o700)
    monkeypatch.setenv("DEPLO_CACHE", "1")
    monkeypatch.setenv("DEPLO_CACHE_DIR", str(tmp_path))


def linear(x, w):
    return F.linear(x, w)


def rows(x):
    return F.softmax(x, -1)


SHAPES = {linear: ((64, 256), (192, 256)), rows: ((256, 1024),)}


def arguments(program):
    torch.manual_seed(0)
    return tuple(torch.randn(shape, device="cuda") for shape in SHAPES[program])


def module_of(program):
    captured = capture(program, arguments(program), None)
    target = choose_target("auto", captured)
    return module_for(captured, target), target


def kernel_of(program):
    ((kernel,), others) = tunable_kernels(*module_of(program))
    assert others == {}
    return kernel


@pytest.mark.parametrize("program", SHAPES)
def test_a_program_is_tuned_and_computes_the_same(program) -> None:
    module, target = module_of(program)
    session = tune(module, target, 30.0, SMALL)
    (tuning,) = session.tunings
    assert session.others == {}
    assert session.compiled >= 3
    database = open_database()
    outcomes = {trial.outcome for trial in database.trials(tuning.key).values()}
    assert outcomes <= {"timed", "refused"}
    assert "timed" in outcomes
    # Whatever was best, a later compilation uses what the database says.
    kernel = kernel_of(program)
    assert tuning.key.kernel == kernel.digest
    wanted = kernel.steps_for(kernel.space.neighbours(kernel.space.model)[0])
    database.settle(tuning.key, wanted, 0.5, finished=True)
    assert open_book(target).schedules == {kernel.digest: wanted}
    args = arguments(program)
    tuned = deplo.compile(program, args)
    assert "as tuned" in str(tuned.compilation.decisions)
    exact = program(*(each.double() for each in args))
    difference = (tuned(*args) - exact).abs()
    assert bool((difference <= error_bound(exact, torch.float32, 1024)).all())


def request(kernel, **changes):
    return {
        "module": kernel.module,
        "target": kernel.target,
        "scheduled_by": kernel.scheduled_by,
        "ahead": [],
        "choices": dict(kernel.space.neighbours(kernel.space.model)[0]),
        "rounds": 3,
        "reduction": kernel.reduction,
        "least_seconds": kernel.space.least_seconds,
        "cold_seconds": kernel.space.cold_seconds,
        "fastest": {},
        **changes,
    }


@pytest.mark.parametrize("program", SHAPES)
def test_every_transport_and_place_is_checked_and_timed(program) -> None:
    kernel, bench = kernel_of(program), Bench()
    choice = "transport" if program is linear else "keep"
    near = kernel.space.neighbours(kernel.space.model)
    tried = {kernel.space.model[choice]: kernel.space.model} | {c[choice]: c for c in near}
    assert len(tried) >= 2
    for choices in tried.values():
        answer = bench.answer(request(kernel, choices=dict(choices)))
        assert answer["outcome"] in ("timed", "unsteady"), answer
    assert bench.answer(request(kernel, cold_seconds=1.0))["outcome"] == "impossible"


def test_the_same_program_takes_about_as_long_as_itself() -> None:
    kernel = kernel_of(rows)
    answer = Bench().answer(request(kernel, choices=dict(kernel.space.model), rounds=9))
    assert answer["outcome"] == "timed"
    assert 0.8 < answer["ratio"] < 1.25


def test_a_kernel_that_fails_takes_only_its_process_along() -> None:
    """Indices of random numbers are 0 and 1, and this table has one row: the kernel stops with an error."""
    args = (
        torch.randn(1, 1024, device="cuda"),
        torch.zeros(4096, dtype=torch.int64, device="cuda"),
        torch.randn(64, 512, device="cuda"),
    )
    captured = capture(lambda table, ids, x: (rows(table[ids]), rows(x)), args, None)
    target = choose_target("auto", captured)
    done = tune(module_for(captured, target), target, 30.0, SMALL)
    ((_, why),) = done.others.items()
    assert why.startswith("it cannot be measured: ")
    (tuning,) = done.tunings
    outcomes = {trial.outcome for trial in open_database().trials(tuning.key).values()}
    assert "timed" in outcomes
