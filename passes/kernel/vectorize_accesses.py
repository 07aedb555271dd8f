"""`vectorize-accesses`: a loop over neighbours loads and stores them all at once.

    scf.for %e = %c0 to %c4 step %c1 {
      %v = loop.load %x[%row, %lane * 4 + %e] : memref<32x2048xf32>
      ...
      loop.store %w, %y[%row, %lane * 4 + %e] : memref<32x2048xf32>
    } {vector}
becomes
    %x_vector = loop.registers : memref<4xf32, "registers">
    %a, %b, %c, %d = kernel.vector_load %x[%row, %lane * 4] : memref<32x2048xf32> -> f32, f32, f32, f32
    loop.store %a, %x_vector[0] ...                                      // and the other three
    scf.for %e = %c0 to %c4 step %c1 {
      %v = loop.load %x_vector[%e] : memref<4xf32, "registers">
      ...
      loop.store %w, %y_vector[%e] : memref<4xf32, "registers">
    } {unroll}
    %s = loop.load %y_vector[0] ...
    kernel.vector_store %s, %t, %u, %v to %y[%row, %lane * 4] : ...

The passes that made the loop have seen to it that the accesses are whole, aligned vectors; here that is
proven once more, and an access that is not stays as it is. What goes on to registers anyway, as `keep-rows`
has it, goes there at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint

from ...analysis.index import known_extent, operand_ranges, simplify
from ...analysis.vectors import VECTOR, is_unit_stride, is_vector
from ...dialects.inside import ops_in
from ...dialects.kernel import FuncOp, VectorLoadOp, VectorStoreOp
from ...dialects.kernel_vector import WIDTHS
from ...dialects.loop import LoadOp, RegistersOp, StoreOp
from ...dialects.loop_access import REGISTERS
from ...dialects.tile import SHARED
from ...index.affine import replace_dims
from ..decisions import record

UNROLL = "unroll"

Access = LoadOp | StoreOp


@dataclass(frozen=True)
class _Neighbours:
    """A loop over neighbours, and how many there are."""

    loop: scf.ForOp
    width: int

    @property
    def counter(self) -> SSAValue:
        """What it counts."""
        return self.loop.body.block.args[0]

    def at(self, op: Access, position: int) -> list[AffineExpr]:
        """The index of an access in one iteration."""
        dims: list[AffineExpr] = [
            AffineExpr.constant(position) if v is self.counter else AffineExpr.dimension(i)
            for i, v in enumerate(op.indices)
        ]
        ranges = operand_ranges(op.indices)
        return [simplify(replace_dims(e, dims), ranges) for e in op.map.data.results]

    def is_vector(self, op: Operation) -> bool:
        """Whether the iterations together access a vector of global memory."""
        if not isinstance(op, Access) or self.counter not in op.indices:
            return False
        if any(self.loop.is_ancestor(v.owner) for v in op.indices if v is not self.counter):
            return False  # the vector is accessed outside the loop, where that index does not exist
        type = op.memref.type
        assert isinstance(type, MemRefType)
        if type.memory_space in (SHARED, REGISTERS):
            return False
        return is_vector(op, self.counter, self.width)

    def array(self, op: Access, memref: SSAValue) -> SSAValue:
        """An array of registers for the elements of an access."""
        type = memref.type
        assert isinstance(type, MemRefType)
        new = RegistersOp(self.width, type.element_type)
        _put(new, op, InsertPoint.before(self.loop))
        new.result.name_hint = f"{memref.name_hint or 'memory'}_vector"
        return new.result


def find_neighbours(function: FuncOp) -> list[_Neighbours]:
    """The loops over neighbours of a kernel."""
    loops = [o for o in ops_in(function) if isinstance(o, scf.ForOp) and VECTOR in o.attributes]
    found: list[_Neighbours] = []
    for loop in loops:
        width = known_extent(loop.ub)
        if isinstance(width, int) and width in WIDTHS and known_extent(loop.lb) == 0:
            found.append(_Neighbours(loop, width))
    return found


def vectorize(neighbours: _Neighbours) -> tuple[int, int]:
    """Load and store at once what can be; gives how many loads and stores there are now."""
    loop = neighbours.loop
    vectors = [op for op in loop.body.block.ops if neighbours.is_vector(op)]
    for op in vectors:
        if isinstance(op, LoadOp):
            _load(neighbours, op)
        elif isinstance(op, StoreOp):
            _store(neighbours, op)
    loads = sum(isinstance(op, LoadOp) for op in vectors)
    del loop.attributes[VECTOR]
    if not loop.res and len(list(loop.body.block.ops)) == 1:
        loop.detach()
        loop.erase()
    else:
        loop.attributes[UNROLL] = UnitAttr()
    return loads, len(vectors) - loads


def _load(neighbours: _Neighbours, op: LoadOp) -> None:
    before = InsertPoint.before(neighbours.loop)
    types = [op.result.type] * neighbours.width
    vector = VectorLoadOp(op.memref, (neighbours.at(op, 0), list(op.indices)), types)
    copies = _copies(neighbours, op)
    array = None if copies else neighbours.array(op, op.memref)
    _put(vector, op, before)
    for position, value in enumerate(vector.values):
        value.name_hint = op.result.name_hint
        if array is not None:
            _put(StoreOp(value, array, [AffineExpr.constant(position)], []), op, before)
        for copy in copies:
            index = neighbours.at(copy, position)
            _put(StoreOp(value, copy.memref, index, list(copy.indices)), copy, before)
    for copy in copies:
        _erase(copy)
    if array is not None:
        new = LoadOp(array, [AffineExpr.dimension(0)], [neighbours.counter])
        _put(new, op, InsertPoint.before(op))
        new.result.name_hint = op.result.name_hint
        op.result.replace_all_uses_with(new.result)
    _erase(op)


def _copies(neighbours: _Neighbours, op: LoadOp) -> list[StoreOp]:
    """The stores to arrays of registers that are all that becomes of a loaded element; else none."""
    uses = [use.operation for use in op.result.uses]
    copies = [
        use
        for use in uses
        if isinstance(use, StoreOp)
        and use.parent is op.parent
        and isinstance(use.memref.owner, RegistersOp)
        and is_unit_stride(use, neighbours.counter, neighbours.width)
    ]
    return copies if len(copies) == len(uses) else []


def _store(neighbours: _Neighbours, op: StoreOp) -> None:
    array = neighbours.array(op, op.memref)
    inner = StoreOp(op.value, array, [AffineExpr.dimension(0)], [neighbours.counter])
    _put(inner, op, InsertPoint.before(op))
    after = Builder(InsertPoint.after(neighbours.loop))
    values: list[SSAValue] = []
    for position in range(neighbours.width):
        value = after.insert(LoadOp(array, [AffineExpr.constant(position)], []))
        value.location = op.location
        value.result.name_hint = op.value.name_hint
        values.append(value.result)
    vector = VectorStoreOp(values, op.memref, (neighbours.at(op, 0), list(op.indices)))
    vector.location = op.location
    after.insert(vector)
    _erase(op)


def _put(new: Operation, like: Operation, where: InsertPoint) -> None:
    new.location = like.location
    Builder(where).insert(new)


def _erase(op: Operation) -> None:
    op.detach()
    op.erase()


@dataclass(frozen=True)
class VectorizeAccessesPass(ModulePass):
    """Turn the loads and stores of loops over neighbours into vector accesses."""

    name = "vectorize-accesses"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in [o for o in op.body.block.ops if isinstance(o, FuncOp)]:
            fired, reason = _apply(find_neighbours(function))
            record(self.name, function.sym_name.data, fired, reason, function)


def _apply(found: Sequence[_Neighbours]) -> tuple[bool, str]:
    if not found:
        return False, "no loop runs over neighbours"
    loads = stores = 0
    for neighbours in found:
        more = vectorize(neighbours)
        loads, stores = loads + more[0], stores + more[1]
    if not loads + stores:
        return False, "the neighbours are not aligned vectors of global memory"
    widths = " or ".join(sorted({str(neighbours.width) for neighbours in found}))
    return True, f"{loads} loads and {stores} stores of {widths} elements"
