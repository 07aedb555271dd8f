"""K shared out between blocks: every epilogue, every dtype and several sums, stage by stage and race-free."""

import pytest
import torch
import torch.nn.functional as F
from stages import assert_stages_agree

from deplo import compile
from deplo.analysis.targets import TARGETS
from deplo.analysis.tilings import Problem, choose
from deplo.frontend.sources import Program as Source

ROWS, COLUMNS, DEPTH = 24, 40, 70


def scaled(x, w, r):
    return F.linear(x, w) * 0.5 * r


def residual(x, w, r):
    return F.linear(x, w) + r


def relu(x, w, r):
    return F.relu(F.linear(x, w))


def gated(x, w, r):
    return F.silu(F.linear(x, w)) * F.linear(x, w + 1)


def batched(x, w, r):
    return torch.bmm(x.view(2, 12, DEPTH), w.view(2, 20, DEPTH).mT)


def operands(dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    shapes = ((ROWS, DEPTH), (COLUMNS, DEPTH), (ROWS, COLUMNS))
    return tuple(torch.randn(shape).to(dtype) for shape in shapes)


@pytest.mark.parametrize("program", [scaled, residual, relu, gated, batched])
def test_any_epilogue_follows_the_fold(program, capsys) -> None:
    args = operands(torch.float32)
    compiled = compile(program, args, target="sm_90a", schedule="SK=3,BM=8,BN=16,BK=8,FM=2,FN=2")
    assert_stages_agree(compiled, Source(program, args), capsys)
    names = [kernel.name for kernel in compiled.kernels]
    assert [name.rsplit("_", 1)[1] for name in names][-2:] == ["partial", "fold"]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_partial_sums_of_half_types_are_not_rounded(dtype, capsys) -> None:
    args = operands(dtype)
    compiled = compile(residual, args, target="sm_80", schedule="SK=2")
    assert_stages_agree(compiled, Source(residual, args), capsys)
    assert "tensor<2x24x40xf32>" in compiled.ir("tile")


@pytest.mark.parametrize("target", [name for name, t in TARGETS.items() if t.is_gpu])
def test_a_grid_that_is_too_small_is_split_and_one_that_fills_the_machine_is_not(target) -> None:
    few = choose(Problem(1, 32, 512, 3584, 1, 4, 4), {}, TARGETS[target])
    many = choose(Problem(1, 4096, 4096, 4096, 1, 4, 4), {}, TARGETS[target])
    assert few.split_k >= 28
    assert many.split_k == 1


@pytest.mark.parametrize("target", [name for name, t in TARGETS.items() if t.is_gpu])
@pytest.mark.parametrize("results", [1, 2, 3])
def test_two_blocks_of_what_is_chosen_fit_a_multiprocessor(results: int, target: str) -> None:
    machine = TARGETS[target]
    problem = Problem(1, 512, 18944, 3584, results, 4, 4 * results)
    tiling = choose(problem, {}, machine)
    need = problem.registers(tiling)
    assert need <= 224
    assert 2 * need * tiling.threads <= machine.registers
    assert 2 * (problem.slab_bytes(tiling) + 1024) <= machine.shared_bytes
