"""`cuda.mma`: `mma.sync` of PTX, with which a warp multiplies small matrices.

%d0, %d1, %d2, %d3 = cuda.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16
"""

from __future__ import annotations

from typing import ClassVar

from xdsl.irdl import irdl_op_definition

from .mma import MmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """`mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32`, or two of `m16n8k8` for tf32.

    `mma.py` says whose elements are where.
    """

    name = "cuda.mma"

    SINCE: ClassVar[int] = 80
