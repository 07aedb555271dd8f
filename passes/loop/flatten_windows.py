"""`flatten-windows`: the sweeps of a convolution become one, over the channels of each place in turn (GPU).

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
nothing is laid out as a matrix first. Weights are copied in this order once, so that channels, which are
summed over, are neighbours.

Where channels are no multiple of 16, the sweep goes over more: past the last one there is 0, as around the
image. Declined are CPUs, which gather windows into packs; channels so few that most would be 0; windows of an
image that has something else than 0 around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.borders import is_border_test, loads_through_borders
from ...analysis.cost import trips
from ...analysis.targets import get_target
from ...analysis.tilings import MIN_PRODUCT
from ...analysis.windows import LEAST_ROWS, MOST_ELEMENTS, padded_channels
from ...dialects.affine import replace_dims
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, KernelOp, LoadOp, TestOp
from ...dialects.mma import DEPTH
from ...dialects.scalars import Combiner
from ...dialects.sizes import ExtentAttr
from ..decisions import record
from ..replacing import rename, replace
from ..tile.flatten_sweeps import Order
from ..tile.flatten_sweeps import flatten as flatten_nest
from .nests import perfect_nest
from .scalar_code import emit_constant
from .transpose_weights import stands_alone, turn_weights


@dataclass(frozen=True)
class Windows:
    """A sum of products over the channels of windows: its sweeps, and the loads that it multiplies."""

    channels: ForOp
    places: tuple[ForOp, ...]
    image: LoadOp
    weights: LoadOp
    row: SSAValue
    """The counter that weights depend on, and the image does not."""


def find_windows(kernel: KernelOp) -> Windows | str:
    """The convolution that a kernel is, or why its sweeps stay as they are."""
    loops = perfect_nest(kernel)
    sweeps = _sweeps(loops[-1].body.block) if loops else []
    if len(sweeps) < 2:
        return "it sums over no windows"
    channels, *places = sweeps
    extents = [sweep.extent.data for sweep in sweeps]
    if not all(isinstance(extent, int) for extent in extents):
        return "it sums over an axis of dynamic extent"
    if prod(map(trips, extents[1:])) > MOST_ELEMENTS:
        return f"its inner sweeps have more than {MOST_ELEMENTS} positions: no windows"
    if padded_channels(trips(extents[0])) is None:
        return f"{extents[0]} channels are too few: most of {DEPTH} would be 0"
    loads = _factors(sweeps[-1])
    if loads is None:
        return "it does not sum products of two arrays, with 0 around them"
    found = _orient(loads, sweeps, [loop.induction_var for loop in loops])
    if found is None:
        return "no factor depends on one axis that the other one does not"
    image, weights, row = found
    rows = next(trips(loop.extent.data) for loop in loops if loop.induction_var is row)
    if rows < LEAST_ROWS:
        return f"{rows} rows of weights are fewer than {LEAST_ROWS}"
    if prod(trips(loop.extent.data) for loop in (*loops, *sweeps)) < MIN_PRODUCT:
        return "its products are too few to share operands for"
    return Windows(channels, tuple(places), image, weights, row)


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
            if stands_alone(image, sweeps[0].induction_var):
                return image, weights, rows[0]
    return None


def flatten(kernel: KernelOp, found: Windows) -> str:
    """Make one sweep of those of a convolution, with the channels innermost; says of how many."""
    sweeps = [*found.places, found.channels]
    counters = [sweep.induction_var for sweep in sweeps]
    turn_weights(kernel, found.weights, [*counters[:-1], found.row, counters[-1]], "place")
    _pad(found.channels)
    order = Order(sweeps)
    flatten_nest([found.channels, *found.places], order)
    return order.told


def _pad(channels: ForOp) -> None:
    """Let a sweep go over as many channels as tensor cores take; those that there are not have borders."""
    count = trips(channels.extent.data)
    padded = padded_channels(count)
    if padded is None or padded == count:
        return
    counter = channels.induction_var
    for load in [op for op in ops_in(channels) if isinstance(op, LoadOp) and counter in op.indices]:
        _enclose(load, AffineExpr.dimension(0) * -1 + (count - 1), counter)
    channels.extent = ExtentAttr(padded)


def _enclose(load: LoadOp, inside: AffineExpr, counter: SSAValue) -> None:
    """Have a load give 0 unless an expression of a counter is at least 0, too."""
    guard = load.parent_op()
    if isinstance(guard, scf.IfOp):
        test = guard.cond.owner
        assert isinstance(test, TestOp)
        space = [*test.operands_, counter]
        moved = replace_dims(inside, [AffineExpr.dimension(len(space) - 1)])
        replace(test, TestOp([*test.exprs, moved], space))
        return
    assert load.parent is not None
    test, then, otherwise = TestOp([inside], [counter]), Block(), Block()
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
        gpu = get_target(self.target).is_gpu
        for kernel in [o for o in ops_in(op) if isinstance(o, KernelOp)]:
            found = find_windows(kernel) if gpu else "a CPU gathers its windows into packs"
            name = kernel.sym_name.data
            if isinstance(found, str):
                record(self.name, name, False, found, kernel)
                continue
            record(self.name, name, True, flatten(kernel, found), kernel)
