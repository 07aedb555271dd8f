"""The instructions by which threads of a GPU multiply small matrices together: one row each.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and the like, "Register Fragments for wgmma".

A row is all that an instruction needs: `kernel.mma` holds, the interpreter computes and the printer prints
what it says; `tensor-cores` uses it where a contraction multiplies its types (docs/add-an-instruction.md).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

PRODUCT = "sums[i, j] += rows[i, k] * columns[k, j]"


@dataclass(frozen=True)
class MatrixInstruction:
    """A loop nest over `shape` that `threads` execute together.

    A layout says which element of a matrix each thread has in each element `e` of its registers, in their
    order: of the matrix of rows (i, k), of columns (k, j), of sums (i, j). An operation holds the same
    elements in the order of their rows or columns.
    """

    text: str
    """How it is written, `$type` for the type of what is multiplied; its operands follow."""
    shape: tuple[int, int, int]
    """Rows, columns and positions of the reduced axis."""
    types: tuple[str, ...]
    """Of what is multiplied."""
    sum_type: str
    rows: str
    columns: str
    sums: str
    since: int = 80
    """The first compute capability that has it, 80 for 8.0."""
    only: str | None = None
    """The one architecture that has it, if no later one does."""
    threads: int = 32
    lanes: int = 4
    """Threads that share a row of sums: thread t is lane t mod lanes of group t floordiv lanes."""
    repeats: int = 1
    """Instructions on the same sums for which a thread loads its elements together."""
    cost: float | None = None
    """Time of a multiply-add, as a multiple of one of bf16 (data sheet of the A100).

    None where machines differ, or nobody measured: the cost model does not choose it, a schedule may.
    """
    meaning: str = PRODUCT
    """What is done for all i, j and k."""

    @property
    def name(self) -> str:
        """What schedules call it: m16n8k16. Rows of one name multiply other types."""
        return "m{}n{}k{}".format(*self.shape)

    @property
    def depth(self) -> int:
        """Positions of the reduced axis that are multiplied together."""
        return self.shape[2] * self.repeats

    @property
    def slots(self) -> int:
        """Positions of those that one lane holds elements of."""
        return self.depth // self.lanes

    @property
    def groups(self) -> int:
        """Groups of lanes; their threads hold elements of the same rows."""
        return self.threads // self.lanes

    @property
    def thread_rows(self) -> int:
        """Rows of which a thread holds elements and gets sums."""
        return self.shape[0] // self.groups

    @property
    def thread_columns(self) -> int:
        """Neighbouring columns of which a thread gets sums in each of its rows."""
        return self.shape[1] // self.lanes

    @property
    def element_bytes(self) -> int:
        """Bytes of an element of what is multiplied."""
        return int(re.sub(r"\D", "", self.types[0])) // 8

    @property
    def work(self) -> int:
        """Multiply-adds of `repeats` instructions."""
        rows, columns, _ = self.shape
        return rows * columns * self.depth

    def multiplies(self, type: str, sum_type: str) -> bool:
        """Whether it multiplies elements of a type, and adds them up in another one."""
        return type in self.types and sum_type == self.sum_type

    def misfit(self, block: tuple[int, int, int], tile: tuple[int, int]) -> str | None:
        """Why it cannot multiply a block, of M, N and K, with such a tile of sums in each thread, or None."""
        (height, width, depth), (rows, columns) = block, tile
        if width != self.lanes * columns or height // rows * self.lanes % self.threads:
            return (
                f"for mma, {self.lanes} threads share a row and {self.threads} multiply together; blocks of "
                f"{height} by {width} have threads of {rows} by {columns}"
            )
        if rows % self.thread_rows or columns % self.thread_columns or depth % self.depth:
            return (
                f"for mma, threads compute {self.thread_rows} rows and {self.thread_columns} columns at "
                f"once, and block_k is a multiple of {self.depth}, not {rows} by {columns} and {depth}"
            )
        return None

    @property
    def held(self) -> tuple[int, int, int]:
        """How many elements of rows, of columns and of sums a thread has."""
        rows, columns, depth = self.shape
        threads = self.threads
        return rows * depth // threads, depth * columns // threads, rows * columns // threads


_SUMS = "(t, e) -> (t floordiv 4 + e floordiv 2 * 8, t mod 4 * 2 + e mod 2)"

MMA = (
    MatrixInstruction(
        "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32",
        (16, 8, 32),
        ("i8",),
        "i32",
        rows="(t, e) -> (t floordiv 4 + e floordiv 4 mod 2 * 8, t mod 4 * 4 + e mod 4 + e floordiv 8 * 16)",
        columns="(t, e) -> (t mod 4 * 4 + e mod 4 + e floordiv 4 * 16, t floordiv 4)",
        sums=_SUMS,
    ),
    MatrixInstruction(
        "mma.sync.aligned.m16n8k16.row.col.f32.$type.$type.f32",
        (16, 8, 16),
        ("bf16", "f16"),
        "f32",
        rows="(t, e) -> (t floordiv 4 + e floordiv 2 mod 2 * 8, t mod 4 * 2 + e mod 2 + e floordiv 4 * 8)",
        columns="(t, e) -> (t mod 4 * 2 + e mod 2 + e floordiv 2 * 8, t floordiv 4)",
        sums=_SUMS,
        cost=1,
    ),
    MatrixInstruction(
        "mma.sync.aligned.m16n8k8.row.col.f32.$type.$type.f32",
        (16, 8, 8),
        ("bf16", "f16"),
        "f32",
        rows="(t, e) -> (t floordiv 4 + e floordiv 2 * 8, t mod 4 * 2 + e mod 2)",
        columns="(t, e) -> (t mod 4 * 2 + e, t floordiv 4)",
        sums=_SUMS,
        cost=1,
    ),
    MatrixInstruction(
        "mma.sync.aligned.m16n8k8.row.col.f32.$type.$type.f32",
        (16, 8, 8),
        ("tf32",),
        "f32",
        rows="(t, e) -> (t floordiv 4 + e mod 2 * 8, t mod 4 + e floordiv 2 * 4)",
        columns="(t, e) -> (t mod 4 + e * 4, t floordiv 4)",
        sums=_SUMS,
        repeats=2,
        cost=2,
    ),
    MatrixInstruction(
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64",
        (8, 8, 4),
        ("f64",),
        "f64",
        rows="(t, e) -> (t floordiv 4, t mod 4)",
        columns="(t, e) -> (t mod 4, t floordiv 4)",
        sums="(t, e) -> (t floordiv 4, t mod 4 * 2 + e)",
    ),
)
"""Those of a warp; of the same types the one of most positions first."""


def first_row(type: str) -> MatrixInstruction:
    """The instruction of a warp of most positions that multiplies a type."""
    return next(each for each in MMA if type in each.types)


HALVES = first_row("bf16")
"""The one that the techniques of short floats are made for: windows, and softmaxes between products."""

_WARP_ROW = "t floordiv 32 * 16 + t mod 32 floordiv 4 + e floordiv 2 mod 2 * 8"

WGMMA = MatrixInstruction(
    "wgmma.mma_async.sync.aligned.m64n${columns}k16.f32.$type.$type",
    (64, 8, 16),
    ("bf16", "f16"),
    "f32",
    rows=f"(t, e) -> ({_WARP_ROW}, t mod 4 * 2 + e mod 2 + e floordiv 4 * 8)",
    columns="(t, e) -> (e, t)",
    sums=f"(t, e) -> ({_WARP_ROW}, t mod 4 * 2 + e mod 2 + e floordiv 4 * 8)",
    since=90,
    only="sm_90a",
    threads=128,
    cost=1,
)
"""That of a warpgroup. Its columns are a multiple of those of the shape; it reads them from shared memory."""


def find_mma(type: str, rows: int, columns: int) -> tuple[MatrixInstruction, int] | None:
    """The instruction of a warp for so many elements that each thread holds, and how many of it they are.

    None if there is none.
    """
    for each in MMA:
        height, width, _ = each.held
        if type in each.types and rows and rows % height == 0 and rows // height * width == columns:
            return each, rows // height
    return None
