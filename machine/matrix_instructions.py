"""The instructions by which threads of a GPU multiply small matrices together: one row each.

Source: PTX ISA, "Matrix Fragments for mma.m16n8k16" and the like, "Register Fragments for wgmma".

A row of a shape or type that PTX has and that is not here yet is all that `kernel.mma` needs to have it: what
threads hold, what the interpreter computes and what is printed follow from it.
"""

from __future__ import annotations

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
    meaning: str = PRODUCT
    """What is done for all i, j and k."""

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
    ),
    MatrixInstruction(
        "mma.sync.aligned.m16n8k8.row.col.f32.$type.$type.f32",
        (16, 8, 8),
        ("bf16", "f16"),
        "f32",
        rows="(t, e) -> (t floordiv 4 + e floordiv 2 * 8, t mod 4 * 2 + e mod 2)",
        columns="(t, e) -> (t mod 4 * 2 + e, t floordiv 4)",
        sums=_SUMS,
    ),
    MatrixInstruction(
        "mma.sync.aligned.m16n8k8.row.col.f32.$type.$type.f32",
        (16, 8, 8),
        ("tf32",),
        "f32",
        rows="(t, e) -> (t floordiv 4 + e mod 2 * 8, t mod 4 + e floordiv 2 * 4)",
        columns="(t, e) -> (t mod 4 + e * 4, t floordiv 4)",
        sums=_SUMS,
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
