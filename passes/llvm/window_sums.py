"""Sums of windows with factors, as loops over rows and columns of results: what `tile-windows` looks for.

scf.for %k { scf.for %l {
  %s = scf.for %n { scf.for %m { ... %window[%k + %n, 0, %l + %m] * %w[%n, %m] ... } }
  loop.store %s, %y[%k, %l]
} }
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import FloatAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...analysis.conditions import linear, slope_along
from ...analysis.cpu_rows import SMALL_WINDOW
from ...analysis.index import constant_of
from ...dialects.inside import ops_in
from ...dialects.loop import IndexOp, LoadOp, StoreOp
from ...machine.cpus import Cpu
from .asking_ahead import LINE_BYTES
from .kernel_loops import NOT_CONCERNED
from .scratch_rows import most_of

LATENCY = 4
"""Cycles until the next product can be added to a sum."""


@dataclass(frozen=True)
class Windows:
    """Rows and columns of results, each the sum of a window's elements times factors that all share."""

    rows: scf.ForOp
    columns: scf.ForOp
    sum: scf.ForOp
    """In the loop over columns: over the rows or columns of a window, and in it the other one."""
    down: scf.ForOp
    """Of the two, that over the rows of a window."""
    across: scf.ForOp
    element: LoadOp
    factor: SSAValue
    steps: tuple[int, int]
    """Rows of the copy from one row of results to the next, and from one row of a window to the next."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of results, at most."""
        return most_trips(self.rows), most_trips(self.columns)

    @property
    def window(self) -> tuple[int, int]:
        """Rows and columns of a window."""
        return trip_count(self.down), trip_count(self.across)

    def read_by(self, rows: int) -> dict[int, list[tuple[int, int]]]:
        """Rows of the copy that so many rows of results read: by which, as which row of their windows."""
        found: dict[int, list[tuple[int, int]]] = defaultdict(list)
        step, apart = self.steps
        for row in range(rows):
            for place in range(self.window[0]):
                found[row * step + place * apart].append((row, place))
        return dict(sorted(found.items()))


def counter(loop: scf.ForOp) -> BlockArgument:
    """What a loop counts with."""
    return loop.body.block.args[0]


def trip_count(loop: scf.ForOp) -> int:
    """The iterations of a loop from 0 to a constant; 0 if it is none."""
    first, end, step = (constant_of(value) for value in (loop.lb, loop.ub, loop.step))
    return end if end is not None and (first, step) == (0, 1) else 0


def most_trips(loop: scf.ForOp) -> int:
    """The iterations at most of a loop from 0 on that may end before a constant; 0 if that is not known."""
    counted = (constant_of(loop.lb), constant_of(loop.step)) == (0, 1)
    return most_of(loop.ub) or 0 if counted else 0


# --------------------------------------------------------------------- what windows are


def find(rows: scf.ForOp) -> Windows | str:
    """The windows whose rows a loop counts, or why there are none."""
    match list(rows.body.block.ops):
        case [scf.ForOp() as columns, scf.YieldOp()] if not rows.res and not columns.res:
            sums = [op for op in columns.body.block.ops if isinstance(op, scf.ForOp)]
        case _:
            return NOT_CONCERNED
    if len(sums) != 1 or len(sums[0].res) != 1:
        return NOT_CONCERNED
    outer = sums[0]
    if (product := _product(outer)) is None:
        return "it is no sum of products over the rows and columns of a window"
    inner = product.parent_op()
    assert isinstance(inner, scf.ForOp)
    if not all((*map(most_trips, (rows, columns)), *map(trip_count, (outer, inner)))):
        return "it is not known how many rows and columns there are"
    if trip_count(outer) * trip_count(inner) <= SMALL_WINDOW:
        return f"all factors of a window of at most {SMALL_WINDOW} elements fit the registers"
    for element, factor in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        if isinstance(load := element.owner, LoadOp):
            for down, across in ((outer, inner), (inner, outer)):
                if (steps := _steps(load, rows, columns, down, across)) is None:
                    continue
                found = Windows(rows, columns, outer, down, across, load, factor, steps)
                return found if _is_apart(found) else "its factors are not those of its neighbours"
    return "neighbours among its elements do not lie side by side in a copy of them"


def _product(outer: scf.ForOp) -> arith.MulfOp | None:
    """What two loops, one in the other, add up, from zero."""
    sums = [op for op in outer.body.block.ops if isinstance(op, scf.ForOp)]
    if len(sums) != 1 or len(sums[0].res) != 1:
        return None
    inner = sums[0]
    if _added(outer) is not inner.res[0] or (value := _added(inner)) is None:
        return None
    product = value.owner
    if not isinstance(product, arith.MulfOp) or product.parent is not inner.body.block:
        return None
    return product


def _added(loop: scf.ForOp) -> SSAValue | None:
    """What a loop adds to a sum in each iteration, from zero, if that is all it does with the sum."""
    end, so_far = loop.body.block.last_op, loop.body.block.args[1]
    assert isinstance(end, scf.YieldOp)
    total = end.operands[0].owner
    if not _is_zero(loop.iter_args[0]) or not isinstance(total, arith.AddfOp):
        return None
    others = [value for value in total.operands if value is not so_far]
    return others[0] if len(others) == len(list(so_far.uses)) == 1 else None


def _is_zero(value: SSAValue) -> bool:
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, FloatAttr):
        return False
    return op.value.value.data == 0


def _steps(load: LoadOp, *loops: scf.ForOp) -> tuple[int, int] | None:
    """How many rows apart what is read lies for the next row of results, and of a window.

    None if it is no copy of a window, neighbouring results do not read neighbours, or loops count otherwise.
    """
    rows, columns, down, across = map(counter, loops)
    if not isinstance(load.memref.owner, memref.AllocOp) or len(load.map.data.results) != 3:
        return None
    line, *places = load.map.data.results
    if not {*load.indices} <= {rows, columns, down, across} or linear(line) is None:
        return None
    step, apart, *others = (
        slope_along(line, load.indices, v) for v in (rows, down, columns, across)
    )
    if not step or not apart or min(step, apart) < 0 or others != [0, 0]:
        return None
    for value, wanted in ((rows, [0, 0]), (down, [0, 0]), (columns, [0, 1])):
        if [slope_along(expr, load.indices, value) for expr in places] != wanted:
            return None
    return step, apart


def _is_apart(windows: Windows) -> bool:
    """Whether factors are those of all results, and a sum does no more than to read what nobody writes."""
    counters = {counter(windows.rows), counter(windows.columns)}
    factors = list(factor_ops(windows))
    if any(counters.intersection(op.operands) for op in factors) or windows.factor in counters:
        return False
    plain = LoadOp, IndexOp, scf.ForOp, scf.YieldOp
    inside = ops_in(windows.sum)
    pure = all(isinstance(op, plain) or op.dialect_name() in ("arith", "math") for op in inside)
    stored = {op.memref for op in ops_in(windows.columns) if isinstance(op, StoreOp)}
    read = {op.memref for op in (*inside, *factors) if isinstance(op, LoadOp)}
    return pure and not stored & read and not any(op.regions for op in factors)


def factor_ops(windows: Windows) -> Iterator[Operation]:
    """What computes a factor, of what is done in the loop over columns, in order."""
    needed, found = [windows.factor], set[Operation]()
    while needed:
        owner = needed.pop().owner
        if isinstance(owner, Operation) and windows.columns.is_ancestor(owner):
            needed += owner.operands if owner not in found else ()
            found.add(owner)
    return (op for op in ops_in(windows.columns) if op in found)


# --------------------------------------------------------------------- how large a tile is


def choose(windows: Windows, cpu: Cpu, lanes: int) -> tuple[int, int] | None:
    """Rows, and vectors of a row, of the tile that is computed fastest; None if none fits the registers."""
    down, across = windows.window
    rows, columns = windows.shape
    lines = 1 + cpu.vector_bytes / LINE_BYTES
    """Of the cache that a vector from anywhere on lies in, on average."""
    times: dict[tuple[int, int], float] = {}
    for vectors in range(1, ceil(columns / lanes) + 1):
        for height in range(1, rows + 1):
            sums = height * vectors
            if sums + down + 2 > cpu.registers:
                break
            loads = len(windows.read_by(height)) * vectors * lines + down
            cycles = max(sums * down / cpu.fmas, loads / cpu.loads, LATENCY * down)
            tiles = ceil(rows / height) * ceil(columns / (vectors * lanes))
            times[height, vectors] = tiles * (cycles * across + 2 * sums)
    return min(times, key=lambda tile: times[tile]) if times else None
