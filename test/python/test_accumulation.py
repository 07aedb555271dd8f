"""Sums are as exact, and have the range, as eager's: against float64, whatever is added up."""

from collections.abc import Callable

import pytest
import torch
from torch.export import Dim

import deplo

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def _compiled(program: Callable, inputs: tuple) -> Callable:
    return deplo.compile(program, inputs, target="cpu")


def _dynamic(program: Callable, inputs: tuple) -> Callable:
    sizes = tuple({0: Dim("rows", min=3), 1: Dim("columns", min=3)} for _ in inputs)
    return deplo.compile(program, inputs, target="cpu", dynamic_shapes=sizes)


def _backend(program: Callable, inputs: tuple) -> Callable:
    return torch.compile(program, backend="deplo")


ENTRIES = (_compiled, _dynamic, _backend)


def error(value: torch.Tensor, exact: torch.Tensor) -> torch.Tensor:
    """The error of each element relative to the exact one; infinite where only one is finite."""
    same = (value == exact) | (value.isnan() & exact.isnan())
    relative = ((value.double() - exact).abs() / exact.abs()).nan_to_num(torch.inf, torch.inf)
    return torch.where(same, 0.0, relative)


def check(program: Callable, compiled: Callable, value: torch.Tensor) -> None:
    """No result is further from that of float64 than eager's, but for the last bits.

    Of float64, eager's result counts as exact.
    """
    slacks = {torch.float32: 4 * torch.finfo(torch.float32).eps, torch.float64: 1e-11}
    slack = slacks.get(value.dtype, torch.finfo(value.dtype).eps)
    for mine, theirs, exact in zip(
        compiled(value), program(value), program(value.double()), strict=True
    ):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
        right = torch.where(exact.to(mine.dtype).isfinite(), exact, exact.to(mine.dtype).double())
        allowed, found = error(theirs, right), error(mine, right)
        finite = allowed.isfinite()
        assert found[finite].max() <= allowed[finite].max() + slack


def spreads(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Deviations and variances of all, of rows and of columns."""
    by_rows = torch.std_mean(x, 1, correction=0), torch.var_mean(x, 1, keepdim=True)
    return x.std(), x.var(), x.std(0), x.var(0, correction=0), *by_rows[0], *by_rows[1]


@pytest.mark.sample(3)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_spreads_of_values_whose_squares_leave_the_range(entry, dtype):
    x = torch.randn(5, 70, dtype=torch.float64)
    compiled = entry(spreads, (x.to(dtype),))
    scales = (1.0, 100.0, 1e-4) if dtype == torch.float16 else (1.0, 1e20, 1e-23, 1e37)
    for scale in scales:
        check(spreads, compiled, (x * scale).to(dtype))


def test_the_deviation_of_three_large_numbers():
    x = torch.tensor([1.0, -1.0, 2.0])
    compiled = deplo.compile(torch.std, (x,), target="cpu")
    for scale, expected in ((1e20, 1.5275252e20), (1e-23, 1.5275252e-23)):
        assert compiled(x * scale).item() == pytest.approx(expected, rel=1e-6)


def test_on_a_gpu_squares_are_added_up_in_f32():
    """As in eager there: f64 is slow on most GPUs."""
    program = deplo.compile(spreads, (torch.randn(5, 70),), target="sm_90a")
    assert "f64" not in program.ir("loop")


def runs(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """Running sums and products along rows and columns."""
    return x.cumsum(1), x.cumsum(0), x.cumprod(1), x.cumprod(0)


@pytest.mark.sample(3)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", FLOATS[:-1])
def test_running_sums_leave_the_range_and_come_back(entry, dtype):
    row = torch.tensor([0.6, 0.6, -0.6, -0.6, 1e-3], dtype=torch.float64) * torch.finfo(dtype).max
    x = row.repeat(60).reshape(3, 100).to(dtype)
    compiled = entry(runs, (x,))
    check(runs, compiled, x)


@pytest.mark.sample(3)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_long_running_sums_are_as_exact_as_eager_s(entry, dtype):
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.cumsum(1), (x - 0.05).cumsum(0), (x + 0.9).cumprod(1)

    x = torch.full((3, 5000), 0.1, dtype=dtype)
    check(program, entry(program, (x,)), x)


def test_running_sums_of_integers_as_floats():
    x = torch.tensor([2**24, 1, 1, -(2**24)])
    compiled = deplo.compile(lambda x: x.cumsum(0, dtype=torch.float32), (x,), target="cpu")
    torch.testing.assert_close(compiled(x), x.cumsum(0, dtype=torch.float32), rtol=0, atol=0)


@pytest.mark.parametrize("dtype", FLOATS)
def test_running_sums_of_powers_are_as_exact_as_eager_s(dtype):
    def program(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x.logcumsumexp(1), x.logcumsumexp(0)

    x = (torch.randn(3, 300, dtype=torch.float64) * 10).to(dtype)
    check(program, _compiled(program, (x,)), x)


def _of_all(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(), x.mean(), x[:, ::2].sum(), x.t().sum(), torch.linalg.vector_norm(x, 1)


def _of_rows(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(1), x.mean(1), x.exp().sum(1), torch.linalg.vector_norm(x, dim=1)


def _of_columns(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.sum(0), x.mean(0), (x * x).sum(0), x.exp().mean(0)


def _of_products(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    return x.t()[0] @ x.t()[1], x @ x[0], x[:, 0] @ x, (x - 0.05).square().sum((0, 1))


@pytest.mark.sample(8)
@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(3, 70_001), (70_001, 3), (20_000, 40), (40, 20_000)])
@pytest.mark.parametrize("sums", [_of_all, _of_rows, _of_columns, _of_products])
def test_long_sums_are_as_exact_as_eager_s(sums, shape, dtype, entry):
    """Equal terms: whatever rounds, does so in the same direction again and again."""
    x = torch.full(shape, 0.1, dtype=dtype)
    check(sums, entry(sums, (x,)), x)


def test_a_sum_of_ten_million_tenths():
    x = torch.full((10**7,), 0.1)
    compiled = deplo.compile(torch.sum, (x,), target="cpu")
    assert compiled(x).item() == pytest.approx(1e6, rel=5e-7)


@pytest.mark.parametrize("rows", [1000, 128 * 8, 2047, 2048, 2049, 4099])
def test_long_columns_of_any_length(rows):
    """Blocks of rows, groups of rows that are no whole block, and rows that are no whole group."""
    x = torch.randint(-9, 9, (rows, 33)).float()
    compiled = deplo.compile(lambda x: (x.sum(0), (x + 1).amax(0)), (x,), target="cpu")
    torch.testing.assert_close(compiled(x), (x.sum(0), (x + 1).amax(0)), rtol=0, atol=0)


def test_columns_of_images_of_which_there_are_many():
    x = torch.full((3000, 4, 24), 0.1)
    compiled = deplo.compile(lambda x: (x * 0.5 + 1).sum((0, 1)), (x,), target="cpu")
    torch.testing.assert_close(compiled(x), torch.full((24,), 12600.0), rtol=1e-6, atol=0)


@pytest.mark.parametrize("count", [64, 65, 5000])
def test_sums_of_what_lies_anywhere(count):
    table, places = torch.full((100, 3), 0.1), torch.randint(0, 100, (2, count))
    compiled = deplo.compile(lambda t, i: t[i].sum(1), (table, places), target="cpu")
    expected = torch.full((2, 3), count * 0.1)
    torch.testing.assert_close(compiled(table, places), expected, rtol=2e-6, atol=0)
