"""Index expressions as `llvm` integer arithmetic, accesses as `getelementptr`, `load`, `store`.

    loop.load %x[%i, %j] : memref<4x8xf32>

becomes

    %0 = llvm.mul %i, 8 overflow<nsw>
    %1 = llvm.add %0, %j overflow<nsw>
    %2 = llvm.getelementptr inbounds %x[%1] : f32
    llvm.load %2 : f32

Addresses stay pointers plus an offset: through integers LLVM would lose track of what aliases what.
A bool is one byte in memory, zero or not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, lru_cache

from xdsl.builder import Builder
from xdsl.dialects import llvm
from xdsl.dialects.builtin import (
    BFloat16Type,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    UnitAttr,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineSymExpr,
)

from ...analysis.index import Range, bounds, simplify
from ...dialects.index import linearize
from ...dialects.scalars import is_bool
from ...dialects.sizes import shape_of
from ...errors import DeploError
from ...index.affine import product

POINTER = llvm.LLVMPointerType()

EMPTY: Mapping[str, Attribute] = {}

NO_FLAGS: Mapping[str, Attribute] = {"overflowFlags": IntegerAttr(0, 32)}
_NO_WRAP: Mapping[str, Attribute] = {
    "overflowFlags": IntegerAttr(
        llvm.OverflowAttr((llvm.OverflowFlag.NO_SIGNED_WRAP,)).to_int(), 32
    )
}
_NOT_ATOMIC: Mapping[str, Attribute] = {"ordering": IntegerAttr(0, i64)}
_ONE_INDEX: Mapping[str, Attribute] = {
    "rawConstantIndices": DenseArrayBase.from_list(i32, [llvm.GEP_USE_SSA_VAL]),
    "noWrapFlags": IntegerAttr(0, 32),
}


def insert(
    builder: Builder,
    kind: type[Operation],
    operands: Sequence[SSAValue],
    result: Attribute,
    properties: Mapping[str, Attribute] = EMPTY,
    attributes: Mapping[str, Attribute] = EMPTY,
) -> SSAValue:
    """Insert an operation of one result, with all that it consists of.

    Its constructor would look at what each argument is, and take three times as long; most of what a kernel
    becomes is made here.
    """
    op = kind.create(
        operands=operands, result_types=(result,), properties=properties, attributes=attributes
    )
    place(builder, op)
    return op.results[0]


def place(builder: Builder, op: Operation) -> None:
    """Insert an operation, which comes from what it stands in front of.

    Nobody else listens to the builders here, and none is implicit.
    """
    point = builder.insertion_point
    if point.insert_before is None:
        point.block.add_op(op)
    else:
        op.location = point.insert_before.location
        point.block.insert_op_before(op, point.insert_before)


def convert_type(type: Attribute) -> Attribute:
    """The `llvm` type of a value; bf16 travels as its bits, LLVM has no arithmetic on it here."""
    match type:
        case IndexType():
            return i64
        case MemRefType():
            return POINTER
        case BFloat16Type():
            return i16
        case _:
            return type


def constant(builder: Builder, value: int, type: IntegerType = i64) -> SSAValue:
    """Insert an integer constant."""
    return insert(builder, llvm.ConstantOp, (), type, _integer(value, type))


@lru_cache(4096)
def _integer(value: int, type: IntegerType) -> Mapping[str, Attribute]:
    return {"value": IntegerAttr(value, type)}


def compare(builder: Builder, a: SSAValue, predicate: str, b: SSAValue) -> SSAValue:
    """Insert an integer comparison such as `slt`."""
    return insert(builder, llvm.ICmpOp, (a, b), i1, _predicate(predicate))


@cache
def _predicate(name: str) -> Mapping[str, Attribute]:
    return {"predicate": IntegerAttr(llvm.ICmpPredicateFlag(name).to_int(), i64)}


def element_address(
    builder: Builder, base: SSAValue, index: SSAValue, element: Attribute, *, inbounds: bool = True
) -> SSAValue:
    """Insert the address of an element, which surely lies in the array at `base` or not."""
    said = _element(memory_type(element), inbounds)
    return insert(builder, llvm.GEPOp, (base, index), POINTER, said)


@cache
def _element(type: Attribute, inbounds: bool) -> Mapping[str, Attribute]:
    surely: Mapping[str, Attribute] = {"inbounds": UnitAttr()} if inbounds else EMPTY
    return {"elem_type": type, **_ONE_INDEX, **surely}


Known = int | tuple[type, SSAValue, SSAValue]
"""What a value is: a constant, or an operation and its operands."""


class IndexEmitter:
    """Inserts the arithmetic of index expressions over operands whose ranges are known.

    `sizes` has the value of each symbol, `known` what the block has computed so far: neighbours in memory
    share most of what says where they are.
    """

    def __init__(
        self,
        builder: Builder,
        operands: Sequence[SSAValue],
        ranges: Sequence[Range],
        sizes: Mapping[int, SSAValue],
        known: dict[Known, SSAValue],
    ):
        self.builder = builder
        self.operands = operands
        self.ranges = ranges
        self.sizes = sizes
        self.known = known

    def emit(self, expr: AffineExpr) -> SSAValue:
        """The value of `expr`; no intermediate may overflow 64 bits."""
        match expr:
            case AffineConstantExpr(value=value):
                return self._constant(value)
            case AffineDimExpr(position=position):
                return self.operands[position]
            case AffineSymExpr(position=position):
                return self.sizes[position]
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Add, lhs=lhs, rhs=rhs):
                return self._binary(llvm.AddOp, self.emit(lhs), self.emit(rhs))
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mul, lhs=lhs, rhs=rhs):
                return self._binary(llvm.MulOp, self.emit(lhs), self.emit(rhs))
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.FloorDiv, lhs=lhs, rhs=rhs):
                return self._floordiv(self.emit(lhs), rhs, bounds(lhs, self.ranges)[0] >= 0)
            case AffineBinaryOpExpr(kind=AffineBinaryOpKind.Mod, lhs=lhs, rhs=rhs):
                return self._mod(self.emit(lhs), rhs, bounds(lhs, self.ranges)[0] >= 0)
            case _:
                raise DeploError(f"index expression {expr} has no arithmetic")

    def _constant(self, value: int) -> SSAValue:
        if value not in self.known:
            self.known[value] = constant(self.builder, value)
        return self.known[value]

    def _binary(
        self, kind: type[llvm.AddOp | llvm.MulOp], lhs: SSAValue, rhs: SSAValue
    ) -> SSAValue:
        key = kind, lhs, rhs
        if key not in self.known:
            self.known[key] = insert(self.builder, kind, (lhs, rhs), i64, _NO_WRAP)
        return self.known[key]

    def _floordiv(self, value: SSAValue, divisor: AffineExpr, nonnegative: bool) -> SSAValue:
        divide_by = self.emit(divisor)
        if nonnegative:
            return self.builder.insert(llvm.UDivOp(value, divide_by)).res
        # Division rounds to zero: below zero, lower the dividend first to round down.
        bias = self.emit(product(divisor, -1) + 1)
        lowered = self.builder.insert(llvm.AddOp(value, bias)).res
        dividend = self.builder.insert(llvm.SelectOp(self._negative(value), lowered, value)).res
        return self.builder.insert(llvm.SDivOp(dividend, divide_by)).res

    def _mod(self, value: SSAValue, divisor: AffineExpr, nonnegative: bool) -> SSAValue:
        divide_by = self.emit(divisor)
        if nonnegative:
            return self.builder.insert(llvm.URemOp(value, divide_by)).res
        rest = self.builder.insert(llvm.SRemOp(value, divide_by)).res
        raised = self.builder.insert(llvm.AddOp(rest, divide_by)).res
        return self.builder.insert(llvm.SelectOp(self._negative(rest), raised, rest)).res

    def _negative(self, value: SSAValue) -> SSAValue:
        return compare(self.builder, value, "slt", self._constant(0))

    def test(self, exprs: Sequence[AffineExpr]) -> SSAValue:
        """Whether all of `exprs` are at least zero."""
        zero = self._constant(0)
        tests = [compare(self.builder, self.emit(e), "sge", zero) for e in exprs]
        result = tests[0]
        for each in tests[1:]:
            result = self.builder.insert(llvm.AndOp(result, each)).res
        return result

    def address(
        self,
        base: SSAValue,
        type: MemRefType,
        exprs: Sequence[AffineExpr],
        *,
        inbounds: bool = True,
    ) -> SSAValue:
        """The address of element `exprs` of the row-major array at `base`, in which it surely lies or not."""
        offset = simplify(linearize(exprs, shape_of(type)), self.ranges)
        index = self.emit(offset)
        return element_address(self.builder, base, index, type.element_type, inbounds=inbounds)


def memory_type(element: Attribute) -> Attribute:
    """How an element lies in memory."""
    return i8 if is_bool(element) else convert_type(element)


def load(
    builder: Builder,
    address: SSAValue,
    type: Attribute,
    attributes: Mapping[str, Attribute] = EMPTY,
) -> SSAValue:
    """Insert a load of a value of an `llvm` type."""
    return insert(builder, llvm.LoadOp, (address,), type, _NOT_ATOMIC, attributes)


def emit_load(
    builder: Builder,
    address: SSAValue,
    element: Attribute,
    attributes: Mapping[str, Attribute] = EMPTY,
) -> SSAValue:
    """Read an element, by an operation that has some attributes."""
    value = load(builder, address, memory_type(element), attributes)
    if is_bool(element):
        return compare(builder, value, "ne", constant(builder, 0, i8))
    return value


def emit_store(
    builder: Builder,
    value: SSAValue,
    address: SSAValue,
    element: Attribute,
    attributes: Mapping[str, Attribute] = EMPTY,
) -> None:
    """Write an element, by an operation that has some attributes."""
    if is_bool(element):
        value = builder.insert(llvm.ZExtOp(value, i8)).res
    store(builder, value, address, attributes=attributes)


def store(
    builder: Builder,
    value: SSAValue,
    address: SSAValue,
    alignment: int | None = None,
    attributes: Mapping[str, Attribute] = EMPTY,
) -> None:
    """Insert a store of a value of an `llvm` type; the alignment in bytes is that of the type by default."""
    operands, properties = (value, address), _aligned(alignment)
    place(
        builder,
        llvm.StoreOp.create(operands=operands, properties=properties, attributes=attributes),
    )


@cache
def _aligned(alignment: int | None) -> Mapping[str, Attribute]:
    aligned: Mapping[str, Attribute] = {}
    if alignment is not None:
        aligned = {"alignment": IntegerAttr(alignment, i64)}
    return {**_NOT_ATOMIC, **aligned}
