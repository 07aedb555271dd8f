"""Operations of `kernel` for the host: buffers, launches in order, and calls of PyTorch.

%y = kernel.alloc at 128 : memref<32xf32>
kernel.launch @k_sum(%x, %y) blocks(32) threads(256) : memref<32x256xf32>, memref<32xf32>
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    DictionaryAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import MemoryAllocEffect, MemoryReadEffect, MemoryWriteEffect, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .calls import OPAQUE, parse_call, print_call, verify_call
from .part_calls import verify_parts
from .scalars import bits_of, verify_element
from .sizes import Extent, ExtentAttr, parse_extent, print_extent
from .tile import MAX_CLUSTER, MAX_THREADS


def parse_bounds(parser: Parser) -> tuple[IntegerAttr | None, IntegerAttr | None]:
    """Parse blocks that a multiprocessor must have room for, and of a cluster: ` resident(2) cluster(2)`.

    Each is None where it is not said.
    """

    def parse(keyword: str) -> IntegerAttr | None:
        if not parser.parse_optional_keyword(keyword):
            return None
        with parser.in_parens():
            return IntegerAttr(parser.parse_integer(allow_boolean=False), i64)

    return parse("resident"), parse("cluster")


def print_bounds(
    printer: Printer, resident: IntegerAttr | None, cluster: IntegerAttr | None
) -> None:
    """Print what `parse_bounds` parses."""
    for keyword, number in (("resident", resident), ("cluster", cluster)):
        if number is not None:
            printer.print_string(f" {keyword}({number.value.data})")


def verify_bounds(
    blocks: Extent, resident: IntegerAttr | None, cluster: IntegerAttr | None
) -> None:
    """Raise VerifyException for a number of blocks that is none, or for clusters that the grid has not."""
    if resident is not None and resident.value.data < 1:
        raise VerifyException(f"resident must be 1 or more, got {resident.value.data}")
    if cluster is None:
        return
    count = cluster.value.data
    if not 2 <= count <= MAX_CLUSTER:
        raise VerifyException(f"a cluster has 2 to {MAX_CLUSTER} blocks, not {count}")
    if not isinstance(blocks, int) or blocks % count:
        raise VerifyException(f"{blocks} blocks are no whole number of clusters of {count}")


def parse_index_type(parser: Parser) -> IntegerType:
    """Parse the type of a kernel's indices, `(i32)` or `(i64)`."""
    with parser.in_parens():
        pos = parser.pos
        type_ = parser.parse_type()
        if not isinstance(type_, IntegerType):
            parser.raise_error(f"index must be i32 or i64, got {type_}", pos, parser.pos)
    return type_


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


def _as_taken(type: Attribute) -> Attribute:
    """What a kernel takes an argument for: memory of numbers with and without sign is the same to it."""
    if not isinstance(type, MemRefType):
        return type
    return MemRefType(bits_of(type.element_type), type.shape, type.layout, type.memory_space)


def _number(attribute: Attribute) -> str:
    return str(getattr(getattr(attribute, "value", attribute), "data", attribute))


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
        parent = self.parent_op()
        while parent is not None:
            if parent.name in ("kernel.func", "cuda.func"):
                raise VerifyException("stands in a kernel; only functions of the host launch kernels")
            parent = parent.parent_op()
        module = self.get_toplevel_object()
        if isinstance(module, ModuleOp):
            self._verify_kernel(SymbolTable.lookup_symbol(module, self.kernel))

    def _verify_kernel(self, kernel: Operation | None) -> None:
        """Raise VerifyException unless a GPU's kernel is made for this grid and these arguments."""
        if kernel is None or kernel.name not in ("kernel.func", "cuda.func"):
            return
        name = self.kernel.root_reference.data
        for what, said in (("blocks", self.blocks), ("threads", self.threads)):
            if said != (made := kernel.properties[what]):
                raise VerifyException(
                    f"has {what}({_number(said)}), but @{name} has {what}({_number(made)})"
                )
        types = kernel.regions[0].block.arg_types
        if len(types) != len(self.arguments):
            raise VerifyException(
                f"passes {len(self.arguments)} arguments to a kernel that takes {len(types)}"
            )
        given = [_as_taken(type) for type in self.arguments.types]
        if kernel.name == "kernel.func" and given != [_as_taken(type) for type in types]:
            listed = ", ".join(map(str, types)), ", ".join(map(str, self.arguments.types))
            raise VerifyException(f"passes ({listed[1]}) to a kernel that takes ({listed[0]})")

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
        verify_call(self.callee.data, self.call_arguments, self.inputs)
        given = [value.type for value in self.outputs]
        verify_parts(self, self.callee.data, self.call_arguments, self.inputs, given)
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
