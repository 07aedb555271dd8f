"""What deplo knows of the machines it compiles for: data, one row each.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"; the data sheets of the
chips named. Of an architecture with several chips it is the largest one sold.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import UsageError
from .cpus import CPUS, Cpu, parse_cpu
from .matrix_instructions import MatrixInstruction
from .ptx import Instruction

KIB = 1024
MIB = 1024 * KIB

BLOCK_RESERVE = 1 * KIB
"""Shared memory of each block that the system keeps for itself."""


@dataclass(frozen=True)
class Target:
    """Limits and habits of one machine."""

    name: str
    is_gpu: bool
    threads: int
    """Threads of a block that schedules aim for; a CPU block has one."""
    serial: int
    """Output elements one thread computes in a loop of its own, at most; the grain of a CPU block."""
    max_blocks: int
    """Blocks of a one-dimensional grid."""
    processors: int = 1
    """Streaming multiprocessors; cores do not matter to a CPU's schedule."""
    shared_bytes: int = 0
    """Shared memory of a multiprocessor."""
    block_shared_bytes: int = 0
    """Shared memory that one block can have, where a kernel asks for more than 48 KB."""
    has_copy_engine: bool = False
    """Whether boxes of tensors can be copied by one instruction (PTX ISA, "cp.async.bulk.tensor")."""
    registers: int = 0
    """Registers of a multiprocessor."""
    thread_registers: int = 0
    """Registers that one thread can have."""
    resident_threads: int = 0
    """Threads that a multiprocessor holds at once."""
    resident_blocks: int = 0
    """Blocks that a multiprocessor holds at once."""
    l2_bytes: int = 0
    """Cache that all multiprocessors share."""
    dram_bytes_per_second: float = 0.0
    """What memory delivers at best."""
    clock: float = 1.0
    """Cycles of a multiprocessor in a second, boosted."""
    mma_per_cycle: int = 0
    """Multiply-adds of halves to f32 that a multiprocessor does in one cycle by `mma.sync`."""
    wgmma_per_cycle: int = 0
    """The same by `wgmma`; 0 if it has none."""
    cpu: Cpu | None = None
    """The core, if it is a CPU."""

    @property
    def text(self) -> str:
        """The target as passes are told of it: for a CPU, which one."""
        return self.name if self.cpu is None else f"cpu:{self.cpu.text}"


def _gpu(name: str, **limits: float) -> Target:
    common = {"registers": 65536, "thread_registers": 255}
    return Target(name, True, 256, 1, 2**31 - 1, **common | limits)  # pyright: ignore[reportArgumentType]


TARGETS = {
    t.name: t
    for t in (
        Target("cpu", False, threads=1, serial=4096, max_blocks=2**62, cpu=CPUS["avx2"]),
        _gpu(  # A100 SXM
            "sm_80",
            processors=108,
            shared_bytes=164 * KIB,
            block_shared_bytes=163 * KIB,
            resident_threads=2048,
            resident_blocks=32,
            l2_bytes=40 * MIB,
            dram_bytes_per_second=2.04e12,
            clock=1.41e9,
            mma_per_cycle=1024,
        ),
        _gpu(  # H200 SXM
            "sm_90a",
            processors=132,
            shared_bytes=228 * KIB,
            block_shared_bytes=227 * KIB,
            has_copy_engine=True,
            resident_threads=2048,
            resident_blocks=32,
            l2_bytes=50 * MIB,
            dram_bytes_per_second=4.8e12,
            clock=1.98e9,
            mma_per_cycle=1024,
            wgmma_per_cycle=2048,
        ),
        _gpu(  # B200
            "sm_100a",
            processors=148,
            shared_bytes=228 * KIB,
            block_shared_bytes=227 * KIB,
            has_copy_engine=True,
            resident_threads=2048,
            resident_blocks=32,
            l2_bytes=126 * MIB,
            dram_bytes_per_second=8.0e12,
            clock=1.97e9,
            mma_per_cycle=1024,
        ),
        _gpu(  # GeForce RTX 5090
            "sm_120",
            processors=170,
            shared_bytes=100 * KIB,
            block_shared_bytes=99 * KIB,
            has_copy_engine=True,
            resident_threads=1536,
            resident_blocks=24,
            l2_bytes=96 * MIB,
            dram_bytes_per_second=1.79e12,
            clock=2.41e9,
            mma_per_cycle=256,
        ),
    )
}
"""Every target by name."""


def get_target(name: str) -> Target:
    """The target called `name`; UsageError lists those there are.

    `cpu:znver4` is a CPU with that core (`parse_cpu`), `cpu` alone a typical one with AVX2.
    """
    if name.startswith("cpu:"):
        return replace(TARGETS["cpu"], name=name, cpu=parse_cpu(name.removeprefix("cpu:")))
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise UsageError(f"unknown target '{name}'; deplo compiles for {known}, and cpu:<core>")
    return TARGETS[name]


def get_cpu(name: str) -> Cpu:
    """The core of the CPU called `name`, such as `cpu:znver4`. Raises UsageError for another target."""
    cpu = get_target(name).cpu
    if cpu is None:
        raise UsageError(f"target must be a CPU, such as cpu or cpu:znver4, not '{name}'")
    return cpu


def get_gpu(name: str) -> Target:
    """The GPU called `name`; UsageError lists those there are."""
    target = get_target(name)
    if not target.is_gpu:
        known = ", ".join(each.name for each in TARGETS.values() if each.is_gpu)
        raise UsageError(f"target must be a GPU ({known}), not '{name}'")
    return target


def has_instruction(target: str, row: Instruction | MatrixInstruction) -> bool:
    """Whether the GPUs of a target have an instruction; those of another family are not asked."""
    match = re.fullmatch(r"sm_(\d+)[af]?", target)
    only = row.only if isinstance(row, MatrixInstruction) else None
    return match is None or (int(match.group(1)) >= row.since and only in (None, target))
