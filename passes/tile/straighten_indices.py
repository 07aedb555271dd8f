"""`straighten-indices`: what goes straight through memory is indexed so that its address shows it.

    %v = loop.load %x[%p floordiv 2, (%p * 6 + %i) floordiv 4 mod 3, (%p * 6 + %i) mod 4] : memref<8x3x4xf32>
becomes
    %v = loop.load %x[(%p * 6 + %i) floordiv 12, (%p * 6 + %i) floordiv 4 mod 3, (%p * 6 + %i) mod 4]

where %i counts to 6. Both are the element %p * 6 + %i in memory. That the first is follows only from where %i
ends, which native code, whose loops are branches, does not say of its counters: there the address would be
divided for each element, and no loop over it would use vectors. Needs launches; changes indices alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.index import UNKNOWN, Range, operand_ranges, simplify
from ...analysis.launches import open_kernels
from ...dialects.index import delinearize, linearize
from ...dialects.inside import ops_in
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.sizes import shape_of
from ...index.affine import divisions
from ..decisions import record
from .rewrite_indices import set_index


def _is_divided(place: AffineExpr) -> bool:
    return any(True for _ in divisions(place))


def straight(op: LoadOp | StoreOp) -> Sequence[AffineExpr] | None:
    """Indices of the same element whose address needs no division, if these are needed."""
    assert isinstance(op.memref.type, MemRefType)
    shape = shape_of(op.memref.type)
    given = linearize(op.map.data.results, shape)
    blind: list[Range] = [(0, UNKNOWN[1])] * len(op.indices)
    if not _is_divided(simplify(given, blind)):
        return None
    place = simplify(given, operand_ranges(op.indices))
    if _is_divided(place):
        return None
    exprs = [simplify(expr, blind) for expr in delinearize(place, shape)]
    return exprs if simplify(linearize(exprs, shape), blind) == place else None


@dataclass(frozen=True)
class StraightenIndicesPass(ModulePass):
    """Index elements of memory that lie one after the other so that their addresses show it."""

    name = "straighten-indices"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in open_kernels(op):
            count = 0
            for access in ops_in(kernel.body):
                if not isinstance(access, LoadOp | StoreOp):
                    continue
                if (exprs := straight(access)) is not None:
                    set_index(access, exprs, list(access.indices))
                    count += 1
            done = f"{count} accesses go straight through memory"
            reason = done if count else "all addresses show it"
            record(self.name, kernel.sym_name.data, count > 0, reason, kernel, steps=[self])
