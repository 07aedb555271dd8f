"""The machine code of kernels: for this CPU, or for another one by the level of its architecture."""

from __future__ import annotations

from ..machine.cpus import ARCHITECTURES, GENERIC, Cpu
from ..machine.targets import Target
from ..runtime import jit
from ..runtime.cpu_features import missing, plain

_AVX2 = ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sse4.2")
FEATURES = {
    "sse2": (),
    "avx2": _AVX2,
    "avx512": (*_AVX2, "avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"),
    "neon": ("neon",),
}
"""Vectors -> the features of the core that LLVM makes code for, `GENERIC`, which code in a file may use
(x86-64 psABI, "Micro-Architecture Levels"). Matrix tiles come on top of those of AVX-512."""

CodeTarget = tuple[str, str, tuple[str, ...]]
"""LLVM's architecture and core, and what the CPU has besides; this CPU has no core."""


def code_target(target: Target) -> CodeTarget:
    """Whom LLVM makes code for."""
    if (cpu := _foreign(target)) is None:
        return jit.host_architecture(), "", ()
    vectors = _vectors(cpu)
    return ARCHITECTURES[vectors], GENERIC[vectors], cpu.named_features


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
    return sorted(map(plain, (*FEATURES[_vectors(cpu)], *cpu.named_features)))


def described(target: Target) -> str:
    """Everything that code for a target depends on besides its text."""
    if _foreign(target) is None:
        return " ".join(jit.host_cpu())
    architecture, core, more = code_target(target)
    return " ".join((architecture, core, *more, jit.host_cpu()[-1]))


def _foreign(target: Target) -> Cpu | None:
    """The CPU of a target, if it is not this one."""
    return None if target.name == "cpu" else target.cpu


def _vectors(cpu: Cpu) -> str:
    return "avx512" if cpu.mma else cpu.name
