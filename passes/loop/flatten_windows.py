"""`flatten-windows`: the sweeps of a convolution become one, a product of matrices (GPU).

    for %j, for %y, for %x {
      %s = for %c = 0 to 64 { for %r = 0 to 3 { for %t = 0 to 3 {
        ... %image[%c, %y + %r - 1, %x + %t - 1] ... %w[%j, %c, %r, %t] ...
becomes
    %w_1 = loop.kernel @k_w(%w) : (tensor<64x64x3x3xbf16>) -> tensor<3x3x64x64xbf16> { ... }
    for %j, for %y, for %x {
      %s = for %k = 0 to 576 reduce(add) {
        ... %image[%k mod 64, %y + %k floordiv 192 - 1, %x + %k floordiv 64 mod 3 - 1] ...
        ... %w_1[%k floordiv 192, %k floordiv 64 mod 3, %j, %k mod 64] ...

At one place of the window a convolution is a product of matrices: of the weights there, and of the image,
moved by as much. What a block reads of either for some of the channels is a box, which `stage-inputs` copies;
nothing is laid out as a matrix first. Weights are copied in this order once, so that what is summed over is
neighbours. Of few channels, 3 of windows 7 by 7 say, the sweep goes over the columns of a window in the end,
those of 4 channels at once (`analysis/window_orders.py`):

      %s = for %k = 0 to 224 reduce(add) {
        ... %image[%k floordiv 8 mod 4, %y + %k floordiv 32 - 3, %x + %k mod 8 - 3] ...
        ... %w_1[%k floordiv 32, %j, %k mod 32] ...

There are no more than 3 channels and 7 columns. Weights that there are not are 0 in the copy; so is the image
past its channels, as around it. A column past the last one of a window is one of the next window, so what was
read there is chosen to be 0: 0 times an infinity would be none.

Declined are CPUs, which gather windows into packs; channels so few that most would be 0, where columns cannot
come last; windows of an image that has something else than 0 around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.borders import is_border_test, loads_through_borders
from ...analysis.conditions import linear
from ...analysis.cost import size_bytes, trips
from ...analysis.factors import choose_instruction
from ...analysis.index import always_holds, operand_ranges, simplify
from ...analysis.launches import open_kernels
from ...analysis.tilings import MIN_PRODUCT
from ...analysis.window_orders import WIDEST_COPY, FlatOrder, Innermost, WindowSums
from ...analysis.windows import LEAST_ROWS, MOST_ELEMENTS
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, KernelOp, LoadOp, TestOp
from ...dialects.scalars import Combiner, storage_bytes
from ...dialects.sizes import ExtentAttr, extent_expr, shape_of
from ...index.affine import replace_dims
from ...machine.matrix_instructions import HALVES
from ...machine.targets import Target, get_gpu
from ..decisions import record
from ..replacing import rename, replace
from ..tile.flatten_sweeps import Order
from ..tile.flatten_sweeps import flatten as flatten_nest
from ..tile.rewrite_indices import rewrite_index
from .channels_last import channel_axis, put_channels_last
from .nests import perfect_nest
from .scalar_code import emit_constant
from .transpose_weights import loop_of, stands_alone, turn_weights


@dataclass(frozen=True)
class Windows:
    """A sum of products over the channels of windows: its sweeps, and the loads that it multiplies."""

    sweeps: tuple[ForOp, ...]
    """As they stand, from the outside in."""
    order: FlatOrder
    image: LoadOp
    weights: LoadOp
    row: SSAValue
    """The counter that weights depend on, and the image does not."""


def find_windows(kernel: KernelOp, target: Target) -> Windows | str:
    """The convolution that a kernel is, or why its sweeps stay as they are."""
    loops = perfect_nest(kernel)
    sweeps = _sweeps(loops[-1].body.block) if loops else []
    if len(sweeps) < 2:
        return "it sums over no windows"
    extents = [sweep.extent.data for sweep in sweeps]
    if not all(isinstance(extent, int) for extent in extents):
        return "it sums over an axis of dynamic extent"
    if prod(map(trips, extents[1:])) > MOST_ELEMENTS:
        return f"its inner sweeps have more than {MOST_ELEMENTS} positions: no windows"
    loads = _factors(sweeps[-1])
    if loads is None:
        return "it does not sum products of two arrays, with 0 around them"
    found = _orient(loads, sweeps, [loop.induction_var for loop in loops])
    if found is None:
        return "no factor depends on one axis that the other one does not"
    image, weights, row = found
    axis = channel_axis(image, sweeps[0].induction_var)
    last = len(image.map.data.results) - 1
    sums = WindowSums(
        [trips(extent) for extent in extents],
        results=prod(trips(loop.extent.data) for loop in loops),
        image_bytes=size_bytes(image.memref.type),
        instruction=choose_instruction(sweeps[-1], target),
        channels=stands_alone(image, sweeps[0].induction_var),
        columns=_is_linear(image, sweeps[-1].induction_var),
        movable=axis is not None and axis != last,
        last=axis == last,
    )
    order = sums.choose(target)
    if order is None:
        return f"{extents[0]} channels are too few: most of {HALVES.depth} would be 0"
    rows = next(trips(loop.extent.data) for loop in loops if loop.induction_var is row)
    if rows < LEAST_ROWS:
        return f"{rows} rows of weights are fewer than {LEAST_ROWS}"
    if prod(trips(loop.extent.data) for loop in (*loops, *sweeps)) < MIN_PRODUCT:
        return "its products are too few to share operands for"
    return Windows(tuple(sweeps), order, image, weights, row)


def _is_linear(load: LoadOp, counter: SSAValue) -> bool:
    """Whether the index along each axis is a sum of multiples, where a counter is in it."""
    used = [expr for expr in load.map.data.results if counter in _counters(load, expr)]
    return all(linear(expr) is not None for expr in used)


def _counters(load: LoadOp, expr: AffineExpr) -> set[SSAValue]:
    return {load.indices[d] for d in expr.used_dims()}


def _sweeps(block: Block) -> list[ForOp]:
    """The sums of which each only adds up the next one, from the outside in."""
    loops = [op for op in block.ops if isinstance(op, ForOp)]
    sweeps: list[ForOp] = []
    while len(loops) == 1 and len(loops[0].res) == 1:
        (sweep,) = loops
        if any(combiner.data is not Combiner.ADD for combiner in sweep.combiners):
            return []
        if sweeps and list(sweeps[-1].yielded) != list(sweep.res):
            return []
        sweeps.append(sweep)
        loops = [op for op in sweep.body.ops if isinstance(op, ForOp)]
    return [] if loops else sweeps


def _factors(sweep: ForOp) -> tuple[LoadOp, LoadOp] | None:
    """The loads that a sweep multiplies, converted at most; None if it does anything else."""
    loads = list(loads_through_borders(sweep.body.block))
    guards = [op for op in sweep.body.ops if isinstance(op, scf.IfOp)]
    inner = [load for load in loads if isinstance(load.parent_op(), scf.IfOp)]
    plain = LoadOp | scf.IfOp | arith.ExtFOp | arith.TruncFOp
    (product,) = (value.owner for value in sweep.yielded)
    for op in sweep.body.ops:
        borders = isinstance(op, TestOp) and is_border_test(op)
        if not (isinstance(op, plain) or borders or op in (product, sweep.body.block.last_op)):
            return None
    if len(loads) != 2 or len(inner) != len(guards) or not isinstance(product, arith.MulfOp):
        return None
    return loads[0], loads[1]


def _orient(
    loads: tuple[LoadOp, LoadOp], sweeps: list[ForOp], counters: list[SSAValue]
) -> tuple[LoadOp, LoadOp, SSAValue] | None:
    """The load of the image, that of the weights and the counter of rows; None if they are something else."""
    summed = {sweep.induction_var for sweep in sweeps}
    for image, weights in (loads, loads[::-1]):
        rows = [value for value in weights.indices if value in counters]
        if len(rows) != 1 or rows[0] in image.indices or not summed.issubset(weights.indices):
            continue
        if {*weights.indices} == {*rows, *summed} and stands_alone(weights, rows[0]):
            return image, weights, rows[0]
    return None


def flatten(kernel: KernelOp, found: Windows) -> str:
    """Make one sweep of those of a convolution; says of how many."""
    sweeps = [found.sweeps[position] for position in found.order.sweeps]
    parts: dict[ForOp, range] = {}
    for sweep, extent in zip(sweeps, found.order.extents, strict=True):
        if (count := trips(sweep.extent.data)) < extent:
            parts[sweep] = range(count)
            sweep.extent = ExtentAttr(extent)
    innermost, padded = found.order.innermost, sweeps[-1] in parts
    if innermost is Innermost.COLUMNS and padded:
        parts[sweeps[-1]] = _move(found.image, sweeps[-1], parts[sweeps[-1]])
    image, weights = _loads_of(found.image.memref, found.weights.memref, sweeps[-1])
    _turn(kernel, found, weights, sweeps, parts)
    if innermost is Innermost.CHANNELS_LAST:
        axis = channel_axis(image, sweeps[-1].induction_var)
        assert axis is not None
        image = put_channels_last(kernel, image, axis)
    for sweep, part in parts.items():
        if innermost is Innermost.COLUMNS and sweep is sweeps[-1]:
            _choose_zero(image, sweep, part)
        else:
            _enclose(image, _within(part, sweep), [sweep.induction_var])
    order = Order(sweeps)
    flatten_nest(list(found.sweeps), order)
    return f"{order.told}, in the end over {innermost.value}"


def _move(image: LoadOp, columns: ForOp, part: range) -> range:
    """Have what a window does not have in front of it, so far that copies of its image can be wide."""
    parts = linear(image.map.data.results[-1])
    counter = columns.induction_var
    assert isinstance(image.memref.type, MemRefType)
    if parts is None or counter not in image.indices:
        return part
    step = parts.coefficients.get(list(image.indices).index(counter), 0)
    unit = WIDEST_COPY // storage_bytes(image.memref.type.element_type)
    spare = trips(columns.extent.data) - len(part)
    front = max(range(spare + 1), key=lambda n: (gcd(parts.constant - n * step, unit), -n))
    for op in ops_in(columns):
        rewrite_index(op, {counter: AffineExpr.dimension(0) + -front}, [counter])
    return range(front, front + len(part))


def _loads_of(image: SSAValue, weights: SSAValue, sweep: ForOp) -> list[LoadOp]:
    """The loads of an image and of weights in a sweep."""
    loads = {op.memref: op for op in ops_in(sweep) if isinstance(op, LoadOp)}
    return [loads[image], loads[weights]]


def _within(part: range, sweep: ForOp, dim: int = 0) -> list[AffineExpr]:
    """What is at least 0 where the counter of a sweep, which is a dim, is in a part of its range."""
    counter = AffineExpr.dimension(dim)
    first = [counter + -part.start] if part.start else []
    last = [counter * -1 + (part.stop - 1)] if part.stop < trips(sweep.extent.data) else []
    return first + last


def _turn(
    kernel: KernelOp,
    found: Windows,
    weights: LoadOp,
    sweeps: list[ForOp],
    parts: dict[ForOp, range],
) -> None:
    """Copy the weights in the order of the sweeps; those that there are not are 0."""
    counters: list[SSAValue] = [sweep.induction_var for sweep in sweeps]
    together = found.order.neighbours
    counters.insert(len(counters) - together, found.row)
    copy = turn_weights(kernel, weights, counters, "place", neighbours=together)
    loops = iter(perfect_nest(copy))
    copied = {c: next(loops).induction_var for c in counters if trips(loop_of(c).extent.data) > 1}
    (load,) = (op for op in ops_in(copy) if isinstance(op, LoadOp))
    tests = [
        t for dim, (sweep, part) in enumerate(parts.items()) for t in _within(part, sweep, dim)
    ]
    _enclose(load, tests, [copied[sweep.induction_var] for sweep in parts])


def _choose_zero(image: LoadOp, columns: ForOp, part: range) -> None:
    """Have 0 in the place of what is read of an image at the columns that a window does not have."""
    column = columns.induction_var
    _enclose(image, *_inside(image, column))
    guard = image.parent_op()
    read: Operation = guard if isinstance(guard, scf.IfOp) else image
    test = TestOp(_within(part, columns), [column])
    assert read.parent is not None
    read.parent.insert_op_after(test, read)
    builder = Builder(InsertPoint.after(test))
    zero = emit_constant(builder, 0, read.results[0].type)
    chosen = arith.SelectOp(test.result, read.results[0], zero)
    chosen.location = image.location
    rename(read.results, chosen.results)
    chosen.operands[1] = read.results[0]
    builder.insert(chosen)


def _inside(image: LoadOp, column: SSAValue) -> tuple[list[AffineExpr], list[SSAValue]]:
    """What must be at least 0 for an index to be inside of an image, where a column decides on it."""
    assert isinstance(image.memref.type, MemRefType)
    ranges = operand_ranges(image.indices)
    axes = zip(image.map.data.results, shape_of(image.memref.type), strict=True)
    tests = [
        simplify(test, ranges)
        for expr, extent in axes
        if column in _counters(image, expr)
        for test in (expr, extent_expr(extent) + expr * -1 + -1)
    ]
    return [test for test in tests if not always_holds(test, ranges)], list(image.indices)


def _enclose(load: LoadOp, inside: Sequence[AffineExpr], counters: Sequence[SSAValue]) -> None:
    """Have a load give 0 unless some expressions of counters are at least 0, too."""
    guard = load.parent_op()
    if not inside:
        return
    if isinstance(guard, scf.IfOp):
        test = guard.cond.owner
        assert isinstance(test, TestOp)
        space = [*test.operands_, *counters]
        dims = [AffineExpr.dimension(len(test.operands_) + i) for i in range(len(counters))]
        moved = [replace_dims(expr, dims) for expr in inside]
        replace(test, TestOp([*test.exprs, *(e for e in moved if e not in test.exprs)], space))
        return
    assert load.parent is not None
    test, then, otherwise = TestOp(inside, counters), Block(), Block()
    guard = scf.IfOp(test.result, [load.result.type], Region(then), Region(otherwise))
    load.parent.insert_ops_before([test, guard], load)
    rename([load.result], guard.output)
    load.detach()
    then.add_ops([load, scf.YieldOp(load.result)])
    at_zero = Builder(InsertPoint.at_end(otherwise))
    at_zero.insert(scf.YieldOp(emit_constant(at_zero, 0, load.result.type)))


@dataclass(frozen=True)
class FlattenWindowsPass(ModulePass):
    """Make the sums over channels and windows of each convolution one, for a GPU."""

    name = "flatten-windows"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_gpu(self.target)
        for kernel in open_kernels(op):
            found = find_windows(kernel, target)
            name = kernel.sym_name.data
            if isinstance(found, str):
                record(self.name, name, False, found, kernel)
                continue
            record(self.name, name, True, flatten(kernel, found), kernel)
