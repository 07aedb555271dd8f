"""`stage-inputs`: what the threads of a block read in common, they copy to the scratchpad first.

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

Staged are the operands of a chunked contraction that depend on its rows or columns. All threads copy, also
those past the end of the result, so the sweep leaves the condition around it; past the end of an operand the
slab is 0, and so are the borders of images, whose condition goes (`analysis/borders.py`). A mask on K goes
where it is not needed any more: if both factors of a product are 0 there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass

from ...analysis.borders import border_tests, bordered_load
from ...analysis.index import operand_ranges, simplify
from ...analysis.launches import open_launches
from ...analysis.slabs import Slab, slab_of
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp, TestOp, YieldOp
from ...dialects.scalars import Combiner
from ...dialects.schedule import ScheduleAttr
from ...dialects.sizes import extent_expr, shape_of
from ...dialects.tile import LaunchOp, StageOp
from ...dialects.tile_pack import PackOp
from ...index.affine import replace_dims
from ...machine.targets import get_gpu
from ..decisions import record
from ..replacing import decide, replace


@dataclass(frozen=True)
class _Staging:
    """A chunked contraction inside a block: its loops, and the condition around it if it is ragged."""

    launch: LaunchOp
    outer: ForOp
    inner: ForOp
    guard: scf.IfOp | None

    @property
    def local(self) -> dict[SSAValue, int]:
        """The counters that run inside a block and a chunk, with their extents."""
        schedule = self.launch.schedule
        assert schedule is not None
        counters: dict[SSAValue, int] = {}
        for position in _thread_axes(schedule):
            extent = self.launch.axes.data[position].extent.data
            assert isinstance(extent, int)
            counters[self.launch.body.block.args[position]] = extent
        assert isinstance(self.inner.extent.data, int)
        counters[self.inner.induction_var] = self.inner.extent.data
        return counters

    def loads(self) -> list[LoadOp]:
        """The loads of the chunk that depend on rows or columns."""
        schedule = self.launch.schedule
        assert schedule is not None
        axes = {self.launch.body.block.args[p] for p in _thread_axes(schedule)}
        found = [o for o in ops_in(self.inner) if isinstance(o, LoadOp)]
        return [load for load in found if axes.intersection(load.indices)]


def _thread_axes(schedule: ScheduleAttr) -> list[int]:
    positions = (schedule.get("m"), schedule.get("n"))
    return [position for position in positions if position is not None]


def find_staging(launch: LaunchOp) -> _Staging | str:
    """The chunked contraction of a launch, or why there is nothing to stage."""
    if launch.schedule is None or launch.schedule.get("block_k") is None:
        return "the schedule stages nothing"
    if any(isinstance(op, StageOp | PackOp) for op in ops_in(launch)):
        return "its operands are staged already"
    guard = None
    block: Block = launch.body.block
    if isinstance(block.last_op, scf.IfOp) and not any(isinstance(o, ForOp) for o in block.ops):
        guard = block.last_op
        block = guard.true_region.block
    outer = next((op for op in block.ops if isinstance(op, ForOp) and op.res), None)
    inner = (
        None if outer is None else next((o for o in outer.body.ops if isinstance(o, ForOp)), None)
    )
    if outer is None or inner is None:
        return "there is no chunked reduce loop"
    read = _reads(outer) - {test.result for test in border_tests(inner)}
    if guard is not None and any(_stands_in(value, block) for value in read):
        return "the sweep needs what is computed under the condition around it"
    return _Staging(launch, outer, inner, guard)


def _reads(loop: ForOp) -> set[SSAValue]:
    return {value for op in ops_in(loop) for value in op.operands}


def _stands_in(value: SSAValue, block: Block) -> bool:
    owner = value.owner
    return isinstance(owner, Operation) and owner.parent is block


def stage(staging: _Staging) -> int:
    """Copy the operands of each chunk first; gives the bytes of the slabs."""
    vanishes = _vanishes(staging)
    tests = border_tests(staging.inner)
    size = copy_first([(load, _slab(load, staging)) for load in staging.loads()], staging.inner)
    for test in tests:
        decide(test, holds=True)
    if vanishes:
        _unmask(staging.inner)
    if staging.guard is not None:
        staging.outer.detach()
        assert staging.guard.parent is not None
        staging.guard.parent.insert_op_before(staging.outer, staging.guard)
    return size


def _slab(load: LoadOp, staging: _Staging) -> Slab:
    """What a block reads of an operand of a contraction, which is always a box."""
    slab = slab_of(load, staging.local)
    assert slab is not None
    return slab


def copy_first(reads: Sequence[tuple[LoadOp, Slab]], where: Operation) -> int:
    """Copy what loads read in front of an operation, which may be one of them; let them read the copies.

    Loads of one slab share a copy. Gives the bytes of the slabs.
    """
    slabs: dict[tuple[object, ...], SSAValue] = {}
    copied: list[SSAValue] = []
    size = 0
    assert where.parent is not None
    for load, slab in reads:
        key = (load.memref, tuple(slab.origin), tuple(load.indices), tuple(slab.shape))
        if key not in slabs:
            copy = StageOp(load.memref, slab.origin, list(load.indices), slab.shape)
            copy.location = load.location
            copy.slab.name_hint = f"{load.memref.name_hint or 'operand'}_smem"
            where.parent.insert_op_before(copy, where)
            slabs[key] = copy.slab
            size += slab.bytes(load)
        copied.append(slabs[key])
    for (load, slab), source in zip(reads, copied, strict=True):
        replace(load, LoadOp(source, slab.index, list(load.indices)))
    return size


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


def _vanishes(staging: _Staging) -> bool:
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


def _is_product(value: SSAValue, staged: Sequence[LoadOp], staging: _Staging) -> bool:
    op = value.owner
    if not isinstance(op, arith.MulfOp):
        return False
    return all(_is_zero_past_the_end(factor, staged, staging) for factor in (op.lhs, op.rhs))


def _is_zero_past_the_end(value: SSAValue, staged: Sequence[LoadOp], staging: _Staging) -> bool:
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


@dataclass(frozen=True)
class StageInputsPass(ModulePass):
    """Stage the operands of each contraction whose schedule says how much of K a block shares."""

    name = "stage-inputs"

    target: str = "sm_90a"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limit = get_gpu(self.target).block_shared_bytes
        for kernel, launch in open_launches(op):
            self._apply(kernel.sym_name.data, launch, limit)

    def _apply(self, name: str, launch: LaunchOp, limit: int) -> None:
        found = find_staging(launch)
        if isinstance(found, str):
            record(self.name, name, False, found, launch)
            return
        size = sum(_slab(load, found).bytes(load) for load in found.loads())
        if size > limit:
            reason = f"slabs of {size} bytes exceed the {limit} of a block"
            record(self.name, name, False, reason, launch)
            return
        size = stage(found)
        record(self.name, name, True, f"slabs of {size} bytes", launch)
