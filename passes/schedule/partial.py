"""`partial`: what a launch folds in sweeps is folded in parts, and then the parts are.

| across | a part is what | the parts are folded by |
|---|---|---|
| `thread` | a thread folds of each sweep of a point: the lanes of a new axis share them | `tile.combine` |
| `block` | a point of a new axis of the launch folds of its one sweep | a kernel of their own |

`partial_threads.py` and `partial_blocks.py` show what becomes of a kernel. A fold is re-associated in a fixed
order: every run gives the same bits. Lanes visit elements, or `vector`s of neighbours, t, t + parts,
t + 2 parts, ...; they are neighbouring threads, but with `columns` neighbouring points are. Across blocks a
part is a multiple of `grain` neighbouring elements; kernel `k` becomes `k_partial` and `k_fold`, which later
steps may name.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import KernelOp
from ...dialects.tile import MAX_THREADS, LaunchOp
from ...errors import UsageError
from ..tile.named_axes import check_names, taken
from .partial_blocks import fold_in_parts
from .partial_threads import obstacle, share_sweeps, widest_vector
from .primitive import Primitive, check_word

PLACES = ("thread", "block")
"""Who may fold the parts."""


@dataclass(frozen=True)
class PartialPass(Primitive):
    """Fold in parts. Raises UsageError for numbers that no launch can have."""

    name = "partial"

    across: str = ""
    """Who folds the parts: thread or block."""
    parts: int = 0
    """How many there are; across threads a power of two."""
    vector: int = 1
    """Neighbours that a thread accesses at once: 1, 2, 4 or 8."""
    columns: bool = False
    """Whether neighbouring threads have neighbouring points, not neighbouring elements."""
    grain: int = 1
    """What the size of a block's part is a multiple of, in elements."""
    into: str = "lane"
    """The name of the axis of the threads that share a sweep."""

    def __post_init__(self):
        check_word("across", self.across, PLACES)
        if self.parts < 1 or self.grain < 1:
            raise UsageError("parts and grain are 1 or more")
        if self.across == "thread" and (self.parts > MAX_THREADS or self.parts & (self.parts - 1)):
            raise UsageError(
                f"parts is a power of two, at most {MAX_THREADS}, across threads, not {self.parts}"
            )
        if self.across == "thread" and self.grain != 1:
            raise UsageError("grain is about the parts of blocks; threads take every so many elements")
        if self.across == "block" and (self.vector != 1 or self.columns or self.into != "lane"):
            raise UsageError("vector, columns and into are about threads that share a sweep, not blocks")
        if self.vector not in (1, *WIDTHS):
            raise UsageError(f"vector is 1, 2, 4 or 8, not {self.vector}")
        check_names([self.into])

    @property
    def done(self) -> str:
        """Who folds what."""
        if self.across == "block":
            return f"{self.parts} parts, folded by a second kernel"
        vectors = f", in vectors of {self.vector}" if self.vector > 1 else ""
        return f"{self.parts} threads share each sweep{vectors}"

    def change(self, launch: LaunchOp) -> str | None:
        """Fold in parts; gives why not."""
        return self._by_blocks(launch) if self.across == "block" else self._by_threads(launch)

    def _by_threads(self, launch: LaunchOp) -> str | None:
        reason = obstacle(launch) or taken(launch, [self.into], [])
        if reason is not None:
            return reason
        if self.vector > (widest := widest_vector(launch)):
            return f"its sweeps go in vectors of {widest} at most, not {self.vector}"
        share_sweeps(launch, self.parts, self.vector, self.into, columns=self.columns)
        return None

    def _by_blocks(self, launch: LaunchOp) -> str | None:
        if launch.is_partitioned:
            return "the launch is partitioned already"
        kernel = launch.parent_op()
        assert isinstance(kernel, KernelOp)
        made = fold_in_parts(kernel, self.parts, self.grain)
        return made if isinstance(made, str) else None
