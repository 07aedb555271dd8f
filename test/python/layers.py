"""A layer of a published model at its full size, and what NVRTC says of its kernels."""

from __future__ import annotations

from functools import cache

import pytest

from deplo.errors import MissingEnvironmentError
from deplo.frontend.capture import Captured, capture
from deplo.frontend.sources import load_source
from deplo.machine.targets import get_target
from deplo.program import Program
from deplo.runtime.nvrtc import compile_cuda

MODELS = ("tinyllama-1.1b", "qwen2.5-7b")
LENGTHS = (32, 128, 512)
ARCHITECTURES = ("sm_80", "sm_90a", "sm_120")


@cache
def captured(model: str, length: int) -> Captured:
    """A layer at a sequence length; it holds for all architectures."""
    source = load_source(f"hf:{model}", config="", layer=0, seq_len=length)
    return capture(source.program, source.args, source.kwargs)


@cache
def layer(model: str, length: int, architecture: str) -> Program:
    """A layer, compiled."""
    return Program(captured(model, length), get_target(architecture), "")


def assert_kernels_fit(program: Program) -> None:
    """Raise if a kernel spills, makes the compiler warn, or has more registers than its launch allows."""
    target = program.target
    threads = {step.kernel: step.threads for step in program.plan.launches}
    assert program.kernels
    for kernel in program.kernels:
        try:
            cubin = compile_cuda(kernel.source, target.name)
        except MissingEnvironmentError as error:
            pytest.skip(f"no NVRTC: {error}")
        assert cubin.warnings == (), kernel.name
        for usage in cubin.usage.values():
            assert usage.spill_stores + usage.spill_loads == 0, kernel.name
            warps = -(-threads[kernel.name] // 32)
            assert usage.registers <= target.thread_registers, kernel.name
            assert usage.registers * warps * 32 <= target.registers, kernel.name
            assert usage.shared_bytes <= target.block_shared_bytes, kernel.name
