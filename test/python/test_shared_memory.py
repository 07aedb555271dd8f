"""Shared memory above what a kernel may declare: in the plan, at the launch, within what the target has."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from ir_programs import make_context, parse
from kernel_programs import cubin
from xdsl.dialects.builtin import ModuleOp

from deplo.analysis.plan import build_plan
from deplo.codegen.cuda_printer import kernel_texts
from deplo.errors import DeploError
from deplo.passes.kernel.lower_to_cuda import LowerToCudaPass
from deplo.runtime import cuda_driver
from deplo.runtime.cuda_kernels import CudaKernels
from deplo.runtime.nvrtc import Cubin, Usage
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Ref

SOURCE = """
kernel.func @k(%x: memref<32xf32>, %y: memref<32xf32>) blocks(1) threads(32) {
  %t = kernel.thread_id
  %s = kernel.shared : memref<COUNTxf32, "shared">
  %v = loop.load %x[%t] : memref<32xf32>
  loop.store %v, %s[%t * 300] : memref<COUNTxf32, "shared">
  kernel.barrier
  %w = loop.load %s[%t * -300 + 9300] : memref<COUNTxf32, "shared">
  loop.store %w, %y[%t] : memref<32xf32>
}
func.func @main(%x: memref<32xf32>) -> memref<32xf32> {
  %y = kernel.alloc : memref<32xf32>
  kernel.launch @k(%x, %y) blocks(1) threads(32) : memref<32xf32>, memref<32xf32>
  func.return %y : memref<32xf32>
}
"""


def lowered(count: int) -> ModuleOp:
    """A kernel with `count` floats in shared memory, as CUDA."""
    module = parse(SOURCE.replace("COUNT", str(count)))
    LowerToCudaPass().apply(make_context(), module)
    module.verify()
    return module


def plan_of(count: int, target: str) -> dict[str, Any]:
    module = lowered(count)
    return json.loads(json.dumps(build_plan(module, target, kernel_texts(module))))


def test_the_plan_says_what_a_launch_asks_for() -> None:
    assert "shared_bytes" not in plan_of(12288, "sm_80")["kernels"][0]
    data = plan_of(12289, "sm_80")
    assert data["kernels"][0]["shared_bytes"] == 49156
    assert Plan.from_data(data).kernels[0].shared_bytes == 49156


def test_more_than_a_block_of_the_target_can_have_is_refused() -> None:
    assert plan_of(50000, "sm_90a")["kernels"][0]["shared_bytes"] == 200000
    with pytest.raises(
        DeploError, match="@k needs 200000 bytes of shared memory, a block of sm_80 can have 166912"
    ):
        plan_of(50000, "sm_80")


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_120"])
def test_it_compiles(architecture: str) -> None:
    usage = cubin(lowered(20000), architecture).usage["k"]
    assert (usage.spill_stores, usage.spill_loads, usage.shared_bytes) == (0, 0, 0)


def test_the_driver_is_asked_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def answer(what: str) -> Any:
        return lambda *arguments: asked.append((what, *arguments)) or (0, f"the {what}")

    attributes = SimpleNamespace(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES="most")
    driver = SimpleNamespace(
        CUresult=SimpleNamespace(CUDA_SUCCESS=0),
        CUfunction_attribute=attributes,
        cuModuleLoadData=answer("module"),
        cuModuleGetFunction=answer("function"),
        cuFuncSetAttribute=answer("attribute"),
        cuLaunchKernel=answer("launch"),
    )
    monkeypatch.setattr(cuda_driver, "driver", lambda: driver)
    for count, bytes in ((64, 0), (20000, 80000)):
        plan = Plan.from_data(plan_of(count, "sm_80"))
        cubins = {"k": Cubin("sm_80", b"code", {"k": Usage(8, 0, 0, 0, 0)})}
        kernels = CudaKernels(plan.kernels, cubins)
        asked.clear()
        pointers = {Ref("argument", 0): 4096, Ref("buffer", 0): 8192}
        kernels.launch(plan, plan.launches[0], pointers, 0, 7)
        assert [call for call in asked if call[0] == "attribute"] == (
            [("attribute", "the function", "most", bytes)] if bytes else []
        )
        assert asked[-1][:9] == ("launch", "the function", 1, 1, 1, 32, 1, 1, bytes)
