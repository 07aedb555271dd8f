"""What threads fold together becomes shuffles in a warp, and shared memory between warps.

    %before = tile.prefix add %p over(%lane) : f32       // 64 threads along %lane
becomes
    %other = kernel.shuffle %p xor 1 : f32               // what the other half of two lanes folds
    %upper = loop.test[%lane mod 2 >= 1]
    %before_1 = arith.select %upper, %other, %zero : f32
    %total = arith.addf %p, %other : f32
    ...                                                  // and so on for the halves of 4, 8, 16 and 32
    loop.store %total, %totals[%lane floordiv 32]        // one lane of each warp does
    kernel.barrier
    ...                                                  // a butterfly folds those of the warps before

`tile.combine` is the same without the selection: every thread gets the fold of all.
"""

from __future__ import annotations

from math import prod

from xdsl.builder import Builder
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IndexType, f32, f64, i32, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.index import simplify
from ...dialects.kernel import WARP, BarrierOp, ShuffleOp
from ...dialects.loop import ForOp, LoadOp, StoreOp, TestOp, YieldOp
from ...dialects.tile import CombineOp, PrefixOp
from ...errors import DeploError
from ..lower_loops import combine, identity_constant
from ..tile.masks import mask_contributions
from .machine import Machine, in_loop

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
SHUFFLED = (f32, f64, i32, i64)


def lower_fold(op: CombineOp | PrefixOp, launch_args: list[SSAValue], machine: Machine) -> None:
    """Fold over threads: in warps by shuffles where the axes allow it, else through shared memory."""
    axes = op.axes if isinstance(op, CombineOp) else [op.axis]
    positions = sorted(launch_args.index(axis) for axis in axes)
    extents = machine.launch_threads
    group = prod(extents[p] for p in positions)
    innermost = positions == list(range(len(extents) - len(positions), len(extents)))
    if not innermost and positions != list(range(len(positions))):
        raise DeploError(
            f"materialize-tile: '{op.name}' at {op.location} combines over thread axes that are "
            "neither the innermost nor the outermost ones; reorder the launch's axes"
        )
    whole_warps = machine.threads % WARP == 0
    shuffles = innermost and whole_warps and op.value.type in SHUFFLED
    apart = 1 if innermost else machine.threads // group
    if isinstance(op, CombineOp):
        result = _lower_combine(op, machine, group, apart, shuffles=shuffles)
    else:
        result = _lower_prefix(op, machine, group, apart, shuffles=shuffles)
    result.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _is_power_of_two(number: int) -> bool:
    return number & (number - 1) == 0


# --------------------------------------------------------------------------- combine


def _lower_combine(
    op: CombineOp, machine: Machine, group: int, apart: int, *, shuffles: bool
) -> SSAValue:
    """What all threads of a group fold, whose neighbours are so far apart."""
    builder = Builder(InsertPoint.before(op))
    if shuffles and _is_power_of_two(group) and group <= WARP:
        return _butterfly(builder, op, op.value, group)
    if shuffles and group % WARP == 0:
        in_warp = _butterfly(builder, op, op.value, WARP)
        return _fold_shared(builder, op, in_warp, machine, WARP, group // WARP)
    return _fold_shared(builder, op, op.value, machine, 1, group, apart)


def _butterfly(builder: Builder, op: CombineOp | PrefixOp, value: SSAValue, lanes: int) -> SSAValue:
    """Every one of `lanes` neighbouring lanes gets the fold of all; the order is fixed."""
    mask = lanes // 2
    while mask:
        other = builder.insert(ShuffleOp(value, mask))
        other.result.name_hint = "other"
        value = combine(builder, op.combiner.data, value, other.result)
        value.name_hint = op.value.name_hint
        mask //= 2
    return value


def _share(
    builder: Builder, op: CombineOp | PrefixOp, value: SSAValue, machine: Machine, stride: int
) -> SSAValue:
    """Shared memory whose slot s holds the value of thread s * stride."""
    name = f"{op.value.name_hint or 'partial'}_smem"
    buffer = machine.shared([machine.threads // stride], value.type, name)
    if in_loop(op):  # the last iteration's readers must be done
        builder.insert(BarrierOp())
    writer = builder
    if stride > 1:  # thread % stride == 0
        first = builder.insert(TestOp([(D0 % stride) * -1], [machine.thread]))
        guard = builder.insert(scf.IfOp(first.result, [], Region(Block([scf.YieldOp()]))))
        assert guard.true_region.block.last_op is not None
        writer = Builder(InsertPoint.before(guard.true_region.block.last_op))
    slot = D0 // stride if stride > 1 else D0
    writer.insert(StoreOp(value, buffer, [slot], [machine.thread]))
    builder.insert(BarrierOp())
    return buffer


def _fold_shared(
    builder: Builder,
    op: CombineOp | PrefixOp,
    value: SSAValue,
    machine: Machine,
    stride: int,
    parts: int,
    apart: int = 1,
) -> SSAValue:
    """Fold the values of `parts` slots that are `apart`, or those before this thread's own."""
    buffer = _share(builder, op, value, machine, stride)
    block = Block(arg_types=[IndexType()])
    block.args[0].name_hint = "part"
    ranges = [(0, parts - 1), (0, machine.threads - 1)]
    group = D1 // (stride * parts) * parts + D0
    source = simplify(group if apart == 1 else D0 * apart + D1 % apart, ranges)
    load = LoadOp(buffer, [source], [block.args[0], machine.thread])
    load.result.name_hint = op.value.name_hint
    block.add_ops([load, YieldOp(load.result)])
    loop = ForOp(parts, Region(block), combiners=[op.combiner.data], result_types=[value.type])
    if isinstance(op, PrefixOp):
        before = simplify(D1 // apart % parts - D0 - 1, ranges)
        mask_contributions(loop, [before], [block.args[0], machine.thread])
    builder.insert(loop)
    return loop.res[0]


# --------------------------------------------------------------------------- prefix


def _lower_prefix(
    op: PrefixOp, machine: Machine, group: int, apart: int, *, shuffles: bool
) -> SSAValue:
    """What the threads of a group before this one fold."""
    builder = Builder(InsertPoint.before(op))
    if not shuffles or not _is_power_of_two(group):
        return _fold_shared(builder, op, op.value, machine, 1, group, apart)
    if group <= WARP:
        return _scan_warp(builder, op, machine, group)[0]
    before, total = _scan_warp(builder, op, machine, WARP)
    warps = group // WARP
    totals = _share(builder, op, total, machine, WARP)
    threads = [(0, machine.threads - 1)]
    slot = simplify(D0 // group * warps + D0 % warps, threads)
    load = builder.insert(LoadOp(totals, [slot], [machine.thread]))
    load.result.name_hint = op.value.name_hint
    earlier = simplify(D0 // WARP % warps - D0 % warps - 1, threads)
    mine = _select(builder, op, machine, earlier, load.result)
    return combine(builder, op.combiner.data, _butterfly(builder, op, mine, warps), before)


def _scan_warp(
    builder: Builder, op: PrefixOp, machine: Machine, lanes: int
) -> tuple[SSAValue, SSAValue]:
    """What the lanes before this one fold, of `lanes` neighbouring ones, and what all of them fold."""
    before: SSAValue | None = None
    total, mask = op.value, 1
    while mask < lanes:
        other = builder.insert(ShuffleOp(total, mask))
        other.result.name_hint = "other"
        joined = other.result
        if before is not None:
            joined = combine(builder, op.combiner.data, joined, before)
        upper = simplify(D0 // mask % 2 - 1, [(0, machine.threads - 1)])
        before = _select(builder, op, machine, upper, joined, before)
        total = combine(builder, op.combiner.data, total, other.result)
        total.name_hint = op.value.name_hint
        mask *= 2
    return before or identity_constant(builder, op.combiner.data, total.type), total


def _select(
    builder: Builder,
    op: PrefixOp,
    machine: Machine,
    condition: AffineExpr,
    value: SSAValue,
    other: SSAValue | None = None,
) -> SSAValue:
    """A value in the threads where a condition is at least zero; in others `other`, or the identity."""
    if other is None:
        other = identity_constant(builder, op.combiner.data, value.type)
    test = builder.insert(TestOp([condition], [machine.thread]))
    chosen = builder.insert(arith.SelectOp(test.result, value, other)).result
    chosen.name_hint = op.result.name_hint
    return chosen
