"""Whether neighbouring points of an axis access neighbouring elements, which a thread may take at once.

    loop.for %j = 0 to 2048 { ... %x[%row, %j] ... %w[%j] ... }          // yes, four at a time
    loop.for %j = 0 to 2048 { ... %x[%j, %row] ... }                     // no: neighbours are a row apart

The base of every buffer is aligned: the runtime copies arguments that are not, and buffers of the arena begin
at multiples of 64 bytes. So an access of a vector is aligned if its flat index is a multiple of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.utils.exceptions import VerifyException

from ..dialects.alignment import verify_aligned
from ..dialects.index import linearize
from ..dialects.inside import ops_of
from ..dialects.kernel_vector import MAX_VECTOR_BYTES, WIDTHS
from ..dialects.loop import LoadOp, StoreOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import shape_of
from ..index.affine import replace_dims
from .conditions import linear
from .index import Range, operand_ranges, simplify

Access = LoadOp | StoreOp

VECTOR = "vector"
"""The attribute of a loop over neighbours that are to be accessed at once."""


def accesses_along(counter: SSAValue, block: Block) -> list[Access]:
    """The loads and stores in a block whose index depends on a counter."""
    found = ops_of(block, LoadOp, StoreOp)
    return [op for op in found if counter in op.indices]


def is_unit_stride(op: Access, counter: SSAValue, width: int = 2) -> bool:
    """Whether `width` points of a counter, from a multiple of it on, access neighbours in one row."""
    return _is_unit_stride(op.map.data.results, op, counter, width)


def _is_unit_stride(exprs: Sequence[AffineExpr], op: Access, counter: SSAValue, width: int) -> bool:
    if not exprs:
        return False
    ranges = [*operand_ranges(op.indices), (0, width - 1)]
    step = AffineExpr.dimension(len(op.indices))
    first = _at(exprs, op.indices, counter, width, None, ranges)
    moved = _at(exprs, op.indices, counter, width, step, ranges)
    *outer, inner = zip(first, moved, strict=True)
    return all(a == b for a, b in outer) and simplify(inner[0] + step, ranges) == inner[1]


def walks_along(op: Access, counter: SSAValue, width: int = 2) -> bool:
    """Whether `width` points of a counter access neighbouring elements, be it in different rows."""
    memref = op.memref.type
    assert isinstance(memref, MemRefType)
    offset = linearize(op.map.data.results, shape_of(memref))
    return _is_unit_stride([offset], op, counter, width)


def dimension_along(load: LoadOp, last: SSAValue, other: SSAValue) -> int | None:
    """The dimension of a load's array that `other` counts along, if `last` counts along the last one."""
    steps: list[tuple[int, int]] = []
    for expr in load.map.data.results:
        parts = linear(expr)
        if parts is None:
            return None
        by = {load.indices[d]: c for d, c in parts.coefficients.items()}
        steps.append((by.get(last, 0), by.get(other, 0)))
    if not steps or steps[-1] != (1, 0):
        return None
    others = [axis for axis, step in enumerate(steps[:-1]) if step != (0, 0)]
    return others[0] if [steps[axis] for axis in others] == [(0, 1)] else None


def lies_along(body: Block, counter: SSAValue) -> bool:
    """Whether neighbouring points of a counter read neighbouring elements of some input."""
    return any(walks_along(op, counter) for op in accesses_along(counter, body))


def _at(
    exprs: Sequence[AffineExpr],
    operands: Sequence[SSAValue],
    counter: SSAValue,
    width: int,
    step: AffineExpr | None,
    ranges: Sequence[Range],
) -> list[AffineExpr]:
    """Index expressions where `counter` is a multiple of `width`, plus `step`."""
    dims: list[AffineExpr] = [AffineExpr.dimension(i) for i in range(len(operands))]
    scaled = list(ranges)
    for position, value in enumerate(operands):
        if value is counter:
            low, high = ranges[position]
            dims[position] = dims[position] * width + (0 if step is None else step)
            scaled[position] = (low, high // width if isinstance(high, int) else high)
    return [simplify(replace_dims(e, dims), scaled) for e in exprs]


def is_vector(op: Access, counter: SSAValue, width: int) -> bool:
    """Whether `width` points of a counter are a vector that a GPU's thread accesses at once."""
    memref = op.memref.type
    assert isinstance(memref, MemRefType)
    if storage_bytes(memref.element_type) * width > MAX_VECTOR_BYTES:
        return False
    return is_aligned_along(op, counter, width)


def is_aligned_along(op: Access, counter: SSAValue, width: int) -> bool:
    """Whether `width` points of a counter, from a multiple of it on, access an aligned vector."""
    memref = op.memref.type
    assert isinstance(memref, MemRefType)
    if not is_unit_stride(op, counter, width):
        return False
    ranges = operand_ranges(op.indices)
    first = _at(op.map.data.results, op.indices, counter, width, None, ranges)
    try:
        verify_aligned(first, op.indices, memref, width)
    except VerifyException:
        return False
    return True


def vector_width(counter: SSAValue, block: Block) -> int | str:
    """The most neighbours along a counter that a block can access at once, or why no more than one."""
    accesses = accesses_along(counter, block)
    if not accesses:
        return "no access depends on it"
    if any(op.parent is not block for op in accesses):
        return "an access stands in a loop or under a condition"
    if not all(is_unit_stride(op, counter) for op in accesses):
        return "neighbours are not neighbours in memory"
    for width in sorted(WIDTHS, reverse=True):
        if all(is_vector(op, counter, width) for op in accesses):
            return width
    return "neighbours are not aligned vectors"
