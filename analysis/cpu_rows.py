"""How a kernel that is no contraction runs on a CPU: how much a block does, and how it reads and computes.

A block is what a thread takes at once: large enough that taking it costs little, small enough that there are
blocks for all threads. What lies in a core's own cache is near enough; what does not is asked for a page
ahead (`prefetch-sweeps`), if the core does not guess better. Its loops are made of the widest vectors that
it has. Rows with functions to compute, such as those of a softmax, come side by side (`jam-rows`): then a
core has something to do where it would wait for the end of a row's sum. So do rows of small windows, which
read most of what their neighbours read, rows from afar, where a core follows several faster than one after
the other (`Cpu.streams`), and brief ones. How many vectors of each are then taken at once must be said, so
that a row is folded in the same order wherever it stands.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from ..machine.cpus import KIB, Cpu

GRAIN = 4096
"""Loads and stores of a block: some microseconds."""

GRAINS = tuple(GRAIN * 4**n // 16 for n in range(8))

LINE = 64
"""Bytes that a cache brings at once."""

DISTANCES = (0, 1 * KIB, 4 * KIB, 16 * KIB)
"""Bytes ahead that can be asked for."""

CHAINS = 4
"""Chains of operations that a core computes side by side."""

SHAPES = (
    (4, 2),
    (4, 1),
    (2, 4),
    (1, 4),
    (2, 2),
    (1, 8),
    (4, 4),
    (2, 8),
    (1, 2),
    (1, 0),
    (1, 1),
    (2, 1),
)
"""So many rows, and vectors of each: those first that are best most often. Which of both are best together,
none says alone."""

SIDE_BY_SIDE = tuple(sorted({rows for rows, _ in SHAPES}))
"""Rows that may be computed side by side."""

COUNTS = tuple(sorted({vectors for _, vectors in SHAPES}))
"""Vectors of iterations that a loop may compute side by side; with 0, LLVM decides."""

LONGEST_WORK = {1: 640, 2: 8192}
"""Loads and stores of the longest rows of which several are computed side by side, so many vectors of each:
of short rows more would leave too much beyond whole ones."""

DIVIDED = ((640, 4, 1), (1800, 2, 2), (8192, 1, 4))
"""Loads and stores of the longest rows that are divided by a sum of theirs, how many of them then come side
by side, and how many vectors of each. What divides is idle else, and is done with a row while the next one's
functions are computed; an inverse takes the time of these, but of long rows less than dividing. How long
rows are divided at all, a CPU says (`Cpu.divided`)."""

INVERTED = ((8192, 2, 2),)
"""The same of rows that are multiplied by the inverse of a sum."""

LONGEST_SWEPT = 1280
"""Loads and stores of the longest rows without functions of which several are swept side by side."""

SHORTEST_STREAM = 64
"""The same of the shortest rows that a core follows on their own; shorter ones are one stream together."""

LONGEST_PAIRED = 10_000
"""The same of rows of which two are swept side by side, many vectors of each, since their folds wait."""

SMALL_WINDOW = 16
"""Elements of a window whose factors stay in registers, while windows of several rows are computed."""

NARROW = 256
"""Bits of the vectors that some cores run at a higher clock than their widest ones."""


@dataclass(frozen=True)
class RowProblem:
    """What the model knows of a kernel."""

    points: int
    """Of the launch: rows, or elements where nothing is reduced."""
    work: int
    """Loads and stores of a point."""
    bytes: int
    """Of all arrays that it reads; of a table, of which it reads some rows, as much as it can read."""
    arrays: int = 1
    """How many of these are about as large as the largest one."""
    reduces: bool = True
    """Whether it reduces anything; else it writes about as much as it reads."""
    computes: bool = False
    """Whether it has functions to compute, such as `exp`: long chains of operations."""
    divides: bool = False
    """Whether it divides floats by what it has computed."""
    sweeps: int = 0
    """How often it goes over a row, if it does nothing but that."""
    waits: bool = False
    """Whether that takes longer than reading: they fold more than once, divide, or convert what they read."""
    converts: bool = False
    """Whether they convert floats that they read."""
    loads: int = 1
    """Of an iteration of theirs, at most."""
    dynamic: bool = False
    """Whether the length of a row is a size."""
    window: int = 1
    """Elements of the window that a point reduces, if it does nothing else."""
    overlaps: bool = False
    """Whether windows of neighbouring rows read the same elements."""
    image: int = 1
    """Points of an image that its windows slide over, if neighbouring points are of channels."""
    strip: int = 0
    """If columns are reduced, how many of them the model gives a block (`column_strips.py`)."""
    strips: tuple[int, ...] = ()
    """How many it may get."""

    @property
    def accesses(self) -> int:
        """Loads and stores of the kernel."""
        return self.points * self.work

    @property
    def row_bytes(self) -> int:
        """What it reads of all arrays for a row."""
        return self.bytes // max(self.points, 1)


@dataclass(frozen=True)
class RowChoices:
    """The fields are the choices of a schedule."""

    grain: int
    prefetch: int
    width: int
    interleave: int = 0
    rows: int = 1
    strip: int = 0
    divide: int = 0

    @property
    def choices(self) -> dict[str, int]:
        """Every choice, those too that are 0 or 1."""
        return asdict(self)

    @property
    def written(self) -> dict[str, int]:
        """The choices of a schedule that say this."""
        left_out = {"prefetch": 0, "interleave": 0, "rows": 1, "strip": 0, "divide": 0}
        return {n: v for n, v in self.choices.items() if v != left_out.get(n)}


def choose_rows(problem: RowProblem, cpu: Cpu) -> RowChoices:
    """What the model takes for a kernel."""
    return replace(_choose(problem, cpu), strip=_strip(problem, cpu))


def _strip(problem: RowProblem, cpu: Cpu) -> int:
    """Columns of a strip: more than usual where they come from afar, if there is a block for each core."""
    if problem.bytes <= cpu.l2_bytes:
        return problem.strip
    most = min(cpu.strip, problem.points // cpu.cores)
    return max((n for n in problem.strips if problem.strip < n <= most), default=problem.strip)


def _choose(problem: RowProblem, cpu: Cpu) -> RowChoices:
    """The same, apart from strips of columns."""
    far, width = _is_far(problem, cpu), cpu.vector_bytes * 8
    ahead = cpu.ahead if far and problem.bytes >= cpu.shared_bytes else 0
    if problem.window > 1:
        # A block copies what lies around its windows, so it should be large.
        # It has the whole of an image, as what its border asks for is known then.
        grain = max(GRAIN * problem.window, problem.image * problem.work)
        if problem.overlaps and problem.window <= SMALL_WINDOW:
            return RowChoices(grain, 0, width, interleave=1, rows=max(SIDE_BY_SIDE))
        return RowChoices(grain, 0, width)
    if _are_streams(problem, cpu):
        # Two vectors of iterations that load more than half of the registers each do not fit: weights of
        # 4 bits (16 loads, 16 registers, Zen 3) took 11.6 to 13.8 ms so, and 10.7 with one at once.
        one = problem.work < LONGEST_SWEPT or problem.loads > cpu.registers // 2
        count = 1 if one else cpu.registers // 8
        return RowChoices(GRAIN, 0, width, interleave=count, rows=cpu.streams)
    if not problem.computes:
        if _gains_side_by_side(problem, cpu):
            return RowChoices(GRAIN, ahead, width, interleave=1, rows=max(SIDE_BY_SIDE))
        if _gains_in_pairs(problem) and not far:
            return RowChoices(GRAIN, ahead, width, interleave=CHAINS, rows=2)
        return RowChoices(GRAIN, ahead, width)
    return _choose_computing(problem, RowChoices(GRAIN, ahead, width), cpu)


def _choose_computing(problem: RowProblem, plain: RowChoices, cpu: Cpu) -> RowChoices:
    """The same of rows with functions to compute."""
    if not problem.reduces or problem.strips:
        return replace(plain, interleave=CHAINS)
    divide = int(problem.divides and problem.work < cpu.divided)
    if cpu.chains and _is_from_memory(problem, cpu):
        return replace(plain, interleave=cpu.chains, divide=divide)
    if problem.divides:
        for longest, rows, count in DIVIDED if divide else INVERTED:
            if problem.work < longest:
                return replace(plain, interleave=count, rows=rows, divide=divide)
    count = next((count for count, work in LONGEST_WORK.items() if problem.work < work), 0)
    if cpu.chains and problem.work >= LONGEST_WORK[1]:
        return replace(plain, interleave=cpu.chains)
    # Of a chain that folds something LLVM takes several at once itself.
    return replace(plain, interleave=count, rows=max(SIDE_BY_SIDE) if count else 1)


def _is_far(problem: RowProblem, cpu: Cpu) -> bool:
    """Whether what is reduced is more than a core's own cache holds."""
    return problem.reduces and problem.bytes > cpu.l2_bytes


def _is_from_memory(problem: RowProblem, cpu: Cpu) -> bool:
    """Whether it is more than the cache holds that cores share, where that is known to matter."""
    return _is_far(problem, cpu) and 0 < cpu.shared_bytes <= problem.bytes


def _are_streams(problem: RowProblem, cpu: Cpu) -> bool:
    """Whether rows from afar come side by side, each a stream of its own.

    Rows that are swept three times wait for two folds, which several rows do at once: so they need not come
    from as far as others. Those must be longer that are swept twice, since they are written, too, and those
    of which several arrays have a part.
    """
    if not _is_swept(problem) or not _is_far(problem, cpu):
        return False
    if not 1 < cpu.streams <= problem.points or problem.work < SHORTEST_STREAM:
        return False
    if problem.computes and cpu.chains:
        return False
    if problem.sweeps > 1 and (problem.converts or not cpu.streams_again):
        return False
    longer = 2 if problem.sweeps == 2 or problem.arrays > 1 else 1
    if problem.row_bytes < longer * problem.arrays * cpu.stream_row_bytes:
        return False
    return (problem.waits and problem.sweeps > 2) or problem.bytes >= cpu.shared_bytes


def _gains_side_by_side(problem: RowProblem, cpu: Cpu) -> bool:
    """Whether rows without functions come side by side.

    A fold that another one waits for takes longer than its additions. LLVM makes many vectors at once of a
    single one, if it knows how many there are; else several rows share what is left beyond whole vectors. And
    between brief rows a core does little else than to begin and to end. Where rows come from memory, a core
    may follow brief ones, or streams, but not what lies between.
    """
    far = _is_from_memory(problem, cpu)
    brief = 2 * LINE <= problem.row_bytes < cpu.brief_bytes
    short = problem.work < LONGEST_SWEPT and problem.points >= max(SIDE_BY_SIDE)
    if not short or not _is_swept(problem) or (far and problem.row_bytes >= cpu.brief_bytes):
        return False
    once = problem.sweeps == 1 or not far
    return problem.waits or problem.dynamic or (brief and once)


def _gains_in_pairs(problem: RowProblem) -> bool:
    """Whether rows without functions come in pairs, if they lie in the core's own cache.

    They are too long for what is left beyond whole vectors to matter; a fold waits for another one still.
    """
    short = problem.work < LONGEST_PAIRED and problem.points >= max(SIDE_BY_SIDE)
    return short and _is_swept(problem) and problem.waits and not problem.dynamic


def _is_swept(problem: RowProblem) -> bool:
    return problem.reduces and problem.sweeps > 0 and not problem.strips


def misfit(problem: RowProblem, rows: RowChoices, cpu: Cpu) -> str | None:
    """Why a kernel cannot run so; None if it can."""
    if rows.grain < 1:
        return "a block has at least 1 load or store"
    if rows.prefetch not in DISTANCES:
        return f"prefetch = {rows.prefetch} is none of {', '.join(map(str, DISTANCES))}"
    if rows.interleave not in COUNTS:
        return f"interleave = {rows.interleave} is none of {', '.join(map(str, COUNTS))}"
    if rows.rows not in SIDE_BY_SIDE:
        return f"rows = {rows.rows} is none of {', '.join(map(str, SIDE_BY_SIDE))}"
    if rows.rows > 1 and not rows.interleave:
        return "rows side by side are folded like one alone only if interleave says how"
    if rows.strip not in (problem.strips or (0,)):
        return f"strip = {rows.strip} is none of {', '.join(map(str, problem.strips or (0,)))}"
    if rows.divide not in ((0, 1) if problem.divides else (0,)):
        return f"divide = {rows.divide}, and {'it is 0 or 1' if problem.divides else 'nothing is divided'}"
    if rows.width not in widths(cpu):
        return f"width = {rows.width} is none of {', '.join(map(str, widths(cpu)))}"
    return None


def widths(cpu: Cpu) -> list[int]:
    """The bits of vectors that loops may be made of."""
    return sorted({min(NARROW, cpu.vector_bytes * 8), cpu.vector_bytes * 8})


def neighbours(problem: RowProblem, rows: RowChoices, cpu: Cpu) -> list[RowChoices]:
    """The legal choices one step away, the likely ones first: a search may measure no more than some.

    Those are other strips or another way to divide, another distance, other blocks, other rows side by side
    and vectors of each, and other vectors. Of long rows side by side nothing is asked for ahead: so those
    that are to come side by side leave that, too.
    """
    found: dict[RowChoices, None] = {}
    for place, strip in enumerate(problem.strips):
        if rows.strip in problem.strips[max(place - 1, 0) : place + 2]:
            found[replace(rows, strip=strip)] = None
    if problem.divides:
        found[replace(rows, divide=1 - rows.divide)] = None
    for distance in DISTANCES:
        found[replace(rows, prefetch=distance)] = None
    for grain in (rows.grain // 4, rows.grain * 4):
        if GRAINS[0] <= grain <= min(GRAINS[-1], max(problem.accesses, GRAIN)):
            found[replace(rows, grain=grain)] = None
    for count, chains in SHAPES:
        if count == rows.rows or (problem.reduces and not problem.strips):
            ahead = rows.prefetch if count == 1 or rows.rows > 1 else 0
            found[replace(rows, rows=count, interleave=chains, prefetch=ahead)] = None
    for width in widths(cpu):
        found[replace(rows, width=width)] = None
    found.pop(rows, None)
    return [each for each in found if misfit(problem, each, cpu) is None]
