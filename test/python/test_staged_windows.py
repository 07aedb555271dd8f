"""Pooling and depthwise convolutions on the CPU: windows of all kinds, against PyTorch."""

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

import deplo

CASES = 60


def _made(make: random.Random) -> tuple[Callable[..., torch.Tensor], tuple[torch.Tensor, ...]]:
    """A program of windows and its inputs."""
    rank = make.choice((1, 2, 2, 2))
    kernel = [make.randint(1, 4 + 3 * (make.random() < 0.3)) for _ in range(rank)]
    stride = [make.randint(1, 3) for _ in range(rank)]
    dilation = [make.choice((1, 1, 2)) for _ in range(rank)]
    most = [(k - 1) * d + 1 for k, d in zip(kernel, dilation, strict=True)]
    extents = [make.choice((1, 2, 7, 13, 28, 33, 64)) + m - 1 for m in most]
    batch, channels = make.choice(((1, 3), (2, 5), (1, 24)))
    dtype = make.choice((torch.float32, torch.float32, torch.float64))
    x = torch.randn(batch, channels, *extents, dtype=dtype)
    if make.random() < 0.5:
        # Windows of a part of an array, or of a transposed one.
        x = make.choice((x.transpose(-1, 1).contiguous().transpose(-1, 1), x[..., 1:], x.flip(1)))
    if make.random() < 0.4:
        numbers = torch.tensor([float("nan"), float("inf"), -0.0, 1e-42, 1e30], dtype=dtype)
        x = torch.where(torch.rand(x.shape) < 0.02, numbers[torch.randint(0, 5, x.shape)], x)
    kind = make.choice(("depthwise", "depthwise", "max", "average"))
    if kind == "depthwise":
        padding = [make.randint(0, m) for m in most]
        weight = torch.randn(channels * make.choice((1, 2)), 1, *kernel, dtype=dtype)
        bias = torch.randn(len(weight), dtype=dtype)
        convolve = (F.conv1d, F.conv2d)[rank - 1]

        def convolution(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return convolve(x.relu(), w, b, stride, padding, dilation, channels)

        return convolution, (x, weight, bias)
    if kind == "max":
        padding = [k // 2 for k in kernel]
        pool = (F.max_pool1d, F.max_pool2d)[rank - 1]
        return lambda x: pool(x, kernel, stride, padding, dilation), (x,)
    average = (F.avg_pool1d, F.avg_pool2d)[rank - 1]
    padding, counted = [k // 2 for k in kernel], make.random() < 0.5
    return lambda x: average(x, kernel, stride, padding, False, counted), (x,)


@pytest.mark.parametrize("seed", range(CASES))
def test_windows_give_what_pytorch_gives(seed: int) -> None:
    torch.manual_seed(seed)
    program, inputs = _made(random.Random(seed))
    expected = program(*inputs)
    (result,) = torch.utils._pytree.tree_leaves(
        deplo.compile(program, inputs, target="cpu")(*inputs)
    )
    assert result.dtype == expected.dtype
    assert torch.equal(result.isnan(), expected.isnan())
    tolerance = 1e-5 if expected.dtype == torch.float32 else 1e-12
    torch.testing.assert_close(result, expected, rtol=tolerance, atol=tolerance, equal_nan=True)


@pytest.mark.parametrize("stride", [1, 2])
def test_what_lies_around_an_image_is_tested_once(stride: int) -> None:
    conv = torch.nn.Conv2d(8, 8, 3, stride=stride, padding=1, groups=8).eval()
    x = torch.randn(1, 8, 28, 28)
    with torch.no_grad():
        text = deplo.compile(conv, (x,), target="cpu").ir("tile")
    assert text.count("tile.pack") == 1
    assert ("phases 2" in text) == (stride == 2)
    assert text.count("loop.test") == 1


def test_the_last_block_of_an_image_has_fewer_rows() -> None:
    x, w = torch.randn(1, 4, 151, 149), torch.randn(4, 1, 3, 3)

    def convolution(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.conv2d(x, w, padding=(0, 1), groups=4)

    program = deplo.compile(convolution, (x, w), target="cpu")
    assert "tile.pack" in program.ir("tile")
    torch.testing.assert_close(program(x, w), convolution(x, w), rtol=1e-5, atol=1e-5)
