"""The `kernel` dialect: what a GPU does, without a vendor, over `scf`, `arith` and `math`.

    kernel.func @k_sum(%x: memref<32x256xf32>, %y: memref<32xf32>) blocks(32) threads(256) {
      %row = kernel.block_id
      %lane = kernel.thread_id
      %v = loop.load %x[%row, %lane] : memref<32x256xf32>
      %s = kernel.shuffle %v xor 16 : f32
      ...
    }
    func.func @main(%x: memref<32x256xf32>) -> memref<32xf32> {
      %y = kernel.alloc : memref<32xf32>
      kernel.launch @k_sum(%x, %y) blocks(32) threads(256) : memref<32x256xf32>, memref<32xf32>
      func.return %y : memref<32xf32>
    }

Memory is read and written by `loop.load` and `loop.store`, whose index expressions stay affine. Each
kernel runs on a one-dimensional grid of one-dimensional blocks. The host side is here too: allocation,
launches and calls of PyTorch, in order. On the CPU a kernel is a `func.func` that runs a range of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import (
    DictionaryAttr,
    FunctionType,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    MemoryAllocEffect,
    MemoryReadEffect,
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .calls import OPAQUE, parse_call, print_call, verify_call
from .scalars import storage_bytes, verify_element
from .sizes import Extent, ExtentAttr, parse_extent, print_extent, static_shape
from .tile import MAX_THREADS, SHARED

WARP = 32
"""Threads that run in lockstep and can shuffle (CUDA C++ Programming Guide, "SIMT Architecture")."""

MAX_STATIC_SHARED_BYTES = 48 * 1024
"""Shared memory a kernel may declare statically (CUDA C++ Programming Guide, "Shared Memory")."""

INDEX = IndexType()


def parse_geometry(parser: Parser) -> tuple[Extent, int]:
    """Parse `blocks(B) threads(T)`."""
    parser.parse_keyword("blocks")
    with parser.in_parens():
        blocks = parse_extent(parser)
    parser.parse_keyword("threads")
    with parser.in_parens():
        return blocks, parser.parse_integer(allow_boolean=False)


def print_geometry(printer: Printer, blocks: Extent, threads: int) -> None:
    """Print what `parse_geometry` parses."""
    printer.print_string(" blocks(")
    print_extent(printer, blocks)
    printer.print_string(f") threads({threads})")


def verify_geometry(blocks: Extent, threads: int) -> None:
    """Raise unless a GPU could launch such a grid."""
    if isinstance(blocks, int) and blocks < 0:
        raise VerifyException(f"blocks must not be negative, got {blocks}")
    if not 1 <= threads <= MAX_THREADS:
        raise VerifyException(f"threads must be between 1 and {MAX_THREADS}, got {threads}")


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A kernel and its launch geometry; see the dialect's example."""

    name = "kernel.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    blocks = prop_def(ExtentAttr)
    threads = prop_def(IntegerAttr.constr(i64))
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

    def verify_(self) -> None:
        verify_geometry(self.blocks.data, self.threads.value.data)
        if tuple(self.body.block.arg_types) != tuple(self.function_type.inputs):
            raise VerifyException("the body's arguments differ from the function type")
        if self.function_type.outputs.data:
            raise VerifyException("a kernel returns nothing; it stores to memory")
        for argument in self.body.block.args:
            if not isinstance(argument.type, MemRefType | IndexType):
                raise VerifyException(f"arguments are memrefs or index, got {argument.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        print_geometry(printer, self.blocks.data, self.threads.value.data)
        printer.print_string(" ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        sym_name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        blocks, threads = parse_geometry(parser)
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(sym_name.data, body, blocks, threads)
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
    """Memory that the threads of a block share: `%s = kernel.shared : memref<256xf32, "shared">`."""

    name = "kernel.shared"

    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())
    assembly_format = "attr-dict `:` type($result)"

    def __init__(self, type: MemRefType):
        super().__init__(result_types=[type])

    def verify_(self) -> None:
        shared = self.result.type
        assert isinstance(shared, MemRefType)
        if shared.memory_space != SHARED:
            raise VerifyException('must be in memory space "shared"')
        size = storage_bytes(shared.element_type)
        for extent in static_shape(shared):
            size *= extent
        if not 0 < size <= MAX_STATIC_SHARED_BYTES:
            raise VerifyException(
                f"{size} bytes of static shared memory; a kernel may have 1 to "
                f"{MAX_STATIC_SHARED_BYTES}"
            )


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """Wait for all threads of the block and make their stores visible: `kernel.barrier`."""

    name = "kernel.barrier"

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())
    assembly_format = "attr-dict"


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
            verify_element(self.value.type)


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


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A buffer of the program, in the arena if it has an offset in bytes.

    ```
    %a = kernel.alloc : memref<32xf32>
    %b = kernel.alloc at 128 : memref<32xf32>
    %c = kernel.alloc at s0 * 64 : memref<?xf32, #sym.extents<s0>>
    ```
    """

    name = "kernel.alloc"

    offset = opt_prop_def(ExtentAttr)
    result = result_def(MemRefType)

    traits = traits_def(MemoryAllocEffect())

    def __init__(self, type: MemRefType, offset: Extent | None = None):
        offset_attr = None if offset is None else ExtentAttr(offset)
        super().__init__(properties={"offset": offset_attr}, result_types=[type])

    def verify_(self) -> None:
        offset = None if self.offset is None else self.offset.data
        if isinstance(offset, int) and offset < 0:
            raise VerifyException(f"offset must not be negative, got {offset}")

    def print(self, printer: Printer) -> None:
        if self.offset is not None:
            printer.print_string(" at ")
            print_extent(printer, self.offset.data)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.result.type)

    @classmethod
    def parse(cls, parser: Parser) -> AllocOp:
        offset = parse_extent(parser) if parser.parse_optional_keyword("at") else None
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        type = parser.parse_type()
        if not isinstance(type, MemRefType):
            parser.raise_error(f"expected a memref type, got {type}", pos, parser.pos)
        op = cls(type, offset)
        op.attributes |= attributes
        return op


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel on a grid, after everything launched before it; see the dialect's example."""

    name = "kernel.launch"

    kernel = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    blocks = prop_def(ExtentAttr)
    threads = prop_def(IntegerAttr.constr(i64))

    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(self, kernel: str, arguments: Sequence[SSAValue], blocks: Extent, threads: int):
        super().__init__(
            operands=[arguments],
            properties={
                "kernel": SymbolRefAttr(kernel),
                "blocks": ExtentAttr(blocks),
                "threads": IntegerAttr(threads, i64),
            },
        )

    def verify_(self) -> None:
        verify_geometry(self.blocks.data, self.threads.value.data)
        if self.kernel.nested_references.data:
            raise VerifyException("launches kernels of the same module only")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.kernel)
        printer.print_operands(self.arguments)
        print_geometry(printer, self.blocks.data, self.threads.value.data)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_list(self.arguments.types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> LaunchOp:
        kernel = parser.parse_symbol_name()
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        blocks, threads = parse_geometry(parser)
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        pos = parser.pos
        types: list[Attribute] = list(
            parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
        )
        arguments = parser.resolve_operands(names, types, pos)
        op = cls(kernel.data, arguments, blocks, threads)
        op.attributes |= attributes
        return op


@irdl_op_definition
class CallOp(IRDLOperation):
    """Let PyTorch run an operator on buffers, and copy what it gives into others.

    ```
    kernel.call "aten.linalg_eigh.default"(input = %x, UPLO = "L") into(%u, %s)
      : memref<4x4xf32>, memref<4x4xf32>, memref<4xf32>
    ```
    """

    name = "kernel.call"

    callee = prop_def(StringAttr)
    call_arguments = prop_def(DictionaryAttr, prop_name="arguments")
    inputs = var_operand_def(MemRefType)
    outputs = var_operand_def(MemRefType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(MemoryReadEffect(), MemoryWriteEffect())

    def __init__(
        self,
        callee: str,
        arguments: DictionaryAttr,
        inputs: Sequence[SSAValue],
        outputs: Sequence[SSAValue],
    ):
        super().__init__(
            operands=[inputs, outputs],
            properties={"callee": StringAttr(callee), "arguments": arguments},
        )

    def verify_(self) -> None:
        verify_call(self.callee.data, self.call_arguments, len(self.inputs))
        for value in self.operands:
            assert isinstance(value.type, MemRefType)
            if value.type.element_type not in OPAQUE:
                verify_element(value.type.element_type)

    def print(self, printer: Printer) -> None:
        print_call(printer, self.callee.data, self.call_arguments, self.inputs)
        printer.print_string(" into")
        printer.print_operands(self.outputs)
        printer.print_op_attributes(self.attributes, print_keyword=True)
        printer.print_string(" : ")
        printer.print_list(self.operand_types, printer.print_attribute)

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee, arguments, inputs = parse_call(parser)
        parser.parse_keyword("into")
        outputs = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        pos = parser.pos
        types: list[Attribute] = list(
            parser.parse_optional_undelimited_comma_separated_list(
                parser.parse_optional_type, parser.parse_type
            )
            or ()
        )
        if len(types) != len(inputs) + len(outputs):
            parser.raise_error(
                f"{len(inputs) + len(outputs)} buffers need as many types, got {len(types)}", pos
            )
        values = parser.resolve_operands([*inputs, *outputs], types, pos)
        op = cls(callee, arguments, values[: len(inputs)], values[len(inputs) :])
        op.attributes |= attributes.data if attributes else {}
        return op


Kernel = Dialect(
    "kernel",
    [
        FuncOp,
        BlockIdOp,
        ThreadIdOp,
        SharedOp,
        BarrierOp,
        ShuffleOp,
        AssertOp,
        AllocOp,
        LaunchOp,
        CallOp,
    ],
    [],
)
