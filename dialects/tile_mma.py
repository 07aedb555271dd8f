"""`tile.mma`: the warps of a launch multiply small matrices.

    tile.launch (%i = 8 : thread, %j = 4 : thread) schedule(...) {
      ...
      %d0, %d1, %d2, %d3 = tile.mma (%a0, ..., %a7) by (%b0, ..., %b3) : bf16

The threads of a block are numbered row by row over the launch's thread axes; 32 that follow each other are a
warp (`mma.py`).
"""

from __future__ import annotations

from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure

from .mma import MmaBase


@irdl_op_definition
class MmaOp(MmaBase):
    """Multiply two rows of each thread by one column of each; see `mma.py`."""

    name = "tile.mma"

    traits = traits_def(Pure())
