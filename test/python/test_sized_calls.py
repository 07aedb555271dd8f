"""Calls whose sizes no earlier call had: as right as any other, and one native call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

import deplo
from deplo.errors import UsageError
from deplo.runtime import sized_calls, threads
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.sizes import Expression, evaluator, read_extent

W = torch.linspace(-1, 1, 48 * 32).view(48, 32)
N = torch.export.Dim("n", min=2, max=4096)


def attention(x: Tensor) -> Tensor:
    q = F.linear(x, W)
    return F.scaled_dot_product_attention(q[None], q[None], q[None]).squeeze(0)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "element by element": lambda x: x.exp() * 2,
    "rows": lambda x: x.softmax(-1),
    "columns": lambda x: x.sum(0),
    "a product": lambda x: F.linear(x, W).relu(),
    "attention": attention,
    "several": lambda x: (x.cumsum(0), F.linear(x, W).softmax(0), x.mean(), x.roll(1, 0) - x),
    "along the size": lambda x: x.T.flip(1).contiguous() + torch.arange(x.shape[0]),
}


def rows(n: int) -> Tensor:
    return torch.linspace(-2, 3, n * 32).view(n, 32)


def compiled(program: Callable[..., Any], *others: Tensor, **options: Any) -> Any:
    shapes = ({0: N}, *({} for _ in others))
    return deplo.compile(
        program, (rows(12), *others), target="cpu", dynamic_shapes=shapes, **options
    )


@pytest.fixture
def slowly(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of the first arguments of calls that went step by step."""
    seen: list[tuple[int, ...]] = []
    run = CpuProgram._run

    def counted(self: CpuProgram, arguments: Any, *others: Any) -> Any:
        seen.append(tuple(arguments[0].shape))
        return run(self, arguments, *others)

    monkeypatch.setattr(CpuProgram, "_run", counted)
    return seen


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("count", [1, 2])
def test_new_sizes_give_what_eager_gives(
    name: str, count: int, slowly: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "thread_count", lambda: count)
    program = compiled(PROGRAMS[name])
    for n in range(2, 42):
        torch.testing.assert_close(program(rows(n)), PROGRAMS[name](rows(n)), rtol=1e-5, atol=1e-5)
    # Buckets have code of their own, the first call of each goes step by step, and few until all is timed.
    assert len(slowly) <= (3 if count == 1 else 24)


def test_a_call_in_between_is_timed(
    slowly: list[tuple[int, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sized_calls, "TIMED_AGAIN", 8)
    monkeypatch.setattr(threads, "thread_count", lambda: 1)
    program = compiled(PROGRAMS["rows"])
    for n in range(33, 64):
        torch.testing.assert_close(program(rows(n)), rows(n).softmax(-1))
    assert len(slowly) == 1 + 30 // 8


def test_sizes_that_stay_are_prepared(slowly: list[tuple[int, ...]]) -> None:
    program = compiled(PROGRAMS["rows"])
    for n in (40, 41, 42, 43, 44, 45, *[50] * 12):
        program(rows(n))
    executable = program.code._latest or program.executable
    assert any(each.fits(rows(50)) for each in executable._prepared)


def test_calls_of_another_kind_are_learned_again(slowly: list[tuple[int, ...]]) -> None:
    program = compiled(PROGRAMS["rows"])
    with torch.inference_mode():
        for n in (33, 34, 35, 36, 37, 38, 39):
            program(rows(n))
    before = len(slowly)
    for n in range(40, 60):
        torch.testing.assert_close(program(rows(n)), rows(n).softmax(-1))
    assert len(slowly) == before + 1


@pytest.mark.parametrize("n", [1, 5000])
def test_sizes_that_are_not_allowed_are_an_error(n: int) -> None:
    program = compiled(PROGRAMS["rows"])
    for each in (3, 4, 5, 6):
        program(rows(each))
    with pytest.raises(UsageError, match=r"must be from 2 to 4096, got"):
        program(rows(n))


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (torch.ones(7, 31), "expected shape"),
        (torch.ones(7, 32, dtype=torch.float64), "expected dtype"),
        (torch.ones(7, 32, 1), "expected"),
        (torch.ones(7), "expected"),
    ],
)
def test_what_is_no_such_argument_is_an_error(argument: Tensor, message: str) -> None:
    program = compiled(PROGRAMS["rows"])
    for each in (3, 4, 5, 6):
        program(rows(each))
    with pytest.raises(UsageError, match=message):
        program(argument)


def test_arguments_that_lie_otherwise_are_copied() -> None:
    program = compiled(PROGRAMS["a product"])
    for n in (3, 4, 5, 6, 7):
        program(rows(n))
        lying = rows(2 * n)[::2]
        torch.testing.assert_close(program(lying), PROGRAMS["a product"](lying))
        turned = rows(n).T.contiguous().T
        torch.testing.assert_close(program(turned), PROGRAMS["a product"](turned))


def test_two_arguments_say_one_size() -> None:
    def program(x: Tensor, y: Tensor) -> Tensor:
        return x + y

    made = deplo.compile(
        program, (rows(12), rows(12)), target="cpu", dynamic_shapes=({0: N}, {0: N})
    )
    for n in range(3, 9):
        torch.testing.assert_close(made(rows(n), rows(n)), 2 * rows(n))
        with pytest.raises(UsageError, match="expected shape"):
            made(rows(n), rows(n + 1))


def test_a_check_that_fails_is_an_index_error(slowly: list[tuple[int, ...]]) -> None:
    def program(x: Tensor, at: Tensor) -> Tensor:
        return x[at]

    made = compiled(program, torch.tensor([0, 1]))
    for n in range(33, 40):
        made(rows(n), torch.tensor([0, n - 1]))
    before = len(slowly)
    with pytest.raises(IndexError, match=r"out of range|out of bounds|outside"):
        made(rows(40), torch.tensor([0, 40]))
    assert len(slowly) == before
    torch.testing.assert_close(made(rows(41), torch.tensor([40, 0])), rows(41)[[40, 0]])


def test_threads_that_change_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    program = compiled(PROGRAMS["attention"])
    for n in range(200, 230):
        monkeypatch.setattr(threads, "thread_count", lambda count=1 + n // 7 % 2: count)
        torch.testing.assert_close(program(rows(n)), attention(rows(n)), rtol=1e-5, atol=1e-5)


def test_a_cache_is_written_in_place() -> None:
    """As a decoder does, whose tokens have positions that no earlier call had."""

    def step(cache: Tensor, x: Tensor, at: int) -> Tensor:
        cache[at] = x
        return cache[: at + 1].sum(0)

    compiled_step = torch.compile(step, backend="deplo", fullgraph=True)
    ours, eager = torch.zeros(64, 32), torch.zeros(64, 32)
    for at in range(64):
        x = torch.full((32,), float(at))
        torch.testing.assert_close(compiled_step(ours, x, at), step(eager, x, at))
        torch.testing.assert_close(ours, eager)


def test_extents_are_reckoned_together() -> None:
    half = read_extent("(s0 + 1) // 2")
    found = evaluator([[half, 3], [], [Expression("s1 * -1 + s0 % 4"), half]])
    assert found([7, 5]) == ((4, 3), (), (-2, 4))


@pytest.mark.parametrize("text", ["s0 + open", "s0()", "s0.real", "[s0]", "s0 if 1 else 2", "'a'"])
def test_what_is_no_arithmetic_of_sizes_is_never_run(text: str) -> None:
    with pytest.raises(ValueError, match="not an extent"):
        read_extent(text)
