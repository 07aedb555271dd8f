"""How slabs of the scratchpad can be filled: how wide the copies of threads are, which box the engine copies.

A thread's copy takes neighbours of one row of the source to neighbours of one row of the slab, both at a
multiple of its size. So rows of both must be whole numbers of copies, and the slab must begin at one. The
copy engine takes boxes of the source; what it asks of them, `dialects/tensor_map.py` says.
"""

from __future__ import annotations

from xdsl.dialects.builtin import MemRefType
from xdsl.utils.exceptions import VerifyException

from ..dialects.alignment import divisor
from ..dialects.kernel_async import COPY_BYTES
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import extent_expr, shape_of, static_shape
from ..dialects.tensor_map import TensorMapType, verify_describes
from ..dialects.tile import StageOp


def copy_elements(stage: StageOp, pad: int) -> int | None:
    """Elements that one asynchronous copy takes, as many as are proven to be aligned; None if none does.

    `pad` is how much longer the rows of the slab are than what they hold.
    """
    assert isinstance(stage.slab.type, MemRefType)
    row = static_shape(stage.slab.type)[-1]
    return _most_elements(stage, row, row + pad)


def widest_copy(stage: StageOp) -> int:
    """Elements that one copy takes where a slab and the rows of its source begin, whatever its rows are."""
    return _most_elements(stage) or 1


def _most_elements(stage: StageOp, *lengths: int) -> int | None:
    """Those of the widest copy of which these, the source's rows, and where the slab begins are multiples."""
    assert isinstance(stage.source.type, MemRefType)
    size = storage_bytes(stage.source.type.element_type)
    row = divisor(extent_expr(shape_of(stage.source.type)[-1]), ())
    first = divisor(stage.map.data.results[-1], stage.origin)
    widths = (bytes // size for bytes in reversed(COPY_BYTES))
    return next((n for n in widths if n and not any(x % n for x in (row, first, *lengths))), None)


def panels(stage: StageOp) -> tuple[int, int]:
    """How many boxes a slab comes in side by side, and the elements in a row of each.

    The rows of a swizzled slab are cut where its swizzle ends.
    """
    assert isinstance(stage.slab.type, MemRefType)
    row = static_shape(stage.slab.type)[-1]
    width = stage.swizzle_bytes // storage_bytes(stage.slab.type.element_type) or row
    return row // width, width


def box_of(stage: StageOp, swizzle: int) -> TensorMapType:
    """The box that one bulk copy takes of a slab's source, of what is multicast a part of the rows.

    Raises VerifyException where there is none.
    """
    source, slab = stage.source.type, stage.slab.type
    assert isinstance(source, MemRefType) and isinstance(slab, MemRefType)
    *outer, row = static_shape(slab)
    size = storage_bytes(source.element_type)
    outer[:1] = [rows // stage.receivers for rows in outer[:1]]
    if swizzle and row * size % swizzle:
        raise VerifyException(f"rows of {row * size} bytes are no whole number of {swizzle}")
    leading = [1] * (source.get_num_dims() - len(outer) - 1)
    map = TensorMapType([*leading, *outer, swizzle // size or row], source.element_type, swizzle)
    verify_describes(map, source)
    if map.bytes % map.alignment:
        raise VerifyException(
            f"a box of {map.bytes} bytes does not end where the next can begin, at a multiple of "
            f"{map.alignment}"
        )
    return map


def bulk_refusal(stage: StageOp, swizzle: int = 0) -> str | None:
    """Why the copy engine cannot fill a slab so, or None if it can."""
    try:
        box_of(stage, swizzle)
    except VerifyException as error:
        return str(error).strip()
    return None
