"""Operations of `kernel` for the device: functions, numbers of blocks and threads, shared memory, shuffles.

%lane = kernel.thread_id
%s = kernel.shared align 16 : memref<256xf32, "shared">
"""

from __future__ import annotations

from math import prod
from typing import ClassVar

from xdsl.dialects.builtin import (
    FunctionType,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    i1,
    i32,
    i64,
)
from xdsl.ir import Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    MemoryAllocEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .inside import ops_in
from .kernel_barriers import WARP
from .kernel_host import (
    parse_bounds,
    parse_geometry,
    parse_index_type,
    print_bounds,
    print_geometry,
    verify_bounds,
    verify_geometry,
)
from .mbarriers import BarriersOp, verify_clusters
from .scalars import storage_bytes, verify_bits
from .sizes import Extent, ExtentAttr, static_shape
from .tensor_map import TensorMapType
from .tile import SHARED

MAX_STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory a kernel may declare statically (CUDA C++ Programming Guide, "Shared Memory")."""

MAX_SHARED_BYTES = 227 * 1024
"""Shared memory a block may have on the GPU that has most; above what is static, its launch asks for it."""

MAX_SHARED_ALIGNMENT = 1024
"""The most that any instruction asks of an address: the pattern of the widest swizzle repeats."""

INDEX = IndexType()


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel and its launch geometry; see the dialect's example.

    `resident(2)` says that a multiprocessor must have room for two blocks, so that a thread has so many
    registers and no fewer; without it, that is the compiler's choice. `cluster(2)` says that two blocks whose
    numbers follow each other run at the same time and share slabs. `index(i32)` says that all its indices are
    computed in 32 bits, without it that is not decided.
    """

    name = "kernel.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    blocks = prop_def(ExtentAttr)
    threads = prop_def(IntegerAttr.constr(i64))
    resident = opt_prop_def(IntegerAttr.constr(i64))
    cluster = opt_prop_def(IntegerAttr.constr(i64))
    index_type = opt_prop_def(IntegerType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(self, sym_name: str, body: Region, blocks: Extent, threads: int):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "function_type": FunctionType.from_lists(list(body.block.arg_types), []),
                "blocks": ExtentAttr(blocks),
                "threads": IntegerAttr(threads, i64),
            },
            regions=[body],
        )

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, one slab after the other, with its barriers."""
        end, barriers = 0, 0
        for op in ops_in(self):
            if isinstance(op, SharedOp):
                end = -(-end // op.alignment) * op.alignment + op.size
            elif isinstance(op, BarriersOp):
                barriers += op.size
        return end + barriers

    def verify_(self) -> None:
        verify_geometry(self.blocks.data, self.threads.value.data)
        verify_bounds(self.blocks.data, self.resident, self.cluster)
        verify_clusters(ops_in(self), self.cluster)
        if self.index_type not in (None, i32, i64):
            raise VerifyException(f"indices are computed in i32 or i64, got {self.index_type}")
        if tuple(self.body.block.arg_types) != tuple(self.function_type.inputs):
            raise VerifyException("the body's arguments differ from the function type")
        if self.function_type.outputs.data:
            raise VerifyException("a kernel returns nothing; it stores to memory")
        for argument in self.body.block.args:
            if not isinstance(argument.type, MemRefType | IndexType | TensorMapType):
                raise VerifyException(
                    f"arguments are memrefs, tensor maps or index, got {argument.type}"
                )
        if self.shared_bytes > MAX_SHARED_BYTES:
            raise VerifyException(
                f"{self.shared_bytes} bytes of shared memory in all; a block may have "
                f"{MAX_SHARED_BYTES}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        print_geometry(printer, self.blocks.data, self.threads.value.data)
        print_bounds(printer, self.resident, self.cluster)
        printer.print_string(" " if self.index_type is None else f" index({self.index_type}) ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        sym_name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        blocks, threads = parse_geometry(parser)
        resident, cluster = parse_bounds(parser)
        index_type = parse_index_type(parser) if parser.parse_optional_keyword("index") else None
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(sym_name.data, body, blocks, threads)
        op.resident, op.cluster, op.index_type = resident, cluster, index_type
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class BlockIdOp(IRDLOperation):
    """The number of this block in the grid: `%b = kernel.block_id`."""

    name = "kernel.block_id"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class ThreadIdOp(IRDLOperation):
    """The number of this thread in its block: `%t = kernel.thread_id`."""

    name = "kernel.thread_id"

    result = result_def(INDEX)

    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self):
        super().__init__(result_types=[INDEX])


@irdl_op_definition
class SharedOp(IRDLOperation):
    """Memory that the threads of a block share, at a multiple of `align` bytes or of its element's.

    ```
    %s = kernel.shared : memref<256xf32, "shared">
    %t = kernel.shared align 16 : memref<256xf32, "shared">
    ```
    """

    name = "kernel.shared"

    align = opt_prop_def(IntegerAttr.constr(i64))
    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "(`align` $align^)? attr-dict `:` type($result)"

    def __init__(self, type: MemRefType, align: int | None = None):
        align_attr = None if align is None else IntegerAttr(align, i64)
        super().__init__(properties={"align": align_attr}, result_types=[type])

    @property
    def alignment(self) -> int:
        """Its address is a multiple of so many bytes."""
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        return storage_bytes(shared.element_type) if self.align is None else self.align.value.data

    @property
    def size(self) -> int:
        """Its bytes."""
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        return storage_bytes(shared.element_type) * prod(static_shape(shared))

    def verify_(self) -> None:
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        if shared.memory_space != SHARED:
            raise VerifyException('must be in memory space "shared"')
        if not 0 < self.size <= MAX_SHARED_BYTES:
            raise VerifyException(
                f"{self.size} bytes of shared memory; a block may have 1 to {MAX_SHARED_BYTES}"
            )
        verify_shared_align(self.alignment, storage_bytes(shared.element_type))


def verify_shared_align(align: int, element: int) -> None:
    """Raise unless shared memory of elements of so many bytes can be aligned to `align`."""
    power_of_two = align > 0 and align & (align - 1) == 0
    if not power_of_two or not element <= align <= MAX_SHARED_ALIGNMENT:
        raise VerifyException(
            f"align must be a power of two from {element} to {MAX_SHARED_ALIGNMENT}, got {align}"
        )


@irdl_op_definition
class ShuffleOp(IRDLOperation):
    """The value of the thread whose lane differs by a mask: `%s = kernel.shuffle %v xor 16 : f32`.

    All threads of the warp must take part.
    """

    name = "kernel.shuffle"

    T: ClassVar = VarConstraint("T", AnyAttr())

    value = operand_def(T)
    lane_mask = prop_def(IntegerAttr.constr(i64))
    result = result_def(T)

    # Not Pure: moving it into divergent control flow would change which threads take part.
    assembly_format = "$value `xor` $lane_mask attr-dict `:` type($value)"

    def __init__(self, value: SSAValue, lane_mask: int):
        super().__init__(
            operands=[value],
            properties={"lane_mask": IntegerAttr(lane_mask, i64)},
            result_types=[value.type],
        )

    def verify_(self) -> None:
        if not 0 < self.lane_mask.value.data < WARP:
            raise VerifyException(f"lane mask must be between 1 and {WARP - 1}")
        if not isinstance(self.value.type, IndexType):
            verify_bits(self.value.type)


@irdl_op_definition
class AssertOp(IRDLOperation):
    """Stop the program with a message if a condition is false: `kernel.assert %ok, "message"`."""

    name = "kernel.assert"

    condition = operand_def(i1)
    message = prop_def(StringAttr)

    traits = traits_def(MemoryWriteEffect())
    assembly_format = "$condition `,` $message attr-dict"

    def __init__(self, condition: SSAValue, message: str):
        super().__init__(operands=[condition], properties={"message": StringAttr(message)})
