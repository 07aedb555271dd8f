"""`stage`: elements that several sweeps of a launch read are read once, and kept nearer.

    %s = ... loop.for %k = 0 to 8 reduce(add) -> f32 { ... %x[%row, %k * 256 + %lane] ... }
    loop.for %j = 0 to 8 { ... %x[%row, %j * 256 + %lane] ... }
becomes, by `stage{of=x to=registers}`,
    %x_kept = loop.registers : memref<8xf32, "registers">
    loop.for %k = 0 to 8 { ... loop.store %x[%row, %k * 256 + %lane], %x_kept[%k] } attributes {unroll}
    %s = ... loop.for %k = 0 to 8 reduce(add) -> f32 { ... %x_kept[%k] ... }
    loop.for %j = 0 to 8 { ... %x_kept[%j] ... }

Registers have no addresses, so the loops around such a load are to be unrolled. With `to=shared` the block
copies the row to its shared memory (`tile.stage`) instead; it must have one row. Without `of`, all elements
are kept that several sweeps read; of a contraction in chunks (`split`), the operands of each chunk. Where
nothing is reduced, `to=shared` copies what a block reads of the arrays (`stage_tiles.py` shows both). The
pass declines launches in which there are no such elements.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from math import prod
from typing import ClassVar

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint

from ...analysis.vectors import VECTOR
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, LoadOp, RegistersOp, StoreOp, TestOp
from ...dialects.loop_access import MAX_REGISTERS, in_registers
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import shape_of, static_extent
from ...dialects.tile import LaunchOp, Level, StageOp
from ...index.affine import ZERO, product
from ..replacing import replace
from ..tile.mark_unroll import UNROLL
from ..tile.named_axes import INDEX
from .primitive import Primitive, check_word
from .stage_tiles import array_names, copy_chunks, copy_tiles, find_staging, has_chunks, loads_of

REGISTER_BYTES = 4

PLACES = ("registers", "shared")
"""Where elements may be kept."""


@dataclass(frozen=True)
class Site:
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


def _site(load: LoadOp, launch: LaunchOp) -> Site | None:
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
    return Site(load, tuple(nest[::-1])) if isinstance(inner, ForOp) else None


def _numbered(values: Sequence[SSAValue], counters: Sequence[SSAValue]) -> tuple[Hashable, ...]:
    """Values, with the counters of a nest by depth, so that equal nests compare equal."""
    return tuple(counters.index(v) if v in counters else v for v in values)


def _nest_key(site: Site) -> Hashable:
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


def _key(site: Site) -> Hashable:
    """What tells the elements that a load reads from others."""
    load = site.load
    return _nest_key(site), load.memref, load.map, _numbered(load.indices, site.counters)


def find_rows(launch: LaunchOp) -> list[list[Site]]:
    """The loads that read the same elements in more than one sweep, together."""
    groups: dict[Hashable, list[Site]] = {}
    loads = ops_of(launch, LoadOp)
    for load in [op for op in loads if not in_registers(op.memref)]:
        site = _site(load, launch)
        if site is None or not site.trips:
            continue
        if site.trips == 1 or any(v in load.indices for v in site.counters):
            groups.setdefault(_key(site), []).append(site)
    return [g for g in groups.values() if len({site.nest[0] for site in g}) > 1]


def has_sweeps(launch: LaunchOp) -> bool:
    """Whether a launch reduces something."""
    return any(isinstance(op, ForOp) and op.res for op in ops_in(launch))


def _subscript(loops: Sequence[ForOp]) -> AffineExpr:
    """The place of an element in its array, over the counters of its nest."""
    place: AffineExpr = ZERO
    for depth, loop in enumerate(loops):
        place = product(place, static_extent(loop.extent.data)) + AffineExpr.dimension(depth)
    return place


def _fill_nest(site: Site) -> tuple[Builder, list[SSAValue]]:
    """A copy of the loops and conditions around a load, before its sweep: its inside and counters."""
    builder = Builder(InsertPoint.before(site.nest[0]))
    counters: list[SSAValue] = []
    for op in site.nest:
        new: ForOp | scf.IfOp
        if isinstance(op, ForOp):
            new = ForOp(op.extent.data, Region(Block(arg_types=[INDEX])))
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


def keep(rows: Sequence[list[Site]]) -> None:
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


def _row_axes(site: Site, launch: LaunchOp) -> str | list[AffineExpr]:
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


def bytes_of_rows(rows: Sequence[list[Site]], launch: LaunchOp) -> int | str:
    """Bytes of the rows that a block would copy, or why it cannot."""
    size = 0
    for sites in rows:
        if isinstance(origin := _row_axes(sites[0], launch), str):
            return origin
        size += _length(sites[0]) * storage_bytes(sites[0].load.result.type)
    return size


def _length(site: Site) -> int:
    """Elements of the row that a load reads."""
    assert isinstance(site.load.memref.type, MemRefType)
    return static_extent(shape_of(site.load.memref.type)[-1])


def copy_rows(rows: Sequence[list[Site]], launch: LaunchOp) -> str | None:
    """Let the block copy each row to its shared memory; gives why not."""
    if isinstance(size := bytes_of_rows(rows, launch), str):
        return size
    copies: dict[Hashable, StageOp] = {}
    for sites in rows:
        load, origin = sites[0].load, _row_axes(sites[0], launch)
        assert not isinstance(origin, str)
        key = (load.memref, tuple(origin), tuple(load.indices))
        if key not in copies:
            copy = StageOp(load.memref, origin, list(load.indices), [_length(sites[0])])
            copies[key] = copy
            copy.location = load.location
            copy.slab.name_hint = f"{load.memref.name_hint or 'row'}_smem"
            first = sites[0].nest[0]
            assert first.parent is not None
            first.parent.insert_op_before(copy, first)
        for site in sites:
            position = [site.load.map.data.results[-1]]
            replace(site.load, LoadOp(copies[key].slab, position, list(site.load.indices)))
    return None


@dataclass(frozen=True)
class StagePass(Primitive):
    """Keep what several sweeps read. Raises UsageError for another place."""

    name = "stage"
    rewrites_axes: ClassVar[bool] = False

    of: tuple[str, ...] = ()
    """The arrays of which elements are kept, by name."""
    to: str = ""
    """Where they are kept: registers or shared."""

    def __post_init__(self):
        check_word("to", self.to, PLACES)

    @property
    def done(self) -> str:
        """What is kept where."""
        kept = " and ".join(self.of) or "what several sweeps read"
        return f"{kept} {'are' if len(self.of) > 1 else 'is'} kept in {self.to}"

    def change(self, launch: LaunchOp) -> str | None:
        """Keep the elements; gives why not."""
        if self.to == "shared" and not self.of and has_chunks(launch):
            if isinstance(found := find_staging(launch), str):
                return found
            copy_chunks(found)
            return None
        rows, names = find_rows(launch), array_names(launch)
        named = [s for s in rows if not self.of or names.get(s[0].load.memref) in self.of]
        tiles = [load for load in loads_of(launch) if names.get(load.memref) in self.of]
        if not named and tiles and self.to == "shared" and not has_sweeps(launch):
            return copy_tiles(tiles, launch)
        if not named:
            wanted = f"of {' or '.join(self.of)} " if self.of else ""
            others = dict.fromkeys(names.get(sites[0].load.memref, "") for sites in rows)
            there = f"; elements of {' and '.join(others)} are" if rows else ""
            return f"no element {wanted}is read by more than one sweep{there}"
        if self.to == "registers":
            if (longest := max(sites[0].trips for sites in named)) > MAX_REGISTERS:
                return f"a thread would keep {longest} elements of a row, {MAX_REGISTERS} at most"
            keep(named)
            return None
        return copy_rows(named, launch)
