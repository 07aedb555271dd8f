"""uint8 is stored as bytes and computed in i32: everywhere what eager gives, to the bit."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from stages import assert_stages_agree

import deplo
from deplo import torch_backend
from deplo.frontend.sources import Program as Source

GENERATOR = torch.Generator().manual_seed(8)
X = torch.randint(0, 256, (13, 7), dtype=torch.uint8, generator=GENERATOR)
Y = torch.randint(1, 256, (13, 7), dtype=torch.uint8, generator=GENERATOR)
S = torch.randint(-128, 128, (13, 7), dtype=torch.int8, generator=GENERATOR)


def arithmetic(x, y, s):
    wraps = x + y, x - y, x * y, -x, ~x, x & y, x | y, x ^ y, x + 200, 255 - x, x**3, x + True
    divides = x // y, x % y, x / y, torch.fmod(x, y), x * 1.5, x.sqrt()
    return *wraps, *divides, x.abs(), x.sign(), x.clamp(3, 100), x.clamp_min(7)


def shifts(x, y, s):
    bits = y.remainder(11)
    return x >> 1, x << 1, x << 9, x >> 9, x << bits, x >> bits


def numbers(x, y, s):
    """0-d tensors are bytes before they are anything else, as Python numbers are."""
    negative, large = torch.tensor(-43), torch.tensor(300, dtype=torch.int16)
    with_each = [
        (torch.maximum(x, n), x // n, x % n, x + n, x * n, x > n, x == n, torch.where(x > y, x, n))
        for n in (negative, large)
    ]
    return *with_each[0], *with_each[1], x << torch.tensor(257), x.clamp(max=torch.tensor(300))


def comparisons(x, y, s):
    return x > y, x > 100, x <= y, x == y, x != 5, x > s, x.logical_not(), torch.maximum(x, y)


def conversions(x, y, s):
    out = (torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.int8, torch.int16)
    into = s, s.float() * 3.7, s.double() * 1e8, s.bool(), s.long() * 1000, s.half() * 2
    wide = x + s, x * s, torch.maximum(x, s)
    return *(x.to(d) for d in out), x.long(), x.bool(), *(v.to(torch.uint8) for v in into), *wide


def reductions(x, y, s):
    whole = x.sum(), x.max(), x.any(), x.float().mean(), x.argmax(), x.sum(0, dtype=torch.uint8)
    columns = x.sum(0), x.amax(0), x.prod(0), x.all(0), x.cumsum(0), x.cummax(0)[0]
    return *whole, *columns, x.amin(1), x.min(1)[0], x.argmin(1)


def layouts(x, y, s):
    made = torch.full_like(x, 255), torch.ones_like(x), torch.arange(7, dtype=torch.uint8) + x
    padded = F.pad(x, (1, 2), value=200), F.pad(x, (0, 0, 3, 1))
    joined = torch.cat([x, y]), torch.stack([x, y], 1), torch.where(x > y, x, y)
    moved = x.t().contiguous(), x.flip(0), x[2:9:3], torch.roll(x, 3, 0), x.repeat(2, 1)
    return *made, *padded, *joined, *moved, x.masked_fill(x > 50, 7)


def places(x, y, s):
    at = (y % 7).long()
    folds = [
        x.scatter_reduce(1, at, y, how, include_self=own)
        for how in ("amax", "amin", "sum", "prod")
        for own in (False, True)
    ]
    sums = x.scatter_add(0, (y % 13).long(), y), x.index_put((at[0],), y[:7], accumulate=True)
    return (
        *folds,
        *sums,
        x[:, at[0]],
        x.gather(1, at),
        F.embedding((y % 13).long(), x),
        x.scatter(1, at, y),
    )


def orders(x, y, s):
    return x.sort(1)[0], x.argsort(dim=1, stable=True), x.topk(3, 1)[0]


def images(x, y, s):
    seen = ((x.float() / 255 - 0.45) / 0.225).half()
    return seen, (torch.sigmoid(s.float()) * 255).round().clamp(0, 255).to(torch.uint8)


PROGRAMS = [
    arithmetic,
    shifts,
    numbers,
    comparisons,
    conversions,
    reductions,
    layouts,
    places,
    orders,
    images,
]


def assert_same(made, expected):
    for each, wanted in zip(made, expected, strict=True):
        assert each.dtype == wanted.dtype
        if wanted.is_floating_point():
            torch.testing.assert_close(each, wanted)
        else:
            assert torch.equal(each, wanted)


@pytest.mark.parametrize("program", PROGRAMS)
def test_it_is_eager_s(program):
    assert_same(deplo.compile(program, (X, Y, S), target="cpu")(X, Y, S), program(X, Y, S))


@pytest.mark.parametrize("target", ["cpu", "sm_90a"])
@pytest.mark.parametrize("program", [arithmetic, shifts, conversions, reductions, layouts])
def test_every_stage_agrees(program, target, capsys):
    arguments = X[:5, :3], Y[:5, :3], S[:5, :3]
    if program is layouts:
        arguments = X, Y, S
    compiled = deplo.compile(program, arguments, target=target)
    assert_stages_agree(compiled, Source(program, arguments), capsys)


def test_torch_compile_takes_images_and_gives_them_in_any_layout():
    def brighter(image):
        return (image.float() * 1.2).clamp(0, 255).to(torch.uint8)

    compiled = torch.compile(brighter, backend="deplo", fullgraph=True)
    for shape in ((1, 32, 30, 3), (2, 16, 17, 3), (3, 8, 9, 3)):
        image = torch.randint(0, 256, shape, dtype=torch.uint8).permute(0, 3, 1, 2)
        made = compiled(image)
        assert torch.equal(made, brighter(image))
        assert made.stride() == brighter(image).stride()


def test_inputs_are_changed_in_place_under_torch_compile():
    def paint(image, mask):
        image.masked_fill_(mask, 255)
        return image.sum()

    image, mask = X.clone(), X > 99
    wanted = X.masked_fill(mask, 255)
    assert torch.compile(paint, backend="deplo")(image, mask) == wanted.sum()
    assert torch.equal(image, wanted)


def test_numpy_arrays_are_bytes_too():
    program = deplo.compile(lambda x: (x // 2, x > 200), (X,), target="cpu")
    half, bright = program(X.numpy())
    assert half.dtype == np.uint8
    np.testing.assert_array_equal(half, X.numpy() // 2)
    np.testing.assert_array_equal(bright, X.numpy() > 200)


def test_another_dtype_is_refused():
    program = deplo.compile(lambda x: x + 1, (X,), target="cpu")
    with pytest.raises(deplo.UsageError, match="uint8"):
        program(S)


def mean_at_rows(x):
    return x.index_reduce(0, torch.arange(13), x, "mean")


def test_a_mean_at_indices_is_refused():
    with pytest.raises(deplo.UnsupportedOpError, match="a mean of uint8"):
        deplo.compile(mean_at_rows, (X,), target="cpu")


def test_what_is_refused_runs_in_pytorch():
    with pytest.warns(deplo.FallbackWarning, match="a mean of uint8"):
        program = deplo.compile(mean_at_rows, (X,), target="cpu", fallback="eager")
    assert torch.equal(program(X), mean_at_rows(X))


def halved(image):
    return F.interpolate(image, scale_factor=0.5, mode="bilinear") // 2


def stretched(image):
    return F.interpolate(image, size=(17, 22), mode="bicubic") + 1


@pytest.mark.parametrize("program", [halved, stretched])
def test_what_eager_computes_in_fixed_point_runs_in_pytorch(program):
    image = torch.randint(0, 256, (2, 3, 14, 22), dtype=torch.uint8)
    with pytest.warns(deplo.FallbackWarning, match=r"aten\.upsample_bi\w+2d"):
        compiled = deplo.compile(program, (image,), target="cpu", fallback="eager")
    assert torch.equal(compiled(image), program(image))
    torch.compiler.reset()
    torch_backend._warn.cache_clear()  # each thing is told once in a process
    with pytest.warns(deplo.FallbackWarning, match="a resized image of uint8"):
        assert torch.equal(torch.compile(program, backend="deplo")(image), program(image))


def test_what_eager_computes_in_fixed_point_is_refused_where_pytorch_would_take_it_apart():
    image = torch.randint(0, 256, (2, 3, 14, 22), dtype=torch.uint8)
    sizes = ({0: torch.export.Dim("batch", min=2, max=8)},)
    with pytest.raises(deplo.UnsupportedOpError, match=r"upsample_bilinear2d.*an image of uint8"):
        deplo.compile(halved, (image,), target="cpu", fallback="eager", dynamic_shapes=sizes)
