"""`keep-rows`: what a thread reads in several sweeps it reads once, and keeps in registers.

    %s = ... loop.for %k = 0 to 8 reduce(add) -> f32 { ... %x[%row, %k * 256 + %lane] ... }
    loop.for %j = 0 to 8 { ... %x[%row, %j * 256 + %lane] ... }
becomes
    %kept = loop.registers : memref<8xf32, "registers">
    loop.for %k = 0 to 8 { ... loop.store %x[%row, %k * 256 + %lane], %kept[%k] }
    %s = ... loop.for %k = 0 to 8 reduce(add) -> f32 { ... %kept[%k] ... }
    loop.for %j = 0 to 8 { ... %kept[%j] ... }

Registers have no addresses, so the loops around such a load are to be unrolled. Where the schedule says
`keep = shared`, or with `stage=true`, the block copies the row to the scratchpad instead, if it has one row.

Declined are CPU targets, launches whose threads do not share sweeps, elements that one sweep alone reads,
rows that need more registers than a thread can spare, and with `stage` rows that the scratchpad cannot hold.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.launches import launches_of
from ...analysis.vectors import VECTOR
from ...dialects.inside import ops_in
from ...dialects.loop import ForOp, LoadOp, RegistersOp, StoreOp, TestOp
from ...dialects.loop_access import in_registers
from ...dialects.scalars import storage_bytes
from ...dialects.schedule import Kept
from ...dialects.sizes import shape_of, static_extent
from ...dialects.tile import LaunchOp, Level, StageOp
from ...index.affine import ZERO, product
from ...machine.targets import Target, get_gpu
from ..decisions import record
from ..replacing import replace
from .mark_unroll import UNROLL

REGISTER_FILE = 1 << 16
"""Registers of a multiprocessor; no block can have more (CUDA C++ Programming Guide, "Technical
Specifications per Compute Capability")."""

MOST_KEPT = 64
"""Registers of a thread that may hold rows, of its 255."""

REGISTER_BYTES = 4

SPARE_BYTES = 1024
"""What is left of a block's shared memory for the parts of its sums."""


@dataclass(frozen=True)
class _Site:
    """A load in a sweep of a launch, and the loops and conditions from the sweep down to it."""

    load: LoadOp
    nest: tuple[ForOp | scf.IfOp, ...]

    @property
    def loops(self) -> list[ForOp]:
        """The loops around it, outermost first."""
        return [op for op in self.nest if isinstance(op, ForOp)]

    @property
    def counters(self) -> list[SSAValue]:
        """What they count."""
        return [loop.induction_var for loop in self.loops]

    @property
    def trips(self) -> int:
        """How often one thread comes by."""
        return prod(static_extent(loop.extent.data) for loop in self.loops)

    @property
    def registers(self) -> int:
        """Registers that hold what it reads."""
        words = -(-storage_bytes(self.load.result.type) // REGISTER_BYTES)
        return self.trips * words


def _site(load: LoadOp, launch: LaunchOp) -> _Site | None:
    """Where a load stands, or None if that is under a condition that is not one of indices."""
    nest: list[ForOp | scf.IfOp] = []
    inner: Operation = load
    parent = load.parent_op()
    while parent is not launch:
        if not isinstance(parent, ForOp | scf.IfOp):
            return None
        if isinstance(parent, scf.IfOp):
            taken = inner.parent_region() is parent.true_region
            if not taken or not isinstance(parent.cond.owner, TestOp):
                return None
        elif not isinstance(parent.extent.data, int):
            return None
        nest.append(parent)
        inner, parent = parent, parent.parent_op()
    return _Site(load, tuple(nest[::-1])) if isinstance(inner, ForOp) else None


def _numbered(values: Sequence[SSAValue], counters: Sequence[SSAValue]) -> tuple[Hashable, ...]:
    """Values, with the counters of a nest by depth, so that equal nests compare equal."""
    return tuple(counters.index(v) if v in counters else v for v in values)


def _nest_key(site: _Site) -> Hashable:
    """What tells the nest of a load from others: extents, and conditions on the counters."""
    key: list[Hashable] = []
    for op in site.nest:
        if isinstance(op, ForOp):
            key.append(op.extent.data)
        else:
            test = op.cond.owner
            assert isinstance(test, TestOp)
            key.append((test.set, _numbered(test.operands_, site.counters)))
    return tuple(key)


def _key(site: _Site) -> Hashable:
    """What tells the elements that a load reads from others."""
    load = site.load
    return _nest_key(site), load.memref, load.map, _numbered(load.indices, site.counters)


def find_rows(launch: LaunchOp) -> list[list[_Site]]:
    """The loads that read the same elements in more than one sweep, together."""
    groups: dict[Hashable, list[_Site]] = {}
    loads = [op for op in ops_in(launch) if isinstance(op, LoadOp)]
    for load in [op for op in loads if not in_registers(op.memref)]:
        site = _site(load, launch)
        if site is not None and (site.trips == 1 or any(v in load.indices for v in site.counters)):
            groups.setdefault(_key(site), []).append(site)
    return [g for g in groups.values() if len({site.nest[0] for site in g}) > 1]


def _subscript(loops: Sequence[ForOp]) -> AffineExpr:
    """The place of an element in its array, over the counters of its nest."""
    place: AffineExpr = ZERO
    for depth, loop in enumerate(loops):
        place = product(place, static_extent(loop.extent.data)) + AffineExpr.dimension(depth)
    return place


def _fill_nest(site: _Site) -> tuple[Builder, list[SSAValue]]:
    """A copy of the loops and conditions around a load, before its sweep: its inside and counters."""
    builder = Builder(InsertPoint.before(site.nest[0]))
    counters: list[SSAValue] = []
    for op in site.nest:
        new: ForOp | scf.IfOp
        if isinstance(op, ForOp):
            new = ForOp(op.extent.data, Region(Block(arg_types=[IndexType()])))
            new.induction_var.name_hint = op.induction_var.name_hint
            new.attributes |= {UNROLL: UnitAttr()} | {
                key: value for key, value in op.attributes.items() if key == VECTOR
            }
            counters.append(new.induction_var)
            body = new.body.block
        else:
            test = op.cond.owner
            assert isinstance(test, TestOp)
            operands = _moved(test.operands_, site.counters, counters)
            inside = builder.insert(TestOp(test.exprs, operands))
            inside.result.name_hint = test.result.name_hint
            new = scf.IfOp(inside.result, [], Region(Block([scf.YieldOp()])))
            body = new.true_region.block
        new.location = op.location
        builder.insert(new)
        assert body.last_op is not None
        builder = Builder(InsertPoint.before(body.last_op))
    return builder, counters


def _moved(
    values: Sequence[SSAValue], old: Sequence[SSAValue], new: Sequence[SSAValue]
) -> list[SSAValue]:
    return [new[old.index(v)] if v in old else v for v in values]


def keep(rows: Sequence[list[_Site]]) -> None:
    """Let the threads read each group of elements once, into registers."""
    nests: dict[Hashable, tuple[Builder, list[SSAValue]]] = {}
    for sites in rows:
        first = sites[0]
        element, hint = first.load.result.type, first.load.memref.name_hint
        array = RegistersOp(first.trips, element)
        array.location = first.load.location
        array.result.name_hint = f"{hint or 'row'}_kept"
        nest = (first.nest[0], _nest_key(first))
        if nest not in nests:
            nests[nest] = _fill_nest(first)
        builder, counters = nests[nest]
        parent = first.nest[0].parent
        assert parent is not None and parent.first_op is not None
        parent.insert_op_before(array, parent.first_op)
        operands = _moved(first.load.indices, first.counters, counters)
        read = builder.insert(LoadOp(first.load.memref, first.load.map.data.results, operands))
        read.location = first.load.location
        read.result.name_hint = hint
        place = _subscript(first.loops)
        builder.insert(StoreOp(read.result, array.result, [place], counters))
        for site in sites:
            replace(site.load, LoadOp(array.result, [place], site.counters))
            for loop in site.loops:
                loop.attributes[UNROLL] = UnitAttr()


# --------------------------------------------------------------------------- staging


def _row_axes(site: _Site, launch: LaunchOp) -> str | list[AffineExpr]:
    """Where the row of a load begins in its buffer, or why no slab holds it."""
    load = site.load
    blocks = [
        v
        for v, a in zip(launch.body.block.args, launch.axes, strict=True)
        if a.level.data is Level.BLOCK
    ]
    *outer, _ = load.map.data.results
    used = {load.indices[d] for expr in outer for d in expr.used_dims()}
    if not used <= set(blocks):
        return "the threads of a block read several rows"
    assert isinstance(load.memref.type, MemRefType)
    if not isinstance(shape_of(load.memref.type)[-1], int):
        return "the length of a row is not known"
    return [*outer, ZERO]


def stage(rows: Sequence[list[_Site]], launch: LaunchOp, target: Target) -> str | int:
    """Let the block copy each row to its scratchpad; gives the bytes, or why not."""
    origins: list[list[AffineExpr]] = []
    size = 0
    for sites in rows:
        origin = _row_axes(sites[0], launch)
        if isinstance(origin, str):
            return origin
        origins.append(origin)
        memref = sites[0].load.memref.type
        assert isinstance(memref, MemRefType)
        size += static_extent(shape_of(memref)[-1]) * storage_bytes(memref.element_type)
    most = target.block_shared_bytes - SPARE_BYTES
    if size > most:
        return f"rows of {size} bytes exceed the {most} of a block's scratchpad"
    copies: dict[Hashable, StageOp] = {}
    for sites, origin in zip(rows, origins, strict=True):
        load = sites[0].load
        key = (load.memref, tuple(origin), tuple(load.indices))
        if key not in copies:
            assert isinstance(load.memref.type, MemRefType)
            length = static_extent(shape_of(load.memref.type)[-1])
            copies[key] = copy = StageOp(load.memref, origin, list(load.indices), [length])
            copy.location = load.location
            copy.slab.name_hint = f"{load.memref.name_hint or 'row'}_smem"
            first = sites[0].nest[0]
            assert first.parent is not None
            first.parent.insert_op_before(copy, first)
        for site in sites:
            position = [site.load.map.data.results[-1]]
            replace(site.load, LoadOp(copies[key].slab, position, list(site.load.indices)))
    return size


def _keeps_in(launch: LaunchOp) -> Kept | None:
    """Where the schedule wants rows kept, if it says so."""
    word = None if launch.schedule is None else launch.schedule.word("keep")
    return None if word is None else Kept(word)


@dataclass(frozen=True)
class KeepRowsPass(ModulePass):
    """Keep what several sweeps of a launch read in registers, or if asked in the scratchpad."""

    name = "keep-rows"

    target: str = "sm_90a"
    stage: bool = False
    """Keep the rows in the scratchpad, not in registers."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        target = get_gpu(self.target)
        for kernel, launch in launches_of(op):
            staged = self.stage or _keeps_in(launch) is Kept.SHARED
            reason = self._apply(launch, staged, target)
            fired = isinstance(reason, int)
            if fired:
                where = "bytes of the scratchpad" if staged else "registers"
                reason = f"rows are kept in {reason} {where}"
            record(self.name, kernel.sym_name.data, fired, str(reason), launch)

    def _apply(self, launch: LaunchOp, staged: bool, target: Target) -> str | int:
        """Keep the rows of a launch; gives in how many registers or bytes, or why not."""
        if launch.schedule is None or launch.schedule.get("threads") is None:
            return "its threads do not share sweeps"
        if _keeps_in(launch) is Kept.NOWHERE:
            return "the schedule keeps nothing"
        rows = find_rows(launch)
        if not rows:
            return "no element is read by more than one sweep"
        if staged:
            return stage(rows, launch, target)
        threads = static_extent(launch.num_threads)
        spare = min(MOST_KEPT, REGISTER_FILE // threads // 2)
        needed = sum(sites[0].registers for sites in rows)
        if needed > spare:
            return f"rows need {needed} registers of a thread, which can spare {spare}"
        keep(rows)
        return needed
