"""How a contraction can be shared out between blocks and threads: which ways are legal, what they take.

What each costs, `tiling_cost.py` says.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from xdsl.utils.exceptions import VerifyException

from ..dialects.kernel import WARP
from ..dialects.schedule import Transport
from ..dialects.tensor_map import MAX_EXTENT
from ..dialects.tile import MAX_THREADS
from ..dialects.wgmma import ROW_BYTES, sums_of, verify_extents
from ..machine.matrix_instructions import HALVES, WGMMA, MatrixInstruction
from ..machine.targets import BLOCK_RESERVE, Target

MIN_PRODUCT = 1 << 15
"""Multiply-adds below which nothing is worth staging."""

ASYNC_BUFFERS, SYNC_BUFFERS = 3, 2
"""Buffers of each slab where nothing is asked for: of what is copied asynchronously, and by threads."""

BUFFERED_BLOCKS = 2
"""Blocks that are to have room on a multiprocessor with all their buffers."""

PADDING = 16
"""Elements by which a row of a slab may become longer."""

REGISTERS = {0: (48, 1.875), 1: (40, 1.125), 2: (28, 1.0)}
"""What ptxas 13 takes for a tile, and for each of its sums, by who multiplies: within 16 registers for 16
sums and more, where it need not spill for the sake of another block."""

SPARE_REGISTERS = 1 / 8
"""The part of a thread's registers that the estimate leaves free."""

HALF_BYTES, WORD_BYTES = 2, 4
"""Of the elements that tensor cores multiply: bf16 and f16, or tf32."""

WARPGROUPS = 2
"""What `mma` of a tiling is where warpgroups multiply."""

CLUSTER = 2
"""Blocks of the clusters that are considered."""

SWIZZLE_ROWS = 8
"""Rows of a slab after which its swizzle begins anew: a part of one is a whole number of these."""


def count_parts(extent: int, size: int) -> int:
    """How many parts of `size` cover an extent."""
    return -(-extent // size)


@dataclass(frozen=True)
class Tiling:
    """The parts that a contraction comes in; the fields are the choices of a schedule."""

    block_m: int
    block_n: int
    block_k: int
    thread_m: int
    thread_n: int
    split_k: int = 1
    mma: int = 0
    """1 if warps multiply matrices, with tensor cores; 2 if warpgroups do."""
    stages: int = 0
    """Buffers of each slab that the copy engine fills; 0 if threads copy."""
    cluster_m: int = 0
    """Blocks one below the other that share the slabs of columns; 0 if each is alone."""
    cluster_n: int = 0
    """Blocks side by side that share the slabs of rows."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block_m // self.thread_m * (self.block_n // self.thread_n)

    @property
    def choices(self) -> dict[str, Any]:
        """The choices of a schedule that say this."""
        said: dict[str, Any] = {k: v for k, v in asdict(self).items() if v}
        return said | ({"transport": Transport.TMA} if self.stages else {})

    def neighbours(self) -> list[Tiling]:
        """The tilings with one choice halved or doubled; not all of them fit."""
        kinds = ("mma", "cluster_m", "cluster_n")
        sizes = {key: value for key, value in asdict(self).items() if key not in kinds and value}
        changes = [(key, v // 2) for key, v in sizes.items() if v % 2 == 0]
        changes += [(key, v * 2) for key, v in sizes.items()]
        return [Tiling(**asdict(self) | {key: value}) for key, value in changes]

    def misfit(self, instruction: MatrixInstruction) -> str | None:
        """Why no kernel can have this tiling, or None; `instruction` is that of its warps."""
        rows = ("m", self.block_m, self.thread_m)
        for axis, whole, part in (rows, ("n", self.block_n, self.thread_n)):
            if whole % part:
                return f"thread_{axis} = {part} does not divide block_{axis} = {whole}"
        if self.threads > MAX_THREADS:
            return (
                f"blocks of {self.block_m} by {self.block_n} with threads of {self.thread_m} by "
                f"{self.thread_n} have {self.threads} threads; a block has at most {MAX_THREADS}"
            )
        if self.mma == WARPGROUPS:
            return self._wgmma_misfit()
        if self.cluster_m or self.cluster_n:
            return "clusters share slabs that warpgroups multiply"
        return instruction.misfit(*self._sizes) if self.mma else None

    @property
    def _sizes(self) -> tuple[tuple[int, int, int], tuple[int, int]]:
        """Those of a block and its chunk of K, and of what a thread computes."""
        return (self.block_m, self.block_n, self.block_k), (self.thread_m, self.thread_n)

    def _wgmma_misfit(self) -> str | None:
        """Why warpgroups cannot multiply the slabs of this tiling, or None."""
        if self.block_k * HALF_BYTES != ROW_BYTES or not self.stages:
            depth = ROW_BYTES // HALF_BYTES
            return f"warpgroups multiply slabs of {depth} positions of K that the copy engine fills"
        try:
            verify_extents(self.block_m, self.block_n)
        except VerifyException as error:
            return f"a warpgroup {str(error).strip()}"
        if self.cluster_m and self.cluster_n:
            return "clusters are along M or along N, not both"
        shared = self.block_n if self.cluster_m else self.block_m if self.cluster_n else 0
        if shared % (CLUSTER * SWIZZLE_ROWS):
            return f"{shared} rows of a slab are not shared evenly by {CLUSTER} blocks"
        sums = sums_of(self.block_m, self.block_n, self.threads)
        if isinstance(sums, str):
            return sums
        return WGMMA.misfit(*self._sizes)


@dataclass(frozen=True)
class Problem:
    """What the model knows of a contraction."""

    batch: int
    m: int
    n: int
    k: int
    results: int
    """Sums for each element of the result."""
    row_bytes: float
    """Bytes that one row of a slab has for each position of K, of all operands that depend on M.

    Windows that overlap share bytes."""
    column_bytes: float
    """The same of the operands that depend on N."""
    traffic: int = 0
    """Bytes that the kernel moves if each of its arguments passes once."""
    instruction: MatrixInstruction | None = None
    """That of warps, by which tensor cores could multiply; None if there is none."""
    stages: int = ASYNC_BUFFERS
    """Buffers of each slab at most; one where nothing is copied while threads compute."""
    boxes: bool = False
    """Whether the copy engine can fill the slabs."""
    rows_along_k: bool = False
    """Whether all slabs of rows have K innermost, in neighbours as many as warpgroups multiply."""
    column_step: int = 0
    """What `block_n` is a multiple of where warpgroups multiply; 0 if they cannot.

    Where slabs of columns have K innermost too, the least columns of an instruction; a panel of them where
    these are innermost in some."""
    line: int = 1
    """Columns of a line, of which a block has whole ones."""
    lengths: tuple[int, ...] = ()
    """Of the lines that K goes along in windows, and of rows of lines, shortest first."""

    @property
    def short_bytes(self) -> int:
        """Bytes of what tensor cores could multiply: 2 for bf16 and f16, 4 for tf32, else 0."""
        return self.instruction.element_bytes if self.instruction else 0

    @property
    def even(self) -> bool:
        """Whether K comes in whole parts: what windows read past its end need not be 0."""
        return bool(self.lengths)

    def has_whole_lines(self, depth: int) -> bool:
        """Whether parts of K are parts of lines, or whole lines of one row."""
        unit, row = (*self.lengths, self.k)[:2] if self.lengths else (self.k, self.k)
        return not self.lengths or unit % depth == 0 or (depth % unit == 0 and row % depth == 0)

    def depth(self, wanted: int, step: int = 1) -> int:
        """How many positions of K parts have that are boxes: a multiple of a step, as near as can be to one.

        That is what is wanted where all are boxes, or none is.
        """
        boxes = (n for n in range(step, self.k + 1, step) if self.k % n == 0)
        fitting = [n for n in boxes if self.has_whole_lines(n)] if self.even else []
        return min(fitting, key=lambda n: (max(n, wanted) / min(n, wanted), n), default=wanted)

    @property
    def work(self) -> int:
        """Multiply-adds."""
        return self.batch * self.m * self.n * self.k * self.results

    def slab_bytes(self, tiling: Tiling) -> int:
        """Shared memory of a block."""
        across = tiling.block_m * self.row_bytes + tiling.block_n * self.column_bytes
        return int(across * tiling.block_k)

    def registers(self, tiling: Tiling) -> int:
        """Registers that a thread needs, by experience; they are given out in eights."""
        base, each = REGISTERS[tiling.mma]
        return (
            count_parts(int(base + each * tiling.thread_m * tiling.thread_n * self.results), 8) * 8
        )

    def illegal(self, tiling: Tiling, target: Target) -> str | None:
        """Why this contraction cannot have a tiling, or None."""
        if (misfit := tiling.misfit(self.instruction or HALVES)) is not None:
            return misfit
        if self.even and self.k % tiling.block_k:
            return (
                f"K of {self.k}, the positions of windows, has no whole parts of {tiling.block_k}"
            )
        if not self.has_whole_lines(tiling.block_k):
            return f"parts of {tiling.block_k} positions of windows are no boxes"
        if tiling.block_n % self.line:
            return f"blocks of {tiling.block_n} columns have no whole lines of {self.line}"
        if tiling.mma and not (self.short_bytes and target.mma_per_cycle):
            return "it is no sum of products of bf16, f16 or tf32, or there are no tensor cores"
        if (reason := self._unfilled(tiling, target)) is not None:
            return reason
        if (reason := self._unclustered(tiling)) is not None:
            return reason
        size = self.slab_bytes(tiling)
        padded = size // tiling.block_k * (tiling.block_k + PADDING)
        if padded > target.block_shared_bytes:
            return (
                f"slabs of {size} bytes, {padded} when padded, exceed the "
                f"{target.block_shared_bytes} that a block of {target.name} can have"
            )
        need = self.registers(tiling)
        limit = min(target.thread_registers + 1, target.registers // max(tiling.threads, WARP))
        if need > limit:
            sums = tiling.thread_m * tiling.thread_n * self.results
            return (
                f"threads of {sums} sums need about {need} registers; {tiling.threads} threads of "
                f"{target.name} have {limit} each"
            )
        return None

    def _unclustered(self, tiling: Tiling) -> str | None:
        """Why the blocks of a tiling form no clusters as it says, or None."""
        for count, blocks in (
            (tiling.cluster_m, count_parts(self.m, tiling.block_m)),
            (tiling.cluster_n, count_parts(self.n, tiling.block_n)),
        ):
            if count and blocks % count:
                return f"{blocks} blocks are no whole clusters of {count}"
        return None

    def _unfilled(self, tiling: Tiling, target: Target) -> str | None:
        """Why the copy engine cannot fill the slabs of a tiling, or None."""
        if not tiling.stages:
            return None
        if not target.has_copy_engine:
            return f"{target.name} has no copy engine"
        if not self.boxes:
            return "an operand comes in no boxes that a copy engine fills"
        if max(tiling.block_m, tiling.block_n) > MAX_EXTENT:
            return f"boxes have at most {MAX_EXTENT} rows"
        return self._unread(tiling, target) if tiling.mma == WARPGROUPS else None

    def _unread(self, tiling: Tiling, target: Target) -> str | None:
        """Why warpgroups cannot read the slabs of a tiling, or None."""
        if not target.wgmma_per_cycle or self.short_bytes != HALF_BYTES:
            return "warpgroups multiply bf16 and f16, on targets that have them"
        if not self.rows_along_k or not self.column_step:
            return "warpgroups multiply rows that have K innermost by columns that have K or these"
        if tiling.block_n % self.column_step:
            return f"columns that are innermost come in {self.column_step}s, and {tiling.block_n} do not"
        return None

    def is_crowded(self, tiling: Tiling, target: Target) -> bool:
        """Whether a thread has no registers to spare, or a multiprocessor no room for a second block.

        Tensor cores that warpgroups use need no other block to be busy.
        """
        most = target.thread_registers * (1 - SPARE_REGISTERS)
        alone = tiling.mma != WARPGROUPS and self.resident_blocks(tiling, target) < 2
        return self.registers(tiling) > most or alone

    def resident_blocks(self, tiling: Tiling, target: Target) -> int:
        """Blocks that a multiprocessor holds at once."""
        threads = count_parts(tiling.threads, WARP) * WARP
        return min(
            target.resident_blocks,
            target.resident_threads // threads,
            target.registers // (threads * self.registers(tiling)),
            target.shared_bytes
            // (self.buffers(tiling, target) * self.slab_bytes(tiling) + BLOCK_RESERVE),
        )

    def buffers(self, tiling: Tiling, target: Target) -> int:
        """Buffers of each slab: as many as two blocks of a multiprocessor have room for."""
        if tiling.stages:
            return tiling.stages
        share = target.shared_bytes // BUFFERED_BLOCKS - BLOCK_RESERVE
        return max(min(self.stages, share // self.slab_bytes(tiling)), 1)

    def splits(self, tiling: Tiling, parts: Iterable[int]) -> list[Tiling]:
        """A tiling with K in these numbers of parts, as far as they have something to do."""
        chunks = max(count_parts(self.k, tiling.block_k), 1)
        if self.even:
            return [replace(tiling, split_k=n) for n in parts if chunks % n == 0]
        return [replace(tiling, split_k=count_parts(chunks, count_parts(chunks, n))) for n in parts]

    def blocks(self, tiling: Tiling) -> int:
        """Blocks of the grid."""
        rows, columns = count_parts(self.m, tiling.block_m), count_parts(self.n, tiling.block_n)
        return self.batch * rows * columns * tiling.split_k
