"""Convolutions whose windows lie 2 to 4 elements apart: vectors that begin or end beyond an image's line."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import deplo

WIDTHS = (5, 9, 13, 16, 27, 28, 31, 56, 97, 130, 200)
"""Of images: lines of a few vectors and of many, joined ones and others, that end within a vector or not."""


def image(width: int, dtype: torch.dtype) -> torch.Tensor:
    """Two images in the middle of memory in which all else is infinite."""
    generator = torch.Generator().manual_seed(width)
    around = torch.full((4, 3, 11, width), float("inf"), dtype=dtype)
    around[1:3] = torch.randn((2, 3, 11, width), generator=generator).to(dtype)
    return around[1:3]


@pytest.mark.sample(40)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("stride", [2, 3, 4])
@pytest.mark.parametrize("width", WIDTHS)
def test_results_are_those_of_float64(width: int, stride: int, dtype: torch.dtype) -> None:
    x = image(width, dtype)
    w = torch.randn((16, 3, 3, 5), generator=torch.Generator().manual_seed(0)).to(dtype)

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, stride=stride, padding=(1, 2))

    exact = F.conv2d(x.double(), w.double(), stride=stride, padding=(1, 2))
    ours = deplo.compile(program, (x, w), target="cpu")(x, w).double()
    products = F.conv2d(x.double().abs(), w.double().abs(), stride=stride, padding=(1, 2))
    bound = products * 45 * torch.finfo(torch.promote_types(dtype, torch.float32)).eps
    bound += exact.abs() * torch.finfo(dtype).eps
    assert bool(((ours - exact).abs() <= bound).all())


@pytest.mark.parametrize("width", [9, 28, 57, 200])
def test_a_nan_stays_in_its_windows(width: int) -> None:
    x = image(width, torch.float32).clone()
    x[0, 1, 4, width - 1] = float("nan")
    x[1, 2, 0, 0] = float("-inf")
    w = torch.ones(16, 3, 3, 3)

    def program(x: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, stride=2, padding=1)

    torch.testing.assert_close(
        deplo.compile(program, (x,), target="cpu")(x), program(x), equal_nan=True
    )


@pytest.mark.parametrize("width", [14, 29, 61])
def test_gradients_of_strided_convolutions(width: int) -> None:
    x = image(width, torch.float32).clone().requires_grad_()
    w = torch.randn(16, 3, 3, 3, generator=torch.Generator().manual_seed(1), requires_grad=True)

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, stride=2, padding=1).square().sum()

    expected = torch.autograd.grad(program(x, w), (x, w))
    found = torch.autograd.grad(torch.compile(program, backend="deplo")(x, w), (x, w))
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-3)
