"""What a contraction on a CPU is to the model that chooses how it is tiled (`cpu_tilings.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.ir import SSAValue

from ..dialects import amx
from ..dialects.loop import LoadOp
from ..dialects.scalars import storage_bytes
from ..dialects.tile import LaunchOp
from ..machine.cpus import CPUS
from .cost import trips
from .cpu_tiles import CpuProblem
from .cpu_tilings import whole_lines
from .products import (
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
