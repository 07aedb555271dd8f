"""Products of bf16 in a CPU's matrix tiles (AMX): what may be chosen, and what they give if there are."""

from dataclasses import replace

import pytest
import torch
from test_cpu_contractions import CONVOLUTIONS, LAYOUTS, widened, widened_and_computed
from torch import nn

import deplo
from deplo.analysis import cpu_softmax
from deplo.analysis.cpu_neighbours import misfit, neighbours
from deplo.analysis.cpu_softmax import SoftmaxProblem, choose_softmax
from deplo.analysis.cpu_tiles import CpuProblem, CpuTiling
from deplo.analysis.cpu_tilings import choose_cpu_tiling, tiling_cycles
from deplo.machine.cpus import CPUS
from deplo.machine.host_cpu import host_cpu
from deplo.passes.tile import online_softmax, schedule_cpu

INF, NAN = float("inf"), float("nan")
CPU = CPUS["amx"]
LINEAR = CpuProblem(
    1, 128, 2048, 2048, 1, 1, 1, 4, pairs=True,
    along=True, rows_along=True, columns_along=True,
    rows_stay=True, columns_stay=True, rows_even=True, columns_even=True,
)  # fmt: skip

needs_tiles = pytest.mark.skipif(not host_cpu().mma, reason="this CPU has no matrix tiles")


@pytest.fixture(params=[False, True], ids=["pairs", "tiles"])
def tiles(request, monkeypatch) -> bool:
    """Whether this CPU's matrix tiles are used, where there are such."""
    cpu = replace(host_cpu(), mma=request.param and host_cpu().mma)
    for module in (schedule_cpu, online_softmax):
        monkeypatch.setattr(module, "get_cpu", lambda _: cpu)
    return cpu.mma


# ---------------------------------------------------------------------- what may be chosen


def test_the_model_takes_them_where_they_are() -> None:
    best = choose_cpu_tiling(LINEAR, CPU)
    assert (best.pairs, best.mma, best.in_place, best.ahead) == (1, 1, 1, 0)
    assert best.block_k % 32 == 0
    assert misfit(LINEAR, best, CPU) is None
    plain = choose_cpu_tiling(LINEAR, replace(CPU, mma=False))
    assert (plain.pairs, plain.mma) == (1, 0)
    assert tiling_cycles(LINEAR, best, CPU) < tiling_cycles(LINEAR, plain, CPU) / 2
    near = neighbours(LINEAR, best, CPU)
    assert near
    assert all(misfit(LINEAR, each, CPU) is None for each in near)
    assert {each.mma for each in near} == {0, 1}


@pytest.mark.parametrize("extent", [1, 15, 17, 50, 147, 512, 577, 2048])
@pytest.mark.parametrize("results", [1, 2, 5])
def test_what_the_model_takes_is_legal(extent: int, results: int) -> None:
    for rows in (1, 4, 16, 17, 33, 200):
        whole = extent % 32 == 0
        changes = {"rows_even": whole, "columns_even": whole, "rows": results, "columns": results}
        problem = replace(LINEAR, m=rows, k=extent, results=results, **changes)
        best = choose_cpu_tiling(problem, CPU)
        assert best.mma or extent < 32 or results == 5  # more than the registers hold
        assert not best.mma or misfit(problem, best, CPU) is None


TILING = CpuTiling(64, 64, 64, 32, 32, in_place=1, pairs=1, mma=1)


@pytest.mark.parametrize(
    ("tiling", "problem", "cpu", "reason"),
    [
        (TILING, LINEAR, replace(CPU, mma=False), "no matrix tiles"),
        (replace(TILING, pairs=0, in_place=0), LINEAR, CPU, "matrix tiles multiply pairs"),
        (replace(TILING, block_k=48), LINEAR, CPU, "multiple of the 32 of a matrix tile"),
        (
            replace(TILING, thread_m=17, block_m=68),
            LINEAR,
            CPU,
            "17 by 32 does not fit 8 registers",
        ),
        (replace(TILING, thread_n=64), LINEAR, CPU, "32 by 64 does not fit"),
        (TILING, replace(LINEAR, results=2, columns=2), CPU, "32 by 32 does not fit"),
        (replace(TILING, ahead=128), LINEAR, CPU, "nothing ahead"),
        (TILING, replace(LINEAR, rows_even=False), CPU, "at even distances"),
    ],
)
def test_what_does_not_fit_is_told(tiling, problem, cpu, reason) -> None:
    assert reason in (misfit(problem, tiling, cpu) or "")


def test_a_softmax_takes_them_too() -> None:
    problem = SoftmaxProblem(8, 200, 300, 64, 64, element_bytes=4, pairs=True)
    best = choose_softmax(problem, CPU)
    assert best.block_k % 32 == 0
    near = cpu_softmax.neighbours(problem, best, CPU)
    assert near
    assert all(each.mma for each in (best, *near))
    assert not choose_softmax(replace(problem, pairs=False), CPU).mma
    assert cpu_softmax.misfit(problem, best, replace(CPU, mma=False)) is not None


# ---------------------------------------------------------------------- what they give


@pytest.mark.sample(40)
@needs_tiles
@pytest.mark.parametrize("kind", [{}, {"in_place": 1}, {"turned": 1}, {"in_place": 1, "turned": 1}])
@pytest.mark.parametrize("tile", [(6, 16), (16, 32), (32, 32), (24, 16), (5, 48)])
@pytest.mark.parametrize("shape", [(33, 61, 96), (40, 100, 64), (129, 36, 160), (64, 130, 320)])
def test_products_are_exact(kind, tile, shape, monkeypatch) -> None:
    """Of small integers, with a chunk of 64 positions, and at edges of all kinds."""
    rows, columns = tile
    tiling = CpuTiling(2 * rows, 2 * columns, 64, rows, columns, pairs=1, mma=1, **kind)
    monkeypatch.setattr(schedule_cpu, "choose_cpu_tiling", lambda *_: tiling)
    m, n, k = shape
    x, w = (torch.randint(-8, 9, each).bfloat16() for each in ((m, k), (n, k)))
    compiled = deplo.compile(widened, (x, w), target="cpu")
    assert "matrix tiles" in str(compiled.report()["decisions"])
    assert torch.equal(compiled(x, w), widened(x, w))
    x[m - 1, 1], w[0, k - 1], x[0] = NAN, INF, -0.0
    torch.testing.assert_close(compiled(x, w), widened(x, w), equal_nan=True, rtol=0, atol=0)


@pytest.mark.sample(18)
@pytest.mark.parametrize("program", [widened, widened_and_computed])
@pytest.mark.parametrize("k", [1, 2, 31, 33, 50, 63, 100, 530, 1000])
def test_zeros_follow_the_end_of_k(program, k, tiles) -> None:
    """Whatever stands behind an array, infinity or NaN, is not read."""
    memory = torch.full((2, 40 * k + 64), NAN, dtype=torch.bfloat16)
    x, w = memory[0, : 40 * k].view(40, k), memory[1, : 40 * k].view(40, k)
    for each in (x, w):
        each.copy_(torch.randint(-8, 9, (40, k)))
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert ("matrix tiles" in str(compiled.report()["decisions"])) == (tiles and k > 16)
    assert torch.equal(compiled(x, w), program(x, w))


@needs_tiles
@pytest.mark.parametrize("k", [1, 30, 32, 50, 64, 97, 130, 320])
@pytest.mark.parametrize(("m", "n"), [(16, 32), (33, 61), (100, 36), (130, 200)])
def test_rows_that_are_neighbours_are_turned(m: int, n: int, k: int) -> None:
    """As those of the gradient of a weight; a square has 16 of them and 32 positions."""
    x, g = (torch.randint(-8, 9, (k, each)).bfloat16() for each in (m, n))

    def program(x, g):
        return x.float().T @ g.float()

    compiled = deplo.compile(program, (x, g), target="cpu")
    assert ("matrix tiles" in str(compiled.report()["decisions"])) == (m * n * k >= 1 << 15)
    assert torch.equal(compiled(x, g), program(x, g))
    x[k - 1, m - 1], g[0, 0] = NAN, INF
    torch.testing.assert_close(compiled(x, g), program(x, g), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("order", [1, -1])
def test_columns_may_be_put_together(order, tiles) -> None:
    """The gradient of a gated layer's weight: what lies in two arrays is packed, and so no rows."""
    left, right, x = (torch.randint(-8, 9, (96, n)).bfloat16() for n in (48, 80, 64))

    def program(left, right, x):
        factors = torch.cat((left, right), 1).T, x
        return factors[0] @ factors[1] if order == 1 else factors[1].T @ factors[0].T

    args = left, right, x
    compiled = deplo.compile(program, args, target="cpu")
    assert ("matrix tiles" in str(compiled.report()["decisions"])) == tiles
    assert torch.equal(compiled(*args), program(*args))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout, tiles) -> None:
    program, *shapes = LAYOUTS[layout]
    x, w = (torch.randint(-3, 4, shape).bfloat16() for shape in shapes)
    exact = program(x.float(), w.float())  # of small integers, rounded to bf16 once
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert ("matrix tiles" in str(compiled.report()["decisions"])) == tiles
    assert torch.equal(compiled(x, w), exact.bfloat16())


@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name, tiles) -> None:
    program, *shapes = CONVOLUTIONS[name]
    x, w = (torch.randint(-2, 3, shape).bfloat16() for shape in shapes)
    exact = program(x.float(), w.float())  # of small integers, rounded to bf16 once
    compiled = deplo.compile(program, (x, w), target="cpu")
    assert torch.equal(compiled(x, w), exact.bfloat16())
    x[0, -1, ..., -1] = NAN
    expected = program(x.float(), w.float()).bfloat16()
    torch.testing.assert_close(compiled(x, w), expected, equal_nan=True, rtol=0, atol=0)


def test_a_gated_layer_shares_its_rows(tiles) -> None:
    x, a, b = (torch.randint(-3, 4, shape).bfloat16() for shape in ((40, 96), (70, 96), (70, 96)))

    def program(x, a, b):
        return (x @ a.T).float() * (x @ b.T).float()

    compiled = deplo.compile(program, (x, a, b), target="cpu")
    assert torch.equal(compiled(x, a, b), program(x, a, b))


def test_more_factors_than_registers(tiles) -> None:
    """Five products of one sweep, of ten factors, have no matrix tiles."""
    tensors = [torch.randint(-3, 4, (40, 96)).bfloat16() for _ in range(10)]

    def program(*tensors):
        return sum(
            (a.float() @ b.float().T).tanh()
            for a, b in zip(tensors[::2], tensors[1::2], strict=True)
        )

    compiled = deplo.compile(program, tuple(tensors), target="cpu")
    torch.testing.assert_close(compiled(*tensors), program(*tensors))


def test_gradients_of_a_layer(tiles) -> None:
    layer = nn.Sequential(nn.Linear(96, 70), nn.ReLU(), nn.Linear(70, 40)).bfloat16()
    for parameter in layer.parameters():
        parameter.data = torch.randint(-1, 2, parameter.shape).bfloat16()
    x = torch.randint(-1, 2, (33, 96)).bfloat16()
    found = []
    with torch._dynamo.config.patch(fail_on_recompile_limit_hit=True):
        for function in (layer, torch.compile(layer, backend="deplo")):
            layer.zero_grad()
            function(x).sum().backward()
            found.append([p.grad.clone() for p in layer.parameters()])
    for eager, ours in zip(*found, strict=True):
        torch.testing.assert_close(ours, eager)


ATTENTIONS = {
    "even": ((2, 4, 64, 64), (2, 4, 64, 64), 64, False),
    "odd": ((1, 3, 77, 40), (1, 3, 101, 40), 50, False),
    "long": ((1, 2, 130, 64), (1, 2, 1100, 64), 64, False),
    "causal": ((1, 3, 77, 64), (1, 3, 77, 64), 64, True),
    "causal and long": ((1, 2, 700, 32), (1, 2, 700, 32), 48, True),
    "causal with few rows": ((1, 3, 7, 16), (1, 3, 130, 16), 16, True),
    "causal with odd rows": ((2, 2, 33, 48), (2, 2, 130, 48), 48, True),
    "few rows": ((2, 3, 5, 64), (2, 3, 130, 64), 64, False),
}


@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name, tiles) -> None:
    """No further from the truth than PyTorch's own, which rounds weights to bf16, too."""
    rows, columns, width, causal = ATTENTIONS[name]
    q, k = torch.randn(rows).bfloat16(), torch.randn(columns).bfloat16()
    v = torch.randn(*columns[:-1], width).bfloat16()

    def program(q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

    compiled = deplo.compile(program, (q, k, v), target="cpu")
    assert ("by matrix tiles" in str(compiled.report()["decisions"])) == tiles
    exact = program(q.double(), k.double(), v.double())
    ours, eager = ((f(q, k, v).double() - exact).abs().max() for f in (compiled, program))
    assert ours <= max(2 * eager, exact.abs().max() * 2**-8)
    q[0, 0, 1, 0], v[0, -1, -1, 1], v[0, -1, 0, 0] = NAN, INF, -INF
    expected = program(q.double(), k.double(), v.double()).bfloat16()
    torch.testing.assert_close(compiled(q, k, v), expected, equal_nan=True, rtol=0.05, atol=0.02)


def test_the_mean_of_equal_values_is_the_value(tiles) -> None:
    """What weights are rounded to is also what they are divided by."""
    q, k = torch.randn(1, 2, 70, 64).bfloat16(), torch.randn(1, 2, 90, 64).bfloat16()
    v = torch.linspace(-3, 3, 64).bfloat16().expand(1, 2, 90, 64).contiguous()
    compiled = deplo.compile(nn.functional.scaled_dot_product_attention, (q, k, v), target="cpu")
    assert torch.equal(compiled(q, k, v), v[:, :, :70])


@needs_tiles
def test_pytorch_may_use_them_in_between() -> None:
    """Both configure the registers of the same thread, and give them back."""
    x, w = torch.randint(-8, 9, (64, 96)).bfloat16(), torch.randint(-8, 9, (64, 96)).bfloat16()
    compiled = deplo.compile(widened, (x, w), target="cpu")
    for _ in range(5):
        assert torch.equal(compiled(x, w).bfloat16(), x @ w.T)
