"""Order along an axis: stability, NaN, zeros, limits; what PyTorch leaves open is compared by value."""

import math

import numpy as np
import pytest
import torch
from conftest import examples
from hypothesis import given
from hypothesis import strategies as st
from torch.export import Dim

import deplo
from deplo.interpreter import execute
from deplo.passes.tensor_ir.expand_sort import ExpandSortPass
from deplo.program_stages import make_context
from deplo.tools.located_parser import LocatedParser

NAN, INF = float("nan"), float("inf")
HARD = torch.tensor(
    [
        [0.0, -0.0, 1.0, NAN, -INF, 0.0, INF, 1.0],
        [NAN, NAN, -1.0, -1.0, NAN, 2.0, 2.0, -1.0],
        [3.0, 2.0, 1.0, 0.0, -1.0, -2.0, -3.0, -4.0],
    ]
)
DTYPES = [torch.float32, torch.float64, torch.float16, torch.bfloat16]


def compiled(program, *args):
    return deplo.compile(program, args, target="cpu")(*args)


def equal_bits(actual, expected):
    """Equal, with the signs of zeros; those of NaN mean nothing."""
    assert actual.dtype == expected.dtype
    number = ~expected.isnan()
    assert torch.equal(torch.signbit(actual)[number], torch.signbit(expected)[number])
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)


@st.composite
def sorts(draw):
    """A sort as text, its input, and how."""
    rank = draw(st.integers(1, 3))
    shape = [draw(st.integers(1, 5)) for _ in range(rank)]
    axis = draw(st.integers(0, rank - 1))
    count = draw(st.integers(0, shape[axis]))
    descending = draw(st.booleans())
    values = draw(st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, NAN, INF, -INF])))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.choice(np.array([*values, 3.0], np.float32), shape)
    result = [count if i == axis else n for i, n in enumerate(shape)]
    types = [
        "tensor<" + "".join(f"{n}x" for n in extents) + f"{element}>"
        for extents, element in ((shape, "f32"), (result, "f32"), (result, "i64"))
    ]
    how = " descending" if descending else ""
    text = f"""func.func @main(%x: {types[0]}) -> ({types[1]}, {types[2]}) {{
      %v, %i = tensor_ir.sort %x along {axis}{how} : {types[0]} -> ({types[1]}, {types[2]})
      func.return %v, %i : {types[1]}, {types[2]}
    }}"""
    return text, x, (axis, count, descending)


@examples(100)
@given(sorts())
def test_it_is_pytorchs_stable_sort_and_so_is_its_expansion(case):
    text, x, (axis, count, descending) = case
    module = LocatedParser(make_context(), text, "sort.mlir").parse_module()
    values, positions = torch.sort(
        torch.from_numpy(x), dim=axis, descending=descending, stable=True
    )
    expected = [v.narrow(axis, 0, count).numpy() for v in (values, positions)]
    for _ in range(2):
        for actual, wanted in zip(execute(module, [x]), expected, strict=True):
            np.testing.assert_array_equal(actual, wanted)
            np.testing.assert_array_equal(np.signbit(actual), np.signbit(wanted))
        ExpandSortPass().apply(None, module)
        module.verify()


@examples(60)
@given(sorts(), st.lists(st.integers(-1, 6), min_size=1, max_size=3))
def test_the_nth_element_is_that_of_a_stable_sort_and_so_is_its_expansion(case, places):
    text, x, (axis, _, _) = case
    shape = [len(places) if i == axis else n for i, n in enumerate(x.shape)]
    types = [
        "tensor<" + "".join(f"{n}x" for n in extents) + f"{element}>"
        for extents, element in ((shape, "i64"), (x.shape, "f32"))
    ]
    text = f"""func.func @main(%n: {types[0]}, %x: {types[1]}) -> {types[0]} {{
      %i = tensor_ir.nth_element %n of %x along {axis} : ({types[0]}, {types[1]}) -> {types[0]}
      func.return %i : {types[0]}
    }}"""
    along = [-1 if i == axis else 1 for i in range(x.ndim)]
    n = np.broadcast_to(np.reshape(np.array(places), along), shape).copy()
    order = torch.sort(torch.from_numpy(x), dim=axis, stable=True)[1].numpy()
    wanted = np.take_along_axis(order, n.clip(0, x.shape[axis] - 1), axis)
    module = LocatedParser(make_context(), text, "nth.mlir").parse_module()
    for _ in range(2):
        (actual,) = execute(module, [n, x])
        np.testing.assert_array_equal(actual, wanted)
        ExpandSortPass().apply(None, module)
        module.verify()


@pytest.mark.parametrize("dtype", [*DTYPES, torch.int8, torch.int64, torch.bool])
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1])
def test_a_stable_sort_is_pytorchs(dtype, descending, dim):
    x = HARD.nan_to_num(7.0, 9.0, -9.0).to(dtype) if not dtype.is_floating_point else HARD.to(dtype)

    def program(x):
        return torch.sort(x, dim=dim, descending=descending, stable=True)

    actual, expected = compiled(program, x), program(x)
    equal_bits(actual[0], expected[0])
    assert torch.equal(actual[1], expected[1])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("k", [0, 1, 3, 8])
def test_topk_has_pytorchs_values_at_the_positions_it_names(largest, k):
    def program(x):
        return torch.topk(x, k, 1, largest=largest)

    values, positions = compiled(program, HARD)
    torch.testing.assert_close(values, program(HARD)[0], rtol=0, atol=0, equal_nan=True)
    equal_bits(HARD.gather(1, positions), values)
    for row in positions:
        assert len(set(row.tolist())) == k


@pytest.mark.sample(10)
@pytest.mark.parametrize(
    "program",
    [
        lambda x: torch.median(x, 1),
        lambda x: torch.nanmedian(x, 1),
        lambda x: torch.median(x, 0, keepdim=True),
        lambda x: torch.nanmedian(x, 0),
        lambda x: torch.kthvalue(x, 2, 1),
        lambda x: torch.kthvalue(x, 3, 0, keepdim=True),
    ],
)
@pytest.mark.parametrize("dtype", DTYPES)
def test_middle_values(program, dtype):
    x = HARD.to(dtype)
    values, positions = compiled(program, x)
    expected = program(x)
    torch.testing.assert_close(values, expected[0], rtol=0, atol=0, equal_nan=True)
    dim = 1 if values.shape[-1] == 3 else 0
    at = positions if positions.ndim == 2 else positions.unsqueeze(dim)
    torch.testing.assert_close(
        x.gather(dim, at).reshape(values.shape), values, rtol=0, atol=0, equal_nan=True
    )


def test_the_middle_of_a_row_of_any_length():
    n = Dim("n", min=2)
    program = deplo.compile(
        lambda x: (*torch.median(x, 1), torch.nanmedian(x, 1)[0], torch.kthvalue(x, 2, 1)[0]),
        (torch.randn(3, 40),),
        target="cpu",
        dynamic_shapes=({1: n},),
    )
    for length in (2, 3, 64, 1001):
        x = torch.randn(3, length)
        x[1, 1] = NAN
        values, positions, others, second = program(x)
        expected = torch.median(x, 1)
        torch.testing.assert_close(values, expected[0], rtol=0, atol=0, equal_nan=True)
        assert torch.equal(x.gather(1, positions[:, None])[:, 0].nan_to_num(), values.nan_to_num())
        assert torch.equal(others, torch.nanmedian(x, 1)[0])
        expected = torch.kthvalue(x, 2, 1)[0]
        torch.testing.assert_close(second, expected, rtol=0, atol=0, equal_nan=True)


def test_the_median_of_everything_and_of_nothing():
    for function in (torch.median, torch.nanmedian):
        for x in (HARD, HARD[2], torch.tensor(NAN), torch.empty(0), torch.tensor([[4, 1, 3, 2]])):
            torch.testing.assert_close(compiled(function, x), function(x), equal_nan=True)
    with pytest.raises(IndexError, match=r"fails in PyTorch: IndexError: median\(\)"):
        deplo.compile(lambda x: torch.median(x, 1), (torch.empty(3, 0),), target="cpu")


@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int16, torch.bool])
def test_running_extrema_and_the_last_place_of_each(function, dtype):
    x = (HARD if dtype.is_floating_point else HARD.nan_to_num(7.0, 9.0, -9.0)).to(dtype)
    actual, expected = compiled(lambda x: function(x, 1), x), function(x, 1)
    torch.testing.assert_close(actual[0], expected[0], equal_nan=True)
    assert torch.equal(actual[1], expected[1])


@pytest.mark.sample(4)
@pytest.mark.parametrize("function", [torch.cummax, torch.cummin])
@pytest.mark.parametrize("shape", [(1, 65), (3, 1000), (2, 4097), (1, 70001)])
def test_long_running_extrema_come_again(function, shape):
    x = torch.randint(-50, 51, shape).float()
    x[-1, shape[1] * 2 // 3] = NAN
    actual, expected = compiled(lambda x: function(x, 1), x), function(x, 1)
    torch.testing.assert_close(actual[0], expected[0], rtol=0, atol=0, equal_nan=True)
    assert torch.equal(actual[1], expected[1])


def test_log_cumsum_exp_does_not_overflow():
    x = torch.tensor([[-INF, -INF, 0.0, 1000.0, 1000.0], [1.0, INF, 2.0, NAN, 0.0]])
    actual, expected = (
        f(x)
        for f in (lambda x: compiled(torch.logcumsumexp, x, 1), lambda x: torch.logcumsumexp(x, 1))
    )
    torch.testing.assert_close(actual, expected, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("axis", [0, 1])
def test_log_cumsum_exp_of_any_length(axis, dtype):
    def program(x):
        return x.logcumsumexp(axis)

    dynamic = torch.compile(program, backend="deplo", dynamic=True, options={"fallback": "error"})
    for length in (0, 1, 2, 4, 5, 17, 65, 5000):
        x = (torch.randn(3, length) * 10).to(dtype)
        x = x.t().contiguous() if axis == 0 else x
        expected = program(x)
        for actual in (compiled(program, x), dynamic(x)):
            torch.testing.assert_close(actual, expected)


@pytest.mark.parametrize("right", [False, True])
def test_search(right):
    def program(b, x):
        found = torch.searchsorted(b, x, right=right)
        return found, torch.bucketize(x, b, right=right), torch.bucketize(0.5, b)

    bounds = torch.tensor([-INF, -1.0, 0.0, 0.0, 2.5, INF])
    for x in (HARD, HARD[:, ::2].t(), torch.tensor(0.0), torch.empty(0)):
        for actual, expected in zip(compiled(program, bounds, x), program(bounds, x), strict=True):
            assert torch.equal(actual, expected)


@pytest.mark.sample(10)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
@pytest.mark.parametrize("count", [0, 1, 2, 7, 16, 100])
def test_search_takes_the_steps_of_eager(dtype, count):
    """So it finds what eager finds in a sequence with NaN, which come last, or in no order."""
    values = torch.linspace(0, 9, count + 20)[torch.randperm(count + 20)]
    if dtype.is_floating_point:
        values[::5] = math.nan
    bounds, x = values[:count].to(dtype), values[count:].to(dtype)
    for b in (bounds.sort()[0], bounds):
        for right in (False, True):
            found = compiled(lambda b, x, right=right: torch.searchsorted(b, x, right=right), b, x)
            assert torch.equal(found, torch.searchsorted(b, x, right=right))


def test_search_in_a_sequence_of_any_length():
    rows, values = Dim("rows", min=1), Dim("values", min=1)
    program = deplo.compile(
        lambda b, x: torch.searchsorted(b, x),
        (torch.randn(5), torch.randn(7)),
        target="cpu",
        dynamic_shapes=({0: rows}, {0: values}),
    )
    for count in (1, 2, 3, 64, 100000):
        b, x = torch.randn(count).sort()[0], torch.randn(count % 77 + 1)
        assert torch.equal(program(b, x), torch.searchsorted(b, x))


@pytest.mark.parametrize("side", ["left", "right"])
def test_search_in_rows_by_a_sorter_which_is_checked(side):
    x = HARD.nan_to_num(4.0)
    order = torch.sort(x, 1)[1]

    def program(x, order):
        return torch.searchsorted(x, x[:, :3], side=side, sorter=order, out_int32=True)

    made = deplo.compile(program, (x, order), target="cpu")
    assert torch.equal(made(x, order), program(x, order))
    with pytest.raises(IndexError, match="index out of range"):
        made(x, order + 1)
