"""Which of the CPUs that `machine/cpus.py` knows deplo runs on, and how large its caches are."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

from ..errors import UsageError
from .cpus import CORES, CPUS, KIB, MIB, Cpu, as_measured, has_vectors, parse_cpu
from .targets import Target, get_target

ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA = 158, 0x1023, 18
"""The call of the system on x86-64, what is asked of it, and for which state of the CPU."""


def find_target(name: str) -> Target:
    """The target of that name; `cpu` is the CPU that deplo runs on. Raises UsageError."""
    target = get_target(name)
    return replace(target, cpu=host_cpu()) if name == "cpu" else target


def host_cpu() -> Cpu:
    """The CPU that deplo runs on; where the system does not say, a typical one.

    `DEPLO_CPU_MODEL=typical` leaves out what was measured of such cores. The name of another CPU, such as
    `avx512:znver5`, stands for that one: its code may have instructions that this CPU does not have. Raises
    UsageError if the variable says anything else but `measured`.
    """
    model = os.environ.get("DEPLO_CPU_MODEL") or "measured"
    if model in ("measured", "typical"):
        return _host_cpu(measured=model == "measured")
    try:
        return replace(parse_cpu(model), cores=os.cpu_count() or 1)
    except UsageError as error:
        raise UsageError(f"DEPLO_CPU_MODEL must be measured, typical, or a CPU: {error}") from error


def lacking(cpu: Cpu) -> list[str]:
    """The features that code for `cpu` names instructions of and the host does not have, by LLVM's names.

    LLVM would end the process at one. Wide vectors are not among them: it makes several of each.
    """
    return sorted({*cpu.named_features} - _host_flags())


@cache
def _host_cpu(*, measured: bool) -> Cpu:
    cpu = CPUS[_host_vectors()]
    caches = Path("/sys/devices/system/cpu/cpu0/cache")
    l1 = _cache_bytes(caches / "index0/size") or cpu.l1_bytes
    l2 = _cache_bytes(caches / "index2/size") or cpu.l2_bytes
    pairs = cpu.vector_bytes == 64 and "avx512bf16" in _host_flags()
    host = replace(cpu, l1_bytes=l1, l2_bytes=l2, cores=os.cpu_count() or 1, pairs=pairs)
    name = _host_name()
    core = name if name in CORES and has_vectors(name, cpu.name) else ""
    return as_measured(replace(host, core=core), core) if measured else host


@cache
def allow_matrix_tiles() -> bool:
    """Ask the system to let this process use matrix tiles (AMX), whose state it does not save otherwise.

    Says whether it does. Threads that begin later may, too (Linux, "Using XSTATE features in user space").
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    system: Any = ctypes.CDLL(None, use_errno=True)
    return system.syscall(ARCH_PRCTL, REQUEST_PERMISSION, TILE_DATA) == 0


def _host_vectors() -> str:
    if platform.machine().lower() in ("arm64", "aarch64"):
        return "neon"
    flags = _host_flags()
    if {"avx512f", "avx512vl", "avx512dq"} <= flags:
        tiles = {"avx512bf16", "amx-tile", "amx-bf16"} <= flags and allow_matrix_tiles()
        return "amx" if tiles else "avx512"
    return "avx2" if {"avx2", "fma"} <= flags else "sse2"


def _host_flags() -> set[str]:
    """The features that LLVM sees, whose code runs here; none if it is not installed."""
    llvm = _llvm()
    return {name for name, has in llvm.get_host_cpu_features().items() if has} if llvm else set()


def _host_name() -> str:
    """LLVM's name of the host's microarchitecture."""
    llvm = _llvm()
    return llvm.get_host_cpu_name() if llvm else ""


def _llvm() -> Any:
    """What llvmlite knows of this host; None if it is not installed, as it need not be to read a program."""
    try:
        from llvmlite import binding
    except ImportError:
        return None
    return binding


def _cache_bytes(file: Path) -> int | None:
    """The size that a file of the system says, such as `32K`."""
    try:
        text = file.read_text().strip()
    except OSError:
        return None
    unit = {"K": KIB, "M": MIB}.get(text[-1:])
    number = text[:-1] if unit else text
    return int(number) * (unit or 1) if number.isdecimal() else None
