"""Rows and layout changes on the CPU: edges, odd sizes, types, and the same bits every time."""

from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from conftest import kernel_threads

import deplo
from deplo.analysis.cpu_rows import RowProblem, choose_rows
from deplo.machine.cpus import CPUS, MEASURED
from deplo.passes.tile import schedule_rows
from deplo.runtime.jit import assembly

INF, NAN = float("inf"), float("nan")


def run(function, *args):
    with torch.no_grad():
        return deplo.compile(function, args, target="cpu")(*args), function(*args)


@pytest.mark.parametrize(
    ("shape", "dtype"),
    [
        *[((m, n), torch.float32) for m, n in ((64, 64), (80, 200), (1, 70), (0, 5), (250, 129))],
        ((128, 96), torch.int32),
        ((128, 96), torch.float16),
    ],
    ids=str,
)
def test_a_transposed_operand(shape, dtype):
    x = torch.arange(shape[0] * shape[1]).reshape(shape).to(dtype)
    y = torch.ones(shape[::-1], dtype=dtype)
    ours, eager = run(lambda x, y: x.T + y, x, y)
    assert torch.equal(ours, eager)


def test_dimensions_that_lie_apart_change_places():
    x = torch.randn(3, 96, 2, 64)
    ours, eager = run(lambda x: x.permute(0, 3, 2, 1).contiguous() * 2, x)
    assert torch.equal(ours, eager)
    ours, eager = run(lambda x: x.permute(3, 0, 2, 1).contiguous() * 2, x[:, ::2])
    assert torch.equal(ours, eager)


@pytest.mark.parametrize("widths", [(1, 1), (5, 3), (16, 1, 300), (0, 7), (512, 512)], ids=str)
def test_concatenated_columns(widths):
    parts = [torch.randn(9, width) for width in widths]
    ours, eager = run(lambda *parts: torch.cat(parts, 1).neg(), *parts)
    assert torch.equal(ours, eager)


def test_copies_are_loops_and_call_nothing():
    parts = (torch.randn(64, 512), torch.randn(64, 512))
    program = deplo.compile(lambda a, b: torch.cat([a, b], 1), parts, target="cpu")
    assert "memcpy" not in assembly(program.kernels[0].source)


def test_a_long_row_of_two_parts_is_cut_where_they_meet_and_by_blocks():
    for one, other in ((5000, 9001), (4096, 8192)):
        ours, eager = run(lambda a, b: torch.cat([a, b]) * 2, torch.randn(one), torch.randn(other))
        assert torch.equal(ours, eager)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (lambda x: x.mean(0), (64, 256)),
        (lambda x: x.sum(1), (4, 19, 250)),
        (lambda x: x.var(0), (30, 1000)),
        (lambda x: (x * x).sum((0, 1)), (3, 17, 128)),
        (lambda x: x.amax(0), (77, 143)),
        (lambda x: x.logsumexp(0), (33, 512)),
        (lambda x: x.double().prod(0), (9, 64)),
    ],
)
def test_columns_are_folded_row_by_row(function, shape):
    x = torch.randn(shape)
    program = deplo.compile(function, (x,), target="cpu")
    fired = [d.fired for d in program.compilation.decisions if d.pass_name == "interchange-columns"]
    assert any(fired)
    exact = function(x.double())
    ours, eager = (each.double() - exact for each in (program(x), function(x)))
    assert ours.norm() <= 2 * eager.norm() + 1e-7 * exact.norm()


def test_columns_of_what_a_reduction_leaves_of_its_axis():
    """Each element is a row of its own in the array; its columns are neighbours all the same."""
    x = torch.randn(40, 96, 3)
    program = deplo.compile(lambda x: (y := x.sum(2, True), y.sum(0)), (x,), target="cpu")
    folded = [d for d in program.compilation.decisions if d.pass_name == "interchange-columns"]
    assert [d.kernel for d in folded if d.fired] == [program.kernels[1].name]
    for ours, eager in zip(program(x), (x.sum(2, True), x.sum((0, 2))[:, None]), strict=True):
        torch.testing.assert_close(ours, eager)


def test_columns_of_integers_bools_halves_and_positions():
    x = torch.randn(77, 128)
    for function in (
        lambda x: (x * 10).int().sum(0),
        lambda x: (x > 2).any(0),
        lambda x: x.half().amax(0),
        lambda x: x.argmax(0),
    ):
        ours, eager = run(function, x)
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("width", [1024, 1025, 1300, 2560])
@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.float64, torch.bfloat16, torch.int64, torch.uint8], ids=str
)
def test_the_first_place_of_an_extremum_of_a_long_row(width, dtype):
    """Alone, again and again, at the ends of blocks, among zeros of both signs, infinities, NaN."""
    x = torch.randn(14, width).mul(9).to(dtype)
    x[0], x[1] = 3, torch.arange(width) % 2
    for row, place in enumerate((0, 511, 512, 1023, width - 513, width - 512, width - 1), 2):
        x[row, place] = 100
    x[9, -600:] = 100
    if x.is_floating_point():
        x[1] = torch.where(x[1] == 0, -0.0, 0.0)
        x[10], x[11, 700:900], x[12, 512:] = -INF, INF, NAN
        x[13] = -INF
        x[13, [600, -1]] = NAN
    program = deplo.compile(lambda x: (x.argmax(-1), x.argmin(-1)), (x,), target="cpu")
    fired = [d.fired for d in program.compilation.decisions if d.pass_name == "narrow-searches"]
    assert any(fired)
    for ours, eager in zip(program(x), (x.argmax(-1), x.argmin(-1)), strict=True):
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("shift", [-129, -65, -1, 0, 63, 129])
def test_a_mask_along_rows_costs_what_is_left(shift):
    """Of 130 rows and columns; the loop over columns is cut where its condition changes."""
    x = torch.randn(130, 130)

    def function(x):
        low, high = x.tril(shift), x.triu(shift)
        return low.exp(), high.exp(), torch.softmax(low, -1), high.amin(-1)

    program = deplo.compile(function, (x,), target="cpu")
    fired = [d.fired for d in program.compilation.decisions if d.pass_name == "cut-loops"]
    assert any(fired)
    for ours, eager in zip(program(x), function(x), strict=True):
        torch.testing.assert_close(ours, eager, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize(("queries", "keys"), [(130, 130), (7, 200), (200, 150)])
def test_causal_attention(queries, keys):
    q, k, v = (torch.randn(1, 2, n, 16) for n in (queries, keys, keys))
    ours, eager = run(
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), q, k, v
    )
    torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("pad", [(1, 2, 3, 0), (0, 0, 1, 1), (-1, 2, 0, -2)], ids=str)
def test_padding(pad):
    ours, eager = run(lambda x: F.pad(x, pad).exp(), torch.randn(2, 30, 41))
    torch.testing.assert_close(ours, eager)


def test_a_rotated_half():
    def rotary(x, cos, sin):
        a, b = x.chunk(2, -1)
        return x * cos + torch.cat((-b, a), -1) * sin

    ours, eager = run(rotary, torch.randn(2, 3, 5, 34), torch.randn(5, 34), torch.randn(5, 34))
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize(
    ("width", "dtype"),
    [(1, torch.float32), (17, torch.float32), (65, torch.float32), (17, torch.bfloat16)],
    ids=str,
)
def test_softmax_where_values_are_special(width, dtype):
    special = [0.0, -0.0, 1e-40, 88.0, -104.0, 3e38, -3e38, INF, -INF, NAN]
    rows = torch.randn(len(special) + 2, width)
    for row, value in enumerate(special):
        rows[row, (3 * row) % width] = value
    rows[-1] = -INF
    for function in (F.softmax, F.log_softmax, torch.amax):
        ours, eager = run(lambda x, f=function: f(x, -1), rows.to(dtype))
        torch.testing.assert_close(ours, eager, equal_nan=True)


@pytest.mark.parametrize("width", [1, 33, 200])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_nan_anywhere_in_a_row_is_in_all_of_its_softmax(width, dtype):
    """Also before and behind what is larger or infinite: nobody but the sum watches for it."""
    rows = torch.randn(2 * width, width).to(dtype)
    rows[width:, width // 2] = INF
    rows[width:, 0] = 3e38
    place = torch.arange(width).repeat(2)
    rows[torch.arange(2 * width), place] = NAN
    for function in (F.softmax, F.log_softmax, torch.logsumexp):
        ours, eager = run(lambda x, f=function: f(x, -1), rows)
        assert eager.isnan().all()
        assert ours.isnan().all()


@pytest.mark.parametrize("core", ["sse2", "avx2", "avx512", "neon"])
@pytest.mark.parametrize("shape", [(4, 8), (5, 64)], ids=str)
def test_a_softmax_of_bf16_is_rounded_without_a_look_for_nan(shape, core):
    """Its NaNs are those of bf16: the lower half is zero."""
    softmax = partial(F.softmax, dim=-1)
    for dtype, looks in ((torch.bfloat16, False), (torch.float32, True)):
        x = torch.randn(shape, dtype=dtype)
        program = deplo.compile(lambda x: softmax(x).bfloat16(), (x,), target=f"cpu:{core}")
        assert ("fcmp uno" in "".join(kernel.source for kernel in program.kernels)) == looks


@pytest.mark.parametrize("keys", [5, 77, 300])
def test_a_nan_in_a_query_or_key_is_in_the_rows_that_see_it(keys):
    q, k, v = (torch.randn(1, 2, keys, 64) for _ in range(3))
    q[0, 0, 1, 3], k[0, 1, keys // 2, 5] = NAN, NAN
    ours, _ = run(F.scaled_dot_product_attention, q, k, v)
    exact = (q @ k.mT / 8).softmax(-1) @ v  # PyTorch's own kernel may lose a NaN
    assert exact[0, 0, 1].isnan().all()
    assert exact[0, 1].isnan().all()
    torch.testing.assert_close(ours, exact, equal_nan=True)


def _anything(*shape):
    """Floats of all bit patterns."""
    low, high = torch.iinfo(torch.int32).min, torch.iinfo(torch.int32).max
    return torch.randint(low, high, shape, dtype=torch.int32).view(torch.float32)


@pytest.mark.parametrize("width", [1, 15, 512])
def test_a_row_is_divided_as_if_each_element_were(width):
    """Also by what is large, tiny, no number, and where quotients are subnormal or too large."""
    torch.manual_seed(0)
    rows = 1024
    divisors = torch.cat([_anything(rows // 2), 1 + 9 * torch.rand(rows // 2)])
    divisors[:9] = torch.tensor([0.0, -0.0, 1.0, -1.0, 2.0**60, 2.0**61, INF, -INF, NAN])
    x = torch.cat([_anything(rows // 2, width), torch.randn(rows // 2, width)])
    x[::7, 0], x[1::7, 0], x[2::7, 0] = INF, -0.0, torch.finfo(torch.float32).max
    # A divisor that is found row by row: the larger of two.
    ours, exact = run(lambda x, d: x / d.amax(-1, keepdim=True), x, torch.stack([divisors] * 2, 1))
    number = ~exact.isnan()
    assert torch.equal(ours.isnan(), ~number)
    same = ours.view(torch.int32) == exact.view(torch.int32)
    assert same[number & (exact.abs() >= 2.0**-103)].all()
    lost = (ours.double() - exact.double()).abs()[number & ~same]
    assert (lost <= (exact.double().abs() * 2.0**-23).clamp_min(2.0**-149)[number & ~same]).all()


@pytest.mark.parametrize("sum_", [-3.0, 3.0])
def test_a_zero_has_the_sign_of_its_quotient(sum_):
    x = torch.tensor([[0.0, -0.0, sum_] + [0.0] * 29] * 4)
    ours, eager = run(lambda x: x / x.sum(-1, keepdim=True), x)
    assert torch.equal(ours.view(torch.int32), eager.view(torch.int32))


def test_the_extremum_of_zeros_is_a_zero():
    zeros = torch.tensor([0.0, -0.0]).repeat(3, 40)
    for function in (torch.amax, torch.amin):
        ours, eager = run(lambda x, f=function: f(x, -1), zeros)
        assert torch.equal(ours, eager)


@pytest.mark.parametrize("large", [1.0, 65537.0, 1e10, INF, NAN])
def test_sines_of_a_row_with_a_large_angle(large):
    x = torch.randn(5, 70)
    x[3, 69] = large

    def sines(x):
        return torch.sin(x) + torch.cos(2 * x), torch.sin(x).sum(-1), torch.where(x > 0, x.cos(), x)

    for ours, eager in zip(*run(sines, x), strict=True):
        torch.testing.assert_close(ours, eager, equal_nan=True)


def test_a_half_output_holds_no_exponentials_but_is_right():
    ours, eager = run(lambda x: F.softmax(x.float(), -1).half(), torch.randn(4, 40))
    torch.testing.assert_close(ours, eager)


@pytest.mark.parametrize("side_by_side", [2, 4])
@pytest.mark.parametrize("shape", [(64, 100), (67, 100), (3, 16), (1, 300), (128, 33)])
def test_rows_may_be_computed_side_by_side(side_by_side, shape, monkeypatch):
    """However many rows there are, and whatever the row beside one has."""

    def choose(problem, cpu):
        return replace(choose_rows(problem, cpu), rows=side_by_side, interleave=4)

    monkeypatch.setattr(schedule_rows, "choose_rows", choose)
    x = torch.randn(shape) * 10
    program = deplo.compile(_rows, (x,), target="cpu")
    if shape[0] >= 64:
        made = [d for d in program.report()["decisions"] if d["pass"] == "jam-rows" and d["fired"]]
        assert len(made) == len(program.kernels) == 2  # what has a softmax in it has one in common
    for special in ([], [NAN], [-INF, INF], [NAN, -INF, INF]):
        for row, value in enumerate(special[: shape[0]]):
            x[row, row:] = value
        for actual, expected in zip(program(x), _rows(x), strict=True):
            torch.testing.assert_close(actual, expected, equal_nan=True)


def _rows(x):
    normal = F.layer_norm(x, (x.shape[1],))
    return F.softmax(x, -1), F.log_softmax(x, -1), normal, x.logsumexp(1), x.amax(1)


def test_the_bits_do_not_depend_on_the_number_of_threads():
    def rows(x):
        some, few = x[:, :300] * 3, x[:, :100] * 2
        outs = F.softmax(some, -1), F.log_softmax(few, -1), F.softmax(x, -1)
        return *outs, F.layer_norm(x, (3001,)), x.sum(0), x.T + 1

    x = torch.randn(67, 3001)
    program = deplo.compile(rows, (x,), target="cpu")
    found = set()
    for count in (1, 3):
        with kernel_threads(count):
            for _ in range(3):
                found.add(b"".join(each.contiguous().numpy().tobytes() for each in program(x)))
    assert len(found) == 1


@pytest.mark.parametrize(
    ("work", "chains", "rows", "interleave"),
    [
        (300, 0, 4, 1),
        (3000, 0, 4, 2),
        (30000, 0, 1, 0),
        (300, 4, 4, 1),
        (3000, 4, 1, 4),
        (30000, 4, 1, 4),
    ],
)
def test_rows_with_functions_come_side_by_side_or_vectors_of_one(work, chains, rows, interleave):
    """Short ones always: what is left beyond whole vectors is shared."""
    problem = RowProblem(points=64, work=work, bytes=4 * work, computes=True)
    chosen = choose_rows(problem, replace(CPUS["avx2"], chains=chains))
    assert (chosen.rows, chosen.interleave) == (rows, interleave)


MIB = 1 << 20


@pytest.mark.parametrize(
    ("length", "bytes", "sweeps", "more", "rows", "interleave"),
    [
        (4096, 16 * MIB, 1, {}, 4, 2),
        (2048, 4 * MIB, 1, {}, 1, 0),  # the cores' shared cache delivers that in time
        (256, 16 * MIB, 1, {}, 1, 0),  # several rows lie in a page
        (1024, 16 * MIB, 1, {"arrays": 2}, 1, 0),
        (4096, 64 * MIB, 1, {"arrays": 2}, 4, 2),
        (4096, 16 * MIB, 1, {"computes": True}, 1, 4),
        (200, 16 * MIB, 3, {"computes": True, "waits": True, "divides": True}, 1, 4),
        (200, 4 * MIB, 3, {"computes": True, "waits": True, "divides": True}, 2, 2),
        (64, 16 * MIB, 1, {}, 4, 1),
        (64, 1 * MIB, 2, {}, 4, 1),
        (64, 16 * MIB, 2, {}, 1, 0),
        (16, MIB // 32, 1, {}, 1, 0),
        (1024, 16 * MIB, 2, {}, 1, 0),
        (4096, 16 * MIB, 2, {}, 4, 2),
        (768, 3 * MIB, 3, {"waits": True}, 4, 2),
        (1024, 16 * MIB, 3, {"waits": True, "converts": True}, 1, 0),
        (128, 2 * MIB, 3, {"waits": True}, 4, 1),
        (128, 16 * MIB, 3, {"waits": True}, 1, 0),
    ],
)
def test_rows_from_afar_are_streams_if_they_are_long(length, bytes, sweeps, more, rows, interleave):
    """Of f32, on a core that follows several."""
    cpu = replace(CPUS["avx2"], **MEASURED["znver3"])
    points = bytes // (4 * length) // more.get("arrays", 1)
    problem = RowProblem(points, 2 * sweeps * length, bytes, sweeps=sweeps, **more)
    chosen = choose_rows(problem, cpu)
    assert (chosen.rows, chosen.interleave) == (rows, interleave)


def test_what_is_measured_of_one_core_is_not_taken_for_others():
    problem = RowProblem(1024, 4097, 16 * MIB, sweeps=1)
    assert choose_rows(problem, CPUS["avx2"]).rows == 1
    assert choose_rows(problem, CPUS["amx"]).rows == 4
    assert choose_rows(replace(problem, bytes=4 * MIB), CPUS["amx"]).rows == 4
