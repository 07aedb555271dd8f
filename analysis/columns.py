"""Whether a loop over columns walks along memory."""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ..dialects.loop import LoadOp
from ..dialects.sizes import shape_of

SIZE = 1 << 20
"""What a dynamic size is taken to be where an index divides by it: more than the columns that are tried."""


def walks_columns(load: LoadOp, column: SSAValue) -> bool:
    """Whether neighbouring columns are neighbours in memory for a load, or it reads the same for all."""
    dimensions = {d for d, value in enumerate(load.indices) if value is column}
    if not dimensions:
        return True
    assert isinstance(load.memref.type, MemRefType)
    exprs, shape = list(load.map.data.results), list(shape_of(load.memref.type))
    while len(shape) > 1 and shape[-1] == 1:  # what a reduction leaves of its axis
        exprs.pop()
        shape.pop()
    *outer, last = exprs
    if any(dimensions & expr.used_dims() for expr in outer):
        return False
    symbols = [SIZE] * load.map.data.num_symbols
    first, second, third = (
        last.eval([n if d in dimensions else 0 for d in range(len(load.indices))], symbols)
        for n in (0, 1, 2)
    )
    return second - first == 1 and third - second == 1
