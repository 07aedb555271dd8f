"""Writing loops over flat buffers in `scf`, `arith` and `vector`: shared by the lowerings of CPU blocks."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache

from xdsl.builder import Builder
from xdsl.dialects import arith, llvm, memref, scf, vector
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    VectorType,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineConstantExpr, AffineDimExpr, AffineExpr
from xdsl.rewriter import InsertPoint

from ...dialects.loop import IndexOp, LoadOp, StoreOp
from ...dialects.scalars import is_integer, storage_bytes
from ...dialects.sizes import static_shape
from ..loop.scalar_code import emit_constant
from ..lower_loops import IndexConstants
from .accesses import place
from .vectors import ANYWHERE

INDEX = IndexType()

ALIGNMENT = 64
"""Bytes that every scratch buffer begins at a multiple of: a line of the cache."""

Place = tuple[AffineExpr, Sequence[SSAValue]]
"""A position in a flat buffer: an expression over values."""


class LoopCode:
    """Inserts code at a point that moves into the loops as they are opened."""

    for_llvm = True
    """Whether LLVM compiles it, and may be told what only it knows."""

    def __init__(self, block: Block, constants: IndexConstants):
        self.builder = Builder(InsertPoint.at_end(block))
        self.constants = constants

    def insert(self, op: Operation, hint: str | None = None) -> SSAValue:
        """Insert an operation; gives its first result, under a name."""
        place(self.builder, op)
        op.results[0].name_hint = hint
        return op.results[0]

    def index(self, expr: AffineExpr, operands: Sequence[SSAValue]) -> SSAValue:
        """The value of an index expression."""
        match expr:
            case AffineConstantExpr(value=value):
                return self.constants.get(value)
            case AffineDimExpr(position=position):
                return operands[position]
            case _:
                return self.insert(IndexOp(expr, operands))

    def opaque(self, value: SSAValue) -> SSAValue:
        """An index of which LLVM does not know that it is constant.

        It would unroll a loop up to a small constant, and vectorise the loop around it, by gathers.
        """
        return opaque(self.builder, value)

    def free_registers(self, names: Sequence[str]) -> None:
        """Leave some registers to what follows: what loops around it keep in them goes to memory before.

        LLVM keeps what is constant in a loop in registers, such as the factors of a polynomial, and then may
        have too few of them for the sums of a loop inside.
        """
        changed = ",".join(f"~{{{name}}}" for name in names)
        nothing = llvm.InlineAsmOp("", changed, [], [], asm_dialect=0, has_side_effects=True)
        self.builder.insert(nothing)

    def smaller(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The smaller of two indices."""
        return self.insert(arith.MinSIOp(a, b))

    def larger(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """The larger of two indices."""
        return self.insert(arith.MaxSIOp(a, b))

    @contextmanager
    def loop(self, end: SSAValue, hint: str, start: SSAValue | None = None) -> Generator[SSAValue]:
        """Open a loop that counts to `end`; gives the counter."""
        body = Block(arg_types=[INDEX])
        body.args[0].name_hint = hint
        first = self.constants.get(0) if start is None else start
        self.builder.insert(scf.ForOp(first, end, self.constants.get(1), [], body))
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(body))
        yield body.args[0]
        self.builder.insert(scf.YieldOp())
        self.builder = outer

    @contextmanager
    def when(self, condition: SSAValue) -> Generator[None]:
        """Open a branch that runs if a condition holds."""
        body = Block()
        self.builder.insert(scf.IfOp(condition, [], Region(body)))
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(body))
        yield
        self.builder.insert(scf.YieldOp())
        self.builder = outer

    def sweep(
        self,
        end: SSAValue,
        hint: str,
        start: Sequence[SSAValue],
        first: SSAValue | None = None,
        step: int = 1,
    ) -> tuple[Block, scf.ForOp]:
        """A loop that carries values; gives its body, empty as yet, and itself."""
        body = Block(arg_types=[INDEX, *(value.type for value in start)])
        body.args[0].name_hint = hint
        begin = self.constants.get(0) if first is None else first
        loop = scf.ForOp(begin, end, self.constants.get(step), start, body)
        self.builder.insert(loop)
        return body, loop

    @contextmanager
    def into(self, block: Block) -> Generator[None]:
        """Insert at the end of a block."""
        outer, self.builder = self.builder, Builder(InsertPoint.at_end(block))
        yield
        self.builder = outer

    def inline(self, body: Block) -> SSAValue:
        """Move what a block does here; gives what it yields."""
        end = body.last_op
        assert end is not None
        (value,) = end.operands
        end.detach()
        end.erase()
        for op in list(body.ops):
            op.detach()
            self.builder.insert(op)
        return value

    def choose(
        self, condition: SSAValue, then: Callable[[], SSAValue], other: Callable[[], SSAValue]
    ) -> SSAValue:
        """What one of two pieces of code gives."""
        blocks: list[Block] = []
        for each in (then, other):
            blocks.append(Block())
            with self.into(blocks[-1]):
                value = each()
                self.builder.insert(scf.YieldOp(value))
        first, second = map(Region, blocks)
        return self.insert(scf.IfOp(condition, [value.type], first, second))

    def or_zero(self, condition: SSAValue, then: Block) -> SSAValue:
        """What a block yields if a condition holds, else 0."""
        end = then.last_op
        assert end is not None
        type, otherwise = end.operands[0].type, Block()
        zero = Builder(InsertPoint.at_end(otherwise))
        zero.insert(scf.YieldOp(emit_constant(zero, 0, type)))
        return self.insert(scf.IfOp(condition, [type], Region(then), Region(otherwise)))

    def load(self, buffer: SSAValue, place: Place) -> SSAValue:
        """An element of a flat buffer."""
        return self.insert(LoadOp(buffer, [place[0]], place[1]))

    def store(self, value: SSAValue, buffer: SSAValue, place: Place) -> None:
        """Write an element of a flat buffer."""
        self.builder.insert(StoreOp(value, buffer, [place[0]], place[1]))

    def load_vector(self, buffer: SSAValue, place: Place, lanes: int) -> SSAValue:
        """Neighbours in a flat buffer, from a multiple of their number on."""
        type = _vector_type(element_of(buffer), lanes)
        return self.insert(vector.LoadOp(buffer, [self.index(*place)], type))

    def mask(self, begin: SSAValue, end: SSAValue, lanes: int) -> SSAValue:
        """Of which elements of a vector something holds: those from one number to another one, or none."""
        kind = _vector_type(i1, lanes)
        before, until = (
            self.insert(vector.CreateMaskOp([count], kind))
            for count in (begin, self.larger(begin, end))
        )
        return self.insert(arith.XOrIOp(before, until))

    def load_anywhere(
        self, array: SSAValue, place: Sequence[SSAValue], lanes: int, mask: SSAValue | None
    ) -> SSAValue:
        """Neighbours in an array, wherever they begin; if there is a mask, others than it says are 0."""
        kind = _vector_type(element_of(array), lanes)
        if mask is None:
            return self.insert(vector.LoadOp(array, place, kind))
        zeros = self.broadcast(emit_constant(self.builder, 0, element_of(array)), lanes)
        return self.insert(vector.MaskedLoadOp(array, place, mask, zeros))

    def join(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Two vectors in one, if of two elements at the same place one is 0."""
        kind = a.type
        assert isinstance(kind, VectorType)
        (lanes,) = kind.shape
        if is_integer(kind.element_type):
            return self.insert(arith.OrIOp(a, b))
        bits = _vector_type(IntegerType(8 * storage_bytes(kind.element_type)), lanes.data)
        both = [self.insert(llvm.BitcastOp(each, bits)) for each in (a, b)]
        joined = self.insert(arith.OrIOp(both[0], both[1]))
        return self.insert(llvm.BitcastOp(joined, kind))

    def load_line(self, square: SSAValue, number: int) -> SSAValue:
        """A line of a buffer of two axes, as long as a vector."""
        assert isinstance(square.type, MemRefType)
        type = VectorType(element_of(square), [static_shape(square.type)[1]])
        place = [self.constants.get(number), self.constants.get(0)]
        return self.insert(vector.LoadOp(square, place, type))

    def store_vector(
        self, value: SSAValue, buffer: SSAValue, place: Place, *, aligned: bool = True
    ) -> None:
        """Write neighbours in a flat buffer, from a multiple of their number on unless not `aligned`."""
        op = vector.StoreOp(value, buffer, [self.index(*place)])
        if not aligned:
            op.attributes[ANYWHERE] = UnitAttr()
        self.builder.insert(op)

    def broadcast(self, value: SSAValue, lanes: int) -> SSAValue:
        """A vector whose elements are all `value`."""
        type = _vector_type(value.type, lanes)
        return self.insert(vector.BroadcastOp.create(operands=(value,), result_types=(type,)))

    def shuffle(self, a: SSAValue, b: SSAValue, mask: Sequence[int]) -> SSAValue:
        """The elements of two vectors, one after the other, that `mask` numbers."""
        kind = DenseArrayBase.from_list(i64, mask)
        assert isinstance(a.type, VectorType)
        made = VectorType(a.type.element_type, [len(mask)])
        return self.insert(vector.ShuffleOp(a, b, kind, result_type=made))

    def clone(
        self, ops: Sequence[Operation], values: Mapping[SSAValue, SSAValue]
    ) -> dict[SSAValue, SSAValue]:
        """Copy operations here, with some of what they read replaced; gives what became of each value."""
        mapped = dict(values)
        for op in ops:
            self.builder.insert(op.clone(value_mapper=mapped))
        return mapped


@lru_cache(256)
def _vector_type(element: Attribute, lanes: int) -> VectorType:
    return VectorType(element, [lanes])


def allocate(
    type: MemRefType, constants: IndexConstants, sizes: Sequence[SSAValue] = ()
) -> memref.AllocOp:
    """A scratch buffer, made when a function starts; `sizes` has the extents that the type does not say."""
    alloc = memref.AllocOp(sizes, [], type, IntegerAttr(ALIGNMENT, i64))
    constants.insert(alloc)
    return alloc


def scratch(type: MemRefType, entry: Block, constants: IndexConstants) -> SSAValue:
    """A scratch buffer for the time that a function runs, whose block `entry` is written to its end."""
    alloc = allocate(type, constants)
    assert entry.last_op is not None
    entry.insert_op_before(memref.DeallocOp.get(alloc.memref), entry.last_op)
    return alloc.memref


def opaque(builder: Builder, value: SSAValue) -> SSAValue:
    """An index that is equal to another, of which LLVM knows nothing."""
    number = builder.insert(arith.IndexCastOp(value, i64)).result
    return builder.insert(arith.IndexCastOp(through_register(builder, number, "r"), INDEX)).result


def through_register(builder: Builder, value: SSAValue, letter: str) -> SSAValue:
    """A value that LLVM does not see through, as it comes out of an assembler's line without a text.

    `letter` is LLVM's constraint for the registers that it is in; to others it would go and come back.
    """
    hidden = llvm.InlineAsmOp("", f"={letter},0", [value], [value.type], asm_dialect=0)
    return builder.insert(hidden).results[0]


def element_of(buffer: SSAValue) -> Attribute:
    """The type of a buffer's elements."""
    assert isinstance(buffer.type, MemRefType)
    return buffer.type.element_type  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
