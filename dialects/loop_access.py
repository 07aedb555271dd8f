"""Operations of `loop` inside a nest: accesses by index expressions, and checks.

    %v = loop.load %x[%i * 4 + %j] : memref<32xf32>
    loop.store %v, %y[%j] : memref<4xf32>
    loop.prefetch %x[%i * 4] ahead 1024 : memref<32xf32>

The index expressions are an affine map over the counters in scope. A load may read where the program's own
values point only through `loop.checked_index`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    AffineMapAttr,
    AffineSetAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import (
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    Pure,
    is_side_effect_free,
)
from xdsl.utils.exceptions import VerifyException

from .index import (
    AffineIndex,
    Conditions,
    ExtentText,
    Indexed,
    condition,
    condition_exprs,
    index_properties,
    normalize_operands,
    verify_access,
    verify_operand_count,
)
from .scalars import verify_bits
from .sizes import Extent, ExtentAttr, static_shape

INDEX = IndexType()

REGISTERS = StringAttr("registers")
"""The memory space of an array of the thread's own."""

MAX_REGISTERS = 128
"""Elements of such an array at most; a thread has 255 registers in all."""


def in_registers(array: SSAValue) -> bool:
    """Whether a memref is an array of the thread's own."""
    return isinstance(array.type, MemRefType) and array.type.memory_space == REGISTERS


def stays_in_registers(op: Operation) -> bool:
    """Whether an operation has no effect but on registers of its thread."""
    if isinstance(op, LoadOp | StoreOp):
        return in_registers(op.memref)
    return is_side_effect_free(op)


def _build(
    op: Operation, operands: Sequence[SSAValue], said: Mapping[str, Attribute], *results: Attribute
) -> None:
    """Build the most frequent operations as they are.

    What xDSL builds of operands in groups takes three times as long.
    """
    Operation.__init__(op, operands=operands, properties=said, result_types=results)


@irdl_op_definition
class LoadOp(IRDLOperation):
    """Read one element: `%v = loop.load %x[%i, %k + 1] : memref<4x8xf32>`."""

    name = "loop.load"

    INDEXED: ClassVar = (Indexed("indices", "map", "memref"),)
    T: ClassVar = VarConstraint("T", AnyAttr())

    memref = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(T)

    traits = traits_def(MemoryReadEffect())
    custom_directives = (AffineIndex,)
    assembly_format = "$memref `` custom<AffineIndex>($indices, $map) attr-dict `:` type($memref)"

    def __init__(self, memref: SSAValue, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]):
        assert isinstance(memref.type, MemRefType)
        map_attr, operands = index_properties((exprs, operands))
        _build(self, [memref, *operands], {"map": map_attr}, memref.type.element_type)

    def verify_(self) -> None:
        verify_access(self.map.data, self.indices, self.memref.type)


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Write one element: `loop.store %v, %y[%i, 0] : memref<4x1xf32>`."""

    name = "loop.store"

    INDEXED: ClassVar = (Indexed("indices", "map", "memref"),)
    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    memref = operand_def(MemRefType.constr(T))
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)

    traits = traits_def(MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$value `,` $memref `` custom<AffineIndex>($indices, $map) attr-dict `:` type($memref)"
    )

    def __init__(
        self,
        value: SSAValue,
        memref: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
    ):
        map_attr, operands = index_properties((exprs, operands))
        _build(self, [value, memref, *operands], {"map": map_attr})

    def verify_(self) -> None:
        verify_access(self.map.data, self.indices, self.memref.type)


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Ask the caches for what will be read: `loop.prefetch %x[%i, %k] ahead 1024 : memref<4x8xf32>`.

    That is the element so many elements of memory after the one that is named; both may lie past the end of
    the array: nothing is read, and no result depends on it.
    """

    name = "loop.prefetch"

    memref = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    ahead = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$memref `` custom<AffineIndex>($indices, $map) `ahead` $ahead attr-dict `:` type($memref)"
    )

    def __init__(
        self,
        memref: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        ahead: int,
    ):
        map_attr, operands = index_properties((exprs, operands))
        super().__init__(
            operands=[memref, operands],
            properties={"map": map_attr, "ahead": IntegerAttr(ahead, i64)},
        )

    def verify_(self) -> None:
        verify_access(self.map.data, self.indices, self.memref.type)
        if self.ahead.value.data < 0:
            raise VerifyException(
                f"asks for what lies behind, {self.ahead.value.data} elements ahead"
            )


@irdl_op_definition
class AccumulateOp(IRDLOperation):
    """Add to an element that others may add to: `loop.accumulate %v, %y[%i] onto %z : f32, memref<4xf32>`.

    The output begins as an input, which nothing else reads; it takes that one's place in memory. In which
    order values are added is not defined.
    """

    name = "loop.accumulate"

    M: ClassVar = VarConstraint("M", MemRefType.constr())

    value = operand_def()
    memref = operand_def(M)
    indices = var_operand_def(IndexType)
    start = operand_def(M)
    map = prop_def(AffineMapAttr)

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    custom_directives = (AffineIndex,)
    assembly_format = (
        "$value `,` $memref `` custom<AffineIndex>($indices, $map) `onto` $start attr-dict "
        "`:` type($value) `,` type($memref)"
    )

    def __init__(
        self,
        value: SSAValue,
        memref: SSAValue,
        exprs: Sequence[AffineExpr],
        operands: Sequence[SSAValue],
        start: SSAValue,
    ):
        map_attr, operands = index_properties((exprs, operands))
        super().__init__(operands=[value, memref, operands, start], properties={"map": map_attr})

    def verify_(self) -> None:
        verify_access(self.map.data, self.indices, self.memref.type)
        memref = self.memref.type
        assert isinstance(memref, MemRefType)
        if self.value.type != memref.element_type:
            raise VerifyException(f"adds {self.value.type} to elements of {memref.element_type}")


@irdl_op_definition
class IndexOp(IRDLOperation):
    """The value of an index expression: `%o = loop.index [%i * 8 + %j]`."""

    name = "loop.index"

    operands_ = var_operand_def(IndexType)
    map = prop_def(AffineMapAttr)
    result = result_def(IndexType())

    traits = traits_def(Pure())
    custom_directives = (AffineIndex,)
    assembly_format = "custom<AffineIndex>($operands_, $map) attr-dict"

    def __init__(self, expr: AffineExpr, operands: Sequence[SSAValue]):
        map_attr, operands = index_properties(([expr], operands))
        _build(self, operands, {"map": map_attr}, INDEX)

    def verify_(self) -> None:
        verify_operand_count(self.map.data, self.operands_)
        if len(self.map.data.results) != 1:
            raise VerifyException(f"expected one expression, got {len(self.map.data.results)}")


@irdl_op_definition
class TestOp(IRDLOperation):
    """Whether all of some index conditions hold: `%in = loop.test [%i >= 4, %j < 8]`."""

    name = "loop.test"

    operands_ = var_operand_def(IndexType)
    set = prop_def(AffineSetAttr)
    result = result_def(i1)

    traits = traits_def(Pure())
    custom_directives = (Conditions,)
    assembly_format = "custom<Conditions>($operands_, $set) attr-dict"

    def __init__(self, exprs: Sequence[AffineExpr], operands: Sequence[SSAValue]):
        exprs, operands = normalize_operands(exprs, operands)
        _build(self, operands, {"set": AffineSetAttr(condition(len(operands), exprs))}, i1)

    @property
    def exprs(self) -> tuple[AffineExpr, ...]:
        """The expressions that must all be at least zero."""
        return condition_exprs(self.set.data)

    def verify_(self) -> None:
        verify_operand_count(self.set.data, self.operands_)
        if not self.set.data.constraints:
            raise VerifyException("needs at least one condition")


@irdl_op_definition
class CheckedIndexOp(IRDLOperation):
    """An integer from data as an index: `%r = loop.checked_index %id below 100 : i64`.

    A value outside [0, extent) stops the program with an index error. One that is `proven` to be inside is
    not looked at: `loop.checked_index %id below 100 proven : i64`.
    """

    name = "loop.checked_index"

    value = operand_def(IntegerType)
    extent = prop_def(ExtentAttr)
    proven = opt_prop_def(UnitAttr)
    result = result_def(IndexType())

    # Not Pure: the check must stay even if the index is not used.
    custom_directives = (ExtentText,)
    assembly_format = (
        "$value `below` custom<ExtentText>($extent) (`proven` $proven^)? attr-dict `:` type($value)"
    )

    def __init__(self, value: SSAValue, extent: Extent):
        super().__init__(
            operands=[value],
            properties={"extent": ExtentAttr(extent)},
            result_types=[INDEX],
        )


@irdl_op_definition
class RegistersOp(IRDLOperation):
    """An array of the thread's own: `%r = loop.registers : memref<8xf32, "registers">`.

    It lies in registers, which have no addresses: loops whose counters subscript it are to be unrolled.
    Nothing is in it at first.
    """

    name = "loop.registers"

    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, count: int, element: Attribute):
        type = MemRefType(element, [count], memory_space=REGISTERS)  # pyright: ignore[reportArgumentType]
        super().__init__(result_types=[type])

    def verify_(self) -> None:
        type = self.result.type
        assert isinstance(type, MemRefType)
        shape = static_shape(type)
        if type.memory_space != REGISTERS or len(shape) != 1:
            raise VerifyException(
                f'the array must be one row in memory space "registers", got {type}'
            )
        if not 0 < shape[0] <= MAX_REGISTERS:
            raise VerifyException(f"{shape[0]} elements; an array has 1 to {MAX_REGISTERS}")
        verify_bits(type.element_type)


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Stop the program with a message if a condition is false: `loop.assert %ok, "message"`."""

    name = "loop.assert"

    condition = operand_def(i1)
    message = prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition `,` $message attr-dict"

    def __init__(self, condition: SSAValue, message: str):
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})


def may_stop(op: Operation) -> bool:
    """Whether an operation may stop the program: what is proven does not."""
    return isinstance(op, AssertOp) or (isinstance(op, CheckedIndexOp) and op.proven is None)
