"""What Tensor, Loop and Tile IR promise about their accesses, proven from index expressions, at all sizes.

    in-bounds     an access stays inside of its array
    stored-once   each element of each output of a kernel is stored, and by one iteration
    race-free     threads of a kernel that touch one element, one of them storing, are in order

`open_promises` gives those that are not proven here, which says nothing against them: of a program whose
sizes are numbers the interpreter may decide them (`interpreter/promises.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.index_map import IndexMapOp
from ..dialects.loop import AccumulateOp, ForOp, IndexOp, KernelOp, LoadOp, StoreOp, TestOp
from ..dialects.loop_transpose import TransposeOp
from ..dialects.sizes import Extent, extent_expr, is_at_most, shape_of
from ..dialects.syntax import tensor_type
from ..dialects.tile import LaunchOp
from ..index.affine import condition_exprs, replace_dims
from .conditions import terms
from .divergence import diverging
from .index import Range, always_holds, extent_range, simplify, value_range


class Promise(StrEnum):
    """Something that an IR promises and its verifier does not look for."""

    IN_BOUNDS = "in-bounds"
    STORED_ONCE = "stored-once"
    RACE_FREE = "race-free"


@dataclass(frozen=True)
class Open:
    """A promise that is not proven, the kernel or index_map that makes it, and where it does."""

    promise: Promise
    op: Operation
    reason: str


Access = LoadOp | StoreOp | AccumulateOp | TransposeOp
"""Operations of a loop nest that must stay inside of an array."""


@dataclass
class _Nest:
    """The loops and conditions around an operation."""

    counters: list[BlockArgument] = field(default_factory=list[BlockArgument])
    guards: list[AffineExpr] = field(default_factory=list[AffineExpr])
    """Expressions that are at least 0 where the operation is executed."""
    folded: bool = False
    """Whether one of the loops is a reduction, or one of the conditions is not known."""

    def inside(
        self, *, counters: Sequence[BlockArgument] = (), guards: Sequence[AffineExpr] = ()
    ) -> _Nest:
        """The nest with more loops and conditions."""
        return _Nest([*self.counters, *counters], [*self.guards, *guards], self.folded)


class _Space:
    """The values that indices of one kernel are made of, as the dims of one space."""

    def __init__(self) -> None:
        self._position: dict[SSAValue, int] = {}
        self.ranges: list[Range] = []

    @property
    def values(self) -> list[SSAValue]:
        """The value that each dim is."""
        return list(self._position)

    def expr(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> AffineExpr:
        """An expression over operands as one over the space; an index that is computed is put in."""
        return replace_dims(expr, [self.value(each) for each in operands])

    def value(self, value: SSAValue) -> AffineExpr:
        """A value as an expression over the space."""
        if isinstance(op := value.owner, IndexOp):
            return self.expr(op.map.data.results[0], op.operands_)
        if value not in self._position:
            self._position[value] = len(self.ranges)
            self.ranges.append(value_range(value))
        return AffineExpr.dimension(self._position[value])

    def holds(self, expr: AffineExpr, guards: Sequence[AffineExpr]) -> bool:
        """Whether an expression is at least 0, alone or since it is no less than one of the guards."""
        if always_holds(simplify(expr, self.ranges), self.ranges):
            return True
        return any(
            always_holds(simplify(expr + guard * -1, self.ranges), self.ranges) for guard in guards
        )

    def within(self, index: AffineExpr, extent: Extent, guards: Sequence[AffineExpr]) -> bool:
        """Whether an index is one of an axis."""
        last = extent_expr(extent) + -1
        return self.holds(index, guards) and self.holds(last + index * -1, guards)


def open_promises(op: KernelOp | IndexMapOp) -> list[Open]:
    """The promises of an operation that index expressions alone do not prove."""
    return _of_index_map(op) if isinstance(op, IndexMapOp) else _of_kernel(op)


def _of_index_map(op: IndexMapOp) -> list[Open]:
    ranges = [extent_range(extent) for extent in shape_of(tensor_type(op.result))]
    space = _Space()
    space.ranges = ranges
    for source, index_map, condition in zip(op.sources, op.maps, op.conditions, strict=True):
        guards = condition_exprs(condition.data)
        shape = shape_of(tensor_type(source))
        for axis, (expr, extent) in enumerate(zip(index_map.data.results, shape, strict=True)):
            if not space.within(expr, extent, guards):
                return [Open(Promise.IN_BOUNDS, op, f"axis {axis}, whose extent is {extent}")]
    return []


def _of_kernel(kernel: KernelOp) -> list[Open]:
    space, found = _Space(), list[Open]()
    stores: dict[SSAValue, list[tuple[StoreOp, _Nest]]] = {}
    summed: set[SSAValue] = set()
    for op, nest in _accesses(kernel.body.block, _Nest(), space):
        if axis := _outside(op, nest, space):
            found.append(Open(Promise.IN_BOUNDS, kernel, axis))
        if isinstance(op, StoreOp):
            stores.setdefault(op.memref, []).append((op, nest))
        elif isinstance(op, AccumulateOp):
            summed.add(op.memref)
    for output in kernel.output_args:
        if output not in summed and not _is_covered(output, stores.get(output, []), space):
            found.append(Open(Promise.STORED_ONCE, kernel, f"output #{_number(kernel, output)}"))
    for each in diverging(kernel):
        reason = f"some threads of a block may not reach '{each.name}'"
        found.append(Open(Promise.RACE_FREE, kernel, reason))
    return found


def _number(kernel: KernelOp, output: BlockArgument) -> int:
    return output.index - len(kernel.inputs)


def _accesses(block: Block, nest: _Nest, space: _Space) -> Iterator[tuple[Access, _Nest]]:
    """Each access in a block with the loops and conditions around it."""
    for op in block.ops:
        match op:
            case LoadOp() | StoreOp() | AccumulateOp() | TransposeOp():
                yield op, nest
            case ForOp():
                inner = nest.inside(counters=op.body.block.args)
                inner.folded |= bool(op.res)
                if op.limit is not None:
                    last = space.expr(op.limit, op.limit_operands) + -1
                    inner.guards.append(last + space.value(op.induction_var) * -1)
                yield from _accesses(op.body.block, inner, space)
            case LaunchOp():
                yield from _accesses(op.body.block, nest.inside(counters=op.body.block.args), space)
            case scf.IfOp():
                yield from _accesses_of_if(op, nest, space)
            case _:
                for region in op.regions:
                    inner = nest.inside()
                    inner.folded = True
                    for each in region.blocks:
                        yield from _accesses(each, inner, space)


def _accesses_of_if(op: scf.IfOp, nest: _Nest, space: _Space) -> Iterator[tuple[Access, _Nest]]:
    test = op.cond.owner
    tests = [space.expr(e, test.operands_) for e in test.exprs] if isinstance(test, TestOp) else []
    # What fails is known of one condition alone: e >= 0 fails where -e - 1 >= 0.
    fails = [tests[0] * -1 + -1] if len(tests) == 1 else []
    for guards, region in ((tests, op.true_region), (fails, op.false_region)):
        inner = nest.inside(guards=guards)
        inner.folded |= not guards
        for block in region.blocks:
            yield from _accesses(block, inner, space)


def _outside(op: Access, nest: _Nest, space: _Space) -> str:
    """The first axis that an access is not proven to stay on; empty if there is none."""
    array = op.source if isinstance(op, TransposeOp) else op.memref
    operands = op.origin if isinstance(op, TransposeOp) else op.indices
    assert isinstance(array.type, MemRefType)
    shape = shape_of(array.type)
    for axis, (expr, extent) in enumerate(zip(op.map.data.results, shape, strict=True)):
        index = space.expr(expr, operands)
        last = index + op.reach(axis) if isinstance(op, TransposeOp) else index
        if not all(space.within(each, extent, nest.guards) for each in {index, last}):
            return f"axis {axis} of '{op.name}', whose extent is {extent}"
    return ""


def _is_covered(
    output: BlockArgument, stores: Sequence[tuple[StoreOp, _Nest]], space: _Space
) -> bool:
    """Whether one store writes each element of an output in one iteration of the loops around it.

    Its index along each axis has counters as digits, as in `%b * 32 + %t`, and each counter is a digit once.
    Digits that go beyond the axis are cut off by a guard.
    """
    if len(stores) != 1 or stores[0][1].folded:
        return False
    (store, nest), needed = stores[0], 0
    assert isinstance(output.type, MemRefType)
    digits: list[SSAValue] = []
    for expr, extent in zip(store.map.data.results, shape_of(output.type), strict=True):
        index = space.expr(expr, store.indices)
        if (axis := _digits(index, space)) is None:
            return False
        digits += axis
        reach = _reach(axis)
        guard = simplify(extent_expr(extent) + -1 + index * -1, space.ranges)
        if any(simplify(each, space.ranges) == guard for each in nest.guards):
            needed += 1
            if not is_at_most(extent, reach):
                return False
        elif extent != reach:
            return False
    moving = {each for each in nest.counters if _extent(each) != 1}
    told = [g for g in nest.guards if not always_holds(simplify(g, space.ranges), space.ranges)]
    return len(told) <= needed and len(digits) == len(set(digits)) and moving == set(digits)


def _digits(index: AffineExpr, space: _Space) -> list[SSAValue] | None:
    """The counters of which an index is made as a number of its digits, the last one first; else None."""
    if (sum_ := terms(index, space.values)) is None or sum_[1]:
        return None
    found: list[SSAValue] = []
    for value, factor in sorted(sum_[0].items(), key=lambda term: term[1]):
        if not isinstance(value, BlockArgument) or factor != _reach(found):
            return None
        if (extent := _extent(value)) is None:
            return None
        if extent != 1:
            found.append(value)
    return found


def _reach(digits: Sequence[SSAValue]) -> Extent:
    """How many numbers some digits make."""
    total: Extent = 1
    for each in digits:
        extent = _extent(each)
        assert extent is not None
        total = total * extent
    return total


def _extent(counter: SSAValue) -> Extent | None:
    """The extent of a counter of a loop or of an axis of a launch."""
    if not isinstance(counter, BlockArgument):
        return None
    match counter.block.parent_op():
        case ForOp() as op:
            return op.extent.data
        case LaunchOp() as op if (axis := op.axis_of(counter)) is not None:
            return axis.extent.data
        case _:
            return None
