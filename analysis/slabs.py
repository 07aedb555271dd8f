"""What the threads of a block read of an operand together: a slab, a box that a scratchpad can hold.

    loop.load %x[%j_block * 32 + %j, %i_block * 32 + %i + 1]        // %i and %j run to 32 inside a block

reads 32 rows of 32 from `%x[%j_block * 32, %i_block * 32 + 1]` on, at `[%j, %i]` within the box. A counter
may run backwards: of `31 - %i` the box begins where `%i` ends. One that goes along whole lines of an image
counts two axes of the box (`analysis/lines.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineExpr

from ..dialects.loop import LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import Size, shape_of
from ..index.affine import ZERO, replace_dims
from .conditions import Linear, slope
from .index import Range, operand_ranges, simplify
from .lines import in_lines


@dataclass(frozen=True)
class Slab:
    """A box: where it starts, how large it is, where a thread reads in it; over the operands of a load."""

    origin: list[AffineExpr]
    shape: list[int]
    index: list[AffineExpr]

    @property
    def elements(self) -> int:
        """How many elements it has."""
        return prod(self.shape)

    def bytes(self, load: LoadOp) -> int:
        """Its size."""
        return self.elements * storage_bytes(load.result.type)

    def inside(self, load: LoadOp) -> Slab:
        """The part of it that can lie in the source, if nothing else of it is read."""
        assert isinstance(load.memref.type, MemRefType)
        extents = shape_of(load.memref.type)[len(self.origin) - len(self.shape) :]
        origin = self.origin[len(self.origin) - len(self.shape) :]
        shape = [
            min(size, max(extent - first.value, 1))
            if isinstance(first, AffineConstantExpr) and not isinstance(extent, Size)
            else size
            for size, extent, first in zip(self.shape, extents, origin, strict=True)
        ]
        return replace(self, shape=shape)


def slab_of(load: LoadOp, local: Mapping[SSAValue, int]) -> Slab | None:
    """The slab of a load; None if what counters inside a block add to its index is no sum of multiples.

    `local` are those counters, with their extents. Axes of the source in front of the first one that they run
    along are none of the slab's.
    """
    sizes = {i: local[value] for i, value in enumerate(load.indices) if value in local}
    ranges = operand_ranges(load.indices)
    counted = in_lines(load.map.data.results, ranges, sizes)
    zeroed = [ZERO if i in counted.sizes else dim for i, dim in enumerate(_dims(counted.ranges))]
    origin: list[AffineExpr] = []
    shape: list[int] = []
    index: list[AffineExpr] = []
    for expr in counted.exprs:
        slopes: dict[int, int] = {}
        for dim in sorted(d for d in expr.used_dims() if d in counted.sizes):
            step = slope(expr, {dim}, counted.ranges)
            if step is None:
                return None
            slopes[dim] = step
        spans = [step * (counted.sizes[dim] - 1) for dim, step in slopes.items()]
        first = sum(span for span in spans if span < 0)
        origin.append(simplify(replace_dims(expr, zeroed) + first, counted.ranges))
        if slopes or shape:
            shape.append(sum(map(abs, spans)) + 1)
            whole = [counted.dims.get(i, dim) for i, dim in enumerate(_dims(counted.ranges))]
            index.append(simplify(replace_dims(Linear(slopes, -first).expr, whole), ranges))
    return Slab(origin, shape, index)


def _dims(ranges: Sequence[Range]) -> list[AffineExpr]:
    return [AffineExpr.dimension(i) for i in range(len(ranges))]
