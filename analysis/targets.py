"""What deplo knows of the machines it compiles for: data, one row each.

Sources: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability".
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from ..dialects import cuda
from ..errors import DeploError, UsageError


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
    """Streaming multiprocessors of the largest chip of its kind; cores do not matter to a CPU's schedule."""
    shared_bytes: int = 0
    """Shared memory that one block can have; a multiprocessor has `BLOCK_RESERVE` more."""
    has_copy_engine: bool = False
    """Whether boxes of tensors can be copied by one instruction (PTX ISA, "cp.async.bulk.tensor")."""


BLOCK_RESERVE = 1024
"""Shared memory of each block that the system keeps for itself."""

TARGETS = {
    t.name: t
    for t in (
        Target("cpu", is_gpu=False, threads=1, serial=4096, max_blocks=2**62),
        Target("sm_80", True, 256, 1, 2**31 - 1, 108, 163 * 1024),
        Target("sm_90a", True, 256, 1, 2**31 - 1, 132, 227 * 1024, has_copy_engine=True),
        Target("sm_120", True, 256, 1, 2**31 - 1, 170, 99 * 1024, has_copy_engine=True),
    )
}
"""Every target by name."""


def get_target(name: str) -> Target:
    """The target called `name`; UsageError lists those there are."""
    if name not in TARGETS:
        raise UsageError(f"unknown target '{name}'; deplo compiles for {', '.join(TARGETS)}")
    return TARGETS[name]


def require_architecture(module: ModuleOp, target: str) -> None:
    """Raise DeploError at an operation whose instruction the GPUs of `target` do not have.

    Operations of the `cuda` dialect say since which compute capability there is theirs (`SINCE`), and
    kernels how much shared memory their launches ask for.
    """
    limit = TARGETS[target].shared_bytes if target in TARGETS else None
    for function in [op for op in module.walk() if isinstance(op, cuda.FuncOp)]:
        if limit is not None and function.shared_bytes > limit:
            raise DeploError(
                f"@{function.sym_name.data} needs {function.shared_bytes} bytes of shared memory, "
                f"a block of {target} can have {limit}; schedule it with smaller blocks or fewer stages"
            )
    match = re.fullmatch(r"sm_(\d+)[af]?", target)
    if match is None:
        return
    for op in module.walk():
        since: int = getattr(op, "SINCE", 0)
        if int(match.group(1)) < since:
            raise DeploError(
                f"'{op.name}' at {op.location} needs sm_{since} or later, the target is {target}; "
                "lower the program for this target again, without it"
            )
