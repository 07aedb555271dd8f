"""What a program promises, decided by executing it: what `analysis/promises.py` leaves open.

A loop nest is decided by the addresses of all its iterations (`addresses.py`), a kernel for a GPU by
executing all its blocks on the lockstep machine, which finds races. Both decide for good what does not depend
on data, at sizes that are numbers. Unless a fault is found, promises stay open that depend on data, of
programs with dynamic sizes, and of kernels of more than `BUDGET` operations, of which a sample of the blocks
runs.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from math import prod

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..analysis.cost import operations
from ..analysis.promises import Open, Promise
from ..analysis.sizes import instantiate, symbols_used
from ..analysis.stores import KernelFunc, addresses_depend_on_data
from ..dialects import kernel
from ..dialects.index_map import IndexMapOp
from ..dialects.loop import KernelOp
from ..dialects.sizes import static_extent, static_shape
from ..dialects.syntax import tensor_type
from .addresses import open_of_kernel
from .arena import Arena
from .execute import random_sizes
from .launches import BUDGET, cluster_of, run_blocks, sample
from .numpy_types import Array, numpy_dtype
from .scalar_ops import NotExecutable
from .simt import find_kernel, memories_of
from .tensor_ir import ProgramError, ProgramFault, evaluate_tensor_op
from .views import TooWide

SEED = 0
SIZE = 7
"""The size to try of a program without `@main`, which does not say what it allows: a prime."""

MAX_ELEMENTS = 1 << 24
"""A kernel with more elements of arguments than this is not executed: with the marks of who touched them,
they take 20 bytes each."""


def decide(
    module: ModuleOp, unproven: Sequence[Open], assumed: Container[Promise] = ()
) -> tuple[list[ProgramFault], list[Open]]:
    """The faults of a module, and the promises that stay open.

    Only those not proven are decided, and those of kernels for a GPU, but for what is assumed.
    """
    ops = list(module.walk())
    functions = [o for o in ops if isinstance(o, KernelFunc) and Promise.RACE_FREE not in assumed]
    hosts = [op for op in ops if functions and isinstance(op, func.FuncOp) and _launches(op)]
    wanted = {each.op for each in unproven} | set(functions) | set(hosts)
    faults: dict[Operation, ProgramFault] = {}
    left: dict[Operation, set[Promise]] = {op: set() for op in wanted}
    choices = _choices(module)
    for sizes in choices:
        fixed = instantiate(module, sizes) if sizes else module
        for op, at_sizes in zip(ops, fixed.walk(), strict=True):
            if op not in wanted or op in faults:
                continue
            try:
                left[op] |= _open_of(at_sizes, fixed)
            except ProgramFault as fault:
                faults[op] = fault
    found: list[Open] = []
    for each in (*unproven, *(Open(Promise.RACE_FREE, op, "") for op in functions)):
        dynamic = bool(symbols_used(each.op))
        if each.op in faults or not (dynamic or each.promise in left[each.op]):
            continue
        why = "only some sizes were tried" if dynamic else "data or too many operations decide"
        found.append(Open(each.promise, each.op, ": ".join(filter(None, (each.reason, why)))))
    return list(faults.values()), found


def _choices(module: ModuleOp) -> Sequence[Sequence[int]]:
    """The sizes to try: none where there are no dynamic ones."""
    symbols = symbols_used(module)
    if not symbols:
        return [()]
    try:
        return random_sizes(module, np.random.default_rng(SEED))
    except NotExecutable:
        return [[SIZE] * (symbols[-1] + 1)]


def _open_of(op: Operation, module: ModuleOp) -> set[Promise]:
    """The promises of an operation with static sizes that execution leaves open."""
    match op:
        case KernelOp():
            return open_of_kernel(op)
        case IndexMapOp():
            shapes = [static_shape(tensor_type(value)) for value in op.sources]
            dtype = numpy_dtype(tensor_type(op.result).element_type)
            arrays = [np.broadcast_to(np.zeros((), dtype), s) for s in shapes]
            try:
                evaluate_tensor_op(op, arrays)
            except TooWide:
                return {Promise.IN_BOUNDS}
            return set()
        case func.FuncOp():
            _check_buffers(op, module)
            return set()
        case _:
            assert isinstance(op, KernelFunc)
            return _open_of_function(op, module)


def _launches(function: func.FuncOp) -> bool:
    return len(function.body.blocks) == 1 and any(
        isinstance(op, kernel.LaunchOp) for op in function.walk()
    )


def _check_buffers(function: func.FuncOp, module: ModuleOp) -> None:
    """Raise ProgramFault if a host function reads a buffer that does not hold what it should."""
    _check_block(function.body.block, Arena(function), module)


def _check_block(block: Block, arena: Arena, module: ModuleOp) -> None:
    for op in block.ops:
        if isinstance(op, kernel.LoopOp):
            for turn in range(min(static_extent(op.trips), 2)):  # every later turn is like the second
                arena.begin_turn(op, first=turn == 0)
                _check_block(op.body.block, arena, module)
        elif isinstance(op, kernel.LaunchOp):
            try:
                device = find_kernel(module, op)
            except NotExecutable as error:
                raise ProgramFault(f"'{op.name}' op {error}", op) from error
            arena.launch(op, device)
        else:
            arena.run(op)


def _open_of_function(function: KernelFunc, module: ModuleOp) -> set[Promise]:
    """Run all blocks of a kernel, or a sample of them."""
    arguments = _arguments(function, module)
    blocks, cluster = static_extent(function.blocks.data), cluster_of(function)
    if arguments is None or blocks > BUDGET:
        return {Promise.RACE_FREE}
    work = max(operations(function.body.block) * function.threads.value.data, 1)
    whole = blocks * work <= BUDGET or blocks < 3 * cluster
    if whole:
        chosen = np.arange(blocks)
    else:
        clusters = sample(blocks // cluster, max(BUDGET // work // cluster, 2))
        chosen = (clusters[:, None] * cluster + np.arange(cluster)).reshape(-1)
    try:
        run_blocks(function, memories_of(function, arguments), chosen, budget=2 * BUDGET)
    except ProgramFault:
        raise
    except (ProgramError, NotExecutable):
        whole = False
    decided = whole and not addresses_depend_on_data(function)
    return set() if decided else {Promise.RACE_FREE}


def _arguments(function: KernelFunc, module: ModuleOp) -> list[Array] | None:
    """Arrays of zeros as a kernel is launched with, or as it takes; None if that is too much, or not said."""
    types = [
        [_described(value) for value in op.arguments]
        for op in module.walk()
        if isinstance(op, kernel.LaunchOp)
        and op.kernel.root_reference.data == function.sym_name.data
    ]
    types.append(list(function.body.block.arg_types))
    for each in types:
        memrefs = [type for type in each if isinstance(type, MemRefType)]
        if len(memrefs) == len(each):
            shapes = [static_shape(type) for type in memrefs]
            if sum(map(prod, shapes)) > MAX_ELEMENTS:
                return None
            return [
                np.zeros(s, numpy_dtype(t.element_type))
                for s, t in zip(shapes, memrefs, strict=True)
            ]
    return None


def _described(value: SSAValue) -> Attribute:
    """The type of an argument, or of the tensor that it describes."""
    op = value.owner
    return op.tensor.type if isinstance(op, kernel.TensorMapOp) else value.type
