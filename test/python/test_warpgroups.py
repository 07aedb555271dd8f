"""Products of slabs by warpgroups: whose sums are whose, what programs compute, and what may not happen."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from ir_programs import parse
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.rewriter import Rewriter

import deplo
from deplo import interpreter
from deplo.analysis.architecture import require_architecture
from deplo.analysis.tiling_choice import choose
from deplo.analysis.tilings import Problem
from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects import kernel
from deplo.dialects.inside import ops_in
from deplo.dialects.kernel import BarrierOp, MbarrierWaitOp, WgmmaOp
from deplo.errors import DeploError, UsageError
from deplo.interpreter.device_memory import MachineFault
from deplo.machine.matrix_instructions import HALVES
from deplo.machine.targets import get_target
from deplo.runtime.nvrtc import compile_cuda

STAGES = ("tile", "kernel", "cuda")
ONE = "mma=2,BM=64,BN=32,BK=64,FM=2,FN=8,stages=2,transport=tma,SK=1"
TWO = "mma=2,BM=128,BN=64,BK=64,FM=2,FN=16,stages=3,transport=tma,SK=1"
TALL = "mma=2,BM=128,BN=16,BK=64,FM=4,FN=4,stages=2,transport=tma,SK=1"
PARTS = "mma=2,BM=64,BN=64,BK=64,FM=2,FN=16,stages=2,transport=tma,SK=2"


def bits(value: torch.Tensor) -> np.ndarray:
    """A tensor as the interpreter takes it."""
    return value.float().numpy() if value.dtype == torch.bfloat16 else value.numpy()


def linear(m: int, n: int, k: int, dtype: torch.dtype) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(m + n + k)
    shapes = [(m, k), (n, k), (n,)]
    return [torch.randint(-4, 5, shape, generator=generator).to(dtype) for shape in shapes]


def compiled(inputs: list[torch.Tensor], schedule: str | None) -> deplo.Program:
    return deplo.compile(
        lambda x, w, b: torch.nn.functional.linear(x, w, b).relu(),
        inputs,
        target="sm_90a",
        schedule=schedule,
    )


@pytest.mark.sample(8)
@pytest.mark.parametrize("schedule", [ONE, TWO, TALL, PARTS])
@pytest.mark.parametrize("sizes", [(128, 64, 192), (70, 72, 136), (2, 8, 64), (64, 33, 200)])
def test_every_stage_computes_the_product(sizes: tuple[int, int, int], schedule: str) -> None:
    """Also where rows, columns and K come in no whole blocks: what is past their ends reads as 0."""
    inputs = linear(*sizes, torch.bfloat16)
    program = compiled(inputs, schedule)
    assert any("wgmma.mma_async" in kernel.source for kernel in program.kernels)
    x, w, b = (each.double() for each in inputs)
    expected = (x @ w.T + b).relu().to(torch.bfloat16).float().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        np.testing.assert_array_equal(got, expected, err_msg=stage)


ONE_PANEL = "mma=2,BM=64,BN=64,BK=64,FM=2,FN=16,stages=2,transport=tma,SK=1"
WIDE = "mma=2,BM=64,BN=128,BK=64,FM=2,FN=32,stages=2,transport=tma,SK=1"
TALLER = "mma=2,BM=128,BN=192,BK=64,FM=4,FN=48,stages=2,transport=tma,SK=1"
WIDEST = "mma=2,BM=128,BN=256,BK=64,FM=2,FN=64,stages=2,transport=tma,SK=1"


def matrices(*shapes: tuple[int, ...], dtype: torch.dtype = torch.bfloat16) -> list[torch.Tensor]:
    """Small integers, whose sums of products 16 bits can have."""
    generator = torch.Generator().manual_seed(len(shapes))
    return [torch.randint(-1, 2, shape, generator=generator).to(dtype) for shape in shapes]


def check(
    function: Callable[..., torch.Tensor], inputs: list[torch.Tensor], schedule: str | None
) -> deplo.Program:
    """Warpgroups multiply, and every stage computes what PyTorch does in 64 bits."""
    program = deplo.compile(function, inputs, target="sm_90a", schedule=schedule)
    assert any("wgmma.mma_async" in kernel.source for kernel in program.kernels)
    expected = function(*(each.double() for each in inputs)).to(inputs[0].dtype).float().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        np.testing.assert_array_equal(got, expected, err_msg=stage)
    return program


@pytest.mark.sample(8)
@pytest.mark.parametrize("schedule", [PARTS, TWO, WIDE, TALLER, WIDEST])
@pytest.mark.parametrize("sizes", [(128, 128, 192), (70, 72, 136), (2, 8, 64), (64, 200, 200)])
def test_columns_may_be_innermost(sizes: tuple[int, int, int], schedule: str) -> None:
    """Also where they, rows and K come in no whole panels."""
    m, n, k = sizes
    check(torch.matmul, matrices((m, k), (k, n)), schedule)


@pytest.mark.parametrize("schedule", [PARTS, WIDE])
def test_batches_of_columns(schedule: str) -> None:
    check(torch.matmul, matrices((3, 70, 136), (3, 136, 72), dtype=torch.float16), schedule)


def test_what_follows_a_product_by_columns() -> None:
    def biased(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return (x @ w + b).relu()

    check(biased, matrices((70, 136), (136, 72), (72,)), WIDE)


def test_products_of_shared_rows_by_columns_either_way() -> None:
    """One of slabs whose columns are innermost, and one of slabs that have K there."""

    def gated(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ v).clamp(-1, 1) * (x @ w)

    def mixed(x: torch.Tensor, v: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return (x @ v).clamp(-1, 1) * torch.nn.functional.linear(x, w)

    check(gated, matrices((70, 136), (136, 72), (136, 72)), ONE_PANEL)
    program = check(mixed, matrices((70, 136), (136, 72), (72, 136)), ONE_PANEL)
    text = cuda_source(program.stage("cuda"))
    assert {"1, 1, 1, 0, 0;", "1, 1, 1, 0, 1;"} == set(re.findall(r"1, 1, 1, 0, \d;", text))


def test_what_is_printed_for_columns() -> None:
    """A panel has 64 positions of 128 bytes; 16 of these are 128 units of a descriptor.

    Of operands that are "MN-major" with a swizzle of 128 bytes, the leading dimension byte offset is the
    distance between panels, the stride dimension byte offset that between 8 positions of K (PTX ISA).
    """
    program = deplo.compile(
        torch.matmul, matrices((64, 128), (128, 128)), target="sm_90a", schedule=WIDE
    )
    text = cuda_source(program.stage("cuda"))
    multiplied = re.findall(r"m64n128k16[^;]*1, 1, 1, 0, 1;.*?(\"l\"\(rows.*\));", text)
    steps = (("", ""), (" + 2", " + 128"), (" + 4", " + 256"), (" + 6", " + 384"))
    assert multiplied == [f'"l"(rows{row}), "l"(columns{step}))' for row, step in steps]
    (told,) = re.findall(r"columns = .*\| (0x\w+)ull;", text)
    assert int(told, 16) >> 62 == 1
    leading, stride = ((int(told, 16) >> bit & 0x3FFF) * 16 for bit in (16, 32))
    for step, k, n in product(range(4), (0, 7, 8, 15), (0, 63, 64, 127)):
        read = step * 128 * 16 + n // 64 * leading + n % 64 * 2 + k // 8 * stride + k % 8 * 128
        assert read == ((n // 64 * 64 + step * 16 + k) * 64 + n % 64) * 2


def heads(h: int, n: int, d: int) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(h + n + d)
    shapes = [(h, n, d), (72, h * d)]
    return [torch.randint(-4, 5, shape, generator=generator).to(torch.bfloat16) for shape in shapes]


def after_heads(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.linear(x.transpose(0, 1).flatten(1), w)


@pytest.mark.sample(3)
@pytest.mark.parametrize("schedule", [ONE, TWO, PARTS])
@pytest.mark.parametrize("sizes", [(4, 70, 64), (2, 64, 128), (3, 2, 128)])
def test_positions_may_come_in_heads(sizes: tuple[int, int, int], schedule: str) -> None:
    """As they do after attention: 64 of them are neighbours, or more."""
    inputs = heads(*sizes)
    program = deplo.compile(after_heads, inputs, target="sm_90a", schedule=schedule)
    assert any("wgmma.mma_async" in kernel.source for kernel in program.kernels)
    expected = after_heads(*(each.double() for each in inputs)).to(torch.bfloat16).float().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        np.testing.assert_array_equal(got, expected, err_msg=stage)


def test_heads_of_fewer_neighbours_are_left_to_warps() -> None:
    inputs = heads(4, 64, 32)
    program = deplo.compile(after_heads, inputs, target="sm_90a", schedule="mma=2")
    assert not any("wgmma" in kernel.source for kernel in program.kernels)


def test_halves_and_specials() -> None:
    """f16, with a NaN and an infinity, which stay in their rows."""
    x, w, b = linear(64, 32, 128, torch.float16)
    x[3, 5], x[40, 100] = float("nan"), float("inf")
    w[:, 100] = 1
    program = deplo.compile(lambda x, w, b: x @ w.T + b, (x, w, b), target="sm_90a", schedule=ONE)
    expected = (x.float() @ w.float().T + b).half().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), [bits(v) for v in (x, w, b)])
        np.testing.assert_array_equal(got, expected, err_msg=stage)


def test_what_is_printed() -> None:
    """Two warpgroups multiply 64 rows each, in steps of 16 positions: 32 bytes, two units of a descriptor."""
    text = cuda_source(compiled(linear(128, 64, 128, torch.bfloat16), TWO).stage("cuda"))
    assert (
        len(re.findall(r"wgmma\.mma_async\.sync\.aligned\.m64n64k16\.f32\.bf16\.bf16", text)) == 4
    )
    assert "0x4000004000010000ull) + threadIdx.x / 128 * 512;" in text
    assert [f'"l"(rows{s}), "l"(columns{s})' in text for s in ("", " + 2", " + 4", " + 6")] == [
        True
    ] * 4
    assert (
        text.index("wgmma.fence") < text.index("wgmma.mma_async") < text.index("wgmma.wait_group")
    )


def test_the_registers_of_the_instruction_hold_what_ptx_says() -> None:
    """D has, of each 8 columns, two sums of a row and two of the row 8 further ("wgmma.m64nNk16").

    The sums of a thread are row by row here: 8 of its first row, from 0 on, then those of the other.
    """
    text = cuda_source(compiled(linear(64, 32, 64, torch.bfloat16), ONE).stage("cuda"))
    line = next(each for each in text.splitlines() if "wgmma.mma_async" in each)
    places = [int(place) for place in re.findall(r'"\+f"\(\w+\[(\d+)\]\)', line)]
    assert places == [row + two + i for two in (0, 2, 4, 6) for row in (0, 8) for i in (0, 1)]


@pytest.mark.parametrize(
    "follows",
    [
        lambda x, w, v: F.linear(x, w),
        lambda x, w, v: F.linear(x, w, v[:, 0]).relu(),
        lambda x, w, v: F.silu(F.linear(x, w)),
        lambda x, w, v: F.silu(F.linear(x, w)) * F.linear(x, v),
    ],
    ids=["nothing", "bias and relu", "silu", "a gate"],
)
def test_no_product_waits_for_the_one_before(follows: Callable[..., torch.Tensor]) -> None:
    """ptxas says so (C7514) where it puts something that reads sums in front of the wait for them."""
    x, w, _ = linear(256, 192, 512, torch.bfloat16)
    asked = "mma=2,BM=128,BN=64,FM=2,FN=16,SK=1"
    program = deplo.compile(follows, (x, w, w.flip(0)), target="sm_90a", schedule=asked)
    sources = [kernel.source for kernel in program.kernels if "wgmma" in kernel.source]
    assert ["wait_group.sync.aligned 1;" in source for source in sources] == [True]
    assert compile_cuda(sources[0], "sm_90a").warnings == ()


def without(module: ModuleOp, is_gone: Callable[[Operation], bool]) -> ModuleOp:
    """A module without some operations that have no results."""
    module = parse(str(module))
    for op in [o for o in ops_in(module) if is_gone(o)]:
        op.detach()
        op.erase()
    return module


def test_a_slab_that_has_not_arrived_is_not_multiplied() -> None:
    inputs = linear(64, 32, 256, torch.bfloat16)
    module = compiled(inputs, ONE).stage("kernel")
    broken = without(module, lambda op: isinstance(op, MbarrierWaitOp))
    with pytest.raises(MachineFault, match="wgmma"):
        interpreter.execute(broken, list(map(bits, inputs)))


def test_a_slab_is_not_filled_while_it_is_multiplied() -> None:
    """Without the barrier in the loop the engine may fill what another warp still multiplies."""
    inputs = linear(64, 32, 512, torch.bfloat16)
    module = compiled(inputs, ONE).stage("kernel")
    (product,) = [op for op in ops_in(module) if isinstance(op, WgmmaOp)]
    assert product.parent is not None
    in_loop = {op.location for op in product.parent.ops if isinstance(op, BarrierOp)}
    assert in_loop
    broken = without(
        module,
        lambda op: isinstance(op, BarrierOp) and type(op.parent_op()).__name__ == "ForOp",
    )
    with pytest.raises(MachineFault, match="race"):
        interpreter.execute(broken, list(map(bits, inputs)))


def test_a_slab_is_not_filled_while_a_product_that_goes_on_reads_it() -> None:
    """One product may be on its way behind the barrier; copies fill what the one before it read."""
    inputs = linear(64, 32, 512, torch.bfloat16)
    module = compiled(inputs, ONE).stage("kernel")
    assert str(module).count("leaving 1") == 1
    late = parse(str(module).replace("leaving 1", "leaving 2"))
    with pytest.raises(MachineFault, match="may still read: nobody has waited for it"):
        interpreter.execute(late, list(map(bits, inputs)))


def test_a_kernel_does_not_end_before_its_products() -> None:
    inputs = linear(64, 32, 512, torch.bfloat16)
    module = compiled(inputs, ONE).stage("cuda")
    (wait,) = [op for op in ops_in(module) if isinstance(op, kernel.WgmmaWaitOp)]
    Rewriter.replace_op(wait, [], wait.sums)
    with pytest.raises(MachineFault, match="is on its way when the kernel ends"):
        interpreter.execute(module, list(map(bits, inputs)))


def test_the_model_takes_warpgroups_where_there_are() -> None:
    """On Hopper, for halves with K or columns innermost; not on others, nor where rows are."""
    problem = Problem(
        1,
        4096,
        4096,
        4096,
        1,
        2,
        2,
        3 << 25,
        instruction=HALVES,
        boxes=True,
        rows_along_k=True,
        column_step=8,
    )
    for target, wanted in (("sm_80", 1), ("sm_90a", 2), ("sm_100a", 1), ("sm_120", 1)):
        tiling = choose(problem, {}, get_target(target))
        assert not isinstance(tiling, str)
        assert tiling.mma == wanted, target
    for rows_along_k, step, wanted in ((True, 64, 2), (False, 8, 1), (True, 0, 1)):
        other = replace(problem, rows_along_k=rows_along_k, column_step=step)
        tiling = choose(other, {}, get_target("sm_90a"))
        assert not isinstance(tiling, str)
        assert (tiling.mma, tiling.block_n % 64) == (wanted, 0)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("mma=2,BM=32,BN=32", "multiplies 64 rows at once"),
        ("mma=2,BK=32", "slabs of 64 positions of K"),
        ("mma=2,BM=64,BN=12", "8 to 256 columns"),
    ],
)
def test_what_no_warpgroup_can_do_is_an_error(asked: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        compiled(linear(64, 64, 64, torch.bfloat16), asked)


def test_no_matrices_may_be_asked_for() -> None:
    program = compiled(linear(64, 64, 64, torch.bfloat16), "mma=0")
    assert not any("mma" in kernel.source for kernel in program.kernels)


@pytest.mark.parametrize("target", ["sm_100a", "sm_120"])
def test_only_one_architecture_has_warpgroups(target: str) -> None:
    module = compiled(linear(64, 64, 64, torch.bfloat16), ONE).stage("cuda")
    require_architecture(module, "sm_90a")
    with pytest.raises(DeploError, match=f"needs sm_90a.*target is {target}"):
        require_architecture(module, target)
