"""`materialize-tile`: launches become kernels of a GPU, and `@main` the host that launches them.

    tile.launch (%row = 32 : block, %lane = 256 : thread) schedule(...) {
      ...
      %sum = tile.combine add %p over(%lane) : f32
    }
becomes
    kernel.func @k(%x: memref<...>, %y: memref<...>) blocks(32) threads(256) {
      %row = kernel.block_id
      %lane = kernel.thread_id
      ...                                        // loops became scf.for
      %s = kernel.shuffle %p xor 16 : f32        // a butterfly over the warp, then
      ...                                        // the warps' sums through shared memory
    }

`tile.stage` becomes shared memory, a cooperative copy and a barrier; `tile.combine` shuffles within a warp
and shared memory between warps. Several block or thread axes share the one number the machine gives, row
by row.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, f32, f64, i32, i64
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import always_holds, extent_range, operand_ranges, simplify
from ...analysis.targets import TARGETS
from ...dialects.affine import replace_dims
from ...dialects.index import delinearize
from ...dialects.kernel import (
    WARP,
    BarrierOp,
    BlockIdOp,
    FuncOp,
    SharedOp,
    ShuffleOp,
    ThreadIdOp,
)
from ...dialects.loop import ForOp, IndexOp, KernelOp, LoadOp, StoreOp, TestOp, YieldOp
from ...dialects.sizes import Extent, extent_expr, shape_of, static_extent, static_shape
from ...dialects.tile import SHARED, CombineOp, LaunchOp, Level, StageOp
from ...errors import DeploError
from ..decisions import record
from ..host import Device, lower_host
from ..loop.scalar_code import emit_constant
from ..lower_loops import combine, lower_loops

D0, D1 = AffineExpr.dimension(0), AffineExpr.dimension(1)
SHUFFLED = (f32, f64, i32, i64)


@dataclass
class _Machine:
    """The kernel under construction."""

    function: FuncOp
    thread: SSAValue
    launch_threads: list[int]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.function.threads.value.data

    def shared(self, shape: list[int], element: Attribute, name: str | None) -> SSAValue:
        """Shared memory, declared at the start of the kernel."""
        op = SharedOp(MemRefType(element, shape, memory_space=SHARED))  # pyright: ignore[reportArgumentType]
        op.result.name_hint = name
        Builder(InsertPoint.at_start(self.function.body.block)).insert(op)
        return op.result


def _in_loop(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp | LaunchOp):
        if isinstance(parent, ForOp | scf.ForOp):
            return True
        parent = parent.parent_op()
    return False


def _strided_loop(builder: Builder, trips: int) -> tuple[Builder, SSAValue]:
    """A free loop of `trips`; gives where its body goes and its counter."""
    loop = builder.insert(ForOp(trips, Region(Block(arg_types=[IndexType()]))))
    loop.induction_var.name_hint = "step"
    assert loop.body.block.last_op is not None
    return Builder(InsertPoint.before(loop.body.block.last_op)), loop.induction_var


# --------------------------------------------------------------------------- stage


def _lower_stage(op: StageOp, machine: _Machine) -> None:
    """Fill a slab: thread t copies elements t, t + T, t + 2T, ... of it."""
    slab_type = op.slab.type
    assert isinstance(slab_type, MemRefType)
    shape = list(static_shape(slab_type))
    count, threads = prod(shape), machine.threads
    pad = 0 if op.pad is None else op.pad.value.data
    padded = [*shape[:-1], shape[-1] + pad]
    slab = machine.shared(padded, slab_type.element_type, op.slab.name_hint)
    builder = Builder(InsertPoint.before(op))
    # Copies that stand together share their barriers.
    if _in_loop(op) and not _is_copy(op.prev_op):  # the last iteration's readers must be done
        builder.insert(BarrierOp())
    body, step = _strided_loop(builder, -(-count // threads))
    operands = [step, machine.thread, *op.origin]
    flat = D0 * threads + D1
    if count % threads:
        inside = body.insert(TestOp([flat * -1 + (count - 1)], operands))
        guard = scf.IfOp(inside.result, [], Region(Block([scf.YieldOp()])))
        body.insert(guard)
        assert guard.true_region.block.last_op is not None
        body = Builder(InsertPoint.before(guard.true_region.block.last_op))
    ranges = [(0, -(-count // threads) - 1), (0, threads - 1)]
    local = [simplify(e, ranges) for e in delinearize(flat, shape)]
    dims = [AffineExpr.dimension(i + 2) for i in range(len(op.origin))]
    index = [replace_dims(e, dims) for e in op.map.data.results]
    skipped = len(index) - len(local)
    index = [e + local[i - skipped] if i >= skipped else e for i, e in enumerate(index)]
    value = _load_or_zero(body, op, index, operands)
    body.insert(StoreOp(value, slab, local, operands))
    if not isinstance(op.next_op, StageOp):
        builder.insert(BarrierOp())
    op.slab.replace_all_uses_with(slab)
    op.detach()
    op.erase()


def _is_copy(op: Operation | None) -> bool:
    """Whether `op` is a copy of a slab, lowered already: a loop that stores to shared memory."""
    if not isinstance(op, ForOp):
        return False
    stores = [o for o in op.walk() if isinstance(o, StoreOp)]
    return any(isinstance(o.memref.owner, SharedOp) for o in stores)


def _load_or_zero(
    body: Builder, op: StageOp, index: list[AffineExpr], operands: list[SSAValue]
) -> SSAValue:
    """The element of the source at `index`, or 0 past its end."""
    assert isinstance(op.source.type, MemRefType) and isinstance(op.slab.type, MemRefType)
    ranges, origin_ranges = operand_ranges(operands), operand_ranges(op.origin)
    slab = static_shape(op.slab.type)
    lengths = [1] * (len(index) - len(slab)) + list(slab)
    open_: list[AffineExpr] = []
    for extent, start, length, expr in zip(
        shape_of(op.source.type), op.map.data.results, lengths, index, strict=True
    ):
        if not always_holds(extent_expr(extent) + start * -1 + -length, origin_ranges):
            open_.append(simplify(extent_expr(extent) + expr * -1 + -1, ranges))
    if not open_:
        return body.insert(LoadOp(op.source, index, operands)).result
    element = op.source.type.element_type
    inside = body.insert(TestOp(open_, operands))
    load = LoadOp(op.source, index, operands)
    then = Block([load, scf.YieldOp(load.result)])
    otherwise = Block()
    zero = emit_constant(Builder(InsertPoint.at_end(otherwise)), 0, element)
    otherwise.add_op(scf.YieldOp(zero))
    guard = scf.IfOp(inside.result, [element], Region(then), Region(otherwise))
    return body.insert(guard).output[0]


# --------------------------------------------------------------------------- combine


def _lower_combine(op: CombineOp, launch_args: list[SSAValue], machine: _Machine) -> None:
    """Fold over threads: in warps by shuffles where the axes allow it, else through shared memory."""
    positions = sorted(launch_args.index(axis) for axis in op.axes)
    extents = machine.launch_threads
    group = prod(extents[p] for p in positions)
    innermost = positions == list(range(len(extents) - len(positions), len(extents)))
    whole_warps = machine.threads % WARP == 0
    power_of_two = group & (group - 1) == 0
    shuffles = innermost and whole_warps and op.value.type in SHUFFLED
    builder = Builder(InsertPoint.before(op))
    if shuffles and power_of_two and group <= WARP:
        result = _butterfly(builder, op, op.value, group)
    elif shuffles and group % WARP == 0:
        in_warp = _butterfly(builder, op, op.value, WARP)
        result = _fold_shared(builder, op, in_warp, machine, WARP, group // WARP)
    elif innermost:
        result = _fold_shared(builder, op, op.value, machine, 1, group)
    elif positions == list(range(len(positions))):
        result = _fold_shared(builder, op, op.value, machine, 1, group, machine.threads // group)
    else:
        raise DeploError(
            f"materialize-tile: 'tile.combine' at {op.location} combines over thread axes that are "
            "neither the innermost nor the outermost ones; reorder the launch's axes"
        )
    result.name_hint = op.result.name_hint
    op.result.replace_all_uses_with(result)
    op.detach()
    op.erase()


def _butterfly(builder: Builder, op: CombineOp, value: SSAValue, lanes: int) -> SSAValue:
    """Every one of `lanes` neighbouring lanes gets the fold of all; the order is fixed."""
    mask = lanes // 2
    while mask:
        other = builder.insert(ShuffleOp(value, mask))
        other.result.name_hint = "other"
        value = combine(builder, op.combiner.data, value, other.result)
        value.name_hint = op.value.name_hint
        mask //= 2
    return value


def _fold_shared(
    builder: Builder,
    op: CombineOp,
    value: SSAValue,
    machine: _Machine,
    stride: int,
    parts: int,
    apart: int = 1,
) -> SSAValue:
    """Fold the values of `parts` slots that are `apart`; slot s is written by thread s * stride."""
    slots = machine.threads // stride
    name = f"{op.value.name_hint or 'partial'}_smem"
    buffer = machine.shared([slots], value.type, name)
    if _in_loop(op):  # the last iteration's readers must be done
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
    block = Block(arg_types=[IndexType()])
    block.args[0].name_hint = "part"
    ranges = [(0, parts - 1), (0, machine.threads - 1)]
    group = D1 // (stride * parts) * parts + D0
    source = simplify(group if apart == 1 else D0 * apart + D1 % apart, ranges)
    load = LoadOp(buffer, [source], [block.args[0], machine.thread])
    load.result.name_hint = op.value.name_hint
    block.add_ops([load, YieldOp(load.result)])
    loop = ForOp(parts, Region(block), combiners=[op.combiner.data], result_types=[value.type])
    builder.insert(loop)
    return loop.res[0]


# --------------------------------------------------------------------------- launch


def _number_axes(
    builder: Builder, number: SSAValue, extents: list[Extent], axes: list[SSAValue]
) -> None:
    """Give each axis its part of the number of the block or thread."""
    ranges = [extent_range(prod(extents))]
    for axis, expr in zip(axes, delinearize(D0, extents), strict=True):
        if len(extents) == 1:
            number.name_hint = axis.name_hint
            axis.replace_all_uses_with(number)
            continue
        index = builder.insert(IndexOp(simplify(expr, ranges), [number]))
        index.result.name_hint = axis.name_hint
        axis.replace_all_uses_with(index.result)


def build_kernel(kernel: KernelOp, launch: LaunchOp, name: str) -> Device:
    """The device function of a kernel; takes the kernel's body apart."""
    threads = static_extent(launch.num_threads)
    blocks = launch.num_blocks if threads else 0
    threads = threads or 1
    limit = TARGETS["sm_80"].max_blocks
    if isinstance(blocks, int) and blocks > limit:
        raise DeploError(f"@{name}: {blocks} blocks exceed the {limit} a grid can have")
    entry = Block(arg_types=kernel.body.block.arg_types)
    function = FuncOp(name, Region(entry), blocks, threads)
    for old, new in zip(kernel.body.block.args, entry.args, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    builder = Builder(InsertPoint.at_end(entry))
    by_level: dict[Level, list[SSAValue]] = {Level.BLOCK: [], Level.THREAD: []}
    for axis, argument in zip(launch.axes, launch.body.block.args, strict=True):
        by_level[axis.level.data].append(argument)
    uses_thread = any(isinstance(o, StageOp | CombineOp) for o in launch.walk())
    numbers: dict[Level, SSAValue] = {}
    for level, make in ((Level.BLOCK, BlockIdOp), (Level.THREAD, ThreadIdOp)):
        if by_level[level] or (level is Level.THREAD and uses_thread):
            numbers[level] = builder.insert(make()).result
            numbers[level].name_hint = level.value
    body = list(launch.body.block.ops)
    for op in body:
        op.detach()
        entry.add_op(op)
    if uses_thread:
        machine = _Machine(
            function,
            numbers[Level.THREAD],
            [static_extent(n) for n in launch.extents(Level.THREAD)],
        )
        for op in [o for o in function.walk() if isinstance(o, StageOp)]:
            _lower_stage(op, machine)
        for op in [o for o in function.walk() if isinstance(o, CombineOp)]:
            _lower_combine(op, by_level[Level.THREAD], machine)
    for level, number in numbers.items():
        after = Builder(InsertPoint.after(number.owner))  # pyright: ignore[reportArgumentType]
        _number_axes(after, number, launch.extents(level), by_level[level])
    lower_loops(entry)
    return Device(function, blocks, threads)


@dataclass(frozen=True)
class MaterializeTilePass(ModulePass):
    """Turn tile IR into kernels and a host function."""

    name = "materialize-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not any(isinstance(o, LaunchOp) for o in op.walk()):
            record(self.name, "main", False, "there is no tile.launch to materialize")

        def build(kernel: KernelOp, launch: LaunchOp, name: str) -> Device:
            device = build_kernel(kernel, launch, name)
            geometry = f"{device.blocks} blocks of {device.threads} threads"
            record(self.name, name, True, geometry, device.function)
            return device

        lower_host(op, build)
