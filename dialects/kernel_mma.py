"""`kernel.mma`: the lanes of a warp multiply small matrices and add to what they have.

%d0, %d1, %d2, %d3 = kernel.mma (%a0, ..., %a7) by (%b0, ..., %b3) plus (%c0, ..., %c3) : bf16
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition

from .mma import MmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each lane by one column of each; see `mma.py`.

    All threads of the warp must take part: it is not Pure, so that nothing moves it where some do not.
    """

    name = "kernel.mma"
