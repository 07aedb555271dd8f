"""Clusters of blocks that share slabs: what programs compute, what is printed, and what may not happen."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from ir_programs import parse
from test_warpgroups import STAGES, bits, compiled, linear
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Operation

import deplo
from deplo import interpreter
from deplo.analysis.architecture import require_architecture
from deplo.codegen.cuda_printer import cuda_source
from deplo.dialects.inside import ops_in
from deplo.dialects.kernel import BarrierOp, FuncOp
from deplo.errors import DeploError
from deplo.interpreter.device_memory import MachineFault

ROWS = "mma=2,BM=64,BN=32,stages=3,transport=tma,SK=1,CM=2"
COLUMNS = "mma=2,BM=128,BN=16,FM=2,FN=4,stages=2,transport=tma,SK=1,CN=2"
PARTS = "mma=2,BM=64,BN=64,stages=2,transport=tma,SK=2,CM=2"


@pytest.mark.sample(8)
@pytest.mark.parametrize("schedule", [ROWS, COLUMNS, PARTS])
@pytest.mark.parametrize("sizes", [(256, 64, 192), (70, 72, 136), (128, 25, 64), (200, 30, 648)])
def test_every_stage_computes_the_product(sizes: tuple[int, int, int], schedule: str) -> None:
    """Also where rows, columns and K come in no whole blocks, and where no blocks form clusters."""
    inputs = linear(*sizes, torch.bfloat16)
    program = compiled(inputs, schedule)
    x, w, b = (each.double() for each in inputs)
    expected = (x @ w.T + b).relu().to(torch.bfloat16).float().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        np.testing.assert_array_equal(got, expected, err_msg=stage)


def test_gates_and_batches_share_slabs() -> None:
    """Two products of one input, and products of a batch, whose blocks form clusters within each."""
    generator = torch.Generator().manual_seed(0)

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randint(-4, 5, shape, generator=generator).to(torch.bfloat16)

    x, gate, up = numbers(256, 128), numbers(64, 128), numbers(64, 128)
    batch, others = numbers(3, 128, 64), numbers(3, 40, 64)

    def multiply(
        x: torch.Tensor, gate: torch.Tensor, up: torch.Tensor, a: torch.Tensor, b: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return (x @ gate.T).relu() * (x @ up.T), a @ b.mT

    inputs = [x, gate, up, batch, others]
    program = deplo.compile(multiply, inputs, target="sm_90a", schedule="mma=2,BM=64,BN=32,CM=2")
    assert [cluster_of(each) for each in functions(program.stage("kernel"))] == [2, 2]
    expected = [
        (
            (x.double() @ gate.double().T).bfloat16().relu()
            * (x.double() @ up.double().T).bfloat16()
        ),
        (batch.double() @ others.double().mT).bfloat16(),
    ]
    for stage in STAGES:
        got = interpreter.execute(program.stage(stage), list(map(bits, inputs)))
        for ours, theirs in zip(got, expected, strict=True):
            np.testing.assert_array_equal(ours, theirs.float().numpy(), err_msg=stage)


def functions(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.body.block.ops if isinstance(op, FuncOp)]


def cluster_of(function: FuncOp) -> int | None:
    return None if function.cluster is None else function.cluster.value.data


def test_what_is_printed() -> None:
    """PTX ISA, "cp.async.bulk.tensor": `.multicast::cluster` has a mask of the blocks as last operand."""
    text = cuda_source(compiled(linear(256, 64, 192, torch.bfloat16), ROWS).stage("cuda"))
    assert "__cluster_dims__(2, 1, 1) k_relu_reduce(" in text
    copies = [line for line in text.splitlines() if "cp.async.bulk.tensor" in line]
    shared = [line for line in copies if ".multicast::cluster" in line]
    assert len(copies) == 2 * len(shared) > 0
    assert all("shared::cluster.global" in line and "[%2], 3;" in line for line in shared)
    assert text.index("fence.mbarrier_init.release.cluster") < text.index("barrier.cluster.arrive")
    assert text.index("barrier.cluster.arrive") < text.index("cp.async.bulk.tensor")


def test_old_gpus_have_none() -> None:
    module = compiled(linear(256, 64, 192, torch.bfloat16), ROWS).stage("cuda")
    with pytest.raises(DeploError, match="sm_80"):
        require_architecture(module, "sm_80")


def changed(module: ModuleOp, change: Callable[[Operation], None]) -> ModuleOp:
    """A copy of a module with some barriers changed."""
    module = parse(str(module))
    for op in [o for o in ops_in(module) if isinstance(o, BarrierOp)]:
        change(op)
    return module


def is_in_loop(op: Operation) -> bool:
    return type(op.parent_op()).__name__ == "ForOp"


def test_a_slab_is_not_filled_while_another_block_multiplies_it() -> None:
    """With a barrier of the block in place of the cluster's, the other may still read the buffer."""
    inputs = linear(256, 64, 512, torch.bfloat16)

    def narrow(op: Operation) -> None:
        if is_in_loop(op):
            del op.properties["cluster"]

    broken = changed(compiled(inputs, ROWS).stage("kernel"), narrow)
    with pytest.raises(MachineFault, match="another block touched, and the cluster has not met"):
        interpreter.execute(broken, list(map(bits, inputs)))


def test_no_block_copies_to_another_that_has_not_begun() -> None:
    """The barriers on which copies arrive must be initialised in all blocks of the cluster."""
    inputs = linear(256, 64, 512, torch.bfloat16)

    def narrow(op: Operation) -> None:
        if not is_in_loop(op):
            del op.properties["cluster"]

    broken = changed(compiled(inputs, ROWS).stage("kernel"), narrow)
    with pytest.raises(MachineFault, match="its cluster has not met since it was initialised"):
        interpreter.execute(broken, list(map(bits, inputs)))


def test_a_relaxed_barrier_shows_nothing() -> None:
    """The first barrier shows that others were initialised; a relaxed one would not."""
    inputs = linear(256, 64, 512, torch.bfloat16)
    module = compiled(inputs, ROWS).stage("kernel")
    assert str(module).count("barrier cluster relaxed") == 1

    def relax(op: Operation) -> None:
        op.properties["relaxed"] = UnitAttr()

    with pytest.raises(MachineFault, match="is relaxed, and does not show that an mbarrier"):
        interpreter.execute(changed(module, relax), list(map(bits, inputs)))


@pytest.mark.parametrize("schedule", ["CM=2", "CN=2"])
def test_panels_of_columns_are_shared(schedule: str) -> None:
    """Where columns are innermost, a block has half of the positions of K brought to both."""
    generator = torch.Generator().manual_seed(0)
    x, w = (
        torch.randint(-4, 5, shape, generator=generator).to(torch.bfloat16)
        for shape in ((256, 136), (136, 264))
    )
    asked = f"mma=2,BM=64,BN=128,stages=3,SK=1,{schedule}"
    program = deplo.compile(lambda x, w: x @ w, (x, w), target="sm_90a", schedule=asked)
    shared = [cluster_of(each) for each in functions(program.stage("kernel"))]
    assert shared == (
        [2] if schedule == "CM=2" else [None]
    )  # three blocks of columns make no pairs
    expected = (x.double() @ w.double()).to(torch.bfloat16).float().numpy()
    for stage in STAGES:
        (got,) = interpreter.execute(program.stage(stage), [bits(x), bits(w)])
        np.testing.assert_array_equal(got, expected, err_msg=stage)
