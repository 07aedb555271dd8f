"""What deplo knows of CPUs: what their vectors can do, as data, and what the one it runs on has.

Sources: Intel and Arm optimisation manuals, Agner Fog's instruction tables; sizes of caches are those of
current server cores. `host_cpu.py` asks the system about the CPU that deplo runs on.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..errors import UsageError

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Cpu:
    """Limits and habits of one core."""

    name: str
    """The instruction set of its vectors."""
    vector_bytes: int
    registers: int
    """Vector registers."""
    fmas: float
    """Vector multiply-adds in a cycle."""
    loads: float
    """Vectors, or elements to fill a vector with, that are loaded in a cycle."""
    l1_bytes: int = 32 * KIB
    l1_ways: int = 8
    """Lines that the L1 cache keeps at the same place."""
    l2_bytes: int = 1 * MIB
    """Of one core."""
    shared_bytes: int = 0
    """Of what a kernel reads, the least that comes from memory rather than from a cache that cores share: so
    much is asked for ahead, and its rows are streams. 0 where both are so from such a cache, too."""
    register: str = "xmm"
    """What a vector register is called, before its number."""
    cores: int = 1
    ahead: int = 4 * KIB
    """Bytes ahead of a sweep that it is to ask for, 0 for one whose own guesses are better.

    A cache that the cores share takes a few hundred cycles to deliver.
    """
    rows_ahead: int = 128
    """Positions of K before its turn that a line of rows in place is asked for: a few hundred cycles or
    more; 0 for one whose own guesses are better."""
    asks_when_busy: bool = True
    """Whether it does so in register tiles whose loads take longer than their multiply-adds, too: to ask is
    one more load there."""
    stream_bytes: int = 2 * KIB
    """Of a row that is read in place, at once: a shorter one ends before the CPU guesses what comes next."""
    chunks: int = 1
    """How many of the chunks of K that rows in place have else, and no windows, are one: what is packed of
    columns then fills so many quarters of the L2 cache."""
    streams: int = 1
    """Rows that are read at once where they come from afar and are gone through once: each is a stream that
    a core that guesses what comes next follows on its own, so nothing is asked for then."""
    streams_again: bool = False
    """Whether it helps rows, too, that are gone through more than once."""
    stream_row_bytes: int = 0
    """Of the shortest row that is a stream; of shorter ones several lie in a page, and are none together."""
    brief_bytes: int = 0
    """Of the shortest row that is not brief. Between rows that are, but fill two lines of the cache, a core
    does little else than to begin and to end, so several are read at once wherever they lie."""
    strip: int = 0
    """Columns that a core sums up at once, at least, where these come from a cache that cores share: what it
    guesses ends with each row. 0 for one that gets along with as few as others."""
    whole_bytes: int = 0
    """Of a row that is one chunk of K even where the operands of a block then fill all of the L2 cache, not
    half of it, if a block has more sums than packed elements: sums need not go there and back."""
    divided: int = 8 * KIB
    """Loads and stores of the longest rows that are divided by a sum of theirs; longer ones are multiplied by
    its inverse. Fewer for a core that divides wide vectors slowly."""
    chains: int = 0
    """Vectors of a row with functions to compute that a core computes side by side, one row after the other;
    0 for one that is faster with rows side by side, or as LLVM decides."""
    load_cost: float = 0.4
    """Of a multiply-add's time, that a load of a register tile adds though both are issued in the same
    cycles: measured in tiles of 4 by 4 to 14 by 2 in L1 and L2."""
    step_cost: float = 3
    """Of a multiply-add's time, that a position of K adds."""
    line_cost: float = 0
    """Of a multiply-add's time, that each place in memory adds from which its rows come."""
    clash_cycles: float = 0
    """To have a line in place back for each position of K, that others at the same place of the L1 cache push
    out of it."""
    sums_cycles: float = 0
    """To have a vector of sums back from the second-level cache for the next chunk of K, and there again."""
    dot_cost: float = 1
    """How many times as long as its loads and multiply-adds alone a dot tile takes."""
    along_cycles: float = 4
    """To pack a vector of an operand that lies along K: squares of it are turned."""

    scales: bool = False
    """Whether a product with a power of two is one fast instruction, even if it is subnormal or 0."""

    steps: int = 2
    """Positions of K in a round of a register tile's loop, whose counter and jump would else take a tenth of
    a core's instructions. 1 where tiles may fill all registers: of two, LLVM mixes what they load, and puts
    sums into memory to have room for it."""

    pairs: bool = False
    """Whether an instruction adds the products of two pairs of bf16 to a sum of f32."""

    mma: bool = False
    """Whether matrix tiles multiply bf16; vectors are those of AVX-512 then."""

    core: str = ""
    """LLVM's name of the microarchitecture, such as `znver4`; "" for one that is typical of its vectors."""

    def lanes(self, element_bytes: int) -> int:
        """Elements of a vector."""
        return self.vector_bytes // element_bytes

    @property
    def register_names(self) -> list[str]:
        """The vector registers, as assemblers call them."""
        return [f"{self.register}{number}" for number in range(self.registers)]

    @property
    def float_letter(self) -> str:
        """LLVM's constraint, in the operands of assembly, for the registers that floats are in."""
        return "w" if self.name == "neon" else "x"

    @property
    def named_features(self) -> tuple[str, ...]:
        """LLVM's names of the features whose instructions its code names; LLVM has no others for these."""
        pairs = ("avx512bf16",) if self.pairs or self.mma else ()
        return (*pairs, "amx-tile", "amx-bf16") if self.mma else pairs

    @property
    def for_llvm(self) -> tuple[str, str]:
        """LLVM's names of the architecture and of the core."""
        return ARCHITECTURES[self.name], self.core or GENERIC[self.name]

    @property
    def text(self) -> str:
        """The CPU as `parse_cpu` reads it: `avx512:znver4:cores=2`."""
        typical = typical_cpu(self.name, self.core)
        sizes = {name: int(getattr(self, name)) for name in SIZES}
        other = [f"{n}={value}" for n, value in sizes.items() if value != getattr(typical, n)]
        return ":".join((self.name, *filter(None, (self.core,)), *other))


CPUS = {
    cpu.name: cpu
    for cpu in (
        Cpu(
            "amx",
            64,
            32,
            fmas=1,
            loads=1,
            l1_bytes=48 * KIB,
            l1_ways=12,
            l2_bytes=2 * MIB,
            register="zmm",
            pairs=True,
            mma=True,
            # Products in f32 are 5 to 15 % faster so, those of few rows above all; sums of columns a third.
            rows_ahead=0,
            stream_bytes=4 * KIB,
            # Products of one row, of 768 to 11008 by 768 to 50257, and sums: 7 to 35 % faster from memory.
            streams=4,
            strip=512,
            # Gradients of weights, sums of 256 products, are 6 to 10 % faster.
            whole_bytes=1 * KIB,
            # Of 3 to 128 rows by 768 to 5632 columns, each kind of tiling beside the others.
            dot_cost=1.3,
            # Convolutions of 64 channels that are one chunk of K are 10 to 25 % faster.
            sums_cycles=6,
            along_cycles=13,
            # A softmax of longer rows is 3 to 12 % faster.
            divided=640,
        ),
        Cpu("avx512", 64, 32, fmas=1, loads=1, l1_bytes=48 * KIB, l1_ways=12, register="zmm"),
        # Tiles of 8 to 12 rows by one vector take 1.5 to 1.8 times as long with two steps, others as long.
        Cpu("avx2", 32, 16, fmas=2, loads=2, l2_bytes=512 * KIB, register="ymm", steps=1),
        Cpu("neon", 16, 32, fmas=2, loads=2, l2_bytes=1 * MIB, register="v"),
        Cpu("sse2", 16, 16, fmas=1, loads=2, l2_bytes=256 * KIB, register="xmm"),
    )
}
"""Every instruction set by name, each with a core that is typical of it."""

OWN = (
    "name",
    "vector_bytes",
    "registers",
    "register",
    "fmas",
    "loads",
    "steps",
    "scales",
    "pairs",
    "mma",
    "l1_bytes",
    "l1_ways",
    "l2_bytes",
    "cores",
    "core",
)
"""What a core has and can do; all else that is said of one are its habits."""

MEASURED: dict[str, dict[str, float]] = {
    # They lose a tenth where they ask for what they have guessed already.
    "znver": {"ahead": 0},
    "znver3": {
        # In the L1 cache, tiles of 12 by 1 to 2 by 4 take 1.08 to 1.35 times their multiply-adds' time, which
        # half of these costs say. Layers and convolutions are up to a sixth faster with fewer lines in place.
        "load_cost": 0.2,
        "step_cost": 1,
        "loads": 1.65,
        "line_cost": 0.01,
        # A convolution of 80 channels by 3 positions takes 8 % less as one chunk of K.
        "sums_cycles": 2,
        # Linear layers of 8 rows and lines of 4 to 16 KiB: 13 lines at once take twice as long as 8 of them,
        # and 7 up to 7 % less.
        "clash_cycles": 2.5,
        # The same of 1024 to 5632 columns take 2 to 10 % less, from memory as long; of 768 columns 7 % less
        # or more, by where weights lie.
        "asks_when_busy": False,
        # The mean over columns of 1024x1024 takes 14 % less.
        "strip": 512,
        # A log-softmax of 197 to 50257 columns takes 2 to 15 % less, a softmax of 4096 or more 1 to 10 %.
        "chains": 4,
        # Linear layers of 8 rows take 15 % less, of 32 to 512 rows up to 8 %.
        "chunks": 2,
        # From memory, sums, maxima, norms and products of one row take 5 to 35 % less as streams; of 2 to 6
        # MiB, or with rows of 512 to 2048 bytes, 10 to 40 % more, so those side by side that wait for folds.
        # Rows with functions take 5 to 40 % less one by one; norms and softmaxes 5 % less if asked for ahead.
        "shared_bytes": 8 * MIB,
        "ahead": 4 * KIB,
        "streams": 4,
        "streams_again": True,
        "stream_row_bytes": 3 * KIB,
        # Sums and norms of 196 to 400 bytes take 4 to 30 % less, of 512 to 1024 up to 10 % more.
        "brief_bytes": 512,
    },
    # Tiles of 3 by 4 to 14 by 2 take from 1.02 to 1.07 of their multiply-adds' time. Powers of e took 1.3
    # times as long by integers and comparisons; by two products, as they are now, was not measured.
    "znver5": {
        "fmas": 2,
        "loads": 2,
        "load_cost": 0.05,
        "step_cost": 0.6,
        "line_cost": 0.01,
        "scales": True,
    },
}
"""What is known better of some cores than what is typical, by what LLVM's name of them begins with."""


def as_measured(cpu: Cpu, core: str) -> Cpu:
    """The CPU with what was measured of such cores; `core` is LLVM's name of them."""
    for name, known in MEASURED.items():
        if core.startswith(name):
            cpu = replace(cpu, **known)
    return cpu


ARCHITECTURES = dict.fromkeys(CPUS, "x86_64") | {"neon": "aarch64"}
"""Vectors -> LLVM's name of the architecture that has them."""

GENERIC = {
    "amx": "sapphirerapids",
    "avx512": "x86-64-v4",
    "avx2": "x86-64-v3",
    "neon": "generic",
    "sse2": "x86-64",
}
"""Vectors -> LLVM's name of a core that has them and little else."""

CORES = {
    **dict.fromkeys(("x86-64", "x86-64-v2"), "sse2"),
    **dict.fromkeys(("x86-64-v3", "haswell", "broadwell", "skylake", "alderlake"), "avx2"),
    **dict.fromkeys(("znver1", "znver2", "znver3"), "avx2"),
    **dict.fromkeys(("x86-64-v4", "skylake-avx512", "cascadelake", "icelake-server"), "avx512"),
    **dict.fromkeys(("znver4", "znver5"), "avx512"),
    **dict.fromkeys(("sapphirerapids", "emeraldrapids", "graniterapids"), "amx"),
    **dict.fromkeys(("neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2"), "neon"),
    **dict.fromkeys(("cortex-a72", "cortex-a76", "apple-m1", "apple-m2", "apple-m3", "apple-m4"), "neon"),
}
"""LLVM's name of a core -> the widest vectors that it has."""

PAIRS = ("znver4", "znver5", "sapphirerapids", "emeraldrapids", "graniterapids")
"""Cores with AVX512_BF16."""

NARROWER = ("sse2", "avx2", "avx512", "amx")
"""The vectors of x86; a core that has some has those before them, too."""

SIZES = {"l1_bytes": 2**30, "l2_bytes": 2**40, "cores": 2**16, "pairs": 1}
"""What may differ between machines with the same core, and the most that it may be."""


def typical_cpu(vectors: str, core: str) -> Cpu:
    """The CPU with these vectors and what was measured of such cores."""
    cpu = replace(CPUS[vectors], core=core)
    pairs = cpu.pairs or (cpu.vector_bytes == 64 and core in PAIRS)
    return as_measured(replace(cpu, pairs=pairs), core)


def parse_cpu(text: str) -> Cpu:
    """The CPU that `text` names: vectors, LLVM's name of a core, or both, then sizes.

    `avx512`, `znver4`, `avx512:znver4` and `avx2:znver3:cores=2:l2_bytes=524288` name one. Raises UsageError.
    """
    names = [part for part in text.split(":") if "=" not in part]
    given = [part.partition("=") for part in text.split(":")[len(names) :]]
    sizes = {name: int(value) for name, _, value in given if re.fullmatch("[0-9]{1,13}", value)}
    known = len(names) == 1 or (len(names) == 2 and names[0] in CPUS and names[1] in CORES)
    if not known or not {*names} <= {*CPUS, *CORES}:
        raise UsageError(f"unknown CPU '{text}'; {_KNOWN}")
    for name, _, value in given:
        if name not in SIZES:
            raise UsageError(f"'{text}': a CPU has no '{name}'; its sizes are {', '.join(SIZES)}")
        least = 0 if name == "pairs" else 1
        if not least <= sizes.get(name, -1) <= SIZES[name]:
            raise UsageError(f"'{text}': {name} is a number from {least} to {SIZES[name]}, not '{value}'")
    core = names[-1] if names[-1] in CORES else ""
    vectors = names[0] if names[0] in CPUS else CORES[core]
    if len(sizes) < len(given):
        raise UsageError(f"'{text}' gives a size twice")
    if core and not has_vectors(core, vectors):
        raise UsageError(f"'{text}': {core} has no {vectors}")
    return replace(typical_cpu(vectors, core), **sizes)


def has_vectors(core: str, vectors: str) -> bool:
    """Whether a core has some vectors."""
    widest = CORES[core]
    if widest not in NARROWER or vectors not in NARROWER:
        return widest == vectors
    return NARROWER.index(vectors) <= NARROWER.index(widest)


_KNOWN = (
    f"it is vectors ({', '.join(CPUS)}), LLVM's name of a core ({', '.join(CORES)}), or both (avx2:znver3)"
)


def with_habits_of_others(cpu: Cpu) -> list[Cpu]:
    """The CPU as if it had the habits of each other core that is known, with its own vectors and caches.

    What is best for one of them may be so for this one, of which less was measured, or other kernels.
    """
    own = {each: getattr(cpu, each) for each in OWN}
    known = [*CPUS.values(), *(as_measured(CPUS[cpu.name], core) for core in MEASURED)]
    found = dict.fromkeys(replace(each, **own) for each in known)
    found.pop(cpu, None)
    return [*found]
