"""The cost model of fusion: work, executions and bytes of loop kernels; operations of GPU kernels.

Work is counted in units of one addition. The weights are the usual instruction counts: a division or a
square root costs about four additions in throughput on current CPUs and GPUs, a transcendental function
about ten once it is a polynomial. Moving a byte costs as much as `WORK_PER_BYTE` additions, which is low
for both kinds of machine (a CPU core at 100 GFLOP/s and 10 GB/s has 10, an H200 in fp32 has 14), so that
a merge which pays by this measure pays on either.
"""

from __future__ import annotations

import functools
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from math import prod

from xdsl.dialects import arith, math, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, TensorType
from xdsl.ir import Attribute, Block, Operation

from ..dialects.allowed_sizes import DEFAULT_HINT
from ..dialects.inside import ops_in
from ..dialects.loop import ForOp, KernelOp, LoadOp, StoreOp
from ..dialects.loop_access import in_registers
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import Extent, shape_of
from ..dialects.tile import LaunchOp
from ..dialects.tile_pack import PackOp
from ..index.affine import count_symbols
from ..index.ranges import is_bounded, numbers
from .index import value_range
from .sizes import size_hints

WORK_PER_BYTE = 4.0

_FREE = (
    arith.ConstantOp,
    arith.ExtFOp,
    arith.TruncFOp,
    arith.ExtSIOp,
    arith.ExtUIOp,
    arith.TruncIOp,
    arith.IndexCastOp,
)
_DIVISIONS = (arith.DivfOp, arith.DivSIOp, arith.RemSIOp, math.SqrtOp, math.RsqrtOp)
_CHEAP_MATH = (math.AbsFOp, math.FloorOp, math.CeilOp, math.RoundEvenOp, math.TruncOp, math.FmaOp)


FUNCTION_WORK = 10.0
"""Work of a function that is a chain of operations, such as `exp`."""


def scalar_work(op: Operation) -> float:
    """Work of one execution of a scalar operation; loads, casts and index arithmetic are free."""
    return _work_of(type(op), op.name)


@functools.cache
def _work_of(kind: type[Operation], name: str) -> float:
    if name.startswith("math."):
        if issubclass(kind, _CHEAP_MATH):
            return 1.0
        return 4.0 if issubclass(kind, _DIVISIONS) else FUNCTION_WORK
    if not name.startswith("arith.") or issubclass(kind, _FREE):
        return 0.0
    return 4.0 if issubclass(kind, _DIVISIONS) else 1.0


_HINTS: ContextVar[tuple[int, ...]] = ContextVar("deplo_size_hints", default=())


@contextmanager
def hints_of(module: ModuleOp) -> Generator[None]:
    """Within, dynamic sizes count as what `@main` of a module hints they are."""
    token = _HINTS.set(tuple(size_hints(module)))
    try:
        yield
    finally:
        _HINTS.reset(token)


def trips(extent: Extent) -> int:
    """How often a loop of `extent` runs; where only a call says that, what the hints make of it."""
    if isinstance(extent, int):
        return extent
    hints = _HINTS.get()
    more = count_symbols([extent.expr]) - len(hints)
    return max(extent.evaluate([*hints, *[DEFAULT_HINT] * more]), 1)


def executions(op: Operation) -> int:
    """How often `op` runs in one run of its kernel: the product of the enclosing trip counts."""
    count = 1
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, KernelOp):
        match parent:
            case ForOp():
                count *= trips(parent.extent.data)
            case LaunchOp():
                count *= prod(trips(axis.extent.data) for axis in parent.axes)
            case PackOp():
                count *= prod(parent.shape)
            case _:
                pass
        parent = parent.parent_op()
    return count


def points(block: Block) -> int:
    """The most points that a nest of loops in a block has."""
    most = 1
    for op in block.ops:
        extent = trips(op.extent.data) if isinstance(op, ForOp) else 1
        extent = prod(op.shape) if isinstance(op, PackOp) else extent
        inner = (points(b) for region in op.regions for b in region.blocks)
        most = max(most, extent * max(inner, default=1))
    return most


def operations(block: Block) -> int:
    """Operations that one thread executes in a block of a GPU's kernel, at most; registers cost nothing."""
    total = 0
    for op in block.ops:
        inner = sum(operations(b) for region in op.regions for b in region.blocks)
        is_free = isinstance(op, LoadOp | StoreOp) and in_registers(op.memref)
        total += (not is_free) + _trips(op) * inner
    return total


def _trips(op: Operation) -> int:
    """How often the body of a loop runs at most; once if that is not known, or if it is no loop."""
    if not isinstance(op, scf.ForOp):
        return 1
    low, high = numbers(value_range(op.body.block.args[0]))
    return high - low + 1 if is_bounded(low, high) else 1


def work(kernel: KernelOp) -> float:
    """Work of one run of a kernel; a reduction folds once per contribution."""
    total = 0.0
    for op in ops_in(kernel.body):
        if isinstance(op, ForOp) and op.res:
            total += executions(op) * trips(op.extent.data) * len(op.res)
        elif cost := scalar_work(op):
            total += cost * executions(op)
    return total


def elements(shaped: Attribute) -> int:
    """Elements of a memref or tensor."""
    assert isinstance(shaped, MemRefType | TensorType)
    return prod(trips(extent) for extent in shape_of(shaped))


def size_bytes(shaped: Attribute) -> int:
    """Bytes of a memref."""
    assert isinstance(shaped, MemRefType)
    return elements(shaped) * storage_bytes(shaped.element_type)


def traffic(kernel: KernelOp) -> int:
    """Bytes that a kernel moves if each of its arguments passes once."""
    return sum(size_bytes(a.type) for a in kernel.body.block.args if isinstance(a.type, MemRefType))


def longest_reduction(module: Operation) -> int:
    """The most contributions that one result of any kernel folds, nested reductions multiplied."""
    longest = 1
    for op in ops_in(module):
        if isinstance(op, ForOp) and op.res:
            count = trips(op.extent.data)
            parent = op.parent_op()
            while isinstance(parent, ForOp):
                count *= trips(parent.extent.data) if parent.res else 1
                parent = parent.parent_op()
            longest = max(longest, count)
    return longest
