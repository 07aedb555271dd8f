"""`torch.compile`: whole numbers among the arguments are sizes, once a second one makes them dynamic."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._higher_order_ops import associative_scan
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


SIGNED: dict[str, Callable[..., Any]] = {
    "a factor": lambda x, n: x * n,
    "a divisor": lambda x, n: (x / n, n / (x + 9)),
    "a summand": lambda x, n: (x + n, n - x),
    "of integers": lambda x, n: x.long() * n,
    "compared": lambda x, n: torch.where(x > n, x, n),
    "computed with": lambda x, n: x * (2 * n - 1) + (-n),
    "divided": lambda x, n: x * (n // 2) + n % 3,
    "filled in": lambda x, n: torch.full((3,), n) + x[0, 0],
    "returned": lambda x, n: (x + 1, n),
    "where positions begin": lambda x, n: torch.arange(n, 9) + x[0, 0],
    "a diagonal": lambda x, n: x.tril(n),
}


@pytest.mark.sample(10)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("name", SIGNED)
def test_numbers_may_be_negative(name: str, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(SIGNED[name], backend="deplo", dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in (-1, -2, 3, -7, 5):
            assert_equal(compiled(X, n), SIGNED[name](X, n))


PLACES: dict[str, Callable[..., Any]] = {
    "the end of a slice": lambda x, n: x[:n] + 1,
    "its beginning": lambda x, n: x[n:] + 1,
    "an index": lambda x, n: x[n] + 1,
    "a shift": lambda x, n: x.roll(n, 0) + 1,
}


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@pytest.mark.sample(10)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("name", PLACES)
def test_places_may_be_negative(name: str, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(PLACES[name], backend="deplo", dynamic=dynamic)
    for n in (-1, -2, 3, -7, 5, 0, 1):
        assert_equal(compiled(X, n), PLACES[name](X, n))


FIXED: dict[str, Callable[..., Any]] = {
    "pow": lambda x, n: x**n,
    "pow of integers": lambda x, n: x.long() ** n,
    "add": lambda x, n: torch.add(x, x, alpha=n),
    "sub": lambda x, n: torch.sub(x, x, alpha=-n),
    "leaky_relu": F.leaky_relu,
    "elu": F.elu,
    "hardtanh": lambda x, n: F.hardtanh(x, -n, n),
    "addmm": lambda x, n: torch.addmm(x, x, x.mT @ x, beta=n, alpha=n),
    "norm": torch.norm,
    "var": lambda x, n: x.var(0, correction=n),
    "lerp": lambda x, n: torch.lerp(x, x * 2, n),
    "round": lambda x, n: x.round(decimals=n),
    "shape of random numbers": lambda x, n: torch.rand(n, 16).shape[0] + x,
}


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@pytest.mark.sample(10)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("name", FIXED)
def test_an_operator_that_wants_a_fixed_number_is_called(name: str, dynamic: bool | None) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(FIXED[name], backend="deplo", dynamic=dynamic)
    for n in (2, 3, 4):
        torch.testing.assert_close(compiled(X, n), FIXED[name](X, n), rtol=1e-4, atol=1e-4)


PARTS: dict[str, Callable[..., Any]] = {
    "chunk": lambda x: [part * 2 for part in x.chunk(3)],
    "split": lambda x: [part * 2 for part in x.split(3)],
    "tensor_split": lambda x: [part * 2 for part in x.tensor_split(3)],
    "halves of what is even": lambda x: x.view(2, -1) * 3 if x.shape[0] % 2 == 0 else x * 2,
    "thirds": lambda x: x.view(3, -1) * 3 if x.shape[0] % 3 == 0 else x[1:] * 2,
    "windows": lambda x: x.unfold(0, 3, 2).sum(-1) if len(x) > 2 else x,
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("dynamic", [None, True], ids=["", "dynamic"])
@pytest.mark.parametrize("name", PARTS)
def test_a_size_may_be_what_conditions_leave(name: str, dynamic: bool | None) -> None:
    """Conditions on a size may leave remainders, a few values, or one."""
    torch._dynamo.reset()
    compiled = torch.compile(PARTS[name], backend="deplo", dynamic=dynamic)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        for n in (8, 9, 2, 3, 10, 1):
            assert_equal(compiled(X[:n]), PARTS[name](X[:n]))


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
def test_a_scan_of_dynamic_length() -> None:
    def program(x: Tensor) -> Tensor:
        return associative_scan(lambda a, b: a * b + 1e-3, x, 0, combine_mode="generic")

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo", dynamic=True)
    assert_equal(compiled(X[:4]), program(X[:4]))


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
def test_a_size_of_one_after_larger_ones() -> None:
    def program(t: Tensor) -> Tensor:
        return torch.ones(int(t.item())).sum() if t.item() > 0 else t

    torch._dynamo.reset()
    compiled = torch.compile(program, backend="deplo")
    for n in (3, 4, 1, 5):
        assert_equal(compiled(torch.tensor(n)), program(torch.tensor(n)))


@pytest.mark.filterwarnings("ignore::deplo.errors.FallbackWarning")
@pytest.mark.parametrize("first", [3, -(2**50)])
@pytest.mark.parametrize("number", [2**30, -(2**30), 2**31, 2**40])
def test_a_number_that_no_extent_says_is_computed_with_in_pytorch(
    number: int, first: int
) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, n: x * n, backend="deplo", dynamic=True)
    for n in (first, number, 7, number - 1):
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
    number = Number(0, 2, 100, 8, torch.device("cpu"))
    carried = number.carried(100)
    assert carried is not None
    assert (carried.shape, carried.untyped_storage().nbytes()) == ((108, 0), 0)
    assert number.carried(1) is None
    assert number.carried(101) is None


@pytest.mark.filterwarnings("error::deplo.FallbackWarning")
def test_sizes_of_which_only_the_sum_is_an_extent_of_what_is_saved() -> None:
    """The gradient takes both sizes as numbers, and tensors of as many rows as both together."""

    def similarity(a: Tensor, b: Tensor, weight: Tensor) -> Tensor:
        rows = torch.cat([a, b]) @ weight
        return F.normalize(rows @ rows.T, dim=1).square().mean(1).exp().sum()

    torch._dynamo.reset()
    compiled = torch.compile(similarity, backend="deplo")
    for count, other in ((2, 2), (3, 4), (5, 3)):
        a, b = torch.randn(count, 6), torch.randn(other, 6)
        weight = torch.randn(6, 4, requires_grad=True)
        twin = weight.detach().clone().requires_grad_()
        compiled(a, b, weight).backward()
        similarity(a, b, twin).backward()
        torch.testing.assert_close(weight.grad, twin.grad)
