"""What `stage{of=x to=shared}` does where no sweep reads rows: a block copies the tile that it reads.

    tile.launch (%i = 32 : block, %j = 16 : block, %it = 32 : thread, %jt = 32 : thread) {
      %v = loop.load %x[%j * 32 + %jt, %i * 32 + %it]
      loop.store %v, %y[%i * 32 + %it, %j * 32 + %jt]
    }
becomes
    tile.launch (%i = 32 : block, %j = 16 : block, %it = 32 : thread, %jt = 32 : thread) {
      %x_smem = tile.stage %x[%j * 32, %i * 32] : memref<512x1024xf32> -> memref<32x32xf32, "shared">
      %v = loop.load %x_smem[%jt, %it]
      loop.store %v, %y[%i * 32 + %it, %j * 32 + %jt]
    }

All threads copy, those past the end of the result as well, so copies stand in front of the condition that it
ends there; what is outside of an operand is 0, and not read.

Of a chunked contraction, the operands that differ between threads are copied for each chunk:
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %a = loop.load %x[%i_block * 64 + %i, %k_block * 16 + %k] : memref<512x3584xf32>
        ...
becomes
    %s = loop.for %k_block = 0 to 224 reduce(add) -> f32 {
      %xs = tile.stage %x[%i_block * 64, %k_block * 16] : memref<512x3584xf32> -> memref<64x16xf32, "shared">
      %c = loop.for %k = 0 to 16 reduce(add) -> f32 {
        %a = loop.load %xs[%i, %k] : memref<64x16xf32, "shared">
        ...

The sweep leaves the condition around it then; past the end of an operand the slab is 0, and so are the
borders of images, whose condition goes (`analysis/borders.py`). A mask on K goes where it is not needed any
more: if both factors of a product are 0 there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ...analysis.borders import border_tests, bordered_load
from ...analysis.index import operand_ranges, simplify
from ...analysis.slabs import Slab, slab_of
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import (
    AssertOp,
    CheckedIndexOp,
    ForOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
    YieldOp,
)
from ...dialects.scalars import Combiner
from ...dialects.sizes import extent_expr, shape_of, static_extent
from ...dialects.tile import LaunchOp, Level, StageOp, arguments_behind
from ...dialects.tile_pack import PackOp
from ...index.affine import replace_dims
from ..lower_loops import CHUNK
from ..replacing import decide, replace


def loads_of(launch: LaunchOp) -> list[LoadOp]:
    """The loads of a launch, in order."""
    return ops_of(launch, LoadOp)


def array_names(launch: LaunchOp) -> dict[SSAValue, str]:
    """The arrays of a launch's kernel by the names that they are printed with: a, a_1, b."""
    kernel, names, counts = launch.parent_op(), dict[SSAValue, str](), Counter[str]()
    assert isinstance(kernel, KernelOp)
    for array in kernel.body.block.args:
        name = array.name_hint or "array"
        names[array] = f"{name}_{counts[name]}" if counts[name] else name
        counts[name] += 1
    return names


def copy_tiles(loads: Sequence[LoadOp], launch: LaunchOp) -> str | None:
    """Let the block copy what loads read of their arrays, and them read the copies; gives why not."""
    extents = [axis.extent.data for axis in launch.axes if axis.level.data is Level.THREAD]
    loops = ops_of(launch, ForOp)
    if not all(isinstance(each, int) for each in (*extents, *(loop.extent.data for loop in loops))):
        return "the points of a block are not known"
    local, reads = _local(launch, loops), list[tuple[LoadOp, Slab]]()
    for load in loads:
        slab = _box(load, local, launch, [])
        if isinstance(slab, str):
            return slab
        reads.append((load, slab.inside(load)))
    first = launch.body.block.first_op
    assert first is not None
    copy_first(reads, first)
    return None


def _box(
    load: LoadOp, local: dict[SSAValue, int], launch: LaunchOp, before: Sequence[Operation]
) -> Slab | str:
    """What a block reads by a load, or why that is no box of the array.

    It may begin where counters of blocks say, and what operations `before` the copy compute of these.
    """
    slab = slab_of(load, local)
    origin = [] if slab is None else slab.origin
    used = {load.indices[d] for expr in origin for d in expr.used_dims()}
    known = {v for v in used if isinstance(v, BlockArgument) or v.owner in before}
    if slab is None or used != known or not all(_is_of_block(v, local) for v in used):
        return f"a block reads no box of {array_names(launch)[load.memref]}"
    return slab


def _is_of_block(value: SSAValue, local: dict[SSAValue, int]) -> bool:
    """Whether a value is the same for all points of a block."""
    return arguments_behind([value]).isdisjoint(local)


def _local(launch: LaunchOp, loops: Sequence[ForOp]) -> dict[SSAValue, int]:
    """The counters that run inside a block, with their extents."""
    local: dict[SSAValue, int] = {
        counter: static_extent(axis.extent.data)
        for counter, axis in zip(launch.body.block.args, launch.axes, strict=True)
        if axis.level.data is Level.THREAD
    }
    return local | {loop.induction_var: static_extent(loop.extent.data) for loop in loops}


# --------------------------------------------------------------------------- chunks of a contraction


@dataclass(frozen=True)
class Staging:
    """A chunked contraction inside a block: its loops, and the condition around it if it is ragged."""

    launch: LaunchOp
    outer: ForOp
    inner: ForOp
    guard: scf.IfOp | None

    @property
    def local(self) -> dict[SSAValue, int]:
        """The counters that run inside a block and a chunk, with their extents."""
        return _local(self.launch, [self.inner])

    def loads(self) -> list[LoadOp]:
        """The loads of the chunk that differ between threads."""
        axes = set(_local(self.launch, []))
        found = ops_of(self.inner, LoadOp)
        return [load for load in found if axes.intersection(load.indices)]

    def picks(self) -> list[Operation]:
        """What stands in front of the sweep and is the same for all points of a block: indices from data."""
        block = self.outer.parent
        assert block is not None
        before = list(block.ops)[: list(block.ops).index(self.outer)]
        return [op for op in before if all(_is_of_block(v, self.local) for v in op.results)]

    def borders(self) -> list[TestOp]:
        """The conditions that only keep those loads inside of their arrays."""
        loads = self.loads()
        found = {test: [use.operation for use in test.result.uses] for test in border_tests(self.inner)}
        return [
            test
            for test, guards in found.items()
            if all(isinstance(op, scf.IfOp) and bordered_load(op) in loads for op in guards)
        ]

    @property
    def bytes(self) -> int:
        """Bytes of the slabs that hold what a block reads of each chunk."""
        return sum(slab_in(load, self).bytes(load) for load in self.loads())


def has_chunks(launch: LaunchOp) -> bool:
    """Whether a sweep of a launch comes in chunks."""
    return any(CHUNK in op.attributes for op in ops_in(launch))


def find_staging(launch: LaunchOp) -> Staging | str:
    """The chunked contraction of a launch, or why there is nothing to stage."""
    if any(isinstance(op, StageOp | PackOp) for op in ops_in(launch)):
        return "its operands are staged already"
    if not all(isinstance(extent, int) for extent in launch.extents(Level.THREAD)):
        return "the points of a block are not known"
    guard = None
    block: Block = launch.body.block
    if isinstance(block.last_op, scf.IfOp) and not any(isinstance(o, ForOp) for o in block.ops):
        guard = block.last_op
        block = guard.true_region.block
    outer = next((op for op in block.ops if isinstance(op, ForOp) and op.res), None)
    inner = outer and next((o for o in outer.body.ops if isinstance(o, ForOp)), None)
    if outer is None or inner is None or CHUNK not in inner.attributes:
        return "there is no chunked reduce loop"
    if any(isinstance(op, StoreOp | CheckedIndexOp | AssertOp) for op in ops_in(outer)):
        return "the sweep stores, or checks indices from data"
    found = Staging(launch, outer, inner, guard)
    picks = found.picks()
    read = _reads(outer) - {test.result for test in found.borders()}
    read -= {result for op in picks for result in op.results}
    if guard is not None and any(_stands_in(value, block) for value in read):
        return "the sweep needs what is computed under the condition around it"
    for load in found.loads():
        if not isinstance(why := _box(load, found.local, launch, picks), Slab):
            return why
    return found


def _reads(op: Operation) -> set[SSAValue]:
    return {value for inner in ops_in(op) for value in inner.operands}


def _stands_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and owner.parent is block


def copy_chunks(staging: Staging) -> None:
    """Copy the operands of each chunk first."""
    vanishes = _vanishes(staging)
    tests = staging.borders()
    copy_first([(load, slab_in(load, staging)) for load in staging.loads()], staging.inner)
    for test in tests:
        decide(test, holds=True)
    if vanishes:
        _unmask(staging.inner)
    if staging.guard is not None:
        assert staging.guard.parent is not None
        for op in [*staging.picks(), staging.outer]:
            op.detach()
            staging.guard.parent.insert_op_before(op, staging.guard)


def slab_in(load: LoadOp, staging: Staging) -> Slab:
    """What a block reads of an operand of a contraction."""
    slab = slab_of(load, staging.local)
    assert slab is not None
    return slab


def copy_first(reads: Sequence[tuple[LoadOp, Slab]], where: Operation) -> None:
    """Copy what loads read in front of an operation, which may be one of them; let them read the copies.

    Loads of one slab share a copy.
    """
    slabs: dict[tuple[object, ...], SSAValue] = {}
    copied: list[SSAValue] = []
    assert where.parent is not None
    for load, slab in reads:
        key = (load.memref, tuple(slab.origin), tuple(load.indices), tuple(slab.shape))
        if key not in slabs:
            copy = StageOp(load.memref, slab.origin, list(load.indices), slab.shape)
            copy.location = load.location
            copy.slab.name_hint = f"{load.memref.name_hint or 'operand'}_smem"
            where.parent.insert_op_before(copy, where)
            slabs[key] = copy.slab
        copied.append(slabs[key])
    for (load, slab), source in zip(reads, copied, strict=True):
        replace(load, LoadOp(source, slab.index, list(load.indices)))


# --------------------------------------------------------------------------- the mask on K


def _masked(inner: ForOp) -> tuple[TestOp, scf.IfOp] | None:
    """The condition that a chunk runs under, if it is masked."""
    end = inner.body.block.last_op
    assert isinstance(end, YieldOp)
    owners = {value.owner for value in end.arguments}
    if len(owners) != 1:
        return None
    (guard,) = owners
    if not isinstance(guard, scf.IfOp) or not isinstance(guard.cond.owner, TestOp):
        return None
    return guard.cond.owner, guard


def _vanishes(staging: Staging) -> bool:
    """Whether contributions past the end of K are 0 without a mask, once the operands are staged.

    Each must be added, and be a product of operands that are 0 there: that end where K ends.
    """
    masked = _masked(staging.inner)
    if masked is None:
        return False
    _, guard = masked
    end = guard.true_region.block.last_op
    assert isinstance(end, scf.YieldOp)
    if any(c.data is not Combiner.ADD for c in staging.inner.combiners):
        return False
    staged = staging.loads()
    return all(_is_product(value, staged, staging) for value in end.arguments)


def _is_product(value: SSAValue, staged: Sequence[LoadOp], staging: Staging) -> bool:
    op = value.owner
    if not isinstance(op, arith.MulfOp):
        return False
    return all(_is_zero_past_the_end(factor, staged, staging) for factor in (op.lhs, op.rhs))


def _is_zero_past_the_end(value: SSAValue, staged: Sequence[LoadOp], staging: Staging) -> bool:
    """Whether a factor is an operand, perhaps converted, whose last position of K is its buffer's."""
    op = value.owner
    if isinstance(op, arith.ExtFOp | arith.TruncFOp):
        return _is_zero_past_the_end(op.input, staged, staging)
    if isinstance(op, scf.IfOp):
        op = bordered_load(op)
    if not isinstance(op, LoadOp) or op not in staged:
        return False
    masked = _masked(staging.inner)
    assert masked is not None and isinstance(op.memref.type, MemRefType)
    (condition,) = masked[0].exprs
    operands = masked[0].operands_
    for expr, extent in zip(op.map.data.results, shape_of(op.memref.type), strict=True):
        if staging.inner.induction_var not in [op.indices[d] for d in expr.used_dims()]:
            continue
        # The mask says `end - k >= 0`: that must be what the buffer's extent says of this index.
        space = [*op.indices, *(value for value in operands if value not in op.indices)]
        ranges = operand_ranges(space)
        dims = [AffineExpr.dimension(space.index(value)) for value in operands]
        inside = extent_expr(extent) + expr * -1 + -1
        return simplify(inside, ranges) == simplify(replace_dims(condition, dims), ranges)
    return False


def _unmask(inner: ForOp) -> None:
    """Let the body of a masked loop always run."""
    masked = _masked(inner)
    assert masked is not None
    test, guard = masked
    end = inner.body.block.last_op
    assert end is not None
    block = guard.true_region.block
    yielded = block.last_op
    assert isinstance(yielded, scf.YieldOp)
    for op in list(block.ops):
        op.detach()
        if op is not yielded:
            inner.body.block.insert_op_before(op, guard)
    end.operands = list(yielded.arguments)
    yielded.erase()
    guard.detach()
    guard.erase()
    if not test.result.uses:
        test.detach()
        test.erase()
