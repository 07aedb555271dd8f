"""K shared out between blocks: every epilogue, every dtype and several sums, stage by stage and race-free."""

import pytest
import torch
import torch.nn.functional as F
from kernel_programs import cubin
from stages import assert_stages_agree
from xdsl.dialects.builtin import ModuleOp

from deplo import compile
from deplo.analysis.tiling_choice import choose
from deplo.analysis.tilings import Problem
from deplo.analysis.verify import verify_module
from deplo.dialects.kernel_atomic import AtomicAddOp
from deplo.frontend.sources import Program as Source
from deplo.machine.targets import TARGETS
from deplo.passes.decisions import Decision, recording
from deplo.passes.tile.split_matmul_k import SplitMatmulKPass
from deplo.program_stages import make_context, passes_to
from deplo.tools.check_each_pass import PassChecker
from deplo.tools.executors import make_checker

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


def atomically(program, args) -> tuple[ModuleOp, list[Decision], PassChecker]:
    """A program after each pass to CUDA, checked, with the parts added atomically."""
    compiled = compile(program, args, target="sm_90a")
    module = compiled.captured.module.clone()
    checker = make_checker(compiled.captured, Source(program, args), "sm_90a")
    checker.begin(module)
    with recording() as decisions:
        for _, passes in passes_to("cuda", compiled.target, "SK=3,BM=8,BN=16,BK=8,FM=2,FN=2"):
            for each in passes:
                atomics = each.name == "split-matmul-k"
                each = SplitMatmulKPass(atomics=True) if atomics else each
                each.apply(make_context(), module)
                checker.after_pass(each, module)
    verify_module(module)
    return module, [d for d in decisions if d.pass_name == "split-matmul-k"], checker


def linear(x, w, r):
    return (r - F.linear(x, w) * 0.5) / 3 + x[0, 0]


@pytest.mark.parametrize("program", [scaled, residual, linear, batched])
def test_parts_are_added_atomically_where_the_epilogue_is_linear(program, capsys) -> None:
    module, decisions, checker = atomically(program, operands(torch.float32))
    assert [d.reason for d in decisions if d.fired] == ["3 parts of 24 of K, added atomically"]
    assert any(isinstance(op, AtomicAddOp) for op in module.walk())
    assert checker.checked > 20
    assert "not executed" not in capsys.readouterr().err
    for architecture in ("sm_80", "sm_90a", "sm_120"):
        for usage in cubin(module, architecture).usage.values():
            assert usage.spill_stores + usage.spill_loads == 0


def test_parts_are_not_added_atomically_where_that_is_another_result() -> None:
    reasons = {
        relu: "the epilogue is not linear in the sum: ",
        gated: "the epilogue is not linear in the sum: ",
    }
    for program, reason in reasons.items():
        module, decisions, _ = atomically(program, operands(torch.float32))
        (declined,) = [d for d in decisions if not d.fired and "splits no K" not in d.reason]
        assert declined.reason.startswith(reason)
        assert not any(isinstance(op, AtomicAddOp) for op in module.walk())
    _, decisions, _ = atomically(residual, operands(torch.bfloat16))
    assert "the epilogue is not linear in the sum: arith.truncf" in [d.reason for d in decisions]


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
