"""`deplo doctor`: whether this machine has what deplo needs, and what to do about what is missing."""

from __future__ import annotations

import argparse
import ctypes
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version

from ..errors import DeploError, MissingEnvironmentError
from ..runtime import jit, native_code
from ..runtime.cache import open_cache
from ..runtime.nvrtc import compile_cuda
from .console import write_output

NAME = "doctor"
HELP = "check torch, LLVM, NVRTC, the GPU and the cache, and say what to do about what is missing"

ADD_ONE = """
define void @add_one(ptr %x, i64 %begin, i64 %end, ptr %status) {
  %value = load float, ptr %x
  %sum = fadd float %value, 1.0
  store float %sum, ptr %x
  ret void
}
"""
"""A kernel as the CPU target compiles them."""


@dataclass(frozen=True)
class Finding:
    """What was found of one thing."""

    what: str
    state: str
    """`ok`; `missing`, which only some uses need; or `broken`, without which nothing runs."""
    said: str
    remedy: str = ""


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("--json", action="store_true", help="the findings as JSON")


def main(options: argparse.Namespace) -> int:
    """Check everything; exits with 4 if something is broken."""
    findings = [check() for check in CHECKS]
    if options.json:
        write_output(json.dumps([asdict(each) for each in findings], indent=2) + "\n")
    else:
        write_output("".join(map(_line, findings)))
    broken = any(each.state == "broken" for each in findings)
    return MissingEnvironmentError.exit_code if broken else 0


def _line(finding: Finding) -> str:
    remedy = f"\n{'':19}{finding.remedy}" if finding.remedy else ""
    return f"{finding.state:8} {finding.what:9} {finding.said}{remedy}\n"


def _python() -> Finding:
    said = f"{sys.version.split()[0]}, deplo {_version('deplo')}, xDSL {_version('xdsl')}"
    return Finding("python", "ok", said)


def _torch() -> Finding:
    try:
        import torch
    except ImportError as error:
        return Finding("torch", "broken", f"{error}", "pip install torch")
    threads = f"{torch.get_num_threads()} threads"
    built = f"built for CUDA {torch.version.cuda}" if torch.version.cuda else "built for the CPU"
    return Finding("torch", "ok", f"{torch.__version__}, {built}, {threads}")


def _llvm() -> Finding:
    try:
        name, features, llvm = jit.host_cpu()
        kernel = native_code.compile_kernel("add_one", ADD_ONE)
        value = (ctypes.c_float * 1)(41.0)
        task = native_code.make_task(kernel.address, [ctypes.addressof(value)], range(1), 1)
        native_code.driver(1).function(task.buffer_info()[0])
    except DeploError as error:
        return Finding("cpu", "broken", str(error), "pip install --force-reinstall llvmlite")
    if value[0] != 42.0:
        return Finding("cpu", "broken", f"41 + 1 is {value[0]} in compiled code")
    widest = next(
        (f for f in ("avx512f", "avx2", "neon") if f"+{f}" in features), "no wide vectors"
    )
    return Finding("cpu", "ok", f"LLVM {llvm} compiles and runs code for {name} ({widest})")


def _nvrtc() -> Finding:
    try:
        cubin = compile_cuda('extern "C" __global__ void k(float* x) { x[0] = 1.0f; }', "sm_80")
    except MissingEnvironmentError as error:
        return Finding("nvrtc", "missing", f"CUDA sources are not compiled: {error}")
    except DeploError as error:
        return Finding("nvrtc", "missing", f"a trivial kernel does not compile: {error}")
    found = ", ".join(f"{n} {_version(n)}" for n in ("cuda-python", "nvidia-cuda-nvrtc"))
    return Finding("nvrtc", "ok", f"compiles {len(cubin.usage)} kernel for sm_80 ({found})")


def _gpu() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding("gpu", "missing", "torch is not there to ask")
    if not torch.cuda.is_available():
        built = torch.version.cuda is not None
        why = "no NVIDIA GPU or driver" if built else "this torch is built for the CPU"
        return Finding("gpu", "missing", f"{why}; code for GPUs is compiled, but cannot run here")
    names = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return Finding("gpu", "ok", ", ".join(names))


def _models() -> Finding:
    if _version("transformers") == "not installed":
        return Finding(
            "models", "missing", "hf: programs need transformers", "pip install 'deplo[hf]'"
        )
    return Finding("models", "ok", f"transformers {_version('transformers')}")


def _cache() -> Finding:
    cache = open_cache()
    if cache.directory is None:
        said = "nothing is kept: DEPLO_CACHE says so, or the directory is not safe (see warnings)"
        return Finding("cache", "missing", said)
    entries = list(cache.entries())
    size = sum(entry.bytes for entry in entries) / (1 << 20)
    state = "" if cache.writable else ", read only"
    return Finding(
        "cache", "ok", f"{cache.directory}{state}, {len(entries)} entries, {size:.1f} MB"
    )


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


CHECKS: tuple[Callable[[], Finding], ...] = (
    _python,
    _torch,
    _llvm,
    _nvrtc,
    _gpu,
    _models,
    _cache,
)
"""What is checked, in the order in which it is told."""
