"""Launching on a GPU, against torch. Skipped, visibly, where there is none."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

from deplo.errors import MissingEnvironmentError, UsageError  # noqa: E402
from deplo.runtime.cuda import CudaProgram  # noqa: E402
from deplo.runtime.plan import Plan  # noqa: E402
from deplo.runtime.plan_parts import Argument, Array, Buffer, Kernel, Ref, Step  # noqa: E402

BLOCKS, THREADS = 1000, 256
SHAPE = (BLOCKS, THREADS)
SOURCE = """
extern "C" __global__ void __launch_bounds__(256)
add_one(const float* __restrict__ x, float* __restrict__ y) {
  long long i = blockIdx.x * 256ll + threadIdx.x;
  y[i] = x[i] + 1.0f;
}
"""


def plan(target: str | None = None) -> Plan:
    """Two launches in a row: x + 1 into the arena, then that + 1 into the result."""
    major, minor = torch.cuda.get_device_capability()
    array = Array("f32", SHAPE)
    first = Step("add_one", (Ref("argument", 0), Ref("buffer", 0)), BLOCKS, THREADS)
    second = Step("add_one", (Ref("buffer", 0), Ref("buffer", 1)), BLOCKS, THREADS)
    return Plan(
        target=target or f"sm_{major}{minor}",
        arguments=(Argument("x", "input", array),),
        buffers=(Buffer(array, 0), Buffer(array, None)),
        steps=(first, second),
        results=(Ref("buffer", 1), Ref("argument", 0)),
        arena_bytes=array.nbytes,
        kernels=(Kernel("add_one", SOURCE, ()),),
    )


def test_launches_run_in_order_and_agree_with_torch() -> None:
    x = torch.randn(SHAPE, device="cuda")
    y, same = CudaProgram(plan())(x)
    assert torch.equal(y, x + 1 + 1)
    assert same is x


def test_launches_are_ordered_with_torch_on_its_current_stream() -> None:
    program = CudaProgram(plan())
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = torch.zeros(SHAPE, device="cuda")
        for _ in range(50):
            (x, _) = program(x * 2)
    stream.synchronize()
    expected = torch.zeros(())
    for _ in range(50):
        expected = expected * 2 + 1 + 1
    assert torch.equal(x.cpu(), expected.expand(SHAPE))


def test_no_blocks_is_no_launch() -> None:
    empty = plan()
    steps = tuple(Step(s.kernel, s.arguments, 0, s.threads) for s in empty.steps)
    program = CudaProgram(Plan(**{**vars(empty), "steps": steps}))
    program(torch.randn(SHAPE, device="cuda"))
    torch.cuda.synchronize()


def test_cpu_tensors_are_refused() -> None:
    with pytest.raises(UsageError, match="expected torch tensors on a cuda device"):
        CudaProgram(plan())(torch.zeros(SHAPE))


def test_code_for_another_gpu_is_refused() -> None:
    major, _ = torch.cuda.get_device_capability()
    other = "sm_80" if major != 8 else "sm_90a"
    with pytest.raises(MissingEnvironmentError, match=f"compiled for {other}, this GPU is"):
        CudaProgram(plan(other))(torch.zeros(SHAPE, device="cuda"))
