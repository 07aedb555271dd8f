"""Borders, enlarged images and windows as columns: bit for bit what PyTorch computes, in few kernels."""

import pytest
import torch
import torch.nn.functional as F

import deplo

LINE, IMAGE, CUBE = torch.randn(2, 3, 9), torch.randn(2, 3, 7, 10), torch.randn(1, 2, 4, 5, 6)


def compiled(program, *args):
    """A program that computes exactly what PyTorch does."""
    made = deplo.compile(program, args, target="cpu")
    assert torch.equal(made(*args), program(*args))
    return made


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("value", "padding"),
    [
        (LINE, (2, 3)),
        (LINE, (8, 0)),
        (IMAGE, (1, 2, 3, 0)),
        (IMAGE, (0, 0, 1, 1)),
        (IMAGE[0], (4, 4)),
        (CUBE, (1, 2, 2, 1, 3, 1)),
        (LINE, (0, 0)),
    ],
)
def test_borders(mode, value, padding) -> None:
    made = compiled(lambda x: F.pad(x, padding, mode=mode), value)
    assert len(made.kernels) <= 1


def test_borders_of_integers_and_what_is_no_number() -> None:
    value = torch.arange(12).reshape(1, 3, 4)
    compiled(lambda x: F.pad(x, (2, 1), mode="reflect"), value)
    strange = torch.tensor([[[float("nan"), -0.0, float("inf"), 1e-40]]])
    made = deplo.compile(lambda x: F.pad(x, (3, 2), mode="reflect"), (strange,), target="cpu")
    wanted = F.pad(strange, (3, 2), mode="reflect")
    assert torch.equal(made(strange).view(torch.int32), wanted.view(torch.int32))


@pytest.mark.parametrize("mode", ["reflect", "replicate", "circular"])
@pytest.mark.parametrize(
    ("value", "padding"), [(LINE, (-1, 2)), (IMAGE, (2, -1, -1, 1)), (CUBE, (0, 0, -1, -1, 1, -1))]
)
def test_a_border_that_takes_away(mode, value, padding) -> None:
    compiled(lambda x: F.pad(x, padding, mode=mode), value)


@pytest.mark.parametrize("factor", [1, 2, 4, 3, 1.5, 0.5, (2, 4), (1, 2), (2, 3)])
def test_enlarged_by_a_scale(factor) -> None:
    compiled(lambda x: F.interpolate(x, scale_factor=factor), IMAGE)


@pytest.mark.parametrize("size", [(14, 20), (28, 10), (15, 20), (7, 10), (3, 5)])
def test_enlarged_to_a_size(size) -> None:
    compiled(lambda x: F.interpolate(x, size=size), IMAGE)


def test_enlarged_along_one_axis_and_three() -> None:
    compiled(lambda x: F.interpolate(x, scale_factor=2), LINE)
    compiled(lambda x: F.interpolate(x, scale_factor=2), CUBE)
    made = compiled(lambda x: torch.nn.Upsample(scale_factor=2)(x) + 1, IMAGE)
    assert len(made.kernels) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"kernel_size": 3},
        {"kernel_size": (3, 2), "stride": (2, 1), "padding": (1, 2)},
        {"kernel_size": 2, "dilation": 3},
        {"kernel_size": (7, 10)},
    ],
)
def test_windows_as_columns(options) -> None:
    compiled(lambda x: F.unfold(x, **options), IMAGE)


def test_sizes_that_change() -> None:
    def program(x):
        return F.pad(F.interpolate(x, scale_factor=2), (1, 1, 1, 1), mode="reflect")

    size = torch.export.Dim("size", min=4, max=64)
    made = deplo.compile(program, (IMAGE,), target="cpu", dynamic_shapes=({2: size},))
    for rows in (7, 4, 30):
        value = torch.randn(2, 3, rows, 10)
        assert torch.equal(made(value), program(value))


def test_what_is_put_together_is_copied_once_for_windows() -> None:
    weight = torch.randn(4, 3, 3, 3)
    for program in (
        lambda x, w: F.conv2d(F.pad(x, (1, 1, 1, 1), mode="reflect"), w),
        lambda x, w: F.conv2d(F.interpolate(x, scale_factor=2), w, padding=1),
        lambda x, w: F.conv2d(torch.cat([x[:, :1], x[:, 1:] * 1.0], 1), w),
    ):
        made = deplo.compile(program, (IMAGE, weight), target="cpu")
        torch.testing.assert_close(made(IMAGE, weight), program(IMAGE, weight))
        assert len(made.kernels) == 2


@pytest.mark.parametrize("mode", ["replicate", "reflect"])
def test_borders_of_images_with_channels_last_have_them_last(mode):
    image = torch.randn(1, 3, 15, 17).to(memory_format=torch.channels_last)
    wide = torch.compile(lambda x: F.pad(x, (1, 1, 2, 2), mode=mode), backend="deplo")(image)
    expected = F.pad(image, (1, 1, 2, 2), mode=mode)
    assert torch.equal(wide, expected)
    assert wide.stride() == expected.stride()
