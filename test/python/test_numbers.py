"""`torch.compile`: whole numbers among the arguments are sizes, once a second one makes them dynamic."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as F

from deplo.errors import FallbackWarning
from deplo.frontend.numbers import Number

X, W = torch.linspace(-2, 3, 640).view(40, 16), torch.linspace(1, -1, 1600).view(100, 16)


def attention(x: Tensor, at: int) -> Tensor:
    """A step of a decoder with a cache of keys that are also its values."""
    keys = W[None, : at + 1]
    return F.scaled_dot_product_attention(x[None, at : at + 1], keys, keys)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "the end of a slice": lambda x, n: x[:n] * 2,
    "its beginning": lambda x, n: x[n:].sum(0),
    "both": lambda x, n: x[n : n + 3].exp(),
    "where positions begin": lambda x, n: x + torch.arange(n, n + 40)[:, None],
    "a shape": lambda x, n: torch.zeros(n, 16) + x[0],
    "a factor": lambda x, n: x * n,
    "a cache": attention,
    "returned": lambda x, n: (x[n:], n + 1),
    "nothing else": lambda _, n: torch.arange(n) * 2,
}


def assert_equal(got: Any, expected: Any) -> None:
    torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_numbers_are_sizes(name: str) -> None:
    """One graph serves all from 2 on; for the first number, and for 0 and 1, PyTorch makes others."""
    program = PROGRAMS[name]
    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in (5, 6, 17, 2, 1, 0, 30):
            assert_equal(compiled(X, n), program(X, n))
    assert graphs_of(compiled) <= 4


def graphs_of(compiled: Any) -> int:
    """How many graphs a function was compiled to."""
    entries = torch._C._dynamo.eval_frame._debug_get_cache_entry_list(
        compiled._torchdynamo_orig_callable.__code__
    )
    return len(entries)


@pytest.mark.parametrize("number", [-1, -40, 2**31, 2**40])
def test_a_number_that_is_no_size_is_computed_with_in_pytorch(number: int) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, n: x * n, backend="deplo", dynamic=True)
    for n in (3, number, 7, number - 1):
        assert_equal(compiled(X, n), X * n)


def test_gradients_depend_on_numbers() -> None:
    def program(x: Tensor, n: int) -> Tensor:
        return (x[:n].exp() * n).sum()

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo", fullgraph=True)
    for n in (3, 4, 9, 30):
        ours, eager = (X.clone().requires_grad_() for _ in "ab")
        compiled(ours, n).backward()
        program(eager, n).backward()
        assert_equal(ours.grad, eager.grad)


def test_several_numbers_beside_dynamic_shapes() -> None:
    def program(x: Tensor, first: int, y: Tensor, second: int) -> Tensor:
        return x[:, :first].sum(0) * second + (y * first).mean() + torch.ones(second).sum()

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo", fullgraph=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for rows, first, second in ((40, 3, 5), (37, 9, 2), (12, 3, 11)):
            x, y = torch.linspace(-1, 1, rows * 16).view(rows, 16), W[: rows + 20]
            assert_equal(compiled(x, first, y, second), program(x, first, y, second))


def test_a_number_has_no_elements() -> None:
    number = Number(0, 2, 100, torch.device("cpu"))
    carried = number.carried(100)
    assert carried is not None
    assert (carried.shape, carried.untyped_storage().nbytes()) == ((100, 0), 0)
    assert number.carried(1) is None
    assert number.carried(101) is None
