"""Folds that are asked for a type: the input is rounded to it first, as in eager."""

from collections.abc import Callable

import pytest
import torch
from torch.export import Dim

import deplo

FOLDS: tuple[Callable, ...] = (
    lambda x, dtype: x.sum(dtype=dtype),
    lambda x, dtype: x.sum(1, keepdim=True, dtype=dtype),
    lambda x, dtype: x.sum((0, 1), dtype=dtype),
    lambda x, dtype: x.nansum(0, dtype=dtype),
    lambda x, dtype: x.prod(dtype=dtype),
    lambda x, dtype: x.prod(0, dtype=dtype),
)
MEANS: tuple[Callable, ...] = (
    lambda x, dtype: x.mean(dtype=dtype),
    lambda x, dtype: x.mean(1, dtype=dtype),
    lambda x, dtype: x.cumsum(1, dtype=dtype),
    lambda x, dtype: x.cumprod(1, dtype=dtype),
)
"""Means, which eager has in floats only, and running folds, which it has not in bools."""

CASES = (
    ((70000.0, -70000.0, 5.0), torch.float32, torch.float16),
    ((70000.0, -70000.0, 5.0), torch.float64, torch.float16),
    ((70000, -70000, 5), torch.int64, torch.float16),
    ((2049.0, 2051.0, 1.0), torch.float16, torch.bfloat16),
    ((1e39, -1e39, 3.0), torch.float64, torch.bfloat16),
    ((1e300, -1e300, 2.0), torch.float64, torch.float32),
    ((2**24 + 1, -(2**24), 1), torch.int64, torch.bfloat16),
    ((2**24 + 1, -(2**24), 1), torch.int32, torch.float32),
    ((2**24 + 1, 1, -1), torch.int64, torch.float64),
    ((257, 258, 1), torch.int16, torch.bfloat16),
    ((200, 100, 255), torch.uint8, torch.float16),
    ((-128, 127, 3), torch.int8, torch.float32),
    ((True, False, True), torch.bool, torch.float32),
    ((True, True, True), torch.bool, torch.float16),
    ((60000.0, 60000.0, 2.0), torch.float16, torch.float32),
    ((1e38, 3e38, 2.0), torch.bfloat16, torch.float64),
    ((2.5, -2.5, 0.5), torch.float32, torch.bool),
    ((256, 256, 0), torch.int64, torch.bool),
    ((0, 0, 0), torch.int32, torch.bool),
    ((True, False, True), torch.bool, torch.bool),
    ((256, 257, 3), torch.int64, torch.uint8),
    ((0.5, -1.5, 7.5), torch.float64, torch.int64),
    ((100, 100, 100), torch.int8, torch.int8),
    ((True, True, True), torch.bool, torch.int32),
)
"""What the input is made of, its type and that of the result."""


def _static(program: Callable, x: torch.Tensor) -> Callable:
    return deplo.compile(program, (x,), target="cpu")


def _dynamic(program: Callable, x: torch.Tensor) -> Callable:
    sizes = ({0: Dim("rows", min=2), 1: Dim("columns", min=2)},)
    return deplo.compile(program, (x,), target="cpu", dynamic_shapes=sizes)


def _backend(program: Callable, x: torch.Tensor) -> Callable:
    return torch.compile(program, backend="deplo")


@pytest.mark.parametrize("entry", [_static, _dynamic, _backend])
@pytest.mark.parametrize(("values", "given", "asked"), CASES)
@pytest.mark.sample(10)
def test_the_input_has_the_type_of_the_result_first(entry, values, given, asked):
    folds = FOLDS if asked == torch.bool or not asked.is_floating_point else FOLDS + MEANS
    x = torch.tensor(values).to(given)
    x = torch.stack([x, x.flip(0)])
    found = entry(lambda x: tuple(fold(x, asked) for fold in folds), x)(x)
    torch.testing.assert_close(found, tuple(fold(x, asked) for fold in folds), equal_nan=True)
