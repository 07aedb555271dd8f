"""How many blocks of a kernel a multiprocessor holds at once, and what keeps it from holding more.

Registers are given out to warps in units of 256, shared memory to blocks in units of 128 bytes; a kilobyte of
each block's is the system's (CUDA C++ Programming Guide, "Multiprocessor Level").
"""

from __future__ import annotations

from dataclasses import dataclass

from ..machine.targets import BLOCK_RESERVE, Target

WARP = 32
REGISTER_UNIT = 256
SHARED_UNIT = 128


@dataclass(frozen=True)
class Occupancy:
    """What a multiprocessor holds of a kernel."""

    blocks: int
    threads: int
    share: float
    """Threads by those that a multiprocessor can hold, from 0 to 1."""
    limit: str
    """What is used up first: threads, blocks, registers or shared memory."""


def occupancy(target: Target, threads: int, registers: int, shared_bytes: int) -> Occupancy:
    """What a multiprocessor of a GPU holds of a kernel whose blocks have `threads` threads.

    A thread has `registers`, a block `shared_bytes`.
    """
    warps = -(-threads // WARP)
    per_warp = _units(max(registers, 1) * WARP, REGISTER_UNIT)
    per_block = _units(shared_bytes + BLOCK_RESERVE, SHARED_UNIT)
    limits = {
        "threads": target.resident_threads // (warps * WARP),
        "blocks": target.resident_blocks,
        "registers": target.registers // per_warp // warps,
        "shared memory": target.shared_bytes // per_block,
    }
    limit = min(limits, key=lambda name: limits[name])
    blocks = limits[limit]
    share = blocks * warps * WARP / target.resident_threads
    return Occupancy(blocks, blocks * threads, share, limit)


def _units(size: int, unit: int) -> int:
    return -(-size // unit) * unit
