"""What a CPU can do at most, measured: multiply-adds of its vectors, and bytes from memory."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

from ..machine.host_cpu import host_cpu
from ..runtime.native_code import compile_kernel
from ..runtime.threads import thread_count

PEAK_SUMS = 12
"""Vectors that are summed up at once: more than a core has on their way, and fewer than it has registers."""
PEAK_STEPS = 200_000


def peak() -> tuple[Callable[[], object], int]:
    """A call that does nothing but multiply-adds of whole vectors, and its floating-point operations."""
    lanes = host_cpu().lanes(4)
    vector = f"<{lanes} x float>"
    sums = range(PEAK_SUMS)
    phis = "".join(f"  %s{n} = phi {vector} [ %x, %start ], [ %t{n}, %step ]\n" for n in sums)
    fma = f"call {vector} @llvm.fma.v{lanes}f32"
    adds = "".join(f"  %t{n} = {fma}({vector} %x, {vector} %x, {vector} %s{n})\n" for n in sums)
    stores = "".join(
        f"  %p{n} = getelementptr {vector}, ptr %out, i64 {n}\n"
        f"  store {vector} %t{n}, ptr %p{n}, align 4\n"
        for n in sums
    )
    source = f"""
define void @peak(ptr %out, i64 %steps) {{
start:
  %x = load {vector}, ptr %out, align 4
  br label %step
step:
  %i = phi i64 [ 0, %start ], [ %j, %step ]
{phis}{adds}  %j = add i64 %i, 1
  %more = icmp slt i64 %j, %steps
  br i1 %more, label %step, label %end
end:
{stores}  ret void
}}
declare {vector} @llvm.fma.v{lanes}f32({vector}, {vector}, {vector})
"""
    kernel = compile_kernel("peak", source)
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(kernel.address)
    out = torch.zeros(PEAK_SUMS * lanes)
    flops = 2 * PEAK_SUMS * lanes * PEAK_STEPS
    return lambda: function(out.data_ptr(), PEAK_STEPS), flops


SUMMED_BYTES = 256 * 1024 * 1024
"""Of the array that is summed up: many times what the caches of a few cores hold."""
ROUNDS = 5


def measured_rates() -> dict[str, Any]:
    """What all threads of this machine do in a second at most, as a report's `target` has it."""
    call, operations = peak()
    threads = thread_count()
    with ThreadPoolExecutor(threads) as pool:
        seconds = _median(lambda: list(pool.map(lambda _: call(), range(threads))))
    numbers = torch.ones(SUMMED_BYTES // 4)
    moved = _median(numbers.sum)
    return {
        "bytes_per_second": SUMMED_BYTES / moved,
        "peaks": [{"name": "f32 vectors", "per_second": threads * operations / seconds}],
        "source": "measured: a sum of 256 MiB, from memory and not from caches; multiply-adds of registers",
    }


def _median(call: Callable[[], object]) -> float:
    seconds: list[float] = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)
