"""Running sums and products on the CPU: parts of all lengths, hard numbers, layouts, repeatability."""

import pytest
import torch
from torch.export import Dim

import deplo

NAN, INF = float("nan"), float("inf")
LENGTHS = [0, 1, 2, 16, 17, 64, 65, 80, 100, 257, 4001, 70001]


def compiled(program, *args):
    return deplo.compile(program, args, target="cpu")(*args)


def near(actual, exact, scale):
    """As near to the exact value as a sum of parts is, by the size of what was added."""
    assert actual.shape == exact.shape
    bound = 64 * torch.finfo(actual.dtype).eps * scale
    assert ((actual.double() - exact).abs() <= bound).all()


@pytest.mark.sample(12)
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("axis", [0, 1])
def test_sums_of_every_length(length, axis):
    torch.manual_seed(length)
    shape = (length, 3) if axis == 0 else (3, length)
    x, n = torch.randn(shape), torch.randint(-(2**62), 2**62, shape)
    exact, scale = x.double().cumsum(axis), x.double().abs().cumsum(axis)
    near(compiled(lambda x: x.cumsum(axis), x), exact, scale)
    assert torch.equal(compiled(lambda n: n.cumsum(axis), n), n.cumsum(axis))


@pytest.mark.sample(2)
@pytest.mark.parametrize("expected", [10, 40, 300])
@pytest.mark.parametrize("axis", [0, 1])
def test_lengths_that_a_call_says(expected, axis):
    def program(x, n):
        return x.cumsum(axis), n.cumsum(axis), x.cummax(axis).indices

    def inputs(length):
        torch.manual_seed(length)
        shape = (length, 3) if axis == 0 else (3, length)
        return torch.randn(shape), torch.randint(-(2**62), 2**62, shape)

    sizes = {axis: Dim("length", min=1)}
    compiled = deplo.compile(program, inputs(expected), dynamic_shapes=(sizes, sizes), target="cpu")
    for length in [*LENGTHS[1:-1], 15, 31, 33, 256]:
        x, n = inputs(length)
        total, count, place = compiled(x, n)
        near(total, x.double().cumsum(axis), x.double().abs().cumsum(axis))
        assert torch.equal(count, n.cumsum(axis))
        assert torch.equal(place, x.cummax(axis).indices)


@pytest.mark.parametrize("length", [17, 64, 100, 1000])
def test_products_and_doubles(length):
    x = torch.rand(3, length) * 0.2 + 0.9
    product = compiled(lambda x: x.cumprod(1), x)
    torch.testing.assert_close(product.double(), x.double().cumprod(1), rtol=64e-7, atol=0)
    wide = (x - 1).double()
    near(compiled(lambda x: x.cumsum(1), wide), wide.cumsum(1), wide.abs().cumsum(1))


@pytest.mark.sample(10)
@pytest.mark.parametrize("length", [20, 100])
@pytest.mark.parametrize("place", [0, 15, 16])
@pytest.mark.parametrize("values", [(NAN, 1.0), (INF, -INF), (-INF, -INF), (3e38, 3e38)])
def test_what_is_not_finite_is_where_eager_has_it(length, place, values):
    x = torch.ones(2, length)
    x[0, place], x[0, -1] = values

    def program(x):
        return x.cumsum(1), x.t().contiguous().cumsum(0), x.cumprod(1)

    for actual, expected in zip(compiled(program, x), program(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)


def test_parts_of_a_product_that_leave_the_range_of_a_float():
    x = torch.full((100,), 1e-3)
    x[64:80] = 1e5  # alone too large, after what is too small
    torch.testing.assert_close(compiled(lambda x: x.cumprod(0), x), x.cumprod(0))


def test_zeros_keep_the_signs_that_eager_gives_them():
    def program(x):
        return x.cumsum(1), x[:, :20].cumsum(1), x.cumprod(1), x[:, :20].cumprod(1)

    x = torch.full((2, 100), -0.0)
    for actual, expected in zip(compiled(program, x), program(x), strict=True):
        assert torch.equal(actual.signbit(), expected.signbit())


def test_subnormals_add_up():
    x = torch.full((2, 100), 1e-45)
    assert torch.equal(compiled(lambda x: x.cumsum(1), x), x.cumsum(1))


@pytest.mark.parametrize("length", [50, 150])
def test_views_and_what_stands_before_and_after(length):
    base = torch.randn(length, 2, 6)
    for x, axis in ((base.permute(1, 2, 0), 2), (base[::2, :, 1:4], 0), (base.flip(0), 0)):

        def program(x, axis=axis):
            total = torch.cumsum(x.abs() + 1, axis)
            return total.flip(axis) * 2, total / total.sum(axis, keepdim=True)

        for actual, expected in zip(compiled(program, x), program(x.double()), strict=True):
            torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(("shape", "axis"), [((37, 1001), 1), ((1001, 37), 0), ((300, 40), 1)])
def test_bits_are_the_same_for_any_number_of_threads(shape, axis):
    x = torch.randn(shape)
    program = deplo.compile(lambda x: x.cumsum(axis), (x,), target="cpu")
    threads = torch.get_num_threads()
    try:
        results = []
        for count in (1, 2, 3, 1):
            torch.set_num_threads(count)
            results.append(program(x))
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(results[0], each) for each in results[1:])
