"""Copies that run while threads compute, on a GPU, against what the lockstep machine is tested with."""

import pytest

torch = pytest.importorskip("torch")

if not torch.cuda.is_available():
    pytest.skip("no GPU: torch finds no CUDA device", allow_module_level=True)

import numpy as np  # noqa: E402
from kernel_programs import INPUT, PROGRAMS, Program, swizzled_source  # noqa: E402

from deplo.analysis.plan import build_plan  # noqa: E402
from deplo.codegen.cuda_printer import kernel_texts  # noqa: E402
from deplo.runtime.cuda import CudaProgram  # noqa: E402
from deplo.runtime.plan import Plan  # noqa: E402


def run(program: Program, x: torch.Tensor) -> np.ndarray:
    """What a program computes on this GPU."""
    major, minor = torch.cuda.get_device_capability()
    if program.box and major < 9:
        pytest.skip(f"sm_{major}{minor} has no copy engine")
    target = f"sm_{major}{minor}{'a' if major == 9 else ''}"
    module = program.cuda_module()
    plan = Plan.from_data(build_plan(module, target, kernel_texts(module)))
    (result,) = CudaProgram(plan)(x)
    return result.cpu().numpy()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_gpu_agrees(name: str) -> None:
    program = PROGRAMS[name]
    np.testing.assert_array_equal(run(program, torch.tensor(INPUT, device="cuda")), program.right())


@pytest.mark.parametrize("width", [32, 64, 128])
def test_a_swizzled_box_lies_where_the_machine_puts_it(width: int) -> None:
    program = Program(swizzled_source(width), np.array, f"8x{width // 4}xf32, swizzle {width}")
    on_gpu = run(program, torch.tensor(INPUT, device="cuda"))
    np.testing.assert_array_equal(on_gpu, program.run("cuda"))


def test_an_argument_that_begins_anywhere_is_copied() -> None:
    program = PROGRAMS["vectors"]
    base = torch.zeros(INPUT.size + 1, device="cuda")
    x = base[1:].view(INPUT.shape)
    x.copy_(torch.tensor(INPUT))
    assert x.data_ptr() % 16
    np.testing.assert_array_equal(run(program, x), program.right())
