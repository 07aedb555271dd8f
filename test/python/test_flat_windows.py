"""Convolutions on a GPU are products of matrices: random ones, under several schedules, and their edges."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch
from layers import assert_kernels_fit
from torch import Tensor
from torch.nn import functional as F

import deplo
from deplo import interpreter
from deplo.analysis.tilings import MIN_PRODUCT
from deplo.dialects import kernel
from deplo.passes.decisions import recording

CONVOLUTIONS: dict[tuple[int, bool], Any] = {
    (1, False): F.conv1d,
    (2, False): F.conv2d,
    (3, False): F.conv3d,
    (1, True): F.conv_transpose1d,
    (2, True): F.conv_transpose2d,
    (3, True): F.conv_transpose3d,
}
SCHEDULES = ("", "mma=1", "mma=1,BK=16", "mma=1,SK=3", "SK=2", "mma=1,stages=1", "mma=1,BK=32,SK=9")
ERRORS = {torch.float32: 3e-6, torch.float16: 1e-3, torch.bfloat16: 6e-3}
"""Of all results, relative, by the type of the inputs."""


def executed(program: Any, inputs: list[Tensor]) -> tuple[np.ndarray, bool, bool]:
    """What a program computes in its CUDA form, if windows are flattened, and if tensor cores multiply."""
    with recording() as decisions, torch.backends.cudnn.flags(enabled=True, allow_tf32=False):
        module = deplo.compile(program, inputs, target="sm_90a").stage("cuda")
    arrays = [(x.float() if x.dtype == torch.bfloat16 else x).contiguous().numpy() for x in inputs]
    (got,) = interpreter.execute(module, arrays)
    flat = any(d.fired for d in decisions if d.pass_name == "flatten-windows")
    return got, flat, any(isinstance(op, kernel.MmaOp) for op in module.walk())


@pytest.mark.sample(10)
@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
    rank, transposed = rng.choice([1, 2, 2, 2, 3]), rng.random() < 0.2
    channels, rows = rng.choice([3, 16, 20, 32, 48, 64]), rng.choice([16, 20, 32, 40])
    most = 5 if rank < 3 else 3
    kernel = [rng.randint(2, most), *(rng.randint(1, most) for _ in range(rank - 1))]
    slides = {
        "stride": [rng.choice([1, 1, 2, 3]) for _ in kernel],
        "dilation": [rng.choice([1, 1, 2]) for _ in kernel],
        "padding": [rng.choice([0, 1, 2]) for _ in kernel],
    }
    # Lines of 7, 8 and 14 results are joined, those of odd lengths are not.
    sizes = [
        {1: 40, 2: 5, 3: 5}[rank] + rng.choice([4, 5, 9, 10, 14] if rank < 3 else [4, 6])
        for _ in kernel
    ]
    relu = rng.random() < 0.5
    monkeypatch.setenv("DEPLO_SCHEDULE", rng.choice(SCHEDULES))
    convolve = CONVOLUTIONS[rank, transposed]

    def program(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        y = convolve(x, w, b, **slides)
        return y.relu() if relu else y

    weights = (channels, rows, *kernel) if transposed else (rows, channels, *kernel)
    shapes = [(rng.choice([1, 2]), channels, *sizes), weights, (rows,)]
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    got, flat, _ = executed(program, inputs)
    expected = program(*(x.double() for x in inputs)).numpy()
    assert got.shape == expected.shape
    assert np.linalg.norm(got - expected) <= ERRORS[dtype] * np.linalg.norm(expected)
    # The phases of a transposed convolution may have one place each: those are products as they are.
    products = inputs[1].numel() * expected[:, 0].size
    assert flat or transposed or products < MIN_PRODUCT


@pytest.mark.sample(12)
@pytest.mark.parametrize("seed", range(24))
def test_random_convolutions_of_few_channels(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, generator = random.Random(seed), torch.Generator().manual_seed(seed)
    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
    channels, rows = rng.choice([1, 2, 3, 4, 5, 8]), rng.choice([16, 20, 32, 40])
    kernel = [rng.randint(1, 7), rng.randint(2, 7)]
    slides = {
        "stride": [rng.choice([1, 2, 3]), rng.choice([1, 2, 3, 4])],
        "dilation": [rng.choice([1, 1, 2]), rng.choice([1, 1, 2, 3])],
        "padding": [rng.choice([0, 1, 3]), rng.choice([0, 1, 2, 3, 5])],
    }
    sizes = [rng.choice([13, 16, 20]), rng.choice([21, 24, 32, 37])]
    monkeypatch.setenv("DEPLO_SCHEDULE", rng.choice(SCHEDULES))
    flipped, first = rng.random() < 0.2, rng.random() < 0.2

    def program(x: Tensor, w: Tensor) -> Tensor:
        w = w.flip(-1) if flipped else w
        return F.conv2d(x[:, :channels] if first else x, w, **slides)

    read = channels + 1 if first else channels
    shapes = [(2, read, *sizes), (rows, channels, *kernel)]
    inputs = [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]
    got, _, _ = executed(program, inputs)
    expected = program(*(x.double() for x in inputs)).numpy()
    assert np.linalg.norm(got - expected) <= ERRORS[dtype] * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize(("kernel", "padding", "stride"), [(3, 1, 1), (5, 1, 2), (7, 3, 2)])
def test_no_window_has_the_columns_of_the_next_one(
    kernel: int,
    padding: int,
    stride: int,
    value: float,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Tensor cores multiply 4 or 8 columns of windows that have 3, 5 or 7."""
    monkeypatch.setenv("DEPLO_SCHEDULE", "mma=1")
    x, w = torch.ones(1, 3, 20, 32), torch.ones(32, 3, kernel, kernel)
    x[0, 1, 7, 11] = value
    inputs = [x.to(dtype), w.to(dtype)]
    got, flat, matrices = executed(lambda x, w: F.conv2d(x, w, None, stride, padding), inputs)
    assert (flat, matrices) == (True, dtype == torch.float16)
    expected = F.conv2d(x.double(), w.double(), None, stride, padding).numpy()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.sample(8)
@pytest.mark.parametrize("shape", [(1, 2), (3, 7), (7, 7), (1, 8), (5, 5)])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_windows_of_few_channels_are_staged_for_tensor_cores(
    shape: tuple[int, int], channels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLO_SCHEDULE", "mma=1")
    inputs = [torch.ones(2, channels, 24, 64).half(), torch.ones(64, channels, *shape).half()]
    got, flat, matrices = executed(lambda x, w: F.conv2d(x, w, stride=2), inputs)
    assert np.all(got == channels * shape[0] * shape[1])
    # One row of one channel is no sum over windows: it is a contraction as it is.
    assert flat == matrices == (channels > 1 or shape[0] > 1)


@pytest.mark.parametrize("batch", [1, 8])
def test_an_image_gets_its_channels_last_where_that_pays(batch: int) -> None:
    """A copy takes longer than the products of a small image."""
    inputs = [torch.empty(batch, 64, 14 * batch, 14).half(), torch.empty(64, 64, 3, 3).half()]

    def program(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(x, w, padding=1)

    with recording() as decisions:
        deplo.compile(program, inputs, target="sm_90a").stage("tile")
    told = {d.reason for d in decisions if d.pass_name == "flatten-windows" and d.fired}
    assert ["copy" in reason for reason in told] == [batch > 1]


@pytest.mark.parametrize(
    ("size", "kernel", "stride"),
    [(7, 3, 1), (14, 3, 1), (14, 3, 2), (8, 1, 1), (28, 1, 2), (30, 7, 4)],
)
def test_blocks_have_whole_lines_of_small_images(size: int, kernel: int, stride: int) -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(x, w, padding=kernel // 2, stride=stride)

    generator = torch.Generator().manual_seed(0)
    shapes = [(2, 32, size, size), (32, 32, kernel, kernel)]
    inputs = [torch.randn(shape, generator=generator).half() for shape in shapes]
    with recording() as decisions:
        got, _, matrices = executed(program, inputs)
        deplo.compile(program, inputs, target="sm_90a").stage("tile")
    assert any(d.fired for d in decisions if d.pass_name == "join-lines")
    assert matrices
    expected = program(*(x.double() for x in inputs)).numpy()
    assert np.linalg.norm(got - expected) <= ERRORS[torch.float16] * np.linalg.norm(expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_tensor_cores_multiply_what_is_short(dtype: torch.dtype) -> None:
    inputs = [torch.ones(1, 64, 12, 40), torch.ones(64, 64, 3, 3)]
    inputs = [x.to(dtype) for x in inputs]
    got, flat, matrices = executed(lambda x, w: F.conv2d(x, w, padding=1), inputs)
    assert (flat, matrices) == (True, dtype != torch.float32)
    assert (got[0, 5, 6, 7], got[0, 0, 0, 0]) == (576, 256)


def test_what_is_converted_on_the_way_is_staged_as_it_lies() -> None:
    """As automatic mixed precision does."""

    def program(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(x.half(), w.half(), padding=1)

    inputs = [torch.randn(1, 64, 12, 40), torch.randn(64, 64, 3, 3)]
    got, flat, matrices = executed(program, inputs)
    assert (flat, matrices) == (True, True)
    expected = program(*inputs).double().numpy()
    np.testing.assert_allclose(got, expected, atol=2**-9 * np.abs(expected).max())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_around_an_image_is_zero_and_what_is_in_it_is_not(value: float) -> None:
    """Nothing that a window does not read reaches its sum, past the end of K neither."""
    x, w = torch.ones(1, 16, 9, 19), torch.ones(16, 16, 3, 3)
    x[0, 3, 8, 18] = value
    w[:, :, 1, 1] = 0
    got, flat, _ = executed(lambda x, w: F.conv2d(x, w, padding=1), [x, w])
    assert flat
    expected = F.conv2d(x.double(), w.double(), padding=1).numpy()
    np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("image", "weight", "stride"),
    [
        ((32, 3, 224, 224), (64, 3, 7, 7), 2),  # the first layer of a ResNet
        ((32, 256, 14, 14), (256, 256, 3, 3), 1),
        ((2, 320, 64, 64), (320, 320, 3, 3), 1),  # of Stable Diffusion
    ],
)
def test_convolutions_of_published_models_fit(
    image: tuple[int, ...], weight: tuple[int, ...], stride: int, dtype: torch.dtype
) -> None:
    def program(x: Tensor, w: Tensor) -> Tensor:
        return F.conv2d(x, w, padding=weight[2] // 2, stride=stride)

    inputs = [torch.empty(shape, dtype=dtype) for shape in (image, weight)]
    with torch.backends.cudnn.flags(enabled=True, allow_tf32=True):
        compiled = deplo.compile(program, inputs, target="sm_90a")
    assert any("mma.sync" in kernel.source for kernel in compiled.kernels)
    assert_kernels_fit(compiled)
