"""Running sums, products and extrema as a GPU's threads share them, on the machine that finds races."""

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

import deplo
from deplo.analysis.running import has_running_fold
from deplo.dialects.loop import KernelOp
from deplo.interpreter import execute
from deplo.tools.executors import array_of, tensor_of

NAN, INF = float("nan"), float("inf")
LENGTHS = [1, 2, 3, 8, 31, 32, 33, 100, 1000, 4096, 5000]


def on_machine(program, *args, **options):
    """What the CUDA kernels of a program give."""
    return run(deplo.compile(program, args, target="sm_90a", **options), *args)


def run(compiled, *args):
    """What the CUDA kernels of a compiled program give."""
    module = compiled.stage("cuda")
    main = next(op for op in module.body.block.ops if op.name == "func.func")
    results = execute(module, [array_of(x) for x in args])
    types = main.function_type.outputs.data
    return [tensor_of(value, type) for value, type in zip(results, types, strict=True)]


def near(actual, exact, scale):
    """As near to the exact value as a sum one by one is, by the size of what was added."""
    assert actual.shape == exact.shape
    bound = 16 * torch.finfo(actual.dtype).eps * scale
    assert ((actual.double() - exact).abs() <= bound).all()


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_of_every_length(length):
    torch.manual_seed(length)
    x, n = torch.randn(3, length), torch.randint(-(2**62), 2**62, (3, length))
    total, count, most = on_machine(
        lambda x, n: (x.cumsum(1), n.cumsum(1), x.cummax(1).values), x, n
    )
    near(total, x.double().cumsum(1), x.double().abs().cumsum(1))
    assert torch.equal(count, n.cumsum(1))
    assert torch.equal(most, x.cummax(1).values)


@pytest.mark.parametrize("length", [1, 7, 33, 512, 700])
@pytest.mark.parametrize("columns", [1, 5, 40])
def test_columns_of_every_length(length, columns):
    torch.manual_seed(length)
    x = torch.randn(length, columns)
    total, least = on_machine(lambda x: (x.cumsum(0), x.cummin(0).values), x)
    near(total, x.double().cumsum(0), x.double().abs().cumsum(0))
    assert torch.equal(least, x.cummin(0).values)


def test_many_parts():
    x = torch.randn(1, 100_000)
    (total,) = on_machine(lambda x: x.cumsum(1), x)
    near(total, x.double().cumsum(1), x.double().abs().cumsum(1))


@pytest.mark.parametrize("axis", [0, 1])
def test_lengths_that_a_call_says(axis):
    def program(x):
        return x.cumsum(axis), x.cummax(axis).indices

    def inputs(length):
        return torch.randn((length, 3) if axis == 0 else (3, length))

    sizes = ({axis: Dim("length", min=1)},)
    compiled = deplo.compile(program, (inputs(300),), dynamic_shapes=sizes, target="sm_90a")
    for length in (1, 15, 300, 1023, 2500):
        x = inputs(length)
        total, place = run(compiled, x)
        near(total, x.double().cumsum(axis), x.double().abs().cumsum(axis))
        assert torch.equal(place, x.cummax(axis).indices)


@pytest.mark.parametrize(
    "dtype", [torch.bfloat16, torch.float16, torch.float64, torch.int32, torch.int8, torch.bool]
)
def test_types(dtype):
    x = (torch.randn(3, 500) * 3).to(dtype)

    def program(x):
        return x.cumsum(1), x.t().cumsum(0), x.cummax(1).values

    for actual, expected in zip(on_machine(program, x), program(x), strict=True):
        torch.testing.assert_close(actual, expected)


@pytest.mark.sample(8)
@pytest.mark.parametrize("place", [0, 15, 16, 130])
@pytest.mark.parametrize("values", [(NAN, 1.0), (INF, -INF), (-INF, -INF), (3e38, 3e38)])
def test_what_is_not_finite_is_where_eager_has_it(place, values):
    x = torch.ones(2, 300)
    x[0, place], x[0, -1] = values

    def program(x):
        return x.cumsum(1), x.t().contiguous().cumsum(0), x.cumprod(1), x.cummin(1).values

    for actual, expected in zip(on_machine(program, x), program(x), strict=True):
        torch.testing.assert_close(actual, expected, equal_nan=True)


def test_what_stands_before_and_after():
    x, y = torch.rand(4, 5, 200), torch.rand(4, 5, 1)

    def program(x, y):
        total = torch.cumsum(x.abs() * 2 + 1, 2)
        reverse = x.flip(2).cumsum(2).flip(2)
        return (
            total / x.sum(2, keepdim=True),
            reverse * y.exp(),
            x.permute(2, 0, 1).cumsum(1),
            total.sum(2),
        )

    for actual, expected in zip(
        on_machine(program, x, y), program(x.double(), y.double()), strict=True
    ):
        torch.testing.assert_close(actual.double(), expected, rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "shape", [(1024, 4096), (4096, 64), (64, 4096), (3, 100_000), (100_000, 3)]
)
@pytest.mark.parametrize("axis", [0, 1])
def test_no_place_of_a_long_axis_folds_alone(shape, axis):
    compiled = deplo.compile(lambda x: x.cumsum(axis), (torch.empty(shape),), target="sm_90a")
    kernels = [op for op in compiled.stage("tile").walk() if isinstance(op, KernelOp)]
    assert not any(map(has_running_fold, kernels))


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.cumsum(1).sum(1),
        lambda x: F.pad(x, (1, 0)).cumsum(1)[:, :-1],
        lambda x: torch.cat([x, x.cumsum(1).exp()], 1),
        lambda x: x.cumsum(1) / x.sum(1, keepdim=True),
        lambda x: x.cumsum(1).softmax(1),
        lambda x: x.cumsum(0).cumsum(1).t().contiguous(),
    ],
)
def test_a_fold_is_shared_whatever_stands_around_it(program):
    x = torch.rand(40, 100)
    compiled = deplo.compile(program, (x,), target="sm_90a")
    kernels = [op for op in compiled.stage("tile").walk() if isinstance(op, KernelOp)]
    assert not any(map(has_running_fold, kernels))
    assert "tile.prefix" in compiled.ir("tile")
    torch.testing.assert_close(
        run(compiled, x)[0].double(), program(x.double()), rtol=1e-5, atol=1e-7
    )
