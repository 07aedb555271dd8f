"""Softmax between two contractions, whose scores stay in the cache: what PyTorch computes in float64."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from c_programs import run_in_c
from conftest import kernel_threads
from cpu_programs import cpu_program, lower
from xdsl.parser import Parser

import deplo
from deplo import interpreter
from deplo.analysis.plan import build_plan
from deplo.codegen.llvm_sources import llvm_sources
from deplo.machine.cpus import Cpu
from deplo.machine.targets import get_cpu
from deplo.passes import pipelines
from deplo.passes.decisions import recording
from deplo.passes.tile import online_softmax
from deplo.runtime.cpu import CpuProgram
from deplo.runtime.plan import Plan
from deplo.tools.reducer import make_context

INF = float("inf")


def plain(q, k, v):
    return torch.softmax(q @ k.mT * 0.3, -1) @ v


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v)


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def masked(q, k, v, mask):
    return torch.softmax((q @ k.mT).masked_fill(~mask, -INF), -1) @ v


def biased(q, k, v, bias):
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias)


def grouped(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True, scale=0.5)


def side_by_side(q, k, v):
    """Heads between positions and features, as projections leave them."""
    heads = (x.transpose(1, 2) for x in (q, k, v))
    out = F.scaled_dot_product_attention(*heads, is_causal=True).transpose(1, 2)
    return out.reshape(*out.shape[:2], -1)


def capped(q, k, v):
    return torch.softmax(torch.tanh(q @ k.mT / 5) * 5, -1) @ v * 2 + v[..., :1, :]


def gathered(q, k, v, kinds, order):
    """A mask that is read with indices from data, as the models of Hugging Face make theirs."""
    mine = kinds[order]
    mask = (mine[:, None] == mine[None]) & (order[:, None] >= order[None])
    return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def tensors(*shapes, dtype=torch.float32):
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def exact(program, args):
    """The result in float64, of a mask that hides rows as a whole by its formula."""
    args = [a.double() if a.is_floating_point() else a for a in args]
    if program is causal:
        q, k, v = args
        mask = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool).tril()
        return masked(q / q.shape[-1] ** 0.5, k, v, mask)
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        return program(*args)


def compiled(program, args, **options):
    """A program that is one kernel for its scores and what becomes of them."""
    with recording() as decisions:
        made = deplo.compile(program, tuple(args), target="cpu", **options)
    fired = [d for d in decisions if d.pass_name == "online-softmax" and d.fired]
    assert len(fired) == 1, [str(d) for d in decisions if d.pass_name == "online-softmax"]
    return made


def check(result, wanted, tolerance=1e-5) -> None:
    """NaN and infinities are where they should be, and all else is close."""
    finite = wanted.isfinite()
    assert torch.equal(result.isnan(), wanted.isnan())
    assert torch.equal(result.isfinite(), finite)
    assert torch.equal(result[wanted.isinf()].double(), wanted[wanted.isinf()])
    apart = (result.double() - wanted)[finite].norm()
    assert apart <= tolerance * wanted[finite].norm() + 1e-30


SHAPES = (
    (4, 128, 64, 48),
    (5, 91, 64, 100),
    (16, 49, 64, 80),
    (33, 77, 64, 64),
    (9, 1000, 16, 100),
    (16, 128, 24, 6),
    (17, 131, 40, 5),
    (64, 512, 64, 64),
    (65, 513, 64, 65),
    (101, 1303, 37, 41),
    (300, 300, 32, 130),
    (700, 650, 24, 16),
)
"""Rows, columns, products of a score, columns of the result."""


@pytest.mark.sample(12)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("program", [plain, attention, causal, capped])
def test_results_are_those_of_float64(program, shape) -> None:
    rows, columns, depth, width = shape
    args = tensors((1, 3, rows, depth), (1, 3, columns, depth), (1, 3, columns, width))
    made = compiled(program, args)
    result = made(*args)
    check(result, exact(program, args))
    assert torch.equal(result, made(*args))


def test_masks_groups_layouts_and_biases() -> None:
    q, k, v = tensors((2, 8, 40, 16), (2, 2, 300, 16), (2, 2, 300, 24))
    check(compiled(grouped, (q, k, v))(q, k, v), exact(grouped, (q, k, v)))
    args = (*tensors((3, 40, 16), (3, 300, 16), (3, 300, 24)), torch.rand(40, 300) > 0.5)
    check(compiled(masked, args)(*args), exact(masked, args))
    args = tensors((1, 3, 40, 16), (1, 3, 300, 16), (1, 3, 300, 24), (40, 300))
    check(compiled(biased, args)(*args), exact(biased, args))
    args = tensors((1, 260, 8, 16), (1, 260, 8, 16), (1, 260, 8, 16))
    check(compiled(side_by_side, args)(*args), exact(side_by_side, args))


def test_a_mask_that_is_gathered() -> None:
    args = tensors((1, 4, 260, 16), (1, 4, 260, 16), (1, 4, 260, 24))
    args += [torch.arange(260) // 100, torch.arange(260)]
    check(compiled(gathered, args)(*args), exact(gathered, args))


@pytest.mark.parametrize("columns", [130, 1100])
def test_a_causal_row_reads_nothing_behind_its_end(columns) -> None:
    """Not a number behind the diagonal, and weights of 0 there, only where they meet a value that is none."""
    q, k, v = tensors((1, 2, columns, 16), (1, 2, columns, 16), (1, 2, columns, 8))
    k[0, 0, 100:] = float("nan")
    v[0, 1, 77, 5] = INF
    result = compiled(causal, (q, k, v))(q, k, v)
    check(result, exact(causal, (q, k, v)))
    assert result[0, 0, :100].isfinite().all()
    assert result[0, 0, 100:].isnan().all()
    assert result[0, 1, :77, 5].isnan().all()
    assert result[0, 1, :, :5].isfinite().all()


def test_weights_that_round_to_zero() -> None:
    q, k, v = tensors((2, 50, 16), (2, 700, 16), (2, 700, 8))
    q, bias = q * 40, torch.zeros(50, 700)
    bias[:, ::3] = torch.finfo(torch.float32).min
    args = (q[None], k[None], v[None], bias)
    check(compiled(biased, args)(*args), exact(biased, args), 1e-4)


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [(torch.float16, 2e-3), (torch.bfloat16, 1.6e-2), (torch.float64, 1e-14)],
)
def test_other_types(dtype, tolerance) -> None:
    args = tensors((1, 2, 60, 24), (1, 2, 700, 24), (1, 2, 700, 16), dtype=dtype)
    result = compiled(attention, args)(*args)
    assert result.dtype == dtype
    check(result, exact(attention, args), tolerance)


@pytest.mark.parametrize("columns", [130, 640, 1100])
def test_rows_that_are_masked_as_a_whole(columns) -> None:
    q, k, v = tensors((2, 40, 16), (2, columns, 16), (2, columns, 8))
    mask = torch.rand(40, columns, generator=torch.Generator().manual_seed(1)) > 0.5
    mask[3] = False
    mask[5, : columns // 2] = False
    mask[6, columns // 2 :] = False
    mask[7] = torch.arange(columns) == columns - 1
    args = (q, k, v, mask)
    result = compiled(masked, args)(*args)
    assert result[:, 3].isnan().all()  # softmax of minus infinities
    check(result, exact(masked, args))
    bias = torch.where(mask, 0.0, -INF)
    args = (q[None], k[None], v[None], bias)
    result = compiled(biased, args)(*args)
    assert (result[:, :, 3] == 0).all()  # PyTorch's attention gives 0 there
    check(result, exact(biased, args))


@pytest.mark.parametrize("columns", [130, 640, 1100])
@pytest.mark.parametrize("program", [plain, causal])
def test_what_is_not_finite_goes_where_it_goes_in_pytorch(program, columns) -> None:
    q, k, v = tensors((1, 4, columns, 16), (1, 4, columns, 16), (1, 4, columns, 8))
    q[0, 0, 3, 1], q[0, 0, 5, 2] = float("nan"), INF
    k[0, 1, columns - 1, 1], k[0, 1, 5, 2] = float("nan"), -INF
    v[0, 2, columns // 2, 3], v[0, 2, columns - 1, 4], v[0, 2, 0, 5] = float("nan"), INF, -INF
    args = (q, k, v)
    check(compiled(program, args)(*args), exact(program, args))


@pytest.mark.parametrize(
    "scales", [(1e18, 1e18, 1), (1, 1, 1e38), (1e-30, 1e-30, 1e-36), (1, 0, 1)]
)
def test_huge_and_tiny_values(scales) -> None:
    args = tensors((2, 50, 16), (2, 1100, 16), (2, 1100, 8))
    args = [a.clamp(-1, 1) * scale for a, scale in zip(args, scales, strict=True)]
    check(compiled(plain, args)(*args), exact(plain, args), 1e-4)


def test_minus_zero_is_the_mean_of_minus_zeros() -> None:
    q, k, v = tensors((50, 16), (130, 16), (130, 8))
    args = (q, k, v.abs() * -0.0)
    assert (compiled(plain, args)(*args) == 0).all()


@pytest.mark.parametrize("vectors", ["avx512", "avx2", "neon", "sse2"])
@pytest.mark.parametrize("program", [plain, causal])
def test_every_kind_of_vector(program, vectors, monkeypatch) -> None:
    """Tiles as for other vectors, which this machine runs: its own registers hold the floats."""
    monkeypatch.setattr(Cpu, "float_letter", get_cpu("cpu").float_letter)
    args = tensors((1, 2, 61, 20), (1, 2, 700, 20), (1, 2, 700, 30))
    module = deplo.compile(program, tuple(args), target="cpu").stage("loop").clone()
    passes = pipelines.make_pipeline("loop-to-llvm", "cpu")
    context = make_context()
    for each in passes:
        is_ours = isinstance(each, online_softmax.OnlineSoftmaxPass)
        (replace(each, target=f"cpu:{vectors}") if is_ours else each).apply(context, module)
    run = CpuProgram(Plan.from_data(build_plan(module, "cpu", llvm_sources(module))))
    (result,) = run(*args)
    check(result, exact(program, args))


MASKS = {
    "%j - %m >= 0": lambda i, j: i >= j,
    "%j - %m + 200 >= 0": lambda i, j: i + 200 >= j,
    "%j - %m - 30 >= 0": lambda i, j: i - 30 >= j,
    "-%j - %m + 500 >= 0": lambda i, j: 500 - i >= j,
    "%j * 3 - %m >= 0": lambda i, j: i * 3 >= j,
    "%m < 100": lambda i, j: j + 0 * i < 100,
    "%m >= 100": lambda i, j: j + 0 * i >= 100,
    "%m - %j >= 0": lambda i, j: j >= i,
    "%j - %m >= 0, %m - %j + 20 >= 0": lambda i, j: (i >= j) & (j + 20 >= i),
    "%j >= 50": lambda i, j: (i >= 50) & (j >= 0),
    "%m * 2 - %j >= 0": lambda i, j: j * 2 >= i,
    "(%m floordiv 64) mod 2 - 1 >= 0": lambda i, j: j // 64 % 2 == 1,
}
"""Conditions on the row %j and the column %m, and what they mean."""


def q_k_v() -> list[torch.Tensor]:
    return tensors((1, 2, 300, 20), (1, 2, 1100, 20), (1, 2, 1100, 9))


@cache
def causal_loops() -> str:
    """Loop IR of attention with a mask."""
    return deplo.compile(causal, tuple(q_k_v()), target="cpu").ir("loop")


@pytest.mark.sample(6)
@pytest.mark.parametrize("condition", list(MASKS), ids=lambda text: text)
def test_masks_by_counters(condition) -> None:
    q, k, v = q_k_v()
    v[0, 0, 1050, 3] = float("nan")
    text = causal_loops()
    wanted = ", ".join(each.strip() for each in condition.split(","))
    row = "%k"
    changed, count = re.subn(
        rf"loop.test\[{re.escape(row)} - (%\w+) >= 0\]",
        lambda m: f"loop.test[{wanted.replace('%j', row).replace('%m', m[1])}]",
        text,
    )
    assert count == 3, text
    module = lower(changed, "loop-to-llvm")
    plan = Plan.from_data(build_plan(module, "cpu", llvm_sources(module)))
    assert len(plan.kernels) == 1
    (result,) = CpuProgram(plan)(q, k, v)
    mask = MASKS[condition](torch.arange(300)[:, None], torch.arange(1100))
    scores = (q.double() @ k.mT.double() / 20**0.5).masked_fill(~mask, -INF)
    weights = torch.softmax(scores, -1).masked_fill(~mask.any(-1, keepdim=True), 0)
    check(result, weights @ v.double())


@pytest.mark.parametrize("program", [plain, causal])
def test_c_computes_the_same(program, tmp_path) -> None:
    args = tensors((1, 2, 61, 20), (1, 2, 700, 20), (1, 2, 700, 30))
    check(run_in_c(compiled(program, args), tmp_path, args), exact(program, args))


def test_bits_do_not_depend_on_the_number_of_threads() -> None:
    args = tuple(torch.randn(1, 8, 600, 32) for _ in range(3))
    program = deplo.compile(causal, args, target="cpu")
    found = set()
    for count in (1, 2, 5):
        with kernel_threads(count):
            found |= {program(*args).numpy().tobytes() for _ in range(3)}
    assert len(found) == 1


def test_long_rows_need_no_memory_for_scores() -> None:
    args = tuple(torch.randn(1, 8, 4096, 64) for _ in range(3))
    program = deplo.compile(causal, args, target="cpu")
    assert [kernel.name for kernel in program.kernels] == ["k_scaled_dot_product_attention_reduce"]
    assert not program.plan.arena_bytes


def test_no_rows_and_no_columns() -> None:
    for rows, columns in ((0, 300), (300, 0)):
        q, k, v = tensors((1, 2, rows, 8), (1, 2, columns, 8), (1, 2, columns, 8))
        program = deplo.compile(attention, (q, k, v), target="cpu")
        assert torch.equal(program(q, k, v), attention(q, k, v))


def declined(program, args, **options) -> set[str]:
    """Why kernels stay as they are."""
    with recording() as decisions:
        made = deplo.compile(program, tuple(args), target="cpu", **options)
        made(*args)
    ours = [d for d in decisions if d.pass_name == "online-softmax"]
    assert not any(d.fired for d in ours)
    return {d.reason for d in ours}


def test_what_is_needed_elsewhere_is_computed_as_before() -> None:
    args = tensors((50, 16), (300, 16), (300, 8))

    def with_weights(q, k, v):
        weights = torch.softmax(q @ k.mT, -1)
        return weights @ v, weights

    def with_logsumexp(q, k, v):
        scores = q @ k.mT
        return torch.softmax(scores, -1) @ v, torch.logsumexp(scores, -1)

    assert "k_softmax_reduce is needed elsewhere, too" in declined(with_weights, args)
    assert any("is needed elsewhere, too" in each for each in declined(with_logsumexp, args))


def test_columns_of_the_result_that_change_are_left_alone() -> None:
    args = tensors((1, 2, 300, 16), (1, 2, 300, 16), (1, 2, 300, 24))
    shapes = {"q": None, "k": None, "v": {3: torch.export.Dim("width", min=2)}}
    reasons = declined(plain, args, dynamic_shapes=shapes)
    assert "the columns of its result are dynamic in number" in reasons


def test_products_of_a_score_that_change_are_left_alone() -> None:
    args = tensors((1, 2, 300, 16), (1, 2, 300, 16), (1, 2, 300, 24))
    depth = torch.export.Dim("depth", min=2)
    shapes = {"q": {3: depth}, "k": {3: depth}, "v": None}
    reasons = declined(plain, args, dynamic_shapes=shapes)
    assert "the products of a score are dynamic in number" in reasons


BATCH, ROWS, COLUMNS = (torch.export.Dim(n, min=1, max=5000) for n in ("batch", "rows", "columns"))
DYNAMIC_SHAPES = (
    (3, 300, 280),
    (1, 1, 1),
    (2, 1, 300),
    (1, 17, 16),
    (4, 33, 257),
    (1, 600, 513),
    (2, 5, 4100),
)
"""Batches, rows, columns."""


@pytest.mark.parametrize("program", [plain, attention, biased])
def test_sizes_that_change(program) -> None:
    dims = [{0: BATCH, 2: ROWS}, {0: BATCH, 2: COLUMNS}, {0: BATCH, 2: COLUMNS}]
    dims += [{0: ROWS, 1: COLUMNS}] * (program is biased)
    made = None
    for batch, rows, columns in DYNAMIC_SHAPES:
        args = tensors((batch, 3, rows, 20), (batch, 3, columns, 20), (batch, 3, columns, 24))
        args += tensors((rows, columns)) if program is biased else []
        made = made or compiled(program, args, dynamic_shapes=tuple(dims))
        check(made(*args), exact(program, args))


@pytest.mark.parametrize("program", [causal, side_by_side])
def test_tokens_that_change(program) -> None:
    axis, tokens = (1 if program is side_by_side else 2), torch.export.Dim("tokens", max=5000)
    dims, made = ({axis: tokens},) * 3, None
    for count in (300, 2, 16, 63, 65, 513, 1303):
        shape = (1, count, 8, 16) if program is side_by_side else (1, 8, count, 16)
        args = tensors(shape, shape, shape)
        made = made or compiled(program, args, dynamic_shapes=dims)
        check(made(*args), exact(program, args))


@pytest.mark.parametrize("scale", [1e18, 1e-36])
@pytest.mark.parametrize("columns", [130, 1100, 4500])
def test_huge_and_tiny_values_of_sizes_that_change(scale, columns) -> None:
    args = tensors((1, 2, 300, 16), (1, 2, 300, 16), (1, 2, 300, 24))
    dims = ({2: torch.export.Dim("rows")}, *({2: torch.export.Dim("columns")},) * 2)
    made = compiled(plain, args, dynamic_shapes=dims)
    q, k, v = tensors((1, 2, 9, 16), (1, 2, columns, 16), (1, 2, columns, 24))
    v *= scale
    v[0, 1, columns - 1, 5], k[0, 1, 3, 3] = INF, float("nan")
    check(made(q, k, v), exact(plain, (q, k, v)))


# ------------------------------------------------------------------ the reduction itself


def folds(extents, third: str) -> str:
    """A program that folds x, weights and v over two loops of these extents."""
    rows, (outer, inner) = 5, extents
    row, all_ = f"{rows}xf32", f"{rows}x{outer * inner}xf32"
    results = f"(tensor<{row}>, tensor<{row}>, tensor<{row}>)"
    kind = f"(tensor<{all_}>, tensor<{all_}>, tensor<{all_}>) -> {results}"
    buffers = ", ".join(f"%{name}s: memref<{all_}>" for name in "xwv")
    buffers += "".join(f", %{name}s: memref<{row}>" for name in "abc")
    loads = "".join(
        f"%{to} = loop.load %{name}s[%i, %o * {inner} + %k] : memref<{all_}>\n"
        for to, name in zip("pqr", "xwv", strict=True)
    )
    stores = "".join(f"loop.store %{name}, %{name}s[%i] : memref<{row}>\n" for name in "abc")
    return f"""
func.func @main(%x: tensor<{all_}>, %w: tensor<{all_}>, %v: tensor<{all_}>)
    -> {results} {{
  %a, %b, %c = loop.kernel @k(%x, %w, %v) : {kind} {{
  ^bb0({buffers}):
    tile.launch (%i = {rows} : block) {{
      %a, %b, %c = loop.for %o = 0 to {outer} reduce(max, weight, {third}) -> f32, f32, f32 {{
        %d, %e, %f = loop.for %k = 0 to {inner} reduce(max, weight, {third}) -> f32, f32, f32 {{
          {loads}
          loop.yield %p, %q, %r : f32, f32, f32
        }}
        loop.yield %d, %e, %f : f32, f32, f32
      }}
      {stores}
    }}
  }}
  func.return %a, %b, %c : tensor<{row}>, tensor<{row}>, tensor<{row}>
}}"""


@pytest.mark.parametrize("third", ["mean", "weight"])
@pytest.mark.parametrize("extents", [(1, 12), (12, 1), (3, 4), (0, 4), (4, 0)])
def test_weighted_means_and_totals_may_be_folded_in_parts(extents, third) -> None:
    n = extents[0] * extents[1]
    rng = np.random.default_rng(0)
    x, w, v = (rng.standard_normal((5, n)).astype(np.float32) for _ in range(3))
    w = np.abs(w)
    if n:
        x[1] = -np.inf
        x[2, :6] = -np.inf
        x[3, 4], v[4, 5] = np.nan, np.inf
        x[0] *= 1e30
    text = folds(extents, third)
    largest, weight, folded = cpu_program(text)(x, w, v)
    with np.errstate(all="ignore"):
        top = x.max(1, initial=-np.inf)
        scales = np.exp(x - np.where(np.isneginf(top), 0, top)[:, None])
        scaled = w * scales
        total = scaled.sum(1)
        shares = np.where(total == 0, 0, scaled.T / total).T
        np.testing.assert_array_equal(largest, top)
        np.testing.assert_allclose(weight, total, 1e-6)
        expected = ((shares if third == "mean" else scales) * v).sum(1)
        np.testing.assert_allclose(folded, expected, 1e-5, 1e-6)
        module = Parser(make_context(), text).parse_module()
        interpreted = interpreter.execute(module, [x, w, v])[2]
        np.testing.assert_allclose(interpreted, expected, 1e-5, 1e-6)
