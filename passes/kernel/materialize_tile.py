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

`tile.stage` becomes shared memory and copies (`stage_copies.py`); `tile.combine` and `tile.prefix` shuffles
within a warp and shared memory between warps (`thread_folds.py`); `tile.mma` goes on from the sums so far
(`lower_mma.py`). Several block or thread axes share the one number the machine gives, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import FunctionType, IntegerAttr, ModuleOp, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import extent_range, simplify
from ...dialects.index import delinearize
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import (
    MAX_SHARED_BYTES,
    BlockIdOp,
    FuncOp,
    TensorMapType,
    ThreadIdOp,
)
from ...dialects.loop import IndexOp, KernelOp
from ...dialects.sizes import Extent, static_extent
from ...dialects.tile import MAX_THREADS, CombineOp, LaunchOp, Level, PrefixOp, StageOp
from ...dialects.tile_pack import PackOp
from ...errors import DeploError
from ...machine.targets import TARGETS
from ..decisions import record
from ..host import Device, lower_host
from ..lower_loops import lower_loops
from ..schedule.pipeline import filling_loops
from .lower_mma import lower_mma
from .machine import Machine
from .stage_copies import lower_stages
from .thread_folds import lower_fold

D0 = AffineExpr.dimension(0)

MANY_SUMS = 16
"""Sums that a loop over slabs carries from which on ptxas is told not to spill some for another block."""


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


def _threads_of(launch: LaunchOp, name: str) -> int:
    """The threads of a block. Raises DeploError if one cannot have so many, or the launch is a CPU's."""
    tiled = launch.schedule is not None and launch.schedule.word("vectors") is not None
    if tiled or any(isinstance(op, PackOp) for op in ops_in(launch)):
        raise DeploError(f"@{name} is scheduled for a CPU: its blocks are of vectors or packed copies")
    threads = launch.num_threads
    if isinstance(threads, int) and threads <= MAX_THREADS:
        return threads
    raise DeploError(
        f"@{name}: a block has at most {MAX_THREADS} threads, not {threads}; run `blockify-launch` first"
    )


def build_kernel(kernel: KernelOp, launch: LaunchOp, name: str) -> Device:
    """The device function of a kernel; takes the kernel's body apart."""
    threads = _threads_of(launch, name)
    blocks = launch.num_blocks if threads else 0
    threads = threads or 1
    limit = TARGETS["sm_80"].max_blocks
    if isinstance(blocks, int) and blocks > limit:
        raise DeploError(f"@{name}: {blocks} blocks exceed the {limit} a grid can have")
    entry = Block(arg_types=kernel.body.block.arg_types)
    function = FuncOp(name, Region(entry), blocks, threads)
    if max((len(loop.res) for loop in filling_loops(launch)), default=0) >= MANY_SUMS:
        function.resident = IntegerAttr(1, i64)
    for old, new in zip(kernel.body.block.args, entry.args, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    builder = Builder(InsertPoint.at_end(entry))
    if launch.cluster > 1:
        function.cluster = IntegerAttr(launch.cluster, i64)
    by_level: dict[Level, list[SSAValue]] = {Level.BLOCK: [], Level.THREAD: []}
    extents = {level: launch.extents(level) for level in Level}
    extents[Level.BLOCK] += extents.pop(Level.CLUSTER)
    for axis, argument in zip(launch.axes, launch.body.block.args, strict=True):
        level = axis.level.data
        by_level[Level.BLOCK if level is Level.CLUSTER else level].append(argument)
    uses_thread = any(isinstance(o, StageOp | CombineOp | PrefixOp) for o in ops_in(launch))
    numbers: dict[Level, SSAValue] = {}
    for level, make in ((Level.BLOCK, BlockIdOp), (Level.THREAD, ThreadIdOp)):
        if by_level[level] or (level is Level.THREAD and uses_thread):
            numbers[level] = builder.insert(make()).result
            numbers[level].name_hint = level.value
    body = list(launch.body.block.ops)
    for each in body:
        each.detach()
        entry.add_op(each)
    maps: list[tuple[int, TensorMapType]] = []
    if uses_thread:
        machine = Machine(
            function,
            numbers[Level.THREAD],
            [static_extent(n) for n in extents[Level.THREAD]],
            numbers.get(Level.BLOCK),
        )
        lower_stages(machine)
        maps = machine.tensor_maps
        for fold in ops_of(function, CombineOp, PrefixOp):
            lower_fold(fold, by_level[Level.THREAD], machine)
    for level, number in numbers.items():
        after = Builder(InsertPoint.after(number.owner))  # pyright: ignore[reportArgumentType]
        _number_axes(after, number, extents[level], by_level[level])
    _require_shared(function)
    lower_loops(entry)
    lower_mma(entry)
    dropped = _drop_mapped(function, maps)
    return Device(function, blocks, threads, tuple(maps), dropped)


def _require_shared(function: FuncOp) -> None:
    """Raise DeploError for more shared memory than a block may have."""
    if function.shared_bytes > MAX_SHARED_BYTES:
        raise DeploError(
            f"@{function.sym_name.data}: {function.shared_bytes} bytes of shared memory exceed the "
            f"{MAX_SHARED_BYTES} that a block may have; stage smaller slabs"
        )


def _drop_mapped(function: FuncOp, maps: Sequence[tuple[int, TensorMapType]]) -> tuple[int, ...]:
    """Take arguments from a function that are read by their maps only; gives their numbers."""
    entry = function.body.block
    buffers = list(entry.args)[len(maps) :]
    dropped = sorted({number for number, _ in maps if not buffers[number].uses})
    for number in dropped:
        entry.erase_arg(buffers[number])
    function.function_type = FunctionType.from_lists(list(entry.arg_types), [])
    return tuple(dropped)


@dataclass(frozen=True)
class MaterializeTilePass(ModulePass):
    """Turn tile IR into kernels and a host function."""

    name = "materialize-tile"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        def build(kernel: KernelOp, launch: LaunchOp, name: str) -> Device:
            device = build_kernel(kernel, launch, name)
            geometry = f"{device.blocks} blocks of {device.threads} threads"
            record(self.name, name, True, geometry, device.function)
            return device

        lower_host(op, build)
