"""`schedule-cpu`: decides how a CPU runs each contraction, and writes it on its launch.

    tile.launch (%i = 512 : thread, %j = 2048 : thread) { ... a matrix product ... }
becomes, for a CPU with AVX-512,
    tile.launch (%i = 512 : thread, %j = 2048 : thread)
        schedule(#tile.schedule<m = 0, n = 1, block_m = 128, block_n = 128, block_k = 512,
                                thread_m = 8, thread_n = 32, vectors = avx512>) { ... }

`pack-operands` and `lower-tile-to-scf` carry it out. `analysis/cpu_tilings.py` has the model that decides,
for the CPU that `target` names. Where the kernel was tuned
(`passes/tuned.py`), what was measured to be best stands in for the model. Sizes may be asked for as options:
`schedule-cpu{block_m=64}`; what a contraction cannot have as it is asked for, it does not get.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of, trips
from ...analysis.cpu_neighbours import misfit, neighbours
from ...analysis.cpu_tiles import CpuProblem
from ...analysis.cpu_tilings import choose_cpu_tiling, whole_lines
from ...analysis.launches import open_launches
from ...analysis.products import (
    LONG,
    Product,
    are_plain,
    axes_of,
    comes_in_pairs,
    find_product,
    goes_straight,
    lies_along_k,
    may_stay,
    pitch_along,
    walk_along_k,
)
from ...dialects import amx
from ...dialects.loop import KernelOp, LoadOp
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import LaunchOp
from ...machine.cpus import CPUS, Cpu
from ...machine.targets import get_cpu
from ..decisions import record
from ..tuned import settle_choices

MIN_PRODUCT = 1 << 15
"""Multiply-adds below which nothing is worth packing for."""

MAX_VECTOR_BYTES = max(cpu.vector_bytes for cpu in CPUS.values())
"""Bytes of a vector, on any CPU."""

MIN_ROWS = 4
"""Rows that must share a packed element, else packing costs more than it saves."""

MIN_WINDOW_ROWS = 2
"""The same of elements of windows: without packing each is looked for in the image, for each row."""


def problem_of(product: Product, launch: LaunchOp) -> CpuProblem:
    """What the model needs to know of a contraction."""
    extents = [trips(axis.extent.data) for axis in launch.axes]
    m, n = extents[product.m], extents[product.n]
    others = (e for i, e in enumerate(extents) if i not in (product.m, product.n))
    pairs = comes_in_pairs(product)
    plain = product.narrow if pairs and product.narrow else product
    constant = [isinstance(launch.axes.data[a].extent.data, int) for a in (product.m, product.n)]
    element_bytes = max(storage_bytes(result.type) for result in product.results)
    rows_along = walk_along_k(product, product.rows, product.m, launch)
    columns_along = walk_along_k(product, product.columns, product.n, launch)
    inner = [trips(sweep.extent.data) for sweep in product.sweeps[1:]]
    return CpuProblem(
        batch=prod(others),
        m=m,
        n=n,
        k=trips(product.extent),
        results=len(product.results),
        rows=len(set(product.rows)),
        columns=len(set(product.columns)),
        element_bytes=element_bytes,
        row_sets=_sets(product.rows, product.m, launch),
        column_sets=_sets(product.columns, product.n, launch),
        period=prod(inner),
        lines=whole_lines(inner) if rows_along and columns_along and inner[-1:] >= [LONG] else 0,
        along=lies_along_k(product, MAX_VECTOR_BYTES // element_bytes),
        rows_along=rows_along,
        columns_along=columns_along,
        rows_plain=are_plain(plain.rows),
        columns_plain=are_plain(plain.columns),
        rows_stay=constant[0] and _stays(plain, plain.rows, product.m, launch, pairs),
        columns_stay=constant[1] and _stays(plain, plain.columns, product.n, launch, pairs),
        rows_pitch=_pitch_bytes(plain.rows, product.m, launch),
        columns_pitch=_pitch_bytes(plain.columns, product.n, launch),
        pairs=pairs,
        rows_even=_lies_even(plain, plain.rows, product.m, launch),
        columns_even=_lies_even(plain, plain.columns, product.n, launch),
        rows_across=_lies_across(plain.rows, product.m, launch),
        columns_across=_lies_across(plain.columns, product.n, launch),
    )


def _stays(
    product: Product, factors: Sequence[SSAValue], axis: int, launch: LaunchOp, pairs: bool
) -> bool:
    """Whether to read some factors where they lie costs no more than their products.

    Places at uneven distances, as those of windows that become tokens again, are computed for each of them.
    """
    return may_stay(product, factors, pairs) and None not in _pitches(factors, axis, launch)


def _lies_across(factors: Sequence[SSAValue], axis: int, launch: LaunchOp) -> bool:
    """Whether some factors are elements of arrays, and neighbours along an axis."""
    return all(pitch == 1 for pitch in _pitches(factors, axis, launch))


def _lies_even(product: Product, factors: Sequence[SSAValue], axis: int, launch: LaunchOp) -> bool:
    """Whether lines of some factors along K are at even distances, and whole steps of matrix tiles.

    A step may not go from one line to another, as that of rows does which are made of several heads.
    """
    extent = product.extent
    whole = isinstance(extent, int) and extent % amx.DEPTH == 0
    loads = [each.owner for each in factors if isinstance(each.owner, LoadOp)]
    return (
        whole
        and None not in _pitches(factors, axis, launch)
        and all(goes_straight(load, product.sweeps, amx.DEPTH) for load in loads)
    )


def _pitches(factors: Sequence[SSAValue], axis: int, launch: LaunchOp) -> list[int | None]:
    """How far apart neighbours along an axis lie of each factor; None if it varies, or it is no element."""
    counter = launch.body.block.args[axis]
    return [
        pitch_along(each.owner, counter) if isinstance(each.owner, LoadOp) else None
        for each in factors
    ]


def _pitch_bytes(factors: Sequence[SSAValue], axis: int, launch: LaunchOp) -> int:
    """How many bytes apart neighbours along an axis lie of all factors; 0 if that varies."""
    pitches = {
        pitch and pitch * storage_bytes(factor.type)
        for factor, pitch in zip(factors, _pitches(factors, axis, launch), strict=True)
    }
    return (pitches.pop() or 0) if len(pitches) == 1 else 0


def _sets(factors: Sequence[SSAValue], axis: int, launch: LaunchOp) -> int:
    """How many points the axes have, but for one, that factors depend on."""
    known: dict[SSAValue, frozenset[int]] = {}
    axes = frozenset[int]().union(*(axes_of(value, launch, known) for value in factors))
    return prod(trips(launch.axes.data[each].extent.data) for each in axes - {axis})


def find_problem(launch: LaunchOp) -> str | tuple[Product, CpuProblem]:
    """Why nothing is decided for a launch, or the contraction that it is."""
    if launch.settled is not None:
        return launch.settled
    found = find_product(launch)
    if isinstance(found, str):
        return found
    if len({result.type for result in found.results}) > 1:
        return "its sums have different types"
    problem = problem_of(found, launch)
    if (work := problem.batch * problem.m * problem.n * problem.k) < MIN_PRODUCT:
        return f"{work} multiply-adds are too few to pack operands for"
    windows = len(found.sweeps) > 1 and 1 < trips(found.sweeps[-1].extent.data) < LONG
    if problem.m < (MIN_WINDOW_ROWS if windows else MIN_ROWS):
        return f"{problem.m} rows are too few to pack columns for"
    return found, problem


@dataclass(frozen=True)
class ScheduleCpuPass(ModulePass):
    """Write a schedule on each launch of a contraction; `target` says for which CPU."""

    name = "schedule-cpu"

    target: str = "cpu"
    block_m: int | None = None
    block_n: int | None = None
    block_k: int | None = None
    thread_m: int | None = None
    thread_n: int | None = None
    dot: int | None = None
    in_place: int | None = None
    turned: int | None = None
    """1 if a block computes the transpose of its part of the result."""
    pairs: int | None = None
    mma: int | None = None
    ahead: int | None = None

    @classmethod
    def schedule_space(cls, ctx: Context, module_op: ModuleOp) -> tuple[ScheduleCpuPass, ...]:
        """Passes that each ask for a legal neighbour of what the model chooses for a kernel."""
        found: dict[ScheduleCpuPass, None] = {}
        for _, launch in open_launches(module_op):
            if isinstance(problem := find_problem(launch), tuple):
                cpu = get_cpu(cls.target)
                best = choose_cpu_tiling(problem[1], cpu)
                for tiling in neighbours(problem[1], best, cpu):
                    found[replace(cls(), **tiling.choices)] = None
        return tuple(found)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        cpu = get_cpu(self.target)
        with hints_of(op):
            for kernel, launch in open_launches(op):
                self._apply(kernel, launch, find_problem(launch), cpu)

    def _apply(
        self, kernel: KernelOp, launch: LaunchOp, found: str | tuple[Product, CpuProblem], cpu: Cpu
    ) -> None:
        name = kernel.sym_name.data
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return
        product, problem = found
        model = choose_cpu_tiling(problem, cpu)
        fits = partial(misfit, problem, cpu=cpu)
        best, why = settle_choices(self, [kernel], model, fits, launch)
        if best.turned:
            product = product.turned
        launch.schedule = ScheduleAttr(m=product.m, n=product.n, **best.written, vectors=cpu.name)
        kind = "dot" if best.dot else "register"
        reason = f"{'turned ' if best.turned else ''}blocks of {best.block_m} by {best.block_n}"
        reason += f"{' of rows in place' if best.in_place else ''}, {kind} tiles of "
        reason += f"{best.thread_m} by {best.thread_n} for {cpu.name}"
        reason += f"{', pairs of bf16' if best.pairs else ''}{', matrix tiles' if best.mma else ''}"
        early = best.written.get("ahead")
        reason += f"{f', asked for {early} positions early' if early else ''}{why}"
        record(self.name, name, True, reason, launch)
