"""Launching a kernel on the lockstep machine: all of its blocks, or a sample where that takes too long.

A launch that costs more than `BUDGET` is sampled if it is known what it should compute: what the kernel it
came from computed when the program was last executed in full (`history.py`). Then

1. where the kernel stores is worked out for all its blocks, by executing only what decides that: each
   element of each output must be stored by exactly one thread of the grid;
2. its first block, its last one and some between, chosen by `SEED`, are executed, with all the checks of
   the machine;
3. what they stored is compared with what the kernel should compute, and the elements that belong to other
   blocks are filled in from there, so that later launches find their inputs complete.

What this cannot see: a wrong value or a fault in a block that is not executed, and a race between two
blocks that are not both executed, unless both write.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import cast

import numpy as np
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..analysis.cost import operations
from ..analysis.stores import KernelFunc, storing_operations
from ..dialects import cuda
from ..dialects.kernel_barriers import NamedBarrierOp
from ..dialects.sizes import static_extent
from ..dialects.stored import stored_in
from .accesses import Accesses
from .compare import compare
from .cuda import CudaMachine
from .device_memory import NOBODY, Memory
from .history import History
from .numpy_types import Array
from .product import Value, as_array
from .scalar_ops import NotExecutable
from .simt import SimtMachine, element_of, memories_of
from .tensor_ir import ProgramError
from .views import MAX_ELEMENTS

BUDGET = 1 << 28
"""Operations of single threads, a few nanoseconds each, that a launch may execute."""

SEED = 0
LANES = 1 << 20
"""Threads that run in step; more blocks run one part after the other."""


def launch(function: KernelFunc, args: Sequence[Array], history: History) -> None:
    """Run a kernel on arrays, unless it is known what it stores; it writes to those it stores to."""
    number = history.next_launch()
    if history.accesses is not None:
        _launch(function, args, history, number)
        return
    stored = sorted(cast("BlockArgument", each).index for each in stored_in(function.body))

    def compute() -> list[Array]:
        _launch(function, args, history, number)
        return [np.array(args[each]) for each in stored]

    types = function.body.block.arg_types
    elements = [element_of(types[each]) for each in stored]
    results = history.memo.run(function, args, compute, elements, stored)
    for each, result in zip(stored, results, strict=True):
        args[each][...] = as_array(result, MAX_ELEMENTS)


def _launch(function: KernelFunc, args: Sequence[Array], history: History, number: int) -> None:
    """Run a kernel, all its blocks or some."""
    blocks, cluster = static_extent(function.blocks.data), cluster_of(function)
    count = max(BUDGET // max(operations(function.body.block) * function.threads.value.data, 1), 2)
    memories = memories_of(function, args)
    if count >= blocks or blocks <= 2 * cluster or not history.kernels:
        run_blocks(function, memories, np.arange(blocks), accesses=history.accesses)
    else:
        expected = history.expected(number)
        outputs = _outputs(function, memories, args, expected)
        _check_stores(function, memories_of(function, args))
        clusters = sample(blocks // cluster, max(count // cluster, 2))
        chosen = (clusters[:, None] * cluster + np.arange(cluster)).reshape(-1)
        run_blocks(function, memories, chosen, accesses=history.accesses)
        for position, (memory, element, reference) in enumerate(outputs):
            _fill(memory, reference.reshape(-1))
            computed = memory.data.reshape(reference.shape)
            if (problem := compare(reference, computed, element)) is not None:
                raise ProgramError(f"kernel {_name(function)}: output {position}: {problem}")
        history.remarks.append(
            f"kernel {_name(function)}: {len(chosen)} of {blocks} blocks executed (seed {SEED})"
        )
    for value, memory in zip(args, memories.values(), strict=True):
        if not np.shares_memory(value, memory.data):
            value[...] = memory.data.reshape(value.shape)


def sample(blocks: int, count: int) -> Array:
    """The numbers of `count` of `blocks` blocks: the first, the last, and others at random."""
    between = np.random.default_rng(SEED).choice(blocks - 2, count - 2, replace=False) + 1
    return np.sort(np.concatenate([[0, blocks - 1], between]))


def cluster_of(function: KernelFunc) -> int:
    """Blocks of a cluster; 1 where each is alone."""
    return 1 if function.cluster is None else function.cluster.value.data


def _name(function: KernelFunc) -> str:
    return function.sym_name.data


def run_blocks(
    function: KernelFunc,
    memories: dict[SSAValue, Memory],
    blocks: Array,
    only: set[Operation] | None = None,
    accesses: Accesses | None = None,
    budget: float = inf,
) -> None:
    """Run some blocks of a kernel, as many at a time as the machine holds.

    Raises NotExecutable where that takes more than `budget` operations of single threads.
    """
    threads = function.threads.value.data
    cluster = cluster_of(function)
    at_a_time = max(LANES // threads // cluster, 1) * cluster
    has_named_barriers = any(isinstance(op, NamedBarrierOp) for op in function.walk())
    for first in range(0, len(blocks), at_a_time):
        part = blocks[first : first + at_a_time]
        if isinstance(function, cuda.FuncOp):
            machine: SimtMachine = CudaMachine(function, part, only)
        else:
            machine = SimtMachine(part, threads, only)
        machine.memories.update(memories)
        machine.accesses, machine.cluster = accesses, cluster
        machine.has_named_barriers, machine.budget = has_named_barriers, budget
        with np.errstate(all="ignore"):
            machine.run(function.body.block)
        machine.finish()
        budget = machine.budget


# --------------------------------------------------------------------------- a sample


def _outputs(
    function: KernelFunc,
    memories: dict[SSAValue, Memory],
    args: Sequence[Array],
    expected: Sequence[Value],
) -> list[tuple[Memory, Attribute, Array]]:
    """The memory of each output, its element type, and what it should hold.

    Raises NotExecutable if the kernel does not store what is expected of it: its last arguments.
    """
    first = len(args) - len(expected)
    stored = [memory.writer is not None for memory in memories.values()]
    references = [as_array(value, MAX_ELEMENTS) for value in expected]
    now = [(value.shape, value.dtype) for value in args[first:]]
    before = [(reference.shape, reference.dtype) for reference in references]
    if now != before or stored != [False] * first + [True] * len(expected):
        raise NotExecutable(f"kernel {_name(function)} has other outputs than before")
    arguments = list(memories)[first:]
    elements = [element_of(argument.type) for argument in arguments]
    return list(zip((memories[a] for a in arguments), elements, references, strict=True))


def _fill(memory: Memory, reference: Array) -> None:
    """Put what is expected where the sample did not store."""
    assert memory.writer is not None
    missing = memory.writer == NOBODY
    memory.data[missing] = reference[missing]


def _check_stores(function: KernelFunc, memories: dict[SSAValue, Memory]) -> None:
    """Raise ProgramError unless each element of each output is stored by exactly one thread."""
    only = storing_operations(function)
    if only is None:
        raise NotExecutable(f"where kernel {_name(function)} stores depends on what it computes")
    run_blocks(function, memories, np.arange(static_extent(function.blocks.data)), only)
    for memory in memories.values():
        if memory.writer is not None and np.any(memory.writer == NOBODY):
            count = int(np.count_nonzero(memory.writer == NOBODY))
            raise ProgramError(
                f"kernel {_name(function)}: no block stores {count} elements of {memory.name}"
            )
