"""What a kernel computes at a point, as a term over its inputs: for questions that span several kernels.

    tile.launch (%i = 8 : thread) {
      %m = loop.for %k = 0 to 64 reduce(max) -> f32 { %v = loop.load %x[%i, %k]  loop.yield %v }
      loop.store %m, %y[%i]
    }

What is stored at d0 is `fold(max, 64, load(x, [d0, d16]))`. Two terms are equal if they are computed by the
same operations: counters that folds bind are numbered by what is inside of the fold, not by names. A load of
what another kernel stores can be replaced by the term that is stored there (`stored_term`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr

from ..dialects.index import delinearize, linearize
from ..dialects.inside import ops_in
from ..dialects.loop import (
    AccumulateOp,
    ForOp,
    IndexOp,
    KernelOp,
    LoadOp,
    StoreOp,
    TestOp,
)
from ..dialects.loop_access import may_stop
from ..dialects.scalars import is_weighted
from ..dialects.sizes import Extent, shape_of
from ..dialects.tile import LaunchOp
from ..index.affine import ZERO, leaves, replace_dims
from .index import UNKNOWN, Range, extent_range, operand_ranges, simplify

BOUND = 16
"""The first dim that a fold binds; those below are free."""
DIMS = 32
"""Dims at most; the last ones stand for counters of folds that are being read."""


MAX_SIZE = 1000
"""Terms that a term is made of, at most; they are compared one by one."""


class Opaque(Exception):
    """A value that is no term; says why."""


@dataclass(frozen=True)
class Term:
    """A value: an operation (by name, and what else tells it apart) of other terms.

    The names are those of operations, or `load`, `index`, `test`, `if`, `fold`. `exprs` are index expressions
    over dims; a fold's `bound` is the dim that its operand is folded over.
    """

    name: str
    key: Hashable
    operands: tuple[Term, ...]
    type: Attribute
    exprs: tuple[AffineExpr, ...] = ()
    bound: int | None = None
    op: Operation | None = field(default=None, compare=False, repr=False)
    """An operation that computes it, for who builds one."""
    size: int = field(init=False, compare=False)
    """How many terms it is made of, those that are there twice counted twice."""
    height: int = field(init=False, compare=False)
    """How many folds stand in each other."""

    def __post_init__(self):
        inner = max((operand.height for operand in self.operands), default=0)
        object.__setattr__(self, "height", inner + (self.name == "fold"))
        object.__setattr__(self, "size", 1 + sum(operand.size for operand in self.operands))
        if self.size > MAX_SIZE:
            raise Opaque("it computes too much")

    def walk(self) -> Iterator[Term]:
        """This and all terms in it."""
        yield self
        for operand in self.operands:
            yield from operand.walk()

    def depends_on(self, dim: int) -> bool:
        """Whether it differs from one value of a dim to another."""
        wanted = AffineExpr.dimension(dim)
        return any(leaf == wanted for t in self.walk() for e in t.exprs for leaf in leaves(e))

    def at(self, dims: Mapping[int, AffineExpr]) -> Term:
        """This with expressions in place of some dims."""
        space = [dims.get(i, AffineExpr.dimension(i)) for i in range(DIMS)]
        return self.map(lambda t: replace(t, exprs=tuple(_simple(e, space) for e in t.exprs)))

    def with_term(self, old: Term, new: Term) -> Term:
        """This with one term in place of another, wherever that stands."""
        if self == old:
            return new
        operands = tuple(operand.with_term(old, new) for operand in self.operands)
        return self if operands == self.operands else replace(self, operands=operands)

    def map(self, change: Callable[[Term], Term]) -> Term:
        """This with `change` applied to all terms in it, the innermost first."""
        return change(replace(self, operands=tuple(o.map(change) for o in self.operands)))


def _simple(expr: AffineExpr, space: Sequence[AffineExpr]) -> AffineExpr:
    return simplify(replace_dims(expr, space), [UNKNOWN] * DIMS)


@dataclass(frozen=True)
class Place:
    """An index into some axes that a counter counts row by row, and their extents."""

    index: tuple[AffineExpr, ...]
    shape: tuple[Extent, ...]


@dataclass
class TermReader:
    """Reads the values of a kernel as terms, at the point that `counters` says.

    `places` has the counters that count several axes row by row.
    """

    kernel: KernelOp
    counters: dict[SSAValue, AffineExpr]
    known: dict[SSAValue, Term] = field(default_factory=dict[SSAValue, Term])
    depth: int = 0
    places: dict[SSAValue, Place] = field(default_factory=dict[SSAValue, Place])

    def term(self, value: SSAValue) -> Term:
        """The term of a value. Raises Opaque if it is none."""
        if value in self.counters:
            return Term("index", (), (), value.type, (self.counters[value],))
        if value not in self.known:
            if not isinstance(value.owner, Operation):
                raise Opaque("it reads a counter that is not known")
            self.known[value] = self._read(value, value.owner)
        return self.known[value]

    def exprs(self, op: Operation, operands: Sequence[SSAValue]) -> tuple[AffineExpr, ...]:
        """The index expressions of an operation at the point."""
        space: list[AffineExpr] = []
        known = list(_SAME)
        ranges: list[Range] = [UNKNOWN] * DIMS
        for operand in operands:
            term = self.term(operand)
            if term.name != "index":
                raise Opaque("an index comes from data")
            if (place := self.places.get(operand)) is None:
                space.append(term.exprs[0])
                continue
            own = [AffineExpr.dimension(len(known) + i) for i in range(len(place.index))]
            space.append(linearize(own, place.shape))
            known += place.index
            ranges += map(extent_range, place.shape)
        match op:
            case TestOp():
                found = op.exprs
            case LoadOp() | StoreOp() | IndexOp():
                found = op.map.data.results
            case _:
                raise Opaque(f"it has a {op.name}")
        inner = [simplify(replace_dims(e, space), ranges) for e in found]
        return tuple(_simple(e, known) for e in inner)

    def _read(self, value: SSAValue, op: Operation) -> Term:
        match op:
            case LoadOp():
                if op.memref not in self.kernel.input_args:
                    raise Opaque("it reads what is no input")
                array = self.kernel.inputs[list(self.kernel.input_args).index(op.memref)]  # pyright: ignore[reportArgumentType]
                return Term("load", array, (), value.type, self.exprs(op, op.indices), op=op)
            case IndexOp():
                return Term("index", (), (), value.type, self.exprs(op, op.operands_))
            case TestOp():
                return Term("test", (), (), value.type, self.exprs(op, op.operands_), op=op)
            case scf.IfOp():
                return self._choice(value, op)
            case ForOp():
                return self._fold(value, op)
            case _:
                if op.regions or len(op.results) != 1 or op.dialect_name() not in ("arith", "math"):
                    raise Opaque(f"it has a {op.name}")
                operands = tuple(self.term(operand) for operand in op.operands)
                key = (op.name, tuple(sorted(op.properties.items(), key=lambda item: item[0])))
                return Term(op.name, key, operands, value.type, op=op)

    def _choice(self, value: SSAValue, op: scf.IfOp) -> Term:
        number = list(op.results).index(value)  # pyright: ignore[reportArgumentType]
        ends = [region.block.last_op for region in (op.true_region, op.false_region)]
        yes, no = (self.term(end.operands[number]) for end in ends if end is not None)
        return Term("if", (), (self.term(op.cond), yes, no), value.type, op=op)

    def _fold(self, value: SSAValue, op: ForOp) -> Term:
        combiners = [each.data for each in op.combiners]
        if is_weighted(combiners):
            raise Opaque("it folds weighted means")
        number = list(op.res).index(value)  # pyright: ignore[reportArgumentType]
        open_dim = DIMS - 1 - self.depth
        self.counters[op.induction_var] = AffineExpr.dimension(open_dim)
        self.depth += 1
        body = self.term(op.yielded[number])
        self.depth -= 1
        bound = BOUND + body.height
        if bound >= open_dim:
            raise Opaque("its loops are nested too deeply")
        body = body.at({open_dim: AffineExpr.dimension(bound)})
        key = (combiners[number], op.extent.data)
        return Term("fold", key, (body,), value.type, bound=bound, op=op)


_SAME = [AffineExpr.dimension(i) for i in range(DIMS)]


def checks(kernel: KernelOp) -> bool:
    """Whether a kernel does more than computing its outputs: it may stop the program, or accumulate."""
    return any(may_stop(o) or isinstance(o, AccumulateOp) for o in ops_in(kernel))


def stored_term(load: Term) -> Term:
    """What the kernel that stores what a load reads has stored there. Raises Opaque."""
    array = load.key
    kernel = array.owner if isinstance(array, SSAValue) else None
    if not isinstance(kernel, KernelOp):
        raise Opaque("it is an input of the program")
    if checks(kernel):
        raise Opaque("it is checked as it is computed")
    output = kernel.output_args[kernel.outputs.index(array)]  # pyright: ignore[reportArgumentType]
    stores = [o for o in ops_in(kernel) if isinstance(o, StoreOp) and o.memref is output]
    if len(stores) != 1:
        raise Opaque("it is stored in several places")
    store = stores[0]
    counters = _counters_around(store)
    solved: dict[SSAValue, AffineExpr] = {c: ZERO for c, extent in counters.items() if extent == 1}
    places: dict[SSAValue, Place] = {}
    for number, counter in enumerate(store.indices):
        place = _place_along(store, number, load.exprs)
        if place is not None:
            places[counter] = place
            solved[counter] = linearize(place.index, place.shape)
    if set(solved) != set(counters):
        raise Opaque("where it is stored does not say which point stores it")
    return TermReader(kernel, solved, places=places).term(store.value)


def _place_along(store: StoreOp, number: int, element: Sequence[AffineExpr]) -> Place | None:
    """Where along some axes a counter is that counts them row by row, where an element is stored."""
    exprs, dim = store.map.data.results, AffineExpr.dimension(number)
    axes = [axis for axis, expr in enumerate(exprs) if number in expr.used_dims()]
    assert isinstance(store.memref.type, MemRefType)
    shape = shape_of(store.memref.type)
    extents = [shape[axis] for axis in axes]
    ranges = operand_ranges(store.indices)
    if [simplify(e, ranges) for e in delinearize(dim, extents)] != [exprs[a] for a in axes]:
        return None
    return Place(tuple(element[axis] for axis in axes), tuple(extents))


def _counters_around(op: Operation) -> dict[SSAValue, object]:
    """The counters of the free loops and the launch around an operation, with their extents."""
    found: dict[SSAValue, object] = {}
    parent = op.parent_op()
    while not isinstance(parent, KernelOp):
        match parent:
            case ForOp() if not parent.res:
                found[parent.induction_var] = parent.extent.data
            case LaunchOp():
                for argument, axis in zip(parent.body.block.args, parent.axes, strict=True):
                    found[argument] = axis.extent.data
            case _:
                raise Opaque("it is stored under a condition")
        parent = parent.parent_op()
    return found
