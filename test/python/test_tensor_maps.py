"""Tensor maps: data in the plan, read back and checked, and what the driver is asked to encode."""

import copy
import ctypes
import json
from types import SimpleNamespace
from typing import Any

import pytest
from ir_programs import make_context, parse
from kernel_programs import PROGRAMS
from xdsl.dialects.builtin import MemRefType, f32
from xdsl.ir import Block, Region

from deplo.analysis.plan import build_plan
from deplo.codegen.cuda_printer import kernel_texts
from deplo.dialects.kernel import FuncOp, TensorMapType
from deplo.dialects.loop import KernelOp
from deplo.dialects.tile import LaunchOp
from deplo.errors import DeploError
from deplo.passes.host import Device, lower_host
from deplo.passes.kernel.assign_arena import AssignArenaPass
from deplo.runtime import cuda_driver
from deplo.runtime.cuda_kernels import CudaKernels
from deplo.runtime.gpus import TorchGpu
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Array, Ref, TensorMap
from deplo.runtime.tensor_maps import DATA_TYPES, Description, describe, encode


@pytest.fixture
def data() -> dict[str, Any]:
    module = PROGRAMS["bulk pipeline"].cuda_module()
    return json.loads(json.dumps(build_plan(module, "sm_90a", kernel_texts(module))))


def test_a_tensor_map_is_data_of_the_plan(data: dict[str, Any]) -> None:
    assert data["tensor_maps"] == [{"of": {"argument": 0}, "box": [1, 256], "swizzle": 0}]
    assert data["steps"][0]["arguments"] == [{"tensor_map": 0}, {"buffer": 0}]
    plan = Plan.from_data(data)
    assert plan.tensor_maps == (TensorMap(Ref("argument", 0), (1, 256), 0),)


def test_a_plan_without_tensor_maps_does_not_mention_them() -> None:
    module = PROGRAMS["pipeline"].cuda_module()
    assert "tensor_maps" not in build_plan(module, "sm_90a", kernel_texts(module))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d["steps"][0]["arguments"][0].update(tensor_map=1), "there is no tensor_map 1"),
        (lambda d: d["tensor_maps"][0].update(of={"buffer": 3}), "there is no buffer 3"),
        (lambda d: d["tensor_maps"][0].update(of={"tensor_map": 0}), "there is no tensor_map 0"),
        (lambda d: d["results"].append({"tensor_map": 0}), "there is no tensor_map 0"),
        (lambda d: d["tensor_maps"][0].update(box=[256]), r"no box \(256,\) of f32\[8, 256\]"),
        (lambda d: d.update(target="cpu"), r"no box \(1, 256\)"),
    ],
)
def test_a_plan_that_cannot_run_is_refused(data: dict[str, Any], change: Any, message: str) -> None:
    edited = copy.deepcopy(data)
    change(edited)
    with pytest.raises(DeploError, match=message):
        Plan.from_data(edited)


def test_the_driver_is_told_of_axes_from_the_innermost_out() -> None:
    map = TensorMap(Ref("argument", 0), (1, 16, 32), 128)
    assert describe(Array("f32", (7, 512, 96)), map) == Description(
        "FLOAT32", (96, 512, 7), (96 * 4, 512 * 96 * 4), (32, 16, 1), "128B"
    )
    flat = TensorMap(Ref("argument", 0), (64,), 0)
    assert describe(Array("bf16", (640,)), flat) == Description(
        "BFLOAT16", (640,), (), (64,), "NONE"
    )


@pytest.mark.parametrize("swizzle", [0, 32, 64, 128])
@pytest.mark.parametrize("dtype", ["i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"])
def test_the_driver_knows_every_name(dtype: str, swizzle: int) -> None:
    driver = pytest.importorskip("cuda.bindings.driver")
    asked: list[Any] = []
    fake = SimpleNamespace(
        cuuint64_t=driver.cuuint64_t,
        cuuint32_t=driver.cuuint32_t,
        CUtensorMapDataType=driver.CUtensorMapDataType,
        CUtensorMapInterleave=driver.CUtensorMapInterleave,
        CUtensorMapSwizzle=driver.CUtensorMapSwizzle,
        CUtensorMapL2promotion=driver.CUtensorMapL2promotion,
        CUtensorMapFloatOOBfill=driver.CUtensorMapFloatOOBfill,
        cuTensorMapEncodeTiled=lambda *arguments: asked.append(arguments),
    )
    map = TensorMap(Ref("argument", 0), (8, 16), swizzle)
    encode(fake, 4096, describe(Array(dtype, (64, 128)), map))
    ((kind, rank, pointer, dims, strides, box, steps, *_),) = asked
    assert kind.name.startswith("CU_TENSOR_MAP_DATA_TYPE_")
    assert (rank, pointer, len(strides)) == (2, 4096, 1)
    assert [[int(n) for n in each] for each in (dims, box, steps)] == [[128, 64], [16, 8], [1, 1]]


CHAIN = """
kernel.func @k(%x: memref<8x64xf32>, %y: memref<8x64xf32>) blocks(1) threads(1) {
}
kernel.func @m(%x: !kernel.tensor_map<8x64xf32>, %y: memref<8x64xf32>) blocks(1) threads(1) {
}
func.func @main(%x: memref<8x64xf32>) -> memref<8x64xf32> {
  %a = kernel.alloc : memref<8x64xf32>
  kernel.launch @k(%x, %a) blocks(1) threads(1) : memref<8x64xf32>, memref<8x64xf32>
  %b = kernel.alloc : memref<8x64xf32>
  kernel.launch @k(%x, %b) blocks(1) threads(1) : memref<8x64xf32>, memref<8x64xf32>
  %map = kernel.tensor_map %a : memref<8x64xf32> to !kernel.tensor_map<8x64xf32>
  %y = kernel.alloc : memref<8x64xf32>
  kernel.launch @m(%map, %y) blocks(1) threads(1) : !kernel.tensor_map<8x64xf32>, memref<8x64xf32>
  func.return %y : memref<8x64xf32>
}
"""


def test_a_buffer_keeps_its_place_as_long_as_a_map_of_it_is_used() -> None:
    module = parse(CHAIN)
    AssignArenaPass().apply(make_context(), module)
    text = str(module)
    assert "%a = kernel.alloc at 0" in text
    assert "%b = kernel.alloc at 2048" in text


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the driver is asked to launch, with a driver that does nothing else."""
    asked: list[Any] = []

    def launch(*arguments: Any) -> tuple[Any, ...]:
        asked.append(arguments)
        return (0,)

    def encode_tiled(kind: Any, rank: int, pointer: int, *rest: Any) -> tuple[Any, ...]:
        return (0, ("descriptor of", pointer))

    names = {f"CU_TENSOR_MAP_DATA_TYPE_{name}": name for name in DATA_TYPES.values()}
    driver = SimpleNamespace(
        CUresult=SimpleNamespace(CUDA_SUCCESS=0),
        cuLaunchKernel=launch,
        cuTensorMapEncodeTiled=encode_tiled,
        cuuint64_t=int,
        cuuint32_t=int,
        CUtensorMapDataType=SimpleNamespace(**names),
        CUtensorMapSwizzle=SimpleNamespace(CU_TENSOR_MAP_SWIZZLE_NONE=0),
        CUtensorMapInterleave=SimpleNamespace(CU_TENSOR_MAP_INTERLEAVE_NONE=0),
        CUtensorMapL2promotion=SimpleNamespace(CU_TENSOR_MAP_L2_PROMOTION_L2_128B=2),
        CUtensorMapFloatOOBfill=SimpleNamespace(CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE=0),
    )
    monkeypatch.setattr(cuda_driver, "driver", lambda: driver)
    return asked


def test_a_kernel_gets_its_tensor_map_by_value(data: dict[str, Any], launched: list[Any]) -> None:
    plan = Plan.from_data(data)
    kernels = CudaKernels(plan.kernels, dict.fromkeys("k"))
    kernels._functions = {(0, "k"): "the function"}
    pointers = {Ref("argument", 0): 4096, Ref("buffer", 0): 8192}
    for x in (4096, 4096, 512):
        kernels.launch(plan, plan.launches[0], pointers | {Ref("argument", 0): x}, 0, 7)
    function, *geometry, parameters, _ = launched[0]
    assert (function, geometry) == ("the function", [2, 1, 1, 64, 1, 1, 0, 7])
    assert parameters == ((("descriptor of", 4096), 8192), (None, ctypes.c_void_p))
    assert launched[1][-2][0][0] is launched[0][-2][0][0]
    assert launched[2][-2][0][0] == ("descriptor of", 512)


def test_a_view_that_is_not_aligned_is_copied() -> None:
    def tensor(address: int) -> SimpleNamespace:
        copied = SimpleNamespace(clone=lambda: "a copy")
        return SimpleNamespace(data_ptr=lambda: address, detach=lambda: copied)

    gpu, aligned = TorchGpu(None, SimpleNamespace(index=0)), tensor(4096)
    assert gpu.aligned(aligned) is aligned
    assert gpu.aligned(tensor(4100)) == "a copy"


PROGRAM = """
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %y = loop.kernel @k(%x) : (tensor<8x64xf32>) -> tensor<8x64xf32> {
  ^bb0(%in: memref<8x64xf32>, %out: memref<8x64xf32>):
    tile.launch (%r = 8 : block, %t = 64 : thread) schedule(#tile.schedule<threads = 64>) {
      %v = loop.load %in[%r, %t] : memref<8x64xf32>
      loop.store %v, %out[%r, %t] : memref<8x64xf32>
    }
  }
  func.return %y : tensor<8x64xf32>
}
"""


def test_the_host_describes_the_buffers_that_a_kernel_wants_maps_of() -> None:
    type = TensorMapType([8, 32], f32)
    memref = MemRefType(f32, [8, 64])

    def build(kernel: KernelOp, launch: LaunchOp, name: str) -> Device:
        function = FuncOp(name, Region(Block(arg_types=[type, memref, memref])), 1, 1)
        return Device(function, 1, 1, ((0, type),))

    module = parse(PROGRAM)
    lower_host(module, build)
    module.verify()
    assert (
        "%x_map = kernel.tensor_map %x : memref<8x64xf32> to !kernel.tensor_map<8x32xf32>"
        in str(module)
    )
    assert "kernel.launch @k(%x_map, %x, %y)" in str(module)
    plan = build_plan(module, "sm_90a", {"k": ""})
    assert plan["steps"][0]["arguments"] == [{"tensor_map": 0}, {"argument": 0}, {"buffer": 0}]
