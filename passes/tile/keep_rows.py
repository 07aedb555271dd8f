"""`keep-rows`: what a thread reads in several sweeps it reads once, and keeps in registers.

The step is `stage{to=registers}`. Where the schedule says `keep = shared`, or with `stage=true`, it is
`stage{to=shared}`: the block copies the row to the scratchpad, if it has one row.

Declined are launches whose threads do not share sweeps, elements that one sweep alone reads, rows that need
more registers than a thread can spare, and with `stage` rows that the scratchpad cannot hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.schedule import Kept
from ...dialects.sizes import static_extent
from ...dialects.tile import LaunchOp
from ..schedule.primitive import carry_out
from ..schedule.stage import StagePass, bytes_of_rows, find_rows
from .recipe import GpuRecipe, Taken

REGISTER_FILE = 1 << 16
"""Registers of a multiprocessor; no block can have more (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability")."""

MOST_KEPT = 64
"""Registers of a thread that may hold rows, of its 255."""

SPARE_BYTES = 1024
"""What is left of a block's shared memory for the parts of its sums."""


@dataclass(frozen=True)
class KeepRowsPass(GpuRecipe):
    """Keep what several sweeps of a launch read in registers, or if asked in the scratchpad."""

    name = "keep-rows"

    stage: bool = False
    """Keep the rows in the scratchpad, not in registers."""

    def take(self, launch: LaunchOp) -> Taken | str:
        keep = None if launch.schedule is None else launch.schedule.word("keep")
        shared = self.stage or keep == Kept.SHARED
        size = self._size(launch, keep)
        if isinstance(size, str):
            return size
        step = StagePass(to="shared" if shared else "registers")
        carry_out([step], launch)
        where = "bytes of the scratchpad" if shared else "registers"
        return Taken(f"rows are kept in {size} {where}", [step])

    def _size(self, launch: LaunchOp, keep: str | None) -> int | str:
        """Registers of a thread, or bytes of the scratchpad, that the rows of a launch take; or why none."""
        if launch.schedule is None or launch.schedule.get("threads") is None:
            return "its threads do not share sweeps"
        if keep == Kept.NOWHERE and not self.stage:
            return "the schedule keeps nothing"
        rows = find_rows(launch)
        if not rows:
            return "no element is read by more than one sweep"
        if self.stage or keep == Kept.SHARED:
            size, most = bytes_of_rows(rows, launch), self.machine.block_shared_bytes - SPARE_BYTES
            if isinstance(size, int) and size > most:
                return f"rows of {size} bytes exceed the {most} of a block's scratchpad"
            return size
        threads = static_extent(launch.num_threads)
        spare = min(MOST_KEPT, REGISTER_FILE // threads // 2)
        needed = sum(sites[0].registers for sites in rows)
        if needed > spare:
            return f"rows need {needed} registers of a thread, which can spare {spare}"
        return needed
