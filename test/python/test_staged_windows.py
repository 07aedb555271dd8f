"""Pooling and depthwise convolutions on the CPU: windows of all kinds, against PyTorch."""

import random
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch.export import Dim

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


@pytest.mark.sample(30)
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


DYNAMIC: dict[str, Callable[[torch.Tensor, torch.Tensor, int, int], torch.Tensor]] = {
    "depthwise": lambda x, w, stride, padding: F.conv2d(x, w, None, stride, padding, groups=3),
    "max": lambda x, w, stride, padding: F.max_pool2d(x, w.shape[2:], stride, min(padding, 1)),
    "average": lambda x, w, stride, padding: F.avg_pool2d(x, w.shape[2:], stride, min(padding, 1)),
}


@pytest.mark.sample(5)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    ("kernel", "stride", "padding"), [(3, 1, 1), (3, 2, 1), (2, 2, 0), (5, 1, 4)]
)
@pytest.mark.parametrize("kind", DYNAMIC)
def test_windows_over_images_of_dynamic_sizes(
    kind: str, kernel: int, stride: int, padding: int, dtype: torch.dtype
) -> None:
    def windows(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return DYNAMIC[kind](x, w, stride, padding)

    torch.manual_seed(0)
    least = max(kernel + stride - 2 * min(padding, 1), 2)
    w = torch.randn(3, 1, kernel, kernel, dtype=dtype)
    axes = {0: Dim("batch", min=1), 2: Dim("rows", min=least), 3: Dim("columns", min=least)}
    inputs = torch.randn(2, 3, 56, 56, dtype=dtype), w
    program = deplo.compile(windows, inputs, target="cpu", dynamic_shapes=(axes, {}))
    if stride < kernel:
        assert "tile.pack" in program.ir("tile")
    sizes = (least, least + 1, 13, 31, 33, 65, 131)
    for number, rows in enumerate(sizes):
        batch, columns = 1 + number % 3, sizes[number - 2]
        x = torch.randn(batch, 3, rows, columns, dtype=dtype)
        tolerance = 1e-5 if dtype == torch.float32 else 1e-12
        torch.testing.assert_close(program(x, w), windows(x, w), rtol=tolerance, atol=tolerance)


_WEIGHT, _OTHERS = torch.randn(3, 1, 3, 3), torch.randn(4, 3, 3, 3)

BORDERS = {
    "a border of 0 around negative values": lambda x: F.max_pool2d(
        F.pad(-x.abs(), (1,) * 4), 3, 1, 1
    ),
    "a border of 2": lambda x: F.avg_pool2d(F.pad(x, (1,) * 4, value=2.0), 3, 1, 1),
    "a border on one side": lambda x: F.max_pool2d(F.pad(-x.abs(), (0, 1, 0, 1)), 3, 2, 1),
    "a border around a border": lambda x: F.max_pool2d(
        F.pad(F.pad(x, (1,) * 4), (1,) * 4, value=-1.0), 3, 1
    ),
    "a depthwise convolution": lambda x: F.conv2d(
        F.pad(x, (1,) * 4, value=1.0), _WEIGHT, padding=1, groups=3
    ),
    "a convolution": lambda x: F.conv2d(F.pad(x, (1,) * 4, value=2.0), _OTHERS, padding=1),
    "views of a border": lambda x: (
        F.pad(F.pad(x, (1, 0), value=1.0), (2, 0)).unfold(3, 3, 1).prod(-1)
    ),
    "a transposed line": lambda x: F.max_pool1d(F.pad(x[0, 0], (2, 1), value=0.5).mT, 3, 1, 1),
    "a lower triangle": lambda x: F.max_pool2d(x.tril(), 3, 1, 1),
    "two halves": lambda x: F.max_pool2d(torch.cat([x, -x], 3), 3, 1, 1),
}


@pytest.mark.parametrize("shape", [(1, 3, 16, 16), (2, 3, 9, 33)])
@pytest.mark.parametrize("name", BORDERS)
def test_a_window_over_the_border_of_a_border(name: str, shape: tuple[int, ...]) -> None:
    """What is around an image is not what is around that."""
    x = torch.randn(shape)
    program = deplo.compile(BORDERS[name], (x,), target="cpu")
    torch.testing.assert_close(program(x), BORDERS[name](x), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_windows_of_channels_that_come_last(dtype: torch.dtype, batch: int) -> None:
    """Pixels are one axis, and channels the last one, as between the linear layers of a transformer."""
    x, w = (torch.randint(-2, 3, s).to(dtype) for s in ((batch, 12 * 15, 20), (20, 1, 3, 3)))

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        image = x.mT.reshape(batch, 20, 12, 15)
        return F.conv2d(image, w, padding=1, groups=20).flatten(2).mT.relu()

    compiled = deplo.compile(program, (x, w), target="cpu")
    fired = {d["pass"] for d in compiled.report()["decisions"] if d["fired"]}
    assert {"order-windows", "stage-windows"} <= fired
    assert torch.equal(compiled(x, w), program(x.float(), w.float()).to(dtype))


def _with_channels_last(
    make: random.Random,
) -> tuple[Callable[..., torch.Tensor], list[torch.Tensor]]:
    """A program of windows over an image with channels last, as its result has them, and its inputs."""
    batch, channels = make.randint(1, 3), make.choice((8, 16, 24, 32, 40, 96))
    lines, columns = (make.choice((1, 2, 3, 7, 12, 17)) for _ in range(2))
    kernel, stride = make.choice((1, 2, 3, 3, 3, 4, 5, 7)), make.choice((1, 1, 1, 2, 3))
    dilation = make.choice((1, 1, 2))
    least = (kernel - 1) * dilation + 1
    padding = max(make.randint(0, kernel // 2), (least - min(lines, columns) + 1) // 2)
    x = torch.randn(batch, lines * columns, channels)
    numbers = torch.tensor([float("nan"), float("inf"), -0.0, 1e-42, 1e30])
    if make.random() < 0.4:
        x = torch.where(torch.rand(x.shape) < 0.02, numbers[torch.randint(0, 5, x.shape)], x)
    kind = make.choice(("depthwise", "depthwise", "max", "average"))

    def image(x: torch.Tensor) -> torch.Tensor:
        return x.relu().mT.reshape(batch, channels, lines, columns)

    if kind == "depthwise":
        weight, bias = torch.randn(channels, 1, kernel, kernel), torch.randn(channels)

        def convolution(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            y = F.conv2d(image(x), w, b, stride, padding, dilation, channels)
            return F.gelu(y).permute(0, 2, 3, 1)

        return convolution, [x, weight, bias]
    padding = min(padding, kernel // 2)
    if kind == "max" and min(lines, columns) + 2 * padding >= least:
        return lambda x: F.max_pool2d(image(x), kernel, stride, padding, dilation).flatten(2).mT, [
            x
        ]
    kernel = min(kernel, lines, columns)
    padding = min(padding, kernel // 2)
    return lambda x: F.avg_pool2d(image(x), kernel, stride, padding).permute(0, 2, 3, 1) * 2, [x]


@pytest.mark.sample(15)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("seed", range(CASES // 2))
def test_strips_of_channels_give_what_pytorch_gives(seed: int, dtype: torch.dtype) -> None:
    torch.manual_seed(seed)
    program, made = _with_channels_last(random.Random(seed))
    inputs = [value.to(dtype) for value in made]
    # PyTorch's gelu of f32 has NaN for infinity, that of f64 infinity.
    expected = program(*(value.double() for value in inputs)).float()
    result = deplo.compile(program, inputs, target="cpu")(*inputs)
    assert result.dtype == dtype
    error = 1e-4 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(result.float(), expected, rtol=error, atol=error, equal_nan=True)


@pytest.mark.parametrize("kernel", [3, 7])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_channels_that_come_last_are_vectors(dtype: torch.dtype, kernel: int) -> None:
    x, w = (torch.randint(-2, 3, s).to(dtype) for s in ((2, 9, 9, 32), (32, 1, kernel, kernel)))

    def program(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        y = F.conv2d(x.permute(0, 3, 1, 2), w, padding=kernel // 2, groups=32)
        return y.permute(0, 2, 3, 1).relu()

    compiled = deplo.compile(program, (x, w), target="cpu")
    fired = {d["pass"] for d in compiled.report()["decisions"] if d["fired"]}
    assert {"transpose-weights", "strip-channels", "unroll-windows"} <= fired
    assert torch.equal(compiled(x, w), program(x.float(), w.float()).to(dtype))


ROWS_AROUND = {
    "groups, channels last": (6, 2, 2, (1, 5), (2, 0), 1, (16, 9)),
    "depthwise": (33, 33, 33, (1, 5), (1, 0), 1, (16, 21)),
    "dilated": (16, 1, 1, (1, 5), (2, 0), 2, (10, 28)),
    "transposed and depthwise": (16, 16, 16, (5, 1), (0, 0), 1, (9, 16)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name", ROWS_AROUND)
def test_rows_around_an_image_that_are_whole(name: str, dtype: torch.dtype) -> None:
    """A row of windows is inside or not, whatever its columns: then nothing of it is read."""
    channels, results, groups, kernel, padding, dilation, extents = ROWS_AROUND[name]
    x = torch.randn(2, channels, *extents).to(dtype)
    if "last" in name:
        x = x.contiguous(memory_format=torch.channels_last)
    w = torch.randn(results, channels // groups, *kernel).to(dtype)
    scale, shift = torch.rand(results).to(dtype) + 0.5, torch.randn(results).to(dtype)

    def program(x, w, scale, shift):
        x = x.relu()
        if "transposed" in name:
            y = F.conv_transpose2d(x, w, shift, padding=padding, groups=groups)
        else:
            y = F.conv2d(x, w, None, 1, padding, dilation, groups)
        return F.batch_norm(y, shift * 0, scale, scale, shift).relu()

    inputs = x, w, scale, shift
    result = deplo.compile(program, inputs, target="cpu")(*inputs)
    exact = program(*(each.double() for each in inputs))
    error = (result.double() - exact).norm() / exact.norm()
    assert error < (1e-6 if dtype == torch.float32 else 1e-2)


@pytest.mark.sample(6)
@pytest.mark.parametrize("activation", [F.gelu, torch.sin, torch.tanh, F.hardswish])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("kernel", "size"), [(3, 8), (5, 7), (5, 8), (7, 7), (9, 14)])
def test_functions_of_windows_in_tiles(
    kernel: int, size: int, dtype: torch.dtype, activation: Callable[..., torch.Tensor]
) -> None:
    """A loop of vectors stands beside loops that get vectors, with functions of the sums and of a vector."""
    factors, scale = torch.randn(24, 1, kernel, kernel), torch.rand(24, 1, 1) + 1

    def program(image: torch.Tensor) -> torch.Tensor:
        sums = F.conv2d(image, factors.to(dtype), padding=kernel // 2, groups=24)
        return activation(sums) * scale.to(dtype).rsqrt()

    image = torch.randn(1, 24, size, size, dtype=dtype)
    compiled = deplo.compile(program, (image,), target="cpu")
    tolerance = {"rtol": 1e-5, "atol": 1e-5} if dtype == torch.float32 else {}
    torch.testing.assert_close(compiled(image), program(image), **tolerance)
