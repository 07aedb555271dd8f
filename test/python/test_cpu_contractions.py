"""Contractions on the CPU: packed operands and register tiles give what numpy and PyTorch give."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from cpu_programs import lower
from torch import nn

import deplo
from deplo.analysis.cpu_tiles import CpuProblem, CpuTiling
from deplo.analysis.cpu_tilings import choose_cpu_tiling
from deplo.analysis.plan import build_plan
from deplo.codegen.llvm_sources import llvm_sources
from deplo.machine.cpus import CPUS, MEASURED, Cpu
from deplo.machine.host_cpu import host_cpu
from deplo.passes.tile import schedule_cpu
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.plan import Plan

INF, NAN = float("inf"), float("nan")
SIZES = (1, 7, 31, 64, 100, 129, 257)
ORDERS = {"nn": ("%i, %k", "%k, %j"), "nt": ("%i, %k", "%j, %k"), "tn": ("%k, %i", "%k, %j")}
TYPES = {"f32": np.float32, "f64": np.float64, "i32": np.int32, "i64": np.int64}
LANES = {"avx512": 64, "avx2": 32, "neon": 16, "sse2": 16}


def _program(
    m, n, k, order, element, vectors, block_k, dot=False, in_place=False, turned=False
) -> CpuProgram:
    """y = a @ b for a schedule whose blocks are larger than some results and smaller than others."""
    shapes = {"%i, %k": (m, k), "%k, %i": (k, m), "%k, %j": (k, n), "%j, %k": (n, k)}
    indices = ORDERS[order]
    a, b = ("x".join(map(str, shapes[index])) + "x" + element for index in indices)
    y, letter = f"{m}x{n}x{element}", "i" if element[0] == "i" else "f"
    tile_n = 5 if dot else 2 * LANES[vectors] // np.dtype(TYPES[element]).itemsize
    m_n = "m = 1, n = 0" if turned else "m = 0, n = 1"
    kind = "dot = 1, " * dot + "in_place = 1, " * in_place
    schedule = (
        f"{m_n}, block_m = 30, block_n = {2 * tile_n}, block_k = {block_k}, "
        f"thread_m = 6, thread_n = {tile_n}, {kind}vectors = {vectors}"
    )
    module = lower(
        f"""
func.func @main(%a: tensor<{a}>, %b: tensor<{b}>) -> tensor<{y}> {{
  %y = loop.kernel @k(%a, %b) : (tensor<{a}>, tensor<{b}>) -> tensor<{y}> {{
  ^bb0(%av: memref<{a}>, %bv: memref<{b}>, %out: memref<{y}>):
    tile.launch (%i = {m} : thread, %j = {n} : thread) schedule(#tile.schedule<{schedule}>) {{
      %s = loop.for %k = 0 to {k} reduce(add) -> {element} {{
        %p = loop.load %av[{indices[0]}] : memref<{a}>
        %q = loop.load %bv[{indices[1]}] : memref<{b}>
        %r = arith.mul{letter} %p, %q : {element}
        loop.yield %r : {element}
      }}
      loop.store %s, %out[%i, %j] : memref<{y}>
    }}
  }}
  func.return %y : tensor<{y}>
}}""",
        "pack-operands,tile-to-llvm",
    )
    return CpuProgram(Plan.from_data(build_plan(module, "cpu", llvm_sources(module))))


def _cases():
    """Every pair of sizes in some case, with each order, type and kind of vector in turn."""
    orders, types = itertools.cycle(ORDERS), itertools.cycle(["f32", "f32", "i32", "f64", "i64"])
    vectors, chunks = itertools.cycle(LANES), itertools.cycle([32, 64, 96])
    for number, (m, n) in enumerate(itertools.product(SIZES, SIZES)):
        if (number + number // 7) % 2 == 0:
            k = SIZES[(number * 3 + number // 7) % 7]
            yield m, n, k, next(orders), next(types), next(vectors), next(chunks)


@pytest.mark.sample(14)
@pytest.mark.parametrize("case", list(_cases()), ids=lambda c: "-".join(map(str, c)))
def test_packed_products_are_numpys(case) -> None:
    m, n, k, order, element, vectors, block_k = case
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-9, 9, shape).astype(TYPES[element]) for shape in ((m, k), (k, n)))
    operands = [a.T.copy() if order == "tn" else a, b.T.copy() if order == "nt" else b]
    program = _program(m, n, k, order, element, vectors, block_k)
    (first,), (second,) = program(*operands), program(*operands)
    np.testing.assert_array_equal(first, a @ b)  # of small integers, so exact in every type
    np.testing.assert_array_equal(first, second)


def _dot_cases():
    """Tiles within, at and over the edges, with chunks of K that fit and that do not."""
    types, vectors = itertools.cycle(TYPES), itertools.cycle(LANES)
    depths, chunks = itertools.cycle([64, 80, 208]), itertools.cycle([64, 96, 48, 208])
    for m, n in itertools.product((1, 6, 31, 61), (1, 5, 10, 64)):
        yield m, n, next(depths), next(types), next(vectors), next(chunks)


@pytest.mark.sample(8)
@pytest.mark.parametrize("case", list(_dot_cases()), ids=lambda c: "-".join(map(str, c)))
def test_products_of_unpacked_operands_are_numpys(case) -> None:
    m, n, k, element, vectors, block_k = case
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-9, 9, shape).astype(TYPES[element]) for shape in ((m, k), (n, k)))
    program = _program(m, n, k, "nt", element, vectors, block_k, dot=True)
    (first,), (second,) = program(a, b), program(a, b)
    np.testing.assert_array_equal(first, a @ b.T)
    np.testing.assert_array_equal(first, second)


KINDS = [
    ("nn", {"in_place": True}),
    ("nt", {"in_place": True}),
    ("nt", {"in_place": True, "turned": True}),
    ("nt", {"turned": True}),
    ("tn", {"turned": True}),
    ("nn", {"in_place": True, "turned": True}),  # there is nothing that could stay in place
]
"""Orders of operands, and how their product may be blocked."""


def _kind_cases():
    """Rows that fit tiles and that do not, fewer than a tile has, in one chunk of K and several."""
    types, vectors = itertools.cycle(TYPES), itertools.cycle(LANES)
    depths, chunks = itertools.cycle([64, 7, 97, 208, 1]), itertools.cycle([64, 96, 32])
    for (m, n), kind in itertools.product(
        itertools.product((1, 6, 31, 61), (1, 17, 64)), range(len(KINDS))
    ):
        yield m, n, next(depths), next(types), next(vectors), next(chunks), kind


@pytest.mark.sample(18)
@pytest.mark.parametrize("case", list(_kind_cases()), ids=lambda c: "-".join(map(str, c)))
def test_rows_may_stay_in_place_and_blocks_be_turned(case) -> None:
    m, n, k, element, vectors, block_k, kind = case
    order, how = KINDS[kind]
    rng = np.random.default_rng(m * n + k)
    a, b = (rng.integers(-9, 9, shape).astype(TYPES[element]) for shape in ((m, k), (k, n)))
    operands = [a.T.copy() if order == "tn" else a, b.T.copy() if order == "nt" else b]
    program = _program(m, n, k, order, element, vectors, block_k, **how)
    (first,), (second,) = program(*operands), program(*operands)
    np.testing.assert_array_equal(first, a @ b)
    np.testing.assert_array_equal(first, second)


@pytest.mark.sample(4)
@pytest.mark.parametrize(("order", "how"), [("nn", {}), ("nt", {"dot": True}), *KINDS])
def test_what_is_not_finite_stays_in_its_row_and_column(order, how) -> None:
    a, b = np.ones((31, 64), np.float32), np.ones((64, 53), np.float32)
    a[30, 39], a[0, 63], b[0, 52] = np.nan, -0.0, np.inf
    program = _program(31, 53, 64, order, "f32", "avx512", 32, **how)
    (y,) = program(a.T.copy() if order == "tn" else a, b.T.copy() if order == "nt" else b)
    np.testing.assert_array_equal(y, a @ b)


class GatedMlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up = (nn.Linear(40, 72, bias=False) for _ in range(2))
        self.down = nn.Linear(72, 40)

    def forward(self, x):
        return self.down(nn.functional.silu(self.gate(x)) * self.up(x)) + x


def _attend(q, k, v):
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


PROGRAMS = {
    "epilogue": (nn.Sequential(nn.Linear(64, 100), nn.GELU()), [torch.randn(2, 33, 64)]),
    "gated": (GatedMlp(), [torch.randn(50, 40)]),
    "few rows": (nn.Sequential(nn.Linear(256, 100), nn.GELU()), [torch.randn(3, 5, 256)]),
    "batched": (torch.matmul, [torch.randn(3, 31, 40), torch.randn(3, 40, 70)]),
    "broadcast": (torch.matmul, [torch.randn(2, 3, 31, 40), torch.randn(3, 40, 70)]),
    "transposed": (lambda x, w: (x.mT @ w).mT, [torch.randn(40, 90), torch.randn(40, 70)]),
    "bf16": (nn.Linear(80, 90).bfloat16(), [torch.randn(40, 80).bfloat16()]),
    "f16": (torch.matmul, [torch.randn(40, 80).half(), torch.randn(80, 90).half()]),
    "attention": (_attend, [torch.randn(1, 2, 70, 64) for _ in range(3)]),
    "convolution": (nn.Conv2d(12, 20, 3, padding=1), [torch.randn(2, 12, 13, 17)]),
    "narrow": (nn.Conv2d(12, 20, 5, padding=2), [torch.randn(2, 12, 9, 7)]),
    "chunks": (nn.Conv2d(64, 8, 3, padding=1), [torch.randn(1, 64, 10, 24)]),
    "lines that meet in the cache": (nn.Conv2d(17, 8, 3, padding=1), [torch.randn(1, 17, 32, 32)]),
    "no border": (nn.Conv2d(12, 20, 3), [torch.randn(1, 12, 13, 17)]),
    "one pixel": (nn.Conv2d(32, 48, 1), [torch.randn(1, 32, 7, 9)]),
    "transposed convolution": (nn.ConvTranspose2d(12, 20, 2, 2), [torch.randn(2, 12, 16, 16)]),
    "groups": (nn.Conv2d(24, 36, 3, padding=1, groups=3), [torch.randn(2, 24, 13, 17)]),
    "in three dimensions": (nn.Conv3d(4, 8, 3, padding=1), [torch.randn(1, 4, 5, 6, 7)]),
    "strided": (nn.Conv2d(12, 20, 3, stride=2, dilation=2), [torch.randn(1, 12, 33, 37)]),
    "prologue": (
        lambda x, s, w: (x * s) @ w,
        [torch.randn(50, 60), torch.randn(60), torch.randn(60, 70)],
    ),
    "computed columns": (
        lambda x, w: x @ (torch.exp(-w * w) * 2 - w).T,
        [torch.randn(37, 61), torch.randn(83, 61)],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_contractions_of_programs_are_packed_and_right(name) -> None:
    function, inputs = PROGRAMS[name]
    with torch.no_grad():
        program = deplo.compile(function, tuple(inputs), target="cpu")
        assert any(
            each["pass"] in ("pack-operands", "online-softmax") and each["fired"]
            for each in program.report()["decisions"]
        )
        actual, expected = program(*inputs), function(*inputs)
    torch.testing.assert_close(actual, expected)


def widened(x, w):
    return x.float() @ w.float().T


def widened_and_computed(x, w):
    return (x * 2).float() @ w.float().T


@pytest.mark.skipif(not host_cpu().pairs, reason="this CPU multiplies no pairs of bf16")
@pytest.mark.parametrize("program", [widened, widened_and_computed])
@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize(
    "shape",
    [(33, 61, 96), (17, 31, 64), (40, 100, 34), (129, 36, 30), (64, 130, 200), (7, 6, 1000)],
)
def test_pairs_of_bf16_give_what_widened_ones_do(program, turned, shape, monkeypatch) -> None:
    tiling = CpuTiling(30, 32, 128, 6, 16, in_place=1, turned=turned, pairs=1, ahead=32)
    rows = shape[turned]
    if program is widened or turned:  # else the rows are computed, and cannot stay
        monkeypatch.setattr(schedule_cpu, "choose_cpu_tiling", lambda *_: tiling)
    m, n, k = shape
    x, w = (torch.randint(-8, 9, each).bfloat16() for each in ((m, k), (n, k)))
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert rows >= tiling.thread_m
    assert "pairs of bf16" in str(compiled.report()["decisions"])
    assert torch.equal(compiled(x, w), program(x, w))  # of small integers, so exact
    x[m - 1, 1], w[0, k - 1], x[0] = NAN, INF, -0.0
    torch.testing.assert_close(compiled(x, w), program(x, w), equal_nan=True, rtol=0, atol=0)


def _lines_cut_short(x):
    """Rows whose pairs would reach from one line of the array into the next."""
    return x.view(len(x), 2, -1)[:, :, :-1].reshape(len(x), -1)


LAYOUTS = {
    "columns in rows": (lambda x, w: x @ w, (40, 64), (64, 70)),
    "many": (lambda x, w: x @ w, (200, 256), (256, 130)),
    "batches": (lambda x, w: x @ w, (3, 20, 64), (3, 64, 70)),
    "with a bias": (lambda x, w: torch.addmm(w[0], x, w), (40, 64), (64, 70)),
    "both turned": (lambda x, w: x.T @ w.T, (64, 40), (70, 64)),
    "backwards": (lambda x, w: nn.functional.linear(x, w.flip(1)), (40, 64), (70, 64)),
    "every second": (lambda x, w: nn.functional.linear(x, w[:, ::2]), (40, 64), (70, 128)),
    "from the second on": (lambda x, w: nn.functional.linear(x, w[:, 1:65]), (40, 64), (70, 66)),
    "columns cut short": (
        lambda x, w: nn.functional.linear(x, _lines_cut_short(w)),
        (40, 42),
        (70, 44),
    ),
    "rows cut short": (
        lambda x, w: nn.functional.linear(_lines_cut_short(x), w),
        (40, 44),
        (70, 42),
    ),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_of_bf16_in_any_layout(layout) -> None:
    """What is multiplied in pairs need not lie in pairs."""
    program, *shapes = LAYOUTS[layout]
    x, w = (torch.randint(-3, 4, shape).bfloat16() for shape in shapes)
    exact = program(x.float(), w.float())  # of small integers, rounded to bf16 once
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert torch.equal(compiled(x, w), exact.bfloat16())


@pytest.mark.sample(9)
@pytest.mark.parametrize("ahead", [16, 128, 1000])
@pytest.mark.parametrize("kind", [{"dot": 1}, {"in_place": 1}, {"in_place": 1, "turned": 1}])
@pytest.mark.parametrize("shape", [(6, 61, 96), (33, 100, 64), (40, 16, 320), (7, 41, 1040)])
def test_what_is_asked_for_early_changes_no_result(kind, ahead, shape, monkeypatch) -> None:
    tiling = CpuTiling(30, 96, 112, 6, 4 if "dot" in kind else 16, **kind)
    m, n, k = shape
    x, w = (torch.randint(-8, 9, each).float() for each in ((m, k), (n, k)))
    exact = nn.functional.linear(x, w)  # of small integers
    for distance in (0, ahead):
        asked = replace(tiling, ahead=distance)
        monkeypatch.setattr(schedule_cpu, "choose_cpu_tiling", lambda *_, t=asked: t)
        program = deplo.compile(nn.functional.linear, (x, w), target="cpu")
        said = str(program.report()["decisions"])
        assert (f"asked for {ahead} positions early" in said) == (distance > 0)
        assert torch.equal(program(x, w), exact)


def test_columns_from_memory_are_not_read_again_by_dot_tiles() -> None:
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, 12, 2048, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    far = choose_cpu_tiling(problem, CPUS["avx512"])
    assert (far.in_place, far.turned, far.ahead) == (1, 1, 128)
    assert choose_cpu_tiling(replace(problem, n=1024), CPUS["avx512"]).dot
    assert choose_cpu_tiling(replace(problem, m=4), CPUS["avx512"]).dot


def test_rows_that_many_tiles_go_through_are_not_asked_for_early() -> None:
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, 32, 2048, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    few, many = (choose_cpu_tiling(replace(problem, m=m), CPUS["avx2"]) for m in (32, 128))
    assert few.in_place
    assert few.ahead == 128
    assert many.in_place
    assert not many.ahead


def test_chunks_may_fill_more_of_a_cache() -> None:
    """Not those of windows, which have whole inner sweeps."""
    along = {"along": True, "rows_along": True, "columns_along": True}
    linear = CpuProblem(1, 8, 5632, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    window = CpuProblem(1, 64, 3136, 9 * 320, 1, 1, 1, 4, period=9, rows_along=True, rows_stay=True)

    def chunk(problem: CpuProblem, chunks: int) -> int:
        return choose_cpu_tiling(problem, replace(CPUS["avx2"], chunks=chunks)).block_k

    assert (chunk(linear, 1), chunk(linear, 2)) == (1024, 2048)
    assert chunk(window, 1) == chunk(window, 2) < window.k


def test_rows_that_fall_on_the_same_place_of_a_cache_are_no_more_than_it_keeps() -> None:
    """As of a linear layer of 8 rows, and lines of 8 KiB; of 8 KiB and 64 bytes each is at another place.

    One more is kept for the columns.
    """
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, 8, 5632, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    cpu = replace(CPUS["avx2"], clash_cycles=2.5, cores=2)

    def rows(pitch: int, cpu: Cpu = cpu) -> int:
        tiling = choose_cpu_tiling(replace(problem, rows_pitch=pitch, columns_pitch=pitch), cpu)
        assert tiling.in_place
        assert tiling.turned
        return tiling.thread_m

    assert rows(8192) == rows(4096) == 7
    assert rows(2048) == rows(8256) == rows(0) == rows(8192, replace(cpu, clash_cycles=0)) == 14
    assert rows(8192, replace(cpu, l1_ways=4)) == 3


def test_tiles_that_load_all_the_time_ask_for_nothing_early() -> None:
    """As of 8 rows, which are a single vector of a tile's columns; two have it multiply for longer."""
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, 8, 5632, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    for asks in (True, False):
        cpu = replace(CPUS["avx2"], asks_when_busy=asks)
        one, two = (choose_cpu_tiling(replace(problem, m=m), cpu) for m in (8, 16))
        assert (one.in_place, one.thread_n, one.ahead) == (1, 8, 128 if asks else 0)
        assert (two.in_place, two.thread_n, two.ahead) == (1, 16, 128)


def test_a_block_for_each_core_is_half_of_all_though_tiles_do_not_divide_it() -> None:
    """Of 2048 rows, 7 at once: 1029 and 1019, not 686 in three blocks of which a core has two."""
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, 8, 2048, 2048, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    problem = replace(problem, rows_pitch=8192, columns_pitch=8192)
    cpu = replace(CPUS["avx2"], **MEASURED["znver3"], cores=2)
    tiling = choose_cpu_tiling(problem, cpu)
    assert (tiling.turned, tiling.thread_m, tiling.block_m) == (1, 7, 1029)


def test_the_model_knows_how_far_apart_rows_lie(monkeypatch) -> None:
    problems = []
    monkeypatch.setattr(
        schedule_cpu,
        "choose_cpu_tiling",
        lambda problem, cpu: problems.append(problem) or choose_cpu_tiling(problem, cpu),
    )
    x, w = torch.randn(32, 256), torch.randn(64, 256)
    deplo.compile(nn.functional.linear, (x, w), target="cpu")
    deplo.compile(lambda x, w: x @ w.T[:, ::2], (x, w), target="cpu")
    deplo.compile(lambda x, w: x @ w, (x, w.T.contiguous()), target="cpu")
    assert [each.rows_pitch for each in problems] == [1024, 1024, 1024]
    assert [each.columns_pitch for each in problems] == [1024, 2048, 4]


def test_all_of_a_short_k_may_be_one_chunk_though_the_cache_is_full() -> None:
    """As of a weight's gradient: then its sums do not go to memory and back."""
    problem = CpuProblem(1, 512, 2048, 256, 1, 1, 1, 4)
    cpu = replace(CPUS["amx"], cores=2)
    whole, half = (choose_cpu_tiling(problem, each) for each in (cpu, replace(cpu, whole_bytes=0)))
    assert whole.block_k == 256 == 2 * half.block_k
    assert (whole.block_m, whole.block_n) == (half.block_m, half.block_n)
    held = (whole.block_m + whole.block_n) * 256 * 4
    assert cpu.l2_bytes // 2 < held <= cpu.l2_bytes
    assert choose_cpu_tiling(replace(problem, k=512), cpu).block_k < 512


@pytest.mark.parametrize(
    ("rows", "k", "dot"), [(8, 768, 1), (8, 2048, 1), (32, 768, 0), (32, 2048, 0)]
)
def test_dot_tiles_have_few_rows_where_they_take_longer_than_their_products(rows, k, dot) -> None:
    along = {"along": True, "rows_along": True, "columns_along": True}
    problem = CpuProblem(1, rows, 1000, k, 1, 1, 1, 4, **along, rows_stay=True, columns_stay=True)
    cpu = replace(CPUS["amx"], cores=2)
    assert choose_cpu_tiling(problem, cpu).dot == dot
    assert choose_cpu_tiling(problem, replace(cpu, dot_cost=1)).dot == (dot or k == 2048)


def test_a_cache_does_not_overflow_with_operands_that_are_packed_for_fewer_sums() -> None:
    """As of a 1 by 1 convolution: each of its pixels is packed for 64 sums."""
    problem = CpuProblem(1, 64, 3136, 256, 1, 1, 1, 4)
    cpu = replace(CPUS["amx"], cores=2)
    tiling = choose_cpu_tiling(problem, cpu)
    assert (tiling.block_m + tiling.block_n) * tiling.block_k * 4 <= cpu.l2_bytes // 2


def test_sums_of_more_small_products_than_a_tile_has_registers_for() -> None:
    a, b = (torch.randint(-4, 5, (20, 32, 32)).float() for _ in range(2))

    def program(a, b):
        return sum(x @ y.t() for x, y in zip(a, b, strict=True))

    compiled = deplo.compile(program, (a, b), target="cpu")
    assert torch.equal(compiled(a, b), program(a, b))  # of small integers, so exact


CONVOLUTIONS = {
    "3 by 3": (lambda x, w: nn.functional.conv2d(x, w, padding=1), (1, 16, 19, 19), (24, 16, 3, 3)),
    "stride 2": (
        lambda x, w: nn.functional.conv2d(x, w, padding=1, stride=2),
        (2, 16, 18, 35),
        (24, 16, 3, 3),
    ),
    "an odd number of positions": (
        lambda x, w: nn.functional.conv2d(x, w, padding=3, stride=2),
        (1, 3, 40, 40),
        (16, 3, 7, 7),
    ),
    "one odd position more than chunks": (
        lambda x, w: nn.functional.conv2d(x, w),
        (1, 515, 8, 8),
        (16, 515, 1, 1),
    ),
    "patches": (
        lambda x, w: nn.functional.conv2d(x, w, stride=4),
        (1, 3, 64, 64),
        (24, 3, 4, 4),
    ),
    "patches of odd lines": (
        lambda x, w: nn.functional.conv2d(x, w, stride=3),
        (1, 5, 45, 45),
        (24, 5, 3, 3),
    ),
    "lines": (
        lambda x, w: nn.functional.conv1d(x, w, stride=5),
        (1, 4, 400),
        (32, 4, 10),
    ),
    "groups": (
        lambda x, w: nn.functional.conv2d(x, w, padding=1, groups=2),
        (1, 16, 20, 20),
        (32, 8, 3, 3),
    ),
    "computed": (
        lambda x, w: nn.functional.conv2d(nn.functional.relu(x), w * 2, padding=1),
        (1, 16, 20, 20),
        (32, 16, 3, 3),
    ),
    "dilated": (
        lambda x, w: nn.functional.conv2d(x, w, padding=2, dilation=2),
        (1, 16, 20, 20),
        (32, 16, 3, 3),
    ),
}


@pytest.mark.skipif(not host_cpu().pairs, reason="this CPU multiplies no pairs of bf16")
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions_of_bf16_come_in_pairs(name) -> None:
    program, *shapes = CONVOLUTIONS[name]
    x, w = (torch.randint(-2, 3, shape).bfloat16() for shape in shapes)
    exact = program(x.float(), w.float())  # of small integers, rounded to bf16 once
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert "pairs of bf16" in str(compiled.report()["decisions"])
    assert torch.equal(compiled(x, w), exact.bfloat16())
    x[0, -1, ..., -1] = NAN
    expected = program(x.float(), w.float()).bfloat16()
    torch.testing.assert_close(compiled(x, w), expected, equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize(("size", "how"), [(3, "unroll-windows"), (7, "tile-windows")])
def test_a_depthwise_convolution_of_bf16_is_one_of_f32(size: int, how: str) -> None:
    """A widened bias stands in no loop of its own, and what is widened is no work of a window."""
    shapes = (1, 8, 14, 14), (8, 1, size, size), (8,)
    x, w, b = (torch.randint(-2, 3, shape).bfloat16() for shape in shapes)

    def program(x, w, b):
        return nn.functional.conv2d(x, w, b, padding=size // 2, groups=8)

    compiled = deplo.compile(program, (x, w, b), target="cpu")
    said = {d["pass"]: d for d in compiled.report()["decisions"] if d["fired"]}
    assert {how, "stage-windows"} <= said.keys()
    width = 14 + size - 1
    assert f"memref<{width}x{width}xf32" in compiled.ir("tile")  # wide, though the image is not
    assert torch.equal(compiled(x, w, b), program(x.float(), w.float(), b.float()).bfloat16())


@pytest.mark.skipif(not host_cpu().pairs, reason="this CPU multiplies no pairs of bf16")
def test_odd_lines_of_bf16_come_in_pairs_and_other_types_in_none() -> None:
    for k, dtype in ((63, torch.bfloat16), (64, torch.float16)):
        x, w = torch.randint(-8, 9, (32, k)).to(dtype), torch.randint(-8, 9, (64, k)).to(dtype)
        compiled = deplo.compile(widened, (x, w), target="cpu")
        assert ("pairs" in str(compiled.report()["decisions"])) == (dtype == torch.bfloat16)
        assert torch.equal(compiled(x, w), widened(x, w))
