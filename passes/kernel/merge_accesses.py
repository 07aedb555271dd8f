"""`merge-accesses`: neighbours that a thread loads or stores one by one go through memory at once.

    %a = loop.load %x[%row, %lane * 2] : memref<32x64xbf16>
    %b = loop.load %x[%row, %lane * 2 + 1] : memref<32x64xbf16>
    ...
    loop.store %c, %y[%row, %lane * 2] : memref<32x64xf32>
    %e = math.exp %d : f32
    loop.store %e, %y[%row, %lane * 2 + 1] : memref<32x64xf32>
becomes
    %a, %b = kernel.vector_load %x[%row, %lane * 2] : memref<32x64xbf16> -> bf16, bf16
    ...
    %e = math.exp %d : f32
    kernel.vector_store %c, %e to %y[%row, %lane * 2] : f32, f32 to memref<32x64xf32>

So threads store what tensor cores leave them, two columns of each eight, and load the rows they multiply.
ptxas does not do it: it knows no alignment. The accesses are of one array of global memory, stand in one
block, and their indices differ by constants. A vector is loaded where the first of its elements was, stored
where the last was; nothing in between writes what is loaded, or touches what is stored. No two arguments of
a kernel of which one is written share memory (`__restrict__` in CUDA). Barriers, copies that run while
threads compute, and whatever has a body end the search. An element that is loaded twice is, the second time,
on its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint
from xdsl.utils.exceptions import VerifyException

from ...analysis.index import Range, simplify, value_range
from ...dialects.alignment import verify_aligned
from ...dialects.inside import ops_in
from ...dialects.kernel import BarrierOp, FuncOp, VectorLoadOp, VectorStoreOp
from ...dialects.kernel_vector import MAX_VECTOR_BYTES, WIDTHS
from ...dialects.loop import LoadOp, StoreOp
from ...dialects.scalars import storage_bytes
from ...index.affine import split_constant
from ..decisions import record
from .elide_barriers import touched

Access: TypeAlias = LoadOp | StoreOp

Base: TypeAlias = tuple[SSAValue, tuple[SSAValue, ...], tuple[AffineExpr, ...]]
"""An array, and an index into it without its constants."""

Offsets: TypeAlias = tuple[int, ...]
"""The constants of an index, an axis each."""


@dataclass(frozen=True)
class _Element:
    """An access among those around it."""

    op: Access
    number: int
    """Of the operation, in its block."""
    exprs: tuple[AffineExpr, ...]


@dataclass
class _Open:
    """The accesses of one array, all of them loads or all stores, that more may join."""

    kind: type[Access]
    elements: dict[Base, dict[Offsets, _Element]] = field(
        default_factory=dict[Base, dict[Offsets, _Element]]
    )


@dataclass
class _Tally:
    """What became of a kernel's accesses."""

    merged: int = 0
    loads: int = 0
    stores: int = 0
    widths: set[int] = field(default_factory=set[int])
    unaligned: bool = False
    """Some neighbours are no aligned vector."""
    apart: bool = False
    """Between some neighbours stands what they cannot be moved across."""

    @property
    def reason(self) -> str:
        """What was done, or why nothing was."""
        if self.merged:
            widths = " or ".join(map(str, sorted(self.widths)))
            return (
                f"{self.merged} accesses become {self.loads} loads and {self.stores} stores "
                f"of {widths} elements"
            )
        if self.unaligned:
            return "the neighbours are not aligned vectors"
        if self.apart:
            return "what stands between neighbours touches their memory, or waits"
        return "no block accesses neighbours in global memory one by one"


@dataclass
class _Block:
    """The accesses of a block, in one sweep over it."""

    tally: _Tally
    ranges: dict[SSAValue, Range]
    open: dict[SSAValue, _Open] = field(default_factory=dict[SSAValue, _Open])
    closed: dict[tuple[Base, type[Access]], set[Offsets]] = field(
        default_factory=dict[tuple[Base, type[Access]], set[Offsets]]
    )

    def sweep(self, block: Block) -> None:
        """Merge what can be merged."""
        if not _may_merge(block):
            return
        for number, op in enumerate(list(block.ops)):
            if isinstance(op, Access) and _is_global(op.memref):
                self._add(op, number)
            elif self.open:
                self._close_for(op)
        self._close_all()

    def _close_for(self, op: Operation) -> None:
        """End what must not be moved across `op`."""
        if op.regions or isinstance(op, BarrierOp):
            self._close_all()
            return
        effect = touched(op)
        if effect.everything:
            self._close_all()
        for memref in effect.reads | effect.writes:
            found = self.open.get(memref)
            if found is not None and (memref in effect.writes or found.kind is StoreOp):
                self._close(memref)

    def _add(self, op: Access, number: int) -> None:
        exprs = self._simplified(op)
        parts = [split_constant(expr) for expr in exprs]
        base = (op.memref, tuple(op.indices), tuple(base for base, _ in parts))
        offsets = tuple(offset for _, offset in parts)
        kind = type(op)
        found = self.open.get(op.memref)
        if found is not None and not self._joins(found, kind, base, offsets):
            self._close(op.memref)
            found = None
        if found is None:
            found = self.open[op.memref] = _Open(kind)
        found.elements.setdefault(base, {}).setdefault(offsets, _Element(op, number, exprs))
        before = self.closed.get((base, kind), ())
        *outer, last = offsets
        self.tally.apart |= any((*outer, near) in before for near in (last - 1, last + 1))

    @staticmethod
    def _joins(found: _Open, kind: type[Access], base: Base, offsets: Offsets) -> bool:
        """Whether an access may change places with those of its array that are open.

        Stores may if their indices differ by constants, and not only by zeros.
        """
        if found.kind is not kind:
            return False
        return kind is LoadOp or (base in found.elements and offsets not in found.elements[base])

    def _simplified(self, op: Access) -> tuple[AffineExpr, ...]:
        ranges: list[Range] = []
        for value in op.indices:
            if value not in self.ranges:
                self.ranges[value] = value_range(value)
            ranges.append(self.ranges[value])
        return tuple(simplify(expr, ranges) for expr in op.map.data.results)

    def _close_all(self) -> None:
        for memref in list(self.open):
            self._close(memref)

    def _close(self, memref: SSAValue) -> None:
        found = self.open.pop(memref)
        for base, elements in found.elements.items():
            self.closed.setdefault((base, found.kind), set()).update(elements)
            for vector in self._vectors(elements):
                self.tally.merged += len(vector)
                self.tally.widths.add(len(vector))
                if found.kind is LoadOp:
                    self.tally.loads += 1
                    _load(vector)
                else:
                    self.tally.stores += 1
                    _store(vector)

    def _vectors(self, elements: dict[Offsets, _Element]) -> Iterator[list[_Element]]:
        """The vectors among accesses of one base, as wide as can be."""
        order = sorted(elements)
        start = 0
        while start < len(order):
            row = [elements[order[start]]]
            *outer, last = order[start]
            while len(row) < max(WIDTHS) and (*outer, last + len(row)) in elements:
                row.append(elements[*outer, last + len(row)])
            width = _width(row)
            self.tally.unaligned |= width == 1 < len(row)
            if width > 1:
                yield row[:width]
            start += width


def _may_merge(block: Block) -> bool:
    """Whether a block loads from an array of global memory more than once, or stores to one."""
    seen: set[tuple[type[Access], SSAValue]] = set()
    for op in block.ops:
        if isinstance(op, Access) and _is_global(op.memref):
            if (type(op), op.memref) in seen:
                return True
            seen.add((type(op), op.memref))
    return False


def _is_global(memref: SSAValue) -> bool:
    """Whether a memref is an argument of the kernel, with rows."""
    if not isinstance(memref, BlockArgument) or not isinstance(memref.type, MemRefType):
        return False
    return memref.type.get_num_dims() > 0


def _width(row: list[_Element]) -> int:
    """How many accesses of neighbours, from the first on, are an aligned vector."""
    first = row[0]
    memref = first.op.memref.type
    assert isinstance(memref, MemRefType)
    most = min(len(row), MAX_VECTOR_BYTES // storage_bytes(memref.element_type))
    for width in sorted(WIDTHS, reverse=True):
        if width > most:
            continue
        try:
            verify_aligned(first.exprs, first.op.indices, memref, width)
        except VerifyException:
            continue
        return width
    return 1


def _load(vector: list[_Element]) -> None:
    """Load a vector where the first of its elements was loaded."""
    lowest, place = vector[0], min(vector, key=lambda element: element.number).op
    loads = [element.op for element in vector if isinstance(element.op, LoadOp)]
    types = [load.result.type for load in loads]
    new = VectorLoadOp(place.memref, (list(lowest.exprs), list(place.indices)), types)
    new.location = place.location
    Builder(InsertPoint.before(place)).insert(new)
    for load, value in zip(loads, new.values, strict=True):
        value.name_hint = load.result.name_hint
        load.result.replace_all_uses_with(value)
        _erase(load)


def _store(vector: list[_Element]) -> None:
    """Store a vector where the last of its elements was stored."""
    lowest, place = vector[0], max(vector, key=lambda element: element.number).op
    stores = [element.op for element in vector if isinstance(element.op, StoreOp)]
    index = (list(lowest.exprs), list(place.indices))
    new = VectorStoreOp([store.value for store in stores], place.memref, index)
    new.location = place.location
    Builder(InsertPoint.before(place)).insert(new)
    for store in stores:
        _erase(store)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


def merge_accesses(function: FuncOp) -> _Tally:
    """Merge the accesses of neighbours in a kernel."""
    tally, ranges = _Tally(), dict[SSAValue, Range]()
    blocks = [block for op in ops_in(function) for region in op.regions for block in region.blocks]
    for block in blocks:
        _Block(tally, ranges).sweep(block)
    return tally


@dataclass(frozen=True)
class MergeAccessesPass(ModulePass):
    """Load and store at once what threads load or store of neighbours one by one."""

    name = "merge-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            tally = merge_accesses(function)
            record(self.name, function.sym_name.data, tally.merged > 0, tally.reason, function)
