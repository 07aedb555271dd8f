"""Finds sums of products whose factors can be packed: contractions as a CPU runs them.

    tile.launch (%b = 8 : thread, %i = 512 : thread, %j = 2048 : thread) {
      %s = loop.for %k = 0 to 2048 reduce(add) -> f32 {
        ... loop.yield %p : f32                        // %p = arith.mulf %left, %right
      }

A factor may be computed in any way, from loads under conditions and from what stands in front of the sweep,
as long as it depends on the rows or on the columns, not on both. Sweeps may be nested, as in a convolution.
N is the innermost axis that some factor does not depend on; M the innermost of those that such a factor
depends on and the others do not. All other axes are a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float32Type, MemRefType
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..dialects.index import linearize
from ..dialects.inside import ops_in
from ..dialects.loop import AccumulateOp, ForOp, LoadOp
from ..dialects.loop_access import may_stop
from ..dialects.scalars import Combiner
from ..dialects.sizes import Extent, shape_of
from ..dialects.tile import CombineOp, LaunchOp, PrefixOp, StageOp
from ..dialects.tile_pack import PackOp
from .conditions import linear, slope_along
from .vectors import is_aligned_along, walks_along

LONG = 12
"""Positions of a sweep along a line that are worth vectors: more than windows have."""


MOST_APART = 4
"""Elements from one position's to the next, at most, that are read as vectors."""


@dataclass(frozen=True)
class Product:
    """The sweeps of a contraction, from the outside in, and what it multiplies.

    `rows` and `columns` have the factors of each result that depend on M and on N.
    """

    sweeps: tuple[ForOp, ...]
    m: int
    n: int
    rows: tuple[SSAValue, ...]
    columns: tuple[SSAValue, ...]

    @property
    def extent(self) -> Extent:
        """The number of positions that are summed over."""
        return prod(sweep.extent.data for sweep in self.sweeps)

    @property
    def results(self) -> Sequence[SSAValue]:
        """The sums."""
        return self.sweeps[0].res

    @property
    def narrow(self) -> Product | None:
        """The same with the bf16 that all factors are widened from, if they are widened from bf16."""
        rows, columns = (
            tuple(narrow for each in factors if (narrow := _narrow(each)) is not None)
            for factors in (self.rows, self.columns)
        )
        if len(rows) < len(self.rows) or len(columns) < len(self.columns):
            return None
        return Product(self.sweeps, self.m, self.n, rows, columns)

    @property
    def turned(self) -> Product:
        """The same contraction, with its columns for rows: that of the transposed result."""
        return Product(self.sweeps, self.n, self.m, self.columns, self.rows)


def _narrow(factor: SSAValue) -> SSAValue | None:
    op = factor.owner
    if isinstance(op, arith.ExtFOp) and isinstance(op.input.type, BFloat16Type):
        return op.input if isinstance(op.result.type, Float32Type) else None
    return None


def find_product(launch: LaunchOp) -> Product | str:
    """The contraction that a launch is, or why it is none whose factors can be packed."""
    found = _find_factors(launch)
    return found if isinstance(found, str) else _orient(launch, *found)


ONE_ROW = -1
"""Stands for M where no axis counts rows: there is one, for each point of the batch."""


def find_row_product(launch: LaunchOp) -> Product | str:
    """The product of a row and a matrix that a launch is, or why it is none."""
    found = _find_factors(launch)
    if isinstance(found, str):
        return found
    sweeps, pairs = found
    known: dict[SSAValue, frozenset[int]] = {}
    for pair in pairs if len(pairs) == 1 else []:
        left, right = (axes_of(value, launch, known) for value in pair)
        if left < right or right < left:
            row, column = pair if left < right else pair[::-1]
            return Product(sweeps, ONE_ROW, max(left ^ right), (row,), (column,))
    return "no factor is the same for all columns"


def axes_of_factors(launch: LaunchOp) -> list[frozenset[int]]:
    """The axes that each factor of a sum of products depends on, if a launch is one, contraction or not."""
    found = _find_factors(launch)
    if isinstance(found, str):
        return []
    known: dict[SSAValue, frozenset[int]] = {}
    return [axes_of(value, launch, known) for pair in found[1] for value in pair]


Pairs = list[tuple[SSAValue, SSAValue]]
"""The factors of each product."""


def _find_factors(launch: LaunchOp) -> tuple[tuple[ForOp, ...], Pairs] | str:
    """The sweeps in which a launch sums products, and their factors; or why it sums none."""
    loops = [op for op in launch.body.block.ops if isinstance(op, ForOp)]
    if not any(loop.res for loop in loops):
        return "no reduce loop in the body"
    if len(loops) > 1:
        return f"{len(loops)} loops in the body; a contraction has one"
    if any(isinstance(op, StageOp | PackOp | CombineOp | PrefixOp) for op in ops_in(launch)):
        return "its threads work together already"
    if any(may_stop(op) or isinstance(op, AccumulateOp) for op in ops_in(launch)):
        return "it checks indices from data or accumulates in memory"
    if any(isinstance(op, ForOp) and op.limit is not None for op in ops_in(launch)):
        return "a sweep ends at a limit of its own"
    sweeps = _nest(loops[0])
    if isinstance(sweeps, str):
        return sweeps
    factors = [_factors(value) for value in sweeps[-1].yielded]
    pairs = [pair for pair in factors if pair is not None]
    if len(pairs) < len(factors):
        return "it sums what is no product"
    return sweeps, pairs


def lies_along_k(product: Product, elements: int) -> bool:
    """Whether each factor is an element of an array, and vectors of so many along K are aligned."""
    outer, *others = product.sweeps
    extent, along = outer.extent.data, outer.induction_var
    if not isinstance(extent, int) or extent % elements or others:
        return False
    loads = _loads(product, (*product.rows, *product.columns))
    return loads is not None and all(is_aligned_along(each, along, elements) for each in loads)


def comes_in_pairs(product: Product) -> bool:
    """Whether all factors are widened from bf16, of which two along K make a pair; their number is known."""
    return product.narrow is not None and isinstance(product.extent, int)


def may_stay(product: Product, factors: Sequence[SSAValue], pairs: bool = False) -> bool:
    """Whether some factors are elements of arrays, and neighbours along K: they need not be copied.

    Where they are read in pairs, these must not reach from one line of the array into the next.
    """
    loads = _loads(product, factors)
    if loads is None or not all(goes_straight(each, product.sweeps) for each in loads):
        return False
    if not pairs:
        return True
    extent, along = product.extent, product.sweeps[-1].induction_var
    whole = isinstance(extent, int) and extent % 2 == 0 and len(product.sweeps) == 1
    return whole and all(is_aligned_along(each, along, 2) for each in loads)


def walk_along_k(
    product: Product, factors: Sequence[SSAValue], axis: int, launch: LaunchOp
) -> bool:
    """Whether what some factors are computed from are neighbours along K, and not along an axis.

    Where the innermost sweep is long, what is read under conditions counts, too, as what has a border is, and
    short runs along the axis do not, as those in a window.
    """
    length = product.sweeps[-1].extent.data
    deep = isinstance(length, int) and length >= LONG
    ops = [op for each in factors for op in slice_of(each, launch)]
    read = (inner for op in ops for inner in (ops_in(op) if deep else [op]))
    loads = [op for op in read if isinstance(op, LoadOp)]
    along, across = product.sweeps[-1].induction_var, launch.body.block.args[axis]
    if any(walks_along(each, across, LONG if deep else 2) for each in loads):
        return False
    return any(walks_along(each, along) or (deep and _steps_along(each, along)) for each in loads)


def are_plain(factors: Sequence[SSAValue]) -> bool:
    """Whether some factors are elements of arrays whose indices have no quotients, under no conditions."""
    return all(
        isinstance(load := each.owner, LoadOp)
        and all(linear(expr) is not None for expr in load.map.data.results)
        for each in factors
    )


def pitch_along(load: LoadOp, counter: SSAValue) -> int | None:
    """How many elements apart neighbouring points of a counter read, if that is known and always the same."""
    assert isinstance(load.memref.type, MemRefType)
    offset = linearize(load.map.data.results, shape_of(load.memref.type))
    return slope_along(offset, load.indices, counter)


def _steps_along(load: LoadOp, counter: SSAValue) -> bool:
    """Whether neighbouring points of a counter read elements a few apart."""
    pitch = pitch_along(load, counter)
    return pitch is not None and 1 < pitch <= MOST_APART


def _loads(product: Product, factors: Sequence[SSAValue]) -> list[LoadOp] | None:
    """The loads that some factors are, if they are loads at the counters of the launch and of the sweeps."""
    loads = [factor.owner for factor in factors if isinstance(factor.owner, LoadOp)]
    counters = all(isinstance(index, BlockArgument) for load in loads for index in load.indices)
    return loads if counters and len(loads) == len(factors) else None


def goes_straight(load: LoadOp, sweeps: Sequence[ForOp], width: int = 2) -> bool:
    """Whether what sweeps read of an array, one in the other, lies one after the other.

    Of one sweep, this is said of each `width` positions.
    """
    if len(sweeps) == 1:
        return walks_along(load, sweeps[0].induction_var, width)
    assert isinstance(load.memref.type, MemRefType)
    offset = linearize(load.map.data.results, shape_of(load.memref.type))
    distance: Extent = 1
    for sweep in reversed(sweeps):
        if slope_along(offset, load.indices, sweep.induction_var) != distance:
            return False
        distance *= sweep.extent.data
    return True


def _nest(loop: ForOp) -> tuple[ForOp, ...] | str:
    """The sweeps of which each only folds the next one, from the outside in."""
    nest = [loop]
    while inner := [op for op in nest[-1].body.ops if isinstance(op, ForOp)]:
        if len(inner) > 1 or list(nest[-1].yielded) != list(inner[0].res):
            return "the sweep has loops of its own"
        nest.append(inner[0])
    if any(c.data is not Combiner.ADD for sweep in nest for c in sweep.combiners):
        return "it folds other than by addition"
    if any(isinstance(op, ForOp) for sweep in nest[-1:] for op in ops_in(sweep.body)):
        return "the sweep has loops of its own"
    if any(not isinstance(sweep.extent.data, int) for sweep in nest[1:]):
        return "an inner sweep has a dynamic extent"
    return tuple(nest)


def _factors(value: SSAValue) -> tuple[SSAValue, SSAValue] | None:
    op = value.owner
    return (op.lhs, op.rhs) if isinstance(op, arith.MulfOp | arith.MuliOp) else None


def _orient(launch: LaunchOp, sweeps: tuple[ForOp, ...], pairs: Pairs) -> Product | str:
    """Which factors are rows and which columns."""
    known: dict[SSAValue, frozenset[int]] = {}
    axes = [[axes_of(value, launch, known) for value in pair] for pair in pairs]
    read = [each for pair in axes for each in pair]
    shared = reduce(frozenset.intersection, read)
    free = reduce(frozenset.union, read) - shared
    if not free:
        return "no product of factors that depend on different axes"
    n = max(free)
    rows: list[SSAValue] = []
    columns: list[SSAValue] = []
    candidates: list[frozenset[int]] = []
    for pair, (left, right) in zip(pairs, axes, strict=True):
        if (n in left) == (n in right):
            return "a factor depends on rows and columns"
        rows.append(pair[n in left])
        columns.append(pair[n not in left])
        candidates.append(right - left if n in left else left - right)
    common = reduce(frozenset.intersection, candidates)
    if not common:
        return "no factor depends on other axes than the columns do"
    return Product(sweeps, max(common), n, tuple(rows), tuple(columns))


def axes_of(
    value: SSAValue, launch: LaunchOp, known: dict[SSAValue, frozenset[int]]
) -> frozenset[int]:
    """The axes of the launch that a value depends on; `known` has those of values looked at before."""
    if value not in known:
        found: frozenset[int] = frozenset()
        if launch.axis_of(value) is not None:
            assert isinstance(value, BlockArgument)
            found = frozenset({value.index})
        elif isinstance(value.owner, Operation):
            for operand in operands_of(value.owner):
                found |= axes_of(operand, launch, known)
        known[value] = found
    return known[value]


def operands_of(op: Operation) -> list[SSAValue]:
    """What an operation and the regions in it read that is computed outside of it."""
    inside = {result for inner in ops_in(op) for result in inner.results}
    inside |= {
        arg for inner in ops_in(op) for r in inner.regions for b in r.blocks for arg in b.args
    }
    return [value for inner in ops_in(op) for value in inner.operands if value not in inside]


def slice_of(value: SSAValue, launch: LaunchOp) -> list[Operation]:
    """The operations of a launch that compute a value, in order, those in its loops among them."""
    found: set[Operation] = set()
    todo = [value]
    while todo:
        op = todo.pop().owner
        if isinstance(op, Operation) and op not in found and launch.is_ancestor(op):
            found.add(op)
            todo += operands_of(op)
    nested = {inner for op in found for inner in ops_in(op) if inner is not op}
    return [op for op in ops_in(launch) if op in found and op not in nested]
