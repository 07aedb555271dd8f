"""Calls that are prepared give what the others give, and refuse what they refuse."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
from cpu_programs import cpu_program
from test_cpu_runtime import CHAIN, GATHER

import deplo
from deplo.errors import UsageError
from deplo.runtime import cpu, threads
from deplo.runtime.cpu import MAX_PREPARED, CpuProgram
from deplo.runtime.cpu_kernels import TIMED_CALLS
from deplo.runtime.prepared import NativePart

HERE = Path(__file__).parent


def inputs():
    return torch.arange(20.0).reshape(5, 4), torch.tensor([4, 0, 2])


@pytest.fixture
def gather() -> CpuProgram:
    """A program with one prepared call, for inputs like `inputs`."""
    program = cpu_program(GATHER)
    for calls in range(TIMED_CALLS):
        assert len(program._prepared) == 0, calls
        program(*inputs())
    assert len(program._prepared) == 1
    return program


def alike():
    """Tensors for which that call was not prepared, though the program takes them."""
    x, ids = inputs()
    yield torch.arange(20.0).reshape(4, 5).T, ids
    yield torch._neg_view(x), ids
    yield x.clone().requires_grad_(), ids
    yield torch.nn.Parameter(x), ids
    yield x, ids.repeat_interleave(2)[::2]
    yield torch.arange(4.0).expand(5, 4), ids


def test_other_strides_and_bits_are_looked_at(gather: CpuProgram) -> None:
    for x, ids in alike():
        for _ in range(TIMED_CALLS):  # until they have a prepared call of their own, if they can
            assert torch.equal(gather(x, ids)[0], x.sum(1)[ids])
    assert len(gather._prepared) <= MAX_PREPARED
    x, ids = inputs()
    assert torch.equal(gather(x, ids)[0], x.sum(1)[ids])


def test_in_inference_mode_results_are_inference_tensors(gather: CpuProgram) -> None:
    with torch.inference_mode():
        x, ids = inputs()
        for _ in range(2):
            (y,) = gather(x, ids)
            assert y.is_inference()
    assert not gather(*inputs())[0].is_inference()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x, ids: (x,), r"expected 2 arrays \(x, ids\), got 1"),
        (lambda x, ids: (x[:4], ids), r"expected shape \[5, 4\], got \[4, 4\]"),
        (lambda x, ids: (x.double(), ids), "expected dtype torch.float32, got torch.float64"),
        (lambda x, ids: (x.tolist(), ids), "expected a torch tensor, got list"),
        (lambda x, ids: (x, ids.to("meta")), "argument 'ids': expected device cpu, got meta"),
        (lambda x, ids: (x.to_sparse(), ids), "expected a dense tensor, got torch.sparse_coo"),
    ],
)
def test_wrong_arguments_are_refused_as_before(gather: CpuProgram, change, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        gather(*change(*inputs()))


def test_a_check_that_fails_raises_and_the_next_call_works(gather: CpuProgram) -> None:
    x, ids = inputs()
    with pytest.raises(IndexError, match="expected 0 <= index < 5"):
        gather(x, ids + 2)
    assert torch.equal(gather(x, ids)[0], x.sum(1)[ids])


def test_results_are_memory_of_their_own_and_returned_arguments_are_themselves() -> None:
    program = cpu_program(CHAIN)
    x = torch.arange(512.0)
    made = [program(x) for _ in range(TIMED_CALLS + 3)]
    assert program._prepared
    assert len({y.data_ptr() for y, _ in made}) == len(made)
    assert all(torch.equal(y, 4 * x) and same is x for y, same in made)
    assert made[-1][0].stride() == (1,)


def between_calls(x: torch.Tensor, rows: torch.Tensor):
    """Kernels before, between and behind two calls of PyTorch."""
    y = torch.special.bessel_j1(x.tanh() * 0.5) + x
    q, r = torch.linalg.qr(y @ y.mT + torch.eye(y.shape[0]))
    return (q @ r)[rows].relu(), q, y.sum(-1).exp()


def test_kernels_between_calls_of_pytorch_are_prepared() -> None:
    x, rows = torch.randn(33, 20), torch.tensor([4, 0, 32])
    with pytest.warns(deplo.FallbackWarning, match="2 operators run in PyTorch"):
        program = deplo.compile(between_calls, (x, rows), target="cpu", fallback="eager")
    for _ in range(TIMED_CALLS + 2):
        x = torch.randn(33, 20)
        results = program(x, rows)
        kept = [value.clone() for value in results]
        for mine, eager in zip(results, between_calls(x, rows), strict=True):
            torch.testing.assert_close(mine, eager, rtol=1e-4, atol=1e-4)
        program(torch.randn(33, 20), rows)
        assert all(map(torch.equal, results, kept))  # no later call writes to them
    assert len(program.executable._prepared) == 1
    with pytest.raises(IndexError, match="index out of range"):
        program(x, torch.tensor([4, 33, 0]))
    with pytest.raises(UsageError, match="expected shape"):
        program(x[:5], rows)
    assert all(map(torch.equal, program(x, rows), kept))


def test_a_call_of_pytorch_that_fails_leaves_the_prepared_one_intact() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.cholesky(x * 2) + 1

    good = torch.eye(4) * 3
    with pytest.warns(deplo.FallbackWarning):
        compiled = deplo.compile(program, (good,), target="cpu", fallback="eager")
    for _ in range(TIMED_CALLS + 2):
        torch.testing.assert_close(compiled(good), program(good))
        with pytest.raises(torch.linalg.LinAlgError):
            compiled(-good)
    assert len(compiled.executable._prepared) == 1


@pytest.mark.parametrize("count", [2, 5])
def test_launches_are_shared_with_the_team(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = threads.Sharing(count, 0.0, threads.sharing().team)
    monkeypatch.setattr(cpu, "sharing", lambda: shared)
    program = cpu_program(CHAIN)
    x = torch.randn(512)
    for _ in range(30):
        assert torch.equal(program(x)[0], 4 * x)
    (prepared,) = program._prepared
    (part,) = prepared.parts
    assert isinstance(part, NativePart)
    assert part.program[5 + 6] == count  # the threads of the first launch
    assert len(part.messages) == 2


def test_pytorch_says_how_many_threads_there_are_now(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threads, "_counter", lambda has_torch: torch.get_num_threads)
    program, x = cpu_program(CHAIN), torch.ones(512)
    before = torch.get_num_threads()
    try:
        for count in (3, 1, 2):
            torch.set_num_threads(count)
            assert threads.thread_count() == threads.sharing().threads == count
            for _ in range(TIMED_CALLS + 2):
                assert (program(x)[0] == 4).all()
            assert program._prepared[-1].shared is threads.sharing()
    finally:
        torch.set_num_threads(before)


def test_nothing_is_prepared_for_a_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    pool = ThreadPoolExecutor(1)
    shared = threads.Sharing(2, 0.0, None)
    monkeypatch.setattr(threads, "_pool", lambda: pool)
    monkeypatch.setattr(cpu, "sharing", lambda: shared)
    program = cpu_program(CHAIN)
    for _ in range(TIMED_CALLS + 1):
        program(torch.ones(512))
    assert not program._prepared


def test_calls_from_several_threads() -> None:
    program = cpu_program(CHAIN)

    def call(value: int) -> bool:
        x = torch.full((512,), float(value))
        return bool((program(x)[0] == 4 * value).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(call, range(400)))
    assert program._prepared


def test_a_forked_child_does_not_wait_for_the_team() -> None:
    code = f"""
import os, sys; sys.path.insert(0, {str(HERE)!r})
import torch
from cpu_programs import cpu_program
from deplo.runtime import threads
threads.thread_count = lambda: 2
threads.TEAM_SECONDS = threads.THREAD_SECONDS = threads.POOL_SECONDS = 0.0
program = cpu_program({CHAIN!r})
x = torch.ones(512)
for _ in range(9): program(x)
assert program._prepared
child = os.fork()
if child == 0:
    os._exit(7 if all((program(x)[0] == 4).all() for _ in range(9)) else 8)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "7\n", done.stderr


def test_a_program_that_ran_refuses_other_inputs_as_it_did_before() -> None:
    x, y = torch.randn(6, 8), torch.randn(6, 8)
    program = deplo.compile(lambda x, y: torch.cat([x, y], 1), (x, y), target="cpu")

    def refusals() -> list[str]:
        said = []
        for args in (
            (x,),
            (x, y, x),
            (x, 3),
            (x, y.numpy()),
            ((x, y),),
            (x, y[:5]),
            (x, y.double()),
        ):
            with pytest.raises(UsageError) as raised:
                program(*args)
            said.append(str(raised.value))
        return said

    first = refusals()
    for _ in range(TIMED_CALLS + 2):
        assert torch.equal(program(x, y), torch.cat([x, y], 1))
    assert program.executable._prepared
    assert refusals() == first
    assert torch.equal(program(y, x), torch.cat([y, x], 1))
    assert torch.equal(program(x.T.contiguous().T, y), torch.cat([x, y], 1))
    assert torch.equal(program(torch.nn.Parameter(x), y).detach(), torch.cat([x, y], 1))


def test_a_check_that_fails_in_a_program_that_ran_raises() -> None:
    x, ids = torch.randn(5, 4), torch.tensor([4, 0, 2])
    program = deplo.compile(lambda x, ids: x[ids], (x, ids), target="cpu")
    for _ in range(TIMED_CALLS + 2):
        assert torch.equal(program(x, ids), x[ids])
    with pytest.raises(IndexError):
        program(x, ids + 1)
    assert torch.equal(program(x, ids), x[ids])
