"""Scatters and sorts that the CPU does in order, in kernels of their own, against PyTorch."""

import pytest
import torch

import deplo

NAN, INF = float("nan"), float("inf")
FLOATS = [torch.float32, torch.float64, torch.float16, torch.bfloat16]
INTEGERS = [torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8]


def in_order(program, *args, dynamic_shapes=None):
    """The program, compiled; asserts that a scatter or a sort has stayed whole."""
    made = deplo.compile(program, args, target="cpu", dynamic_shapes=dynamic_shapes)
    assert any(
        f"tensor_ir.{each}" in made.ir("tile") for each in ("scatter", "sort", "nth_element")
    )
    return made


def values(shape, dtype, seed=0):
    """Random values, many of them equal or special."""
    generator = torch.Generator().manual_seed(seed)
    if not dtype.is_floating_point:
        low, high = torch.iinfo(dtype).min, torch.iinfo(dtype).max
        wide = torch.randint(low, high, shape, dtype=torch.int64, generator=generator)
        few = torch.randint(0, 5, shape, generator=generator)
        return torch.where(few < 2, few, wide).to(dtype)
    x = torch.randn(shape, generator=generator)
    special = torch.tensor([NAN, INF, -INF, 0.0, -0.0, 1.0, 1e-40, 3e38])
    which = torch.randint(0, 40, shape, generator=generator)
    return torch.where(which < 8, special[which.clamp(max=7)], x).to(dtype)


def same_bits(actual, expected):
    """Equal, with the signs of zeros; those of NaN mean nothing."""
    assert actual.dtype == expected.dtype
    torch.testing.assert_close(actual, expected, rtol=0, atol=0, equal_nan=True)
    if actual.is_floating_point():
        number = ~expected.isnan()
        assert torch.equal(torch.signbit(actual)[number], torch.signbit(expected)[number])


# --------------------------------------------------------------------------- sorts


@pytest.mark.sample(30)
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
@pytest.mark.parametrize(("shape", "dim"), [((100, 40), 1), ((2, 129, 3), 1), ((1000, 2), 0)])
def test_sorts(shape, dim, dtype, descending):
    def program(x):
        return torch.sort(x, dim=dim, descending=descending, stable=True)

    x = values(shape, torch.int8).bool() if dtype is torch.bool else values(shape, dtype)
    actual, expected = in_order(program, x)(x), program(x)
    same_bits(actual[0], expected[0])
    assert torch.equal(actual[1], expected[1])


@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int32])
@pytest.mark.parametrize("k", [1, 7, 50, 300])
def test_the_first_few(k, dtype, largest):
    x = values((2, 1234), dtype)
    made = in_order(lambda x: torch.topk(x, k, largest=largest), x)
    up = x.sort(-1)[0]
    for rows in (x, up, up.flip(-1), torch.ones_like(x)):
        # Of equal elements the first come first, which PyTorch leaves open.
        actual, expected = made(rows), torch.sort(rows, dim=-1, descending=largest, stable=True)
        same_bits(actual[0], expected[0][:, :k])
        assert torch.equal(actual[1], expected[1][:, :k])


def test_a_row_longer_than_comparisons_could_be():
    x = values((300_000,), torch.float32)
    actual = in_order(lambda x: torch.sort(x, stable=True), x)(x)
    expected = torch.sort(x, stable=True)
    same_bits(actual[0], expected[0])
    assert torch.equal(actual[1], expected[1])


def test_places_of_an_order():
    def program(x):
        return x.kthvalue(30, 1)[0], x.median(1)[0], torch.quantile(x, 0.3, 1)

    x = torch.randn(5, 777)
    for actual, expected in zip(in_order(program, x)(x), program(x), strict=True):
        torch.testing.assert_close(actual, expected)


def test_what_is_sorted_is_computed_before_and_read_after():
    def program(x):
        probabilities, order = torch.sort(x.softmax(-1), dim=-1, descending=True, stable=True)
        return probabilities.cumsum(-1) < 0.9, x.gather(-1, order) * 2

    x = torch.randn(4, 500)
    made = in_order(program, x)
    for _ in range(2):
        for actual, expected in zip(made(x), program(x), strict=True):
            torch.testing.assert_close(actual, expected)


def test_rows_of_any_length():
    def program(x):
        return torch.sort(x, dim=1, stable=True), torch.topk(x.abs(), 2, dim=1)[0]

    length = torch.export.Dim("n", min=2, max=4096)
    made = in_order(program, torch.randn(3, 300), dynamic_shapes=[{1: length}])
    for n in (2, 3, 64, 65, 1001, 4096):
        x = values((3, n), torch.float32, n)
        actual, expected = made(x), program(x)
        same_bits(actual[0][0], expected[0][0])
        assert torch.equal(actual[0][1], expected[0][1])
        same_bits(actual[1], expected[1])


# --------------------------------------------------------------------------- places of the order


@pytest.mark.sample(12)
@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize(("shape", "dim"), [((100, 40), 1), ((2, 1029, 3), 1), ((1000, 2), 0)])
def test_places(shape, dim, dtype):
    x = values(shape, dtype)
    (ordered, order), length = x.sort(dim=dim, stable=True), shape[dim]
    for k in (1, length // 3, length):
        found, positions = in_order(lambda x, k=k: x.kthvalue(k, dim), x)(x)
        same_bits(found, ordered.select(dim, k - 1))
        assert torch.equal(positions, order.select(dim, k - 1))
    number = (x == x).sum(dim, keepdim=True)
    middle = (number - 1).clamp(min=0) // 2
    found, positions = in_order(lambda x: x.nanmedian(dim, keepdim=True), x)(x)
    same_bits(found, ordered.gather(dim, middle))
    if dtype.is_floating_point:
        found, _ = in_order(lambda x: x.median(dim), x)(x)
        same_bits(found, x.median(dim)[0])


@pytest.mark.sample(6)
@pytest.mark.parametrize("length", [129, 1000, 4097])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8]
)
def test_the_middle_of_long_rows_with_many_equals(length, dtype):
    """Of equal values the position is that of a stable sort."""
    x = torch.randint(0, 7, (5, length)).to(dtype)
    x[1] = 3
    x[2] = torch.arange(length)
    x[3] = torch.arange(length).flip(0)
    k, order = length // 3 + 1, x.sort(dim=1, stable=True)[1]
    for program, place in (
        (lambda x: torch.median(x, 1), (length - 1) // 2),
        (lambda x: torch.nanmedian(x, 1), (length - 1) // 2),
        (lambda x: torch.kthvalue(x, k, 1), k - 1),
        (lambda x: torch.kthvalue(x, length, 1), length - 1),
    ):
        values, positions = in_order(program, x)(x)
        assert torch.equal(values, program(x)[0])
        assert torch.equal(positions, order[:, place])


# --------------------------------------------------------------------------- scatters


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("reduce", ["amax", "amin", "sum", "prod"])
def test_folds(reduce, dtype):
    def program(x, i, u):
        return x.scatter_reduce(0, i, u, reduce)

    exact = reduce in ("amax", "amin") or not dtype.is_floating_point
    x, u = (values(s, dtype, n) for n, s in enumerate([(40, 70), (500, 70)]))
    if not exact:  # sums of few bits are exact in any order, and so are products of signs
        x, u = (t.nan_to_num(0, 0, 0).sign() for t in (x, u))
    i = torch.randint(0, 40, (500, 70))
    made, expected = in_order(program, x, i, u), program(x, i, u)
    for _ in range(2):
        torch.testing.assert_close(made(x, i, u), expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [*FLOATS, *INTEGERS, torch.bool])
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_the_last_update_stays(dim, dtype):
    shape, updates = [5, 130, 33], [5, 130, 33]
    shape[dim], updates[dim] = 17, 200

    def program(x, i, u):
        return x.scatter(dim, i, u)

    x, u = (values(s, torch.int8 if dtype is torch.bool else dtype) for s in (shape, updates))
    x, u = (t.bool() if dtype is torch.bool else t for t in (x, u))
    i = torch.randint(0, 17, updates)
    same_bits(in_order(program, x, i, u)(x, i, u), program(x, i, u))


@pytest.mark.parametrize("width", [1, 15, 16, 64, 127, 128, 200])
def test_slices(width):
    def program(x, i, u, j):
        added = x.index_add(0, i, u)
        return added, x.index_put((i,), u * 2, accumulate=True), x.index_copy(0, j, u[:300])

    x, u = torch.randn(300, width).round(), torch.randn(400, width).round()
    i, j = torch.randint(0, 300, (400,)), torch.randperm(300)
    actual, expected = in_order(program, x, i, u, j)(x, i, u, j), program(x, i, u, j)
    for each, other in zip(actual, expected, strict=True):
        same_bits(each, other)


def test_what_begins_as_a_kernel_s_result_takes_its_place_every_time():
    def program(i, u):
        counts = torch.zeros(1000).scatter_add(0, i, u)
        return counts / 2, counts.scatter(0, i, 1.0)

    i, u = torch.randint(0, 1000, (3000,)), torch.ones(3000)
    made = in_order(program, i, u)
    for _ in range(3):
        for actual, expected in zip(made(i, u), program(i, u), strict=True):
            same_bits(actual, expected)


def test_an_input_is_not_written_to():
    def program(x, i, u):
        return x.scatter_add(0, i, u), x + 1

    x, i, u = torch.randn(1000), torch.randint(0, 1000, (3000,)), torch.ones(3000)
    before = x.clone()
    actual, more = in_order(program, x, i, u)(x, i, u)
    assert torch.equal(x, before)
    torch.testing.assert_close(actual, before.scatter_add(0, i, u))
    assert torch.equal(more, before + 1)


@pytest.mark.parametrize("wrong", [-1, 1000])
def test_an_index_outside_stops_the_program(wrong):
    x, i, u = torch.randn(1000), torch.randint(0, 1000, (3000,)), torch.ones(3000)
    made = in_order(lambda x, i, u: x.scatter_add(0, i, u), x, i, u)
    i[1234] = wrong
    with pytest.raises(IndexError, match="index out of range: expected 0 <= index < 1000"):
        made(x, i, u)


def test_elements_and_updates_in_any_number():
    def program(x, i, u):
        return x.index_add(0, i, u)

    n, k, width = (torch.export.Dim(name, min=2, max=2000) for name in "nkw")
    args = torch.zeros(40, 30), torch.randint(0, 40, (100,)), torch.ones(100, 30)
    made = in_order(program, *args, dynamic_shapes=[{0: n, 1: width}, {0: k}, {0: k, 1: width}])
    for elements, updates, columns in ((2, 2, 2), (3, 1999, 129), (2000, 7, 64)):
        x, i = torch.randn(elements, columns).round(), torch.randint(0, elements, (updates,))
        u = torch.randn(updates, columns).round()
        same_bits(made(x, i, u), program(x, i, u))


@pytest.mark.parametrize(
    ("program", "shapes"),
    [
        (lambda x: torch.sort(x)[0], [(40000,)]),
        (lambda x: torch.topk(x, 3)[1], [(100, 30000)]),
    ],
)
def test_a_gpu_still_refuses_what_would_take_too_long(program, shapes):
    args = tuple(torch.zeros(shape) for shape in shapes)
    with pytest.raises(deplo.UnsupportedOpError, match=r"order of 40000 elements|9.0e\+10 compar"):
        deplo.compile(program, args, target="sm_90a")
