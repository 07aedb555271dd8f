"""Slabs that the copy engine fills, and the barriers on which they arrive; a part of `materialize-tile`.

    %full = kernel.mbarriers 3                 // one for each buffer; thread 0 begins their first phase
    ...
    kernel.mbarrier_wait %full[%k mod 3] parity[%k floordiv 3 mod 2]
    ...                                        // thread 0 alone:
      kernel.mbarrier_expect_bytes %full[(%k + 2) mod 3], 8192
      kernel.bulk_copy %x_map[%i * 64, %k * 16 + 32] to %xs[(%k + 2) mod 3, 0, 0]
        barrier %full[(%k + 2) mod 3]

Each use of a buffer is a phase of its barrier: all boxes of the buffer complete it together. A slab that is
multicast comes in parts, one from each block of the cluster, and each part completes the barriers of all:

    kernel.bulk_copy %w_map[%j * 128 + %block mod 2 * 64, ...] to %ws[..., %block mod 2 * 64, 0]
      barrier %full[...] multicast 2
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.copies import box_of, bulk_refusal, panels
from ...analysis.index import operand_ranges, simplify
from ...dialects.index import Index, linearize
from ...dialects.kernel import (
    BarrierOp,
    BulkCopyOp,
    FenceOp,
    FuncOp,
    MbarrierExpectBytesOp,
    MbarrierInitOp,
    MbarriersOp,
    MbarrierWaitOp,
    ThreadIdOp,
)
from ...dialects.loop import ForOp, TestOp
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import static_shape
from ...dialects.tensor_map import UNIT
from ...dialects.tile import StageOp
from ...errors import DeploError
from ...index.affine import ZERO
from .machine import Machine

LINE = 128
"""Bytes after which the pattern of a swizzle changes."""


def bulk_shape(stage: StageOp) -> list[int]:
    """How one buffer of a slab lies: its boxes one after the other, each row by row."""
    assert isinstance(stage.slab.type, MemRefType)
    *outer, _ = static_shape(stage.slab.type)
    count, columns = panels(stage)
    return [*([count] if count > 1 else []), *outer, columns]


def bulk_place(stage: StageOp, index: Sequence[AffineExpr]) -> list[AffineExpr]:
    """Where the element at `index` of a slab lies in a buffer of `bulk_shape`.

    Unit u of a row is found in place u xor the number of its line, of which as many bits count as units have
    numbers.
    """
    assert isinstance(stage.slab.type, MemRefType)
    *outer, column = index
    count, columns = panels(stage)
    box = [column // columns] if count > 1 else []
    column = column % columns if count > 1 else column
    if stage.swizzle_bytes:
        size = storage_bytes(stage.slab.type.element_type)
        unit = UNIT // size
        line = linearize(outer, static_shape(stage.slab.type)[:-1]) if outer else ZERO
        line = line // (LINE // stage.swizzle_bytes)
        column = _xor(column // unit, line, stage.swizzle_bytes // UNIT) * unit + column % unit
    return [*box, *outer, column]


def _xor(left: AffineExpr, right: AffineExpr, numbers: int) -> AffineExpr:
    """The exclusive or of the bits of `left`, below `numbers`, and those of `right`: sums without carries."""
    total, bit = ZERO, 1
    while bit < numbers:
        total = total + (left // bit + right // bit) % 2 * bit
        bit *= 2
    return total


def box_alignment(stage: StageOp) -> int:
    """What the address of a slab is a multiple of. Raises DeploError if it cannot go by tma."""
    _check(stage)
    return box_of(stage, stage.swizzle_bytes).alignment


class BulkCopies:
    """The slabs that the copy engine fills together, each in as many buffers as take turns."""

    def __init__(self, machine: Machine, memory: dict[StageOp, SSAValue], buffers: int):
        self.thread, self.block = machine.thread, machine.block
        self.memory = memory
        self.buffers = buffers
        self.full = _initialised(machine, buffers)
        self.maps: dict[StageOp, SSAValue] = {}
        for stage in memory:
            self.maps[stage] = machine.tensor_map(stage.source, box_of(stage, stage.swizzle_bytes))

    def start(
        self,
        builder: Builder,
        origins: dict[StageOp, Index],
        number: AffineExpr,
        counters: list[SSAValue],
    ) -> None:
        """Let one thread start the copies of iteration `number` over `counters`, from `origins`."""
        one = _first_thread(builder, self.thread)
        turn = simplify(number % self.buffers, operand_ranges(counters))
        boxes = {stage: box_of(stage, stage.swizzle_bytes) for stage in origins}
        size = sum(panels(stage)[0] * box.bytes * stage.receivers for stage, box in boxes.items())
        one.insert(MbarrierExpectBytesOp(self.full, ([turn], counters), size))
        for stage, origin in origins.items():
            for panel in range(panels(stage)[0]):
                copy = self._copy(stage, panel, origin, turn, counters)
                copy.location = stage.location
                one.insert(copy)

    def _copy(
        self, stage: StageOp, panel: int, origin: Index, turn: AffineExpr, counters: list[SSAValue]
    ) -> BulkCopyOp:
        """The copy of a box to a buffer: of what is multicast, the rows that are this block's part."""
        assert isinstance(stage.slab.type, MemRefType)
        exprs, operands = list(origin[0]), list(origin[1])
        count, columns = panels(stage)
        inside = [ZERO] * len(bulk_shape(stage))
        inside[0] = ZERO + panel if count > 1 else ZERO
        exprs[-1] = exprs[-1] + panel * columns
        places = list(counters)
        if stage.receivers > 1:
            assert self.block is not None
            shape = static_shape(stage.slab.type)
            rows, axis = shape[0] // stage.receivers, len(exprs) - len(shape)
            first = AffineExpr.dimension(len(operands)) % stage.receivers * rows
            exprs[axis] = exprs[axis] + first
            inside[1 if count > 1 else 0] = (
                AffineExpr.dimension(len(places)) % stage.receivers * rows
            )
            operands, places = [*operands, self.block], [*places, self.block]
        place = [*([turn] if self.buffers > 1 else []), *inside]
        ranges = operand_ranges(operands)
        return BulkCopyOp(
            self.maps[stage],
            ([simplify(expr, ranges) for expr in exprs], operands),
            self.memory[stage],
            (place, places),
            self.full,
            ([turn], counters),
            stage.receivers,
        )

    def wait(self, builder: Builder, number: AffineExpr, counters: list[SSAValue]) -> None:
        """Wait until what iteration `number` reads has arrived."""
        ranges = operand_ranges(counters)
        turn = simplify(number % self.buffers, ranges)
        parity = simplify(number // self.buffers % 2, ranges)
        builder.insert(MbarrierWaitOp(self.full, ([turn], counters), ([parity], counters)))


def _check(stage: StageOp) -> None:
    """Raise DeploError unless the copy engine can fill a slab; one loop at most counts its phases."""
    loop = stage.parent_op()
    outer = loop.parent_op() if isinstance(loop, ForOp) else loop
    refusal = bulk_refusal(stage, stage.swizzle_bytes)
    if not isinstance(outer, FuncOp):
        refusal = "it stands in a loop inside another or under a condition"
    if refusal is not None:
        raise DeploError(f"'tile.stage' at {stage.location} cannot go by tma: {refusal}")


def _initialised(machine: Machine, count: int) -> SSAValue:
    """Barriers whose first phase has begun, for one arrival in each."""
    thread = machine.thread.owner
    assert isinstance(thread, ThreadIdOp)
    builder = Builder(InsertPoint.after(thread))
    barriers = builder.insert(MbarriersOp(count))
    barriers.result.name_hint = "full"
    one = _first_thread(builder, machine.thread)
    for number in range(count):
        one.insert(MbarrierInitOp(barriers.result, ([AffineExpr.constant(number)], []), 1))
    one.insert(FenceOp(machine.has_clusters))
    builder.insert(BarrierOp(machine.has_clusters))
    return barriers.result


def _first_thread(builder: Builder, thread: SSAValue) -> Builder:
    """Where code goes that one thread runs."""
    one = builder.insert(TestOp([AffineExpr.dimension(0) * -1], [thread]))
    guard = builder.insert(scf.IfOp(one.result, [], Region(Block([scf.YieldOp()]))))
    assert guard.true_region.block.last_op is not None
    return Builder(InsertPoint.before(guard.true_region.block.last_op))
