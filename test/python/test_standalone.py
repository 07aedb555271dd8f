"""Standalone CUDA sources: nvcc builds them; the host program runs here, on a runtime made of loops."""

import shutil
import subprocess

import pytest
import torch

from deplo.errors import UsageError
from deplo.frontend.capture import capture
from deplo.frontend.sources import load_source
from deplo.machine.targets import get_target
from deplo.program import Program
from deplo.tools.standalone import MAX_LISTED, placed_values, standalone_source

RUNTIME = """
#pragma once
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#define __global__
#define __launch_bounds__(...)
struct dim3 { unsigned x; explicit dim3(unsigned n) : x(n) {} };
static dim3 blockIdx(0), threadIdx(0);
struct uint2 { unsigned x, y; };
struct uint4 { unsigned x, y, z, w; };
typedef int cudaError_t;
enum { cudaSuccess, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost };
typedef int cudaEvent_t;
static const char *cudaGetErrorString(cudaError_t) { return "?"; }
static cudaError_t cudaMalloc(void **p, size_t n) { *p = malloc(n); return 0; }
static cudaError_t cudaMemcpy(void *to, const void *from, size_t n, int) { memcpy(to, from, n); return 0; }
static cudaError_t cudaEventCreate(cudaEvent_t *) { return 0; }
static cudaError_t cudaEventRecord(cudaEvent_t, int) { return 0; }
static cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t, cudaEvent_t) { *ms = 0.001f; return 0; }
enum { cudaFuncAttributeMaxDynamicSharedMemorySize };
static cudaError_t cudaFuncSetAttribute(const void *, int, int) { return 0; }
static cudaError_t cudaDeviceSynchronize() { return 0; }
static cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads,
    void **passed, size_t, int) {
    for (blockIdx.x = 0; blockIdx.x < blocks.x; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads.x; ++threadIdx.x)
            ((void (*)(void *, void *))kernel)(*(void **)passed[0], *(void **)passed[1]);
    return 0;
}
"""
"""Enough of a runtime for kernels of an input and a result whose threads do not work together."""

DRIVER = """
#pragma once
#include <cstdint>
typedef uint64_t cuuint64_t; typedef uint32_t cuuint32_t; typedef int CUresult;
struct CUtensorMap {};
enum CUtensorMapDataType {}; enum CUtensorMapSwizzle {};
enum { CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };
enum { CUDA_SUCCESS, cudaEnableDefault };
typedef int cudaDriverEntryPointQueryResult;
static int cudaGetDriverEntryPointByVersion(const char *, void **, int, int, int *) { return 1; }
CUresult cuTensorMapEncodeTiled(CUtensorMap *, CUtensorMapDataType, int, void *,
    const cuuint64_t *, const cuuint64_t *,
    const cuuint32_t *, const cuuint32_t *, int, CUtensorMapSwizzle, int, int);
"""


def source_of(code: str, target: str = "sm_90a", schedule: str = "") -> str:
    source = load_source(None, code=code, config="", layer=None, seq_len=8)
    captured = capture(source.program, source.args, source.kwargs)
    return standalone_source(Program(captured, get_target(target), schedule), source, code)


def run_on_cpu(text: str, tmp_path) -> subprocess.CompletedProcess:
    if shutil.which("g++") is None:
        pytest.skip("no g++")
    (tmp_path / "cuda_runtime.h").write_text(RUNTIME)
    (tmp_path / "cuda.h").write_text(DRIVER)
    # The kernels come first in the file, before any header.
    (tmp_path / "k.cpp").write_text('#include "cuda_runtime.h"\n#include <cmath>\n' + text)
    command = ["g++", "-w", "-I.", "-o", "k", "k.cpp"]
    subprocess.run(command, cwd=tmp_path, check=True)
    return subprocess.run([tmp_path / "k"], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "code",
    [
        "x=torch.randn(7,33); x*x+1",
        "x=torch.randn(300,dtype=torch.float64); x*x+1",
        "x=torch.arange(40)-7; x*x+1",
        "x=torch.tensor([True,False,True]); ~x",
        "x=torch.randn(1).expand(5); x*x+1",
    ],
)
def test_the_host_program_finds_that_a_kernel_is_right(code, tmp_path):
    done = run_on_cpu(source_of(code), tmp_path)
    assert done.stdout.splitlines()[-1] == "agrees", done.stdout
    assert ": 1.00 us" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize(
    ("code", "word"),
    [
        ("x=(torch.arange(64)*5).to(torch.int8); x*3", "uint2"),
        ("x=(torch.arange(64)*777).to(torch.int16); x*3", "uint4"),
        ("x=torch.arange(64)%3==1; ~x", "uint2"),
    ],
)
def test_eight_neighbours_are_taken_from_words_and_put_into_them(code, word, tmp_path):
    text = source_of(code, schedule="vector=8")
    assert text.count(f"reinterpret_cast<const {word}*>") == 1
    assert text.count(f"reinterpret_cast<{word}*>") == 1
    done = run_on_cpu(text, tmp_path)
    assert done.stdout.splitlines()[-1] == "agrees", done.stdout


def test_the_host_program_finds_that_a_kernel_is_wrong(tmp_path):
    text = source_of("x=torch.randn(7,33); x*x+1")
    assert text.count("+ 1.0f;") == 1
    done = run_on_cpu(text.replace("+ 1.0f;", "+ 1.0001f;"), tmp_path)
    assert done.stdout.splitlines()[-1] == "differs", done.stdout
    assert "result 0: 0 of 64 elements agree" in done.stdout
    assert done.returncode == 3


def test_placed_numbers_differ_from_place_to_place_and_every_dtype_holds_them():
    values = placed_values(3, 4096)
    assert values.unique().numel() == 128
    assert values.min() == -1
    assert values.max() == 1 - 1 / 64
    assert abs(float(values.mean())) < 0.05
    assert not torch.equal(values, placed_values(4, 4096))
    for dtype in (torch.float16, torch.bfloat16):
        assert torch.equal(values.to(dtype).double(), values)


def test_what_cannot_stand_in_a_source_is_refused():
    with pytest.raises(UsageError, match=f"has {MAX_LISTED + 1} elements of i64, more than"):
        source_of(f"x=torch.arange({MAX_LISTED + 1}); x+1")


def test_the_name_of_a_program_stays_in_its_comment():
    text = source_of("x=torch.randn(3); (x+1)\n# \\\n# ` */ system(1);")
    assert text.splitlines()[0].startswith("// deplo's kernels for `x=torch.randn(3); (x+1)\\n#")
    assert "system(1)" not in "\n".join(text.splitlines()[1:])


GELU = "x=torch.randn(32,18944);0.5*x*(1+torch.tanh(0.797*(x+0.044*x*x*x)))"
RMS_NORM = "torch.nn.RMSNorm(2048)(torch.randn(1,32,2048))"
LINEAR = "torch.nn.Linear(3584,3584,bias=False)(torch.randn(512,3584))"
TILES = "BM=16,BN=16,FM=2,FN=2,transport"


@pytest.mark.parametrize(
    ("code", "target", "schedule"),
    [
        (GELU, "sm_120", ""),
        (RMS_NORM, "sm_120", "lanes=256,vector=1,keep=shared"),
        (LINEAR, "sm_80", f"{TILES}=cp_async"),
        (LINEAR, "sm_120", f"{TILES}=tma"),
        ("nn.Linear(33,65)(torch.randn(7,33))", "sm_80", ""),
    ],
)
def test_nvcc_builds_a_source(code, target, schedule, tmp_path):
    if shutil.which("nvcc") is None:
        pytest.skip("no nvcc")
    (tmp_path / "k.cu").write_text(source_of(code, target, schedule))
    command = ["nvcc", f"-arch={target}", "-o", "k", "k.cu"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "warning" not in done.stderr
    assert (tmp_path / "k").stat().st_size > 0
