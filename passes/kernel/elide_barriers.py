"""`elide-barriers`: barriers that separate nothing go away.

    kernel.barrier                        // nothing is read or written before it: not needed
    loop.store %v, %slab[%t]
    kernel.barrier                        // the store before, the load after: needed
    %w = loop.load %slab[%t - 1]
    kernel.barrier                        // loads before, nothing after: not needed

A barrier is needed if something that can happen between another barrier and itself, and something that can
happen between itself and another one, touch one memory, one of them writing: whichever way loops and
conditions are run. Copies that run while threads compute, their waits and fences touch all memory.

Barriers of clusters stay, for what other blocks touch is not in sight. Those in front of which no thread
stores anything become `relaxed`: blocks only say that they have read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import or_

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import is_side_effect_free

from ...analysis.index import known_extent
from ...dialects.inside import ops_in
from ...dialects.kernel import (
    BarrierOp,
    BulkCopyOp,
    FuncOp,
    MbarrierExpectBytesOp,
    MbarriersOp,
    MbarrierWaitOp,
    MmaOp,
    SharedOp,
    ShuffleOp,
    VectorLoadOp,
    VectorStoreOp,
    WgmmaOp,
)
from ...dialects.loop import LoadOp, RegistersOp, StoreOp
from ...dialects.loop_access import in_registers
from ...errors import counted
from ..decisions import record


@dataclass(frozen=True)
class Touched:
    """What some operations read and write; all memory if `everything`."""

    reads: frozenset[SSAValue] = field(default=frozenset())
    writes: frozenset[SSAValue] = field(default=frozenset())
    everything: bool = False

    def __or__(self, other: Touched) -> Touched:
        return Touched(
            self.reads | other.reads,
            self.writes | other.writes,
            self.everything or other.everything,
        )

    @property
    def is_nothing(self) -> bool:
        """Whether no memory is touched."""
        return not (self.reads or self.writes or self.everything)

    def conflicts(self, other: Touched) -> bool:
        """Whether both touch some memory and one of them writes it."""
        if self.is_nothing or other.is_nothing:
            return False
        if self.everything or other.everything:
            return True
        both = self.reads | self.writes
        return bool(self.writes & (other.reads | other.writes) or both & other.writes)


NOTHING = Touched()
_HARMLESS = (SharedOp, RegistersOp, ShuffleOp, MmaOp, scf.YieldOp)


def touched(op: Operation) -> Touched:
    """What an operation touches itself, regions left out."""
    match op:
        case LoadOp() | VectorLoadOp():
            return NOTHING if in_registers(op.memref) else Touched(reads=frozenset([op.memref]))
        case StoreOp() | VectorStoreOp():
            return NOTHING if in_registers(op.memref) else Touched(writes=frozenset([op.memref]))
        case WgmmaOp():
            return Touched(reads=frozenset(memory for memory, _, _ in op.slabs))
        case BarrierOp():
            return NOTHING
        case _:
            free = op.regions or isinstance(op, _HARMLESS) or is_side_effect_free(op)
            return NOTHING if free else Touched(everything=True)


@dataclass
class _Flow:
    """What can happen after what: nodes are operations, and the places where paths meet."""

    after: dict[object, set[object]] = field(default_factory=dict[object, set[object]])
    before: dict[object, set[object]] = field(default_factory=dict[object, set[object]])

    def edge(self, first: object, then: object) -> None:
        """`then` can happen right after `first`."""
        self.after.setdefault(first, set()).add(then)
        self.before.setdefault(then, set()).add(first)

    def block(self, block: Block, entry: object) -> object:
        """Add the operations of a block that is entered from `entry`; gives where it is left."""
        for op in block.ops:
            self.edge(entry, op)
            entry = self._regions(op)
        return entry

    def _regions(self, op: Operation) -> object:
        blocks = [block for region in op.regions for block in region.blocks]
        if not blocks:
            return op
        left = (op, "left")
        if isinstance(op, scf.ForOp):
            trips, again = known_extent(op.ub), (op, "again")
            self.edge(op, again)
            end = self.block(op.body.block, again)
            self.edge(end, left)
            if trips != 1:
                self.edge(end, again)
            if not isinstance(trips, int) or trips == 0:
                self.edge(op, left)
            return left
        for block in blocks:
            self.edge(self.block(block, op), left)
        if len(blocks) < len(op.regions):
            self.edge(op, left)
        return left

    def between(
        self, barrier: Operation, edges: Mapping[object, set[object]]
    ) -> Iterator[Operation]:
        """The operations on the ways from a barrier to the next ones, along `edges`."""
        seen: set[object] = set()
        todo = list(edges.get(barrier, ()))
        while todo:
            node = todo.pop()
            if node in seen or isinstance(node, BarrierOp):
                continue
            seen.add(node)
            if isinstance(node, Operation):
                yield node
            todo += edges.get(node, ())

    def reach(self, barrier: Operation, edges: Mapping[object, set[object]]) -> Touched:
        """What is touched on the ways from a barrier to the next ones, along `edges`."""
        return reduce(or_, map(touched, self.between(barrier, edges)), NOTHING)


def elide_barriers(function: FuncOp) -> tuple[int, int]:
    """Remove the barriers of a kernel that separate nothing; gives how many, and how many are left."""
    barriers = [op for op in ops_in(function) if isinstance(op, BarrierOp) and not op.cluster]
    removed = 0
    for barrier in barriers:
        flow = _Flow()
        flow.block(function.body.block, "entry")
        if not flow.reach(barrier, flow.before).conflicts(flow.reach(barrier, flow.after)):
            barrier.detach()
            barrier.erase()
            removed += 1
    return removed, len(barriers) - removed


def relax_barriers(function: FuncOp) -> int:
    """Relax the barriers of clusters in front of which no thread stores anything; gives how many."""
    barriers = [op for op in ops_in(function) if isinstance(op, BarrierOp) and op.cluster]
    flow = _Flow()
    flow.block(function.body.block, "entry")
    relaxed = [op for op in barriers if not any(map(_stores, flow.between(op, flow.before)))]
    for barrier in relaxed:
        barrier.relaxed = UnitAttr()
    return len(relaxed)


def _stores(op: Operation) -> bool:
    """Whether a thread itself writes memory that others see, or may."""
    if isinstance(op, BulkCopyOp | MbarrierExpectBytesOp | MbarrierWaitOp | MbarriersOp):
        return False
    effect = touched(op)
    return effect.everything or bool(effect.writes)


@dataclass(frozen=True)
class ElideBarriersPass(ModulePass):
    """Remove barriers that separate no accesses of one memory."""

    name = "elide-barriers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            removed, left = elide_barriers(function)
            relaxed = relax_barriers(function)
            said = [f"{removed} of {removed + left} barriers separate nothing"] if removed else []
            if relaxed:
                said.append(f"{counted(relaxed, 'barrier')} of clusters stand behind no stores")
            reason = f"all {left} barriers are needed" if left else "there is no barrier to remove"
            reason = "; ".join(said) or reason
            record(self.name, function.sym_name.data, bool(said), reason, function)
