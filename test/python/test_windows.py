"""Convolution, pooling and the other operators of vision models compute what eager computes."""

import math

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import deplo
from deplo.analysis.cost import longest_reduction
from deplo.tools.judge import float64_reference, judge

torch.manual_seed(0)
X = torch.randn(2, 4, 7, 6)
LINE = torch.randn(2, 4, 9)
CUBE = torch.randn(1, 4, 4, 3, 5)
WITH_NAN = X.clone()
WITH_NAN[0, 0, 2, 3] = WITH_NAN[0, 0, 3, 3] = math.nan
WITH_NAN[1] = -math.inf


def check(program, *args):
    compiled = deplo.compile(program, args, target="cpu")
    with torch.no_grad():
        eager = program(*args)
    exact = float64_reference(program, args, {})
    reduction = longest_reduction(compiled.stage("loop"))
    assert judge(eager, compiled(*args), exact, reduction).problem is None


CONVOLUTIONS = {
    "plain": (X, (6, 4, 3, 3), {}),
    "grouped-dilated": (X, (6, 2, 3, 2), {"stride": 2, "padding": 1, "dilation": 2, "groups": 2}),
    "depthwise": (X, (4, 1, 3, 3), {"padding": 1, "groups": 4}),
    "1d": (LINE, (5, 4, 4), {"padding": 2}),
    "3d": (CUBE, (3, 4, 3, 2, 2), {"padding": 1, "stride": 2}),
    "half": (X.bfloat16(), (6, 4, 3, 3), {}),
}


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolution(name):
    value, shape, options = CONVOLUTIONS[name]
    weight, bias = torch.randn(shape).to(value.dtype), torch.randn(shape[0]).to(value.dtype)
    function = {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(shape)]
    check(lambda x, w, b: function(x, w, b, **options), value, weight, bias)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1, "output_padding": 1},
        {"stride": 3, "padding": 2, "dilation": 2, "groups": 2},
        {"stride": 2, "padding": 1},
        {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2},
        {"stride": (2, 1), "padding": (1, 0), "output_padding": (1, 0)},
        {"stride": 3},
        {"stride": 4, "output_padding": 1, "padding": 1},
        {"stride": 5, "output_padding": 2},
    ],
)
def test_transposed_convolution(options):
    weight = torch.randn(4, 3, 3, 3)
    check(lambda x, w: F.conv_transpose2d(x, w, **options), X, weight)


@pytest.mark.sample(6)
@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "groups"),
    [(2, 2, 0, 1), (4, 2, 1, 1), (5, 3, 1, 2), (6, 2, 2, 4), (1, 2, 0, 1), (8, 4, 3, 2)],
)
@pytest.mark.parametrize("columns", [9, 17])  # short lines are computed phase by phase
def test_phases_of_transposed_convolutions(columns, kernel, stride, padding, groups):
    value, weight = torch.randn(3, 8, 7, columns), torch.randn(8, 12, kernel, kernel)
    options = {"stride": stride, "padding": padding, "groups": groups}
    for rest in range(stride):
        check(
            lambda x, w, rest=rest: F.conv_transpose2d(x, w, output_padding=rest, **options),
            value,
            weight,
        )


def test_a_transposed_convolution_of_groups_whose_taps_lie_apart():
    """What fills the panels divides the place and the tap together by the stride."""
    x, w = torch.randn(1, 4, 14, 31), torch.randn(4, 8, 2, 2)

    def program(x, w):
        options = {"stride": [2, 3], "padding": [1, 0], "groups": 4, "dilation": [1, 2]}
        return F.conv_transpose2d(x, w, **options)

    compiled = deplo.compile(program, (x, w), target="cpu")
    torch.testing.assert_close(compiled(x, w), program(x, w))


@pytest.mark.parametrize("kernel", [1, 3, 5])
def test_what_is_not_finite_spreads_to_its_taps_alone(kernel):
    value, weight = torch.randn(1, 2, 6, 5), torch.randn(2, 3, kernel, kernel)
    value[0, 0, 2, 3], value[0, 1, 4, 1] = float("inf"), float("nan")

    def program(x, w):
        padding = kernel // 2
        return F.conv_transpose2d(x, w, stride=2, padding=padding, output_padding=1)

    result = deplo.compile(program, (value, weight), target="cpu")(value, weight)
    torch.testing.assert_close(result, program(value, weight), equal_nan=True)


def test_a_convolution_in_front_of_a_pixel_shuffle():
    value, weight = torch.randn(2, 5, 9, 21), torch.randn(18, 5, 3, 3)
    check(lambda x, w: F.pixel_shuffle(F.conv2d(x, w, padding=1), 3), value, weight)


AVERAGES = [
    {},
    {"padding": 1},
    {"padding": 1, "count_include_pad": False},
    {"stride": 2, "ceil_mode": True, "padding": 1},
    {"stride": 2, "ceil_mode": True, "padding": 1, "count_include_pad": False},
    {"divisor_override": 5},
]


@pytest.mark.parametrize("options", AVERAGES)
def test_average_pool(options):
    check(lambda x: F.avg_pool2d(x, 3, **options), X)


@pytest.mark.parametrize(
    "options",
    [{}, {"padding": 1}, {"stride": 2, "ceil_mode": True}, {"padding": 1, "dilation": 2}],
)
@pytest.mark.parametrize("value", [X, WITH_NAN])
def test_max_pool_with_positions(options, value):
    check(lambda x: F.max_pool2d(x, 3, return_indices=True, **options), value)


@pytest.mark.parametrize("size", [1, (7, 3), (3, 4)])
def test_adaptive_pool(size):
    check(lambda x: F.adaptive_avg_pool2d(x, size), X)
    check(lambda x: F.adaptive_max_pool2d(x, size, return_indices=True), X)


@pytest.mark.parametrize(
    ("pool", "shape"),
    [
        (lambda x: F.max_pool2d(x, 2, return_indices=True), (0, 3, 8, 8)),
        (lambda x: F.avg_pool1d(x, 3), (0, 3, 9)),
        (lambda x: F.avg_pool3d(x, 2), (0, 3, 4, 4, 4)),
        (lambda x: F.adaptive_avg_pool2d(x, (0, 3)), (2, 3, 8, 8)),
        (lambda x: F.adaptive_max_pool2d(x, 3), (0, 3, 8, 8)),
    ],
    ids=["max", "line", "cube", "nothing", "adaptive"],
)
def test_pooling_to_nothing(pool, shape):
    value = torch.randn(shape)
    compiled = deplo.compile(pool, (value,), target="cpu")
    torch.testing.assert_close(compiled(value), pool(value))


def test_pooling_of_lines_and_cubes():
    check(lambda x: (F.avg_pool1d(x, 3, 2, 1), F.max_pool1d(x, 3, 2, 1)), LINE)
    check(lambda x: (F.avg_pool3d(x, 2, 1, 1), F.max_pool3d(x, 2, 1, 1)), CUBE)


def test_normalization():
    norm = nn.BatchNorm2d(4).eval()
    norm.running_mean.normal_()
    norm.running_var.uniform_(0.5, 2)
    for module in (norm, nn.GroupNorm(2, 4), nn.InstanceNorm2d(4), nn.LocalResponseNorm(2)):
        check(module, X)


def test_a_small_network():
    network = nn.Sequential(
        nn.Conv2d(4, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, groups=8), nn.GELU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5),
    ).eval()  # fmt: skip
    check(network, X)


def test_what_is_refused():
    with pytest.raises(deplo.UnsupportedOpError, match="an average of i64"):
        deplo.compile(lambda x: F.avg_pool2d(x, 2), (torch.ones(1, 4, 4, dtype=torch.int64),))


LAST = {"memory_format": torch.channels_last}


@pytest.mark.parametrize(
    "program",
    [
        lambda x: x.contiguous(**LAST),
        lambda x: x.to(**LAST) * 2,
        lambda x: x.contiguous(**LAST).flatten(1) + 1,
        lambda x: x.clone(**LAST).permute(0, 2, 3, 1).reshape(2, -1),
        lambda x: torch.ones_like(x, **LAST) + x,
        lambda x: F.pixel_shuffle(x.contiguous(**LAST), 2),
        lambda x: F.interpolate(x.contiguous(**LAST), scale_factor=2),
        lambda x: F.interpolate(x.contiguous(**LAST), scale_factor=3),
        lambda x: F.relu(F.conv2d(x.contiguous(**LAST), torch.ones(4, 4, 3, 3))),
    ],
)
def test_images_may_lie_with_their_channels_last(program):
    value = torch.randn(2, 4, 6, 5)
    made = deplo.compile(program, (value,), target="cpu")
    result, wanted = made(value), program(value)
    torch.testing.assert_close(result, wanted)
    if wanted.ndim == 4 and wanted.is_contiguous(**LAST):
        assert result.is_contiguous(**LAST)


def test_such_memory_is_read_by_strides():
    def program(x):
        y = x.contiguous(**LAST)
        return y.as_strided((2, 3), (1, 2)) * 2, y[:, 1:].as_strided((2, 3), (1, 2)) + 1

    x = torch.randn(2, 4, 6, 5)
    torch.testing.assert_close(deplo.compile(program, (x,))(x), program(x), rtol=0, atol=0)


@pytest.mark.parametrize("stride", [1, 2, 3])
def test_gradients_that_a_program_asks_for(stride: int) -> None:
    def gradients(upstream, x, w, pooled, indices):
        slides = [stride] * 2, [1, 1], [1, 1]
        of_conv = torch.ops.aten.convolution_backward(
            upstream, x, w, [8], *slides, False, [0, 0], 1, [True, True, True]
        )
        of_pool = torch.ops.aten.max_pool2d_with_indices_backward(
            pooled, x, [3, 3], *slides, False, indices
        )
        return *of_conv, of_pool

    x, w = torch.randn(2, 4, 14, 15), torch.randn(8, 4, 3, 3)
    upstream = torch.randn_like(torch.conv2d(x, w, None, stride, 1))
    indices = F.max_pool2d(x, 3, stride, 1, return_indices=True)[1]
    pooled = torch.randn(indices.shape)
    inputs = upstream, x, w, pooled, indices
    program = deplo.compile(gradients, inputs, target="cpu")
    torch.testing.assert_close(program(*inputs), gradients(*inputs), rtol=1e-4, atol=1e-4)
