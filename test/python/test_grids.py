"""`F.grid_sample`: positions computed once for all channels, and what is read outside of an image."""

from __future__ import annotations

from functools import partial
from itertools import product

import pytest
import torch
from torch.nn import functional

import deplo

WAYS = list(product(("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection"), (False, True)))


def sampler(mode: str, padding: str, corners: bool):
    call = partial(functional.grid_sample, mode=mode, padding_mode=padding, align_corners=corners)
    return pytest.param(call, id=f"{mode}-{padding}{'-corners' if corners else ''}")


all_ways = pytest.mark.parametrize("sample", [sampler(*way) for way in WAYS])
some_ways = pytest.mark.parametrize("sample", [sampler(*WAYS[i]) for i in (0, 5, 6, 9, 12, 17)])


def points(count: int, height: int, width: int) -> torch.Tensor:
    return torch.rand(count, height, width, 2) * 3 - 1.5


def agree(got: torch.Tensor, expected: torch.Tensor) -> None:
    assert got.stride() == expected.stride()
    torch.testing.assert_close(got, expected, rtol=2e-5, atol=2e-5, equal_nan=True)


@some_ways
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 1, 1, 6), (0, 2, 3, 3), (2, 0, 3, 3)], ids=str)
def test_small_images(sample, shape):
    image, grid = torch.randn(shape), points(shape[0], 4, 3)
    agree(deplo.compile(sample, (image, grid))(image, grid), sample(image, grid))


@all_ways
def test_what_is_not_finite(sample):
    """Elements and positions that are infinite or NaN, and positions far outside."""
    image = torch.randn(2, 3, 5, 7)
    image[0, 0, 0, 0], image[1, 1, 0, 0], image[1, 2, 4, 6] = torch.inf, torch.nan, -torch.inf
    grid = points(2, 6, 5)
    compiled = deplo.compile(sample, (image, grid))
    agree(compiled(image, grid), sample(image, grid))
    for start, value in enumerate((torch.nan, torch.inf, -torch.inf, 3e38, 300.0)):
        grid.view(-1)[start :: 7 + start] = value
    agree(compiled(image, grid), sample(image, grid))


@some_ways
def test_layouts_and_ties(sample):
    """Positions between two elements, of images that are not row-major."""
    line = torch.linspace(-1.25, 1.25, 41)
    grid = torch.stack(torch.meshgrid(line, line, indexing="xy"), -1)[None]
    image = torch.randn(1, 2, 6, 8)
    for each in (image, image.contiguous(memory_format=torch.channels_last), image.mT):
        agree(deplo.compile(sample, (each, grid))(each, grid), sample(each, grid))


@some_ways
def test_dynamic_sizes(sample):
    compiled = torch.compile(sample, backend="deplo", dynamic=True)
    for size in (4, 9, 12):
        image, grid = torch.randn(2, 3, size + 1, size), points(2, size, size + 2)
        agree(compiled(image, grid), sample(image, grid))


@some_ways
def test_gradients(sample):
    image, grid = torch.randn(2, 3, 5, 6, requires_grad=True), points(2, 4, 4).requires_grad_()
    compiled = torch.compile(sample, backend="deplo")
    weight = torch.randn(2, 3, 4, 4)
    found, expected = (
        torch.autograd.grad((each(image, grid) * weight).sum(), (image, grid)) for each in (compiled, sample)
    )
    for got, want in zip(found, expected, strict=True):
        torch.testing.assert_close(got, want, rtol=1e-4, atol=1e-4)


@some_ways
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_halves_round_once(sample, dtype):
    """The positions are computed in f32; eager rounds them to halves and reads other elements."""
    image, grid = torch.randn(2, 3, 8, 8, dtype=dtype), points(2, 5, 5).to(dtype)
    found = deplo.compile(sample, (image, grid))(image, grid)
    expected = sample(image.float(), grid.float()).to(dtype)
    torch.testing.assert_close(found, expected)


def test_channels_share_positions():
    """No kernel computes a position for each channel: `floor` has as many elements as there are points."""
    program = deplo.compile(functional.grid_sample, (torch.randn(2, 64, 5, 7), points(2, 4, 3)))
    shapes = [line for line in program.ir("tensor").splitlines() if "floor" in line and "elementwise" in line]
    assert shapes
    assert not any("64x" in line for line in shapes)
