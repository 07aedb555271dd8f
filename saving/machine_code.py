"""The machine code of kernels: for this CPU, or for another one by the level of its architecture."""

from __future__ import annotations

from ..machine.cpus import Cpu
from ..machine.targets import Target
from ..runtime import jit
from ..runtime.cpu_features import missing, plain

LEVELS = {
    "sse2": ("x86_64", "x86-64", ""),
    "avx2": ("x86_64", "x86-64-v3", "avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt sse4.2"),
    "avx512": (
        "x86_64",
        "x86-64-v4",
        "avx avx2 bmi bmi2 f16c fma lzcnt movbe popcnt sse4.2 avx512f avx512bw avx512cd avx512dq avx512vl",
    ),
    "neon": ("aarch64", "generic", "neon"),
}
"""What code in a file needs of a CPU with such vectors: LLVM's architecture and core, and the features that
this core has (x86-64 psABI, "Micro-Architecture Levels")."""

PAIRS, TILES = ("avx512bf16",), ("amx-tile", "amx-bf16")

CodeTarget = tuple[str, str, tuple[str, ...]]
"""LLVM's architecture and core, and what the CPU has besides; this CPU has no core."""


def code_target(target: Target) -> CodeTarget:
    """Whom LLVM makes code for."""
    if (cpu := _foreign(target)) is None:
        return jit.host_architecture(), "", ()
    architecture, core, _ = _level(cpu)
    more = PAIRS if cpu.pairs or cpu.mma else ()
    return architecture, core, (*more, *(TILES if cpu.mma else ()))


def compiled(text: str, architecture: str, core: str, more: tuple[str, ...]) -> bytes:
    """The object file of a kernel's LLVM IR."""
    if not core:
        return jit.compile_object(text)
    return jit.object_for(text, architecture, core, more)


def features_of(target: Target) -> list[str]:
    """The features that the code needs. Of this CPU's, those are left out of which Linux says nothing."""
    if (cpu := _foreign(target)) is None:
        own = jit.host_features()
        return sorted({plain(each) for each in own} - set(map(plain, missing(own))))
    _, _, features = _level(cpu)
    _, _, more = code_target(target)
    return sorted(map(plain, (*features.split(), *more)))


def described(target: Target) -> str:
    """Everything that code for a target depends on besides its text."""
    if _foreign(target) is None:
        return " ".join(jit.host_cpu())
    architecture, core, more = code_target(target)
    return " ".join((architecture, core, *more, jit.host_cpu()[-1]))


def _foreign(target: Target) -> Cpu | None:
    """The CPU of a target, if it is not this one."""
    return None if target.name == "cpu" else target.cpu


def _level(cpu: Cpu) -> tuple[str, str, str]:
    return LEVELS["avx512" if cpu.mma else cpu.name]
