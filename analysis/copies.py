"""How wide the copies may be by which threads fill a slab of the scratchpad.

A copy takes neighbours of one row of the source to neighbours of one row of the slab, both at a multiple of
its size. So rows of both must be whole numbers of copies, and the slab must begin at one.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType

from ..dialects.alignment import divisor
from ..dialects.kernel_async import COPY_BYTES
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import extent_expr, shape_of, static_shape
from ..dialects.tile import StageOp


def copy_elements(stage: StageOp, pad: int) -> int | None:
    """Elements that one asynchronous copy takes, as many as are proven to be aligned; None if none does.

    `pad` is how much longer the rows of the slab are than what they hold.
    """
    assert isinstance(stage.source.type, MemRefType) and isinstance(stage.slab.type, MemRefType)
    size = storage_bytes(stage.source.type.element_type)
    row = static_shape(stage.slab.type)[-1]
    length = divisor(extent_expr(shape_of(stage.source.type)[-1]), ())
    first = divisor(stage.map.data.results[-1], stage.origin)
    for bytes in reversed(COPY_BYTES):
        elements = bytes // size
        if elements and not any(n % elements for n in (row, row + pad, length, first)):
            return elements
    return None
