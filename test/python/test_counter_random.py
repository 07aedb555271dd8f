"""Random numbers by counter: Threefry's words, what is made of them, and the kernels they are part of."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

from deplo import torch_backend
from deplo.analysis.threefry import threefry

pytestmark = pytest.mark.filterwarnings("ignore")

DYNAMIC = pytest.mark.parametrize("dynamic", [None, True], ids=["static", "dynamic"])


def _compiled(function: Callable[..., Any], dynamic: bool | None = None) -> Callable[..., Any]:
    torch._dynamo.reset()
    options = {"random": "counter", "fallback": "error"}
    return torch.compile(function, backend="deplo", dynamic=dynamic, options=options)


def _word(number: int) -> torch.Tensor:
    return torch.from_numpy(np.array(number, np.uint32).view(np.int32))


ONES = 0xFFFFFFFF


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((ONES, ONES), (ONES, ONES), (0x1CB996FC, 0xBB002BE7)),
        ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_the_generator_has_the_known_answers(counter: Any, key: Any, words: Any) -> None:
    """Of Random123's file of known answers, threefry2x32 with 20 rounds."""
    given = [list(map(_word, pair)) for pair in (key, counter)]
    for run in (threefry, _compiled(threefry)):
        assert [int(word) & ONES for word in run(*given)] == list(words)


@DYNAMIC
@pytest.mark.parametrize("p", [0.1, 0.5])
def test_masks_are_of_the_probability_and_independent(p: float, dynamic: bool | None) -> None:
    run = _compiled(lambda x: F.dropout(x, p), dynamic)
    torch.manual_seed(0)
    kept = torch.stack([run(torch.ones(64, 512)) != 0 for _ in range(4)]).double()
    assert abs(kept.mean() - (1 - p)) < 4 * (p * (1 - p) / kept.numel()) ** 0.5
    assert abs(kept.var() - p * (1 - p)) < 0.01
    # Four neighbours have 16 patterns: chi-square of 15 degrees of freedom is below 37.7 in 99.9 %.
    patterns = (kept.view(-1, 4) @ torch.tensor([8.0, 4, 2, 1]).double()).long()
    counted = torch.bincount(patterns, minlength=16)
    chances = [
        (1 - p) ** sum(bits) * p ** (4 - sum(bits)) for bits in itertools.product((0, 1), repeat=4)
    ]
    expected = torch.tensor(chances) * patterns.numel()
    assert ((counted - expected) ** 2 / expected).sum() < 37.7


@pytest.mark.parametrize(
    "dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str
)
def test_uniform_numbers_fill_their_range_evenly(dtype: torch.dtype) -> None:
    x = torch.zeros(16, 1024, dtype=dtype)
    run = _compiled(lambda x: (torch.rand_like(x), x.clone().uniform_(-1, 3), torch.rand(3, 5000)))
    torch.manual_seed(0)
    for numbers, low, high in zip(run(x), (0, -1, 0), (1, 3, 1), strict=True):
        assert low <= numbers.min()
        assert numbers.max() <= high
        counted = torch.histc((numbers.double() - low) / (high - low), 16, 0, 1)
        expected = numbers.numel() / 16
        assert ((counted - expected) ** 2 / expected).sum() < 37.7


@DYNAMIC
def test_a_seed_repeats_the_numbers_and_a_call_does_not(dynamic: bool | None) -> None:
    x = torch.ones(7, 33)
    run = _compiled(
        lambda x: (F.dropout(x, 0.5), F.dropout(x, 0.5), torch.bernoulli(x, 0.5)), dynamic
    )
    torch.manual_seed(3)
    first, second = run(x), run(x)
    torch.manual_seed(3)
    for again, drawn in zip((*run(x), *run(x)), (*first, *second), strict=True):
        assert torch.equal(again, drawn)
    for one, other in itertools.combinations(((each != 0) for each in (*first, *second)), 2):
        assert not torch.equal(one, other)


@DYNAMIC
@pytest.mark.parametrize("shape", [(7, 33), (1, 1), (0, 4)], ids=str)
def test_the_gradient_is_the_mask(shape: tuple[int, ...], dynamic: bool | None) -> None:
    x = torch.randn(shape).abs().add(1).requires_grad_()
    y = _compiled(lambda x: F.dropout(x, 0.25), dynamic)(x)
    y.sum().backward()
    assert x.grad is not None
    torch.testing.assert_close(x.grad, (y != 0) / 0.75)
    torch.testing.assert_close(y, x * x.grad)


@pytest.mark.parametrize("reentrant", [False, True], ids=["", "reentrant"])
def test_a_checkpoint_draws_the_same_mask_again(reentrant: bool) -> None:
    x = torch.ones(9, 50, requires_grad=True)

    def function(x: torch.Tensor) -> torch.Tensor:
        return checkpoint(lambda x: F.dropout(x.exp(), 0.5) * x, x, use_reentrant=reentrant)

    y = _compiled(function)(x)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * y.detach())  # d(x exp x) is (1 + x) exp x, and x is 1


def test_extreme_probabilities() -> None:
    x = torch.tensor([1.0, float("nan"), -0.0])
    run = _compiled(
        lambda x: (F.dropout(x, 0.0), F.dropout(x, 1.0), F.dropout(x, 0.5, training=False))
    )
    for got, wanted in zip(run(x), (x, F.dropout(x, 1.0), x), strict=True):
        torch.testing.assert_close(got, wanted, equal_nan=True)
        assert torch.equal(got.signbit(), wanted.signbit())


def test_a_dropout_is_one_kernel_and_a_call_for_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    programs: list[Any] = []

    class Noted(torch_backend.Program):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            programs.append(self)

    monkeypatch.setattr(torch_backend, "Program", Noted)
    x = torch.randn(8, 64, requires_grad=True)
    _compiled(lambda x: F.dropout(F.gelu(x) + 1, 0.1) * 2)(x).sum().backward()
    forward, backward = programs
    assert [call.operator for call in forward.plan.calls] == ["aten.randint.low"]
    assert (len(forward.kernels), len(backward.kernels), len(backward.plan.calls)) == (1, 1, 0)


def test_without_the_option_numbers_are_eagers() -> None:
    x = torch.ones(8, 8)
    torch._dynamo.reset()
    torch.manual_seed(1)
    drawn = torch.compile(lambda x: F.dropout(x, 0.5), backend="deplo")(x)
    torch.manual_seed(1)
    assert torch.equal(drawn, F.dropout(x, 0.5))
