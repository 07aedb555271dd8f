"""What deplo knows of CPUs: what their vectors can do, as data, and what the one it runs on has.

Sources: Intel and Arm optimisation manuals, Agner Fog's instruction tables; sizes of caches are those of
current server cores. `passes/llvm/host_cpu.py` asks the system about the CPU that deplo runs on.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import UsageError

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Cpu:
    """Limits and habits of one core."""

    name: str
    """The instruction set of its vectors."""
    vector_bytes: int
    registers: int
    """Vector registers."""
    fmas: float
    """Vector multiply-adds in a cycle."""
    loads: float
    """Vectors, or elements to fill a vector with, that are loaded in a cycle."""
    l1_bytes: int = 32 * KIB
    l2_bytes: int = 1 * MIB
    """Of one core."""
    cores: int = 1
    ahead: int = 4 * KIB
    """Bytes ahead of a sweep that it is to ask for, 0 for one whose own guesses are better.

    A cache that the cores share takes a few hundred cycles to deliver.
    """

    def lanes(self, element_bytes: int) -> int:
        """Elements of a vector."""
        return self.vector_bytes // element_bytes


CPUS = {
    cpu.name: cpu
    for cpu in (
        Cpu("avx512", vector_bytes=64, registers=32, fmas=1, loads=1, l2_bytes=1 * MIB),
        Cpu("avx2", vector_bytes=32, registers=16, fmas=2, loads=2, l2_bytes=512 * KIB),
        Cpu("neon", vector_bytes=16, registers=32, fmas=2, loads=2, l2_bytes=1 * MIB),
        Cpu("sse2", vector_bytes=16, registers=16, fmas=1, loads=2, l2_bytes=256 * KIB),
    )
}
"""Every instruction set by name, each with a core that is typical of it."""


def get_cpu(name: str) -> Cpu:
    """The CPU with the vectors called `name`; UsageError lists those there are."""
    if name not in CPUS:
        raise UsageError(f"unknown vectors '{name}'; there are host, {', '.join(CPUS)}")
    return CPUS[name]
