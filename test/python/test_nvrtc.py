"""CUDA C++ to machine code, which needs no GPU, and the words with which a GPU is missed."""

import re
import sys
import threading

import pytest

from deplo.errors import DeploError, MissingEnvironmentError, UsageError
from deplo.runtime import nvrtc
from deplo.runtime.cuda import CudaProgram
from deplo.runtime.nvrtc import Usage, compile_all, compile_cuda, parse_usage
from deplo.runtime.plan import Plan
from deplo.runtime.plan_parts import Kernel, Step
from deplo.tools.deplo import run

SOURCE = """
extern "C" __global__ void __launch_bounds__(256) scale(const float* __restrict__ x, float* __restrict__ y) {
  __shared__ float s[256];
  s[threadIdx.x] = expf(x[threadIdx.x]) / 3.0f;
  __syncthreads();
  y[threadIdx.x] = s[255 - threadIdx.x];
}
"""

LOG = """ptxas info    : Compiling entry function 'k' for 'sm_80'
ptxas info    : Function properties for k
ptxas         .     24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 1024 bytes smem, 368 bytes cmem[0]
ptxas info    : Compiling entry function 'other' for 'sm_80'
ptxas info    : Used 8 registers, used 0 barriers
"""


def plan(target: str) -> Plan:
    step = Step("scale", (), 1, 256)
    return Plan(target, (), (), (step,), (), 0, (Kernel("scale", SOURCE, ()),))


@pytest.mark.parametrize("architecture", ["sm_80", "sm_90a", "sm_100a", "sm_120"])
def test_a_kernel_compiles_and_reports_its_resources(architecture: str) -> None:
    cubin = compile_cuda(SOURCE, architecture)
    assert cubin.code[:4] == b"\x7fELF"
    usage = cubin.usage["scale"]
    assert 0 < usage.registers <= 32
    assert (usage.spill_stores, usage.spill_loads, usage.shared_bytes) == (0, 0, 1024)
    assert compile_cuda(SOURCE, architecture) is cubin


def test_several_sources_are_compiled_at_once_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_one = nvrtc._compile
    both = threading.Barrier(2)

    def seen(source: str, architecture: str, more: tuple[str, ...]) -> nvrtc.Cubin:
        compiled.append(source)
        both.wait(60)  # for the other kernel's compilation
        return compile_one(source, architecture, more)

    monkeypatch.setattr(nvrtc, "_compile", seen)
    monkeypatch.setattr(nvrtc, "thread_count", lambda: 2)
    monkeypatch.setenv("DEPLO_CACHE", "0")
    first, second = SOURCE + "// at once", SOURCE.replace("scale", "scaled")
    cubins = compile_all([first, second, first], "sm_80")
    assert [set(cubin.usage) for cubin in cubins] == [{"scale"}, {"scaled"}, {"scale"}]
    assert sorted(compiled) == sorted([first, second])


def test_warnings_of_the_compiler_are_kept() -> None:
    assert compile_cuda(SOURCE, "sm_80").warnings == ()
    unused = SOURCE.replace("__shared__", "int unused;\n  __shared__")
    (warning,) = compile_cuda(unused, "sm_80").warnings
    assert 'variable "unused" was declared but never referenced' in warning


def test_resources_are_read_from_the_log() -> None:
    assert parse_usage(LOG) == {"k": Usage(255, 16, 20, 24, 1024), "other": Usage(8, 0, 0, 0, 0)}


def test_source_that_does_not_compile_is_one_error_with_the_place() -> None:
    with pytest.raises(DeploError, match=r'deplo.cu\(5\): error: identifier "expg" is undefined'):
        compile_cuda(
            SOURCE.replace("expf", "expg").replace("\n  __shared", "\n\n  __shared"), "sm_80"
        )


@pytest.mark.parametrize("architecture", ["sm_9", "90a", "sm_90; rm", "sm_90b", ""])
def test_an_impossible_architecture_is_refused(architecture: str) -> None:
    with pytest.raises(UsageError, match="no CUDA architecture"):
        compile_cuda(SOURCE, architecture)


def test_without_nvrtc_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    nvrtc._nvrtc.cache_clear()
    with pytest.raises(MissingEnvironmentError, match=r"pip install 'deplo\[cuda\]'") as caught:
        compile_cuda(SOURCE + "// not compiled before", "sm_80")
    assert caught.value.exit_code == 4


def test_without_a_gpu_a_program_compiles_and_refuses_to_run() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    program = CudaProgram(plan("sm_90a"))
    assert program.usage["scale"].registers > 0
    with pytest.raises(MissingEnvironmentError, match="no GPU"):
        program()


def test_explain_tells_what_the_compiler_needed_and_what_fits(
    capsys: pytest.CaptureFixture[str],
) -> None:
    pytest.importorskip("torch")
    code = "nn.Linear(256,256)(torch.randn(64,256))"
    assert run(["explain", "-c", code, "--target", "sm_80"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"resources  \d+ registers, 0 bytes spilled, \d+ bytes shared", told)
    assert re.search(r"occupancy  \d+ blocks on a multiprocessor, limited by \w+", told)
