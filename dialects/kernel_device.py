"""Operations of `kernel` for the device: functions, numbers of blocks and threads, shuffles, checks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    f32,
    f64,
    i1,
    i32,
    i64,
)
from xdsl.ir import Region, SSAValue
from xdsl.ir.affine import AffineSymExpr
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
    MemoryWriteEffect,
    NoTerminator,
    Pure,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .inside import has_flat_addresses, ops_in
from .kernel_barriers import WARP
from .kernel_bulk import verify_clusters
from .kernel_host import (
    parse_bounds,
    parse_geometry,
    parse_index_type,
    print_bounds,
    print_geometry,
    verify_bounds,
    verify_geometry,
)
from .kernel_shared import MAX_SHARED_BYTES, SharedOp
from .mbarriers import MbarriersOp
from .scalars import verify_bits
from .sizes import Extent, ExtentAttr, Size, parse_extent
from .tensor_map import TensorMapType

INDEX = IndexType()


class DeviceFunction(IRDLOperation):
    """A kernel and its launch geometry, as `kernel` and `cuda` have them."""

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    blocks = prop_def(ExtentAttr)
    threads = prop_def(IntegerAttr.constr(i64))
    resident = opt_prop_def(IntegerAttr.constr(i64))
    cluster = opt_prop_def(IntegerAttr.constr(i64))
    index_type = opt_prop_def(IntegerType)
    sizes = opt_prop_def(ArrayAttr[IntAttr])
    """The dynamic sizes that are arguments behind the others, by number."""
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        sym_name: str,
        body: Region,
        blocks: Extent,
        threads: int,
        index_type: IntegerType | None = None,
        sizes: Sequence[int] = (),
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(sym_name),
                "function_type": FunctionType.from_lists(list(body.block.arg_types), []),
                "blocks": ExtentAttr(blocks),
                "threads": IntegerAttr(threads, i64),
                "index_type": index_type,
                "sizes": ArrayAttr([IntAttr(size) for size in sizes]) if sizes else None,
            },
            regions=[body],
        )

    @property
    def size_arguments(self) -> list[int]:
        """The dynamic sizes that are its last arguments, by number."""
        return [] if self.sizes is None else [size.data for size in self.sizes]

    def verify_launch(self) -> None:
        """Raise unless its launch is possible, and its arguments are those of its type."""
        verify_geometry(self.blocks.data, self.threads.value.data)
        verify_bounds(self.blocks.data, self.resident, self.cluster)
        verify_clusters(ops_in(self), self.cluster)
        if self.index_type not in (None, i32, i64):
            raise VerifyException(f"indices are computed in i32 or i64, got {self.index_type}")
        if tuple(self.body.block.arg_types) != tuple(self.function_type.inputs):
            raise VerifyException("the body's arguments differ from the function type")
        if self.function_type.outputs.data:
            raise VerifyException("a kernel returns nothing; it stores to memory")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        print_geometry(printer, self.blocks.data, self.threads.value.data)
        print_bounds(printer, self.resident, self.cluster)
        printer.print_string(" " if self.index_type is None else f" index({self.index_type}) ")
        if self.size_arguments:
            printer.print_string(f"sizes({', '.join(f's{i}' for i in self.size_arguments)}) ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        sym_name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        blocks, threads = parse_geometry(parser)
        resident, cluster = parse_bounds(parser)
        index_type = parse_index_type(parser) if parser.parse_optional_keyword("index") else None
        sizes: list[int] = []
        if parser.parse_optional_keyword("sizes"):
            sizes = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: _parse_size(parser)
            )
        body = parser.parse_region(arguments)
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(sym_name.data, body, blocks, threads, index_type, sizes)
        op.resident, op.cluster = resident, cluster
        if attributes is not None:
            op.attributes |= attributes.data
        return op


def _parse_size(parser: Parser) -> int:
    """Parse the name of a dynamic size, `s0`."""
    pos = parser.pos
    extent = parse_extent(parser)
    if not isinstance(extent, Size) or not isinstance(extent.expr, AffineSymExpr):
        parser.raise_error(f"expected a size such as s0, got {extent}", pos, parser.pos)
    return extent.expr.position


@irdl_op_definition
class FuncOp(DeviceFunction):
    """A kernel and its launch geometry; see the dialect's example.

    `resident(2)` says that a multiprocessor must have room for two blocks, so that a thread has so many
    registers and no fewer; without it, that is the compiler's choice. `cluster(2)` says that two blocks whose
    numbers follow each other run at the same time and share slabs. `index(i32)` says that all its indices are
    computed in 32 bits, without it that is not decided.
    """

    name = "kernel.func"

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block, one slab after the other, with its barriers."""
        end, barriers = 0, 0
        for op in ops_in(self):
            if isinstance(op, SharedOp):
                end = -(-end // op.alignment) * op.alignment + op.size
            elif isinstance(op, MbarriersOp):
                barriers += op.size
        return end + barriers

    def verify_(self) -> None:
        self.verify_launch()
        if self.sizes is not None:
            raise VerifyException("sizes are arguments of a cuda.func only")
        if any(isinstance(op, SharedOp) and op.offset is not None for op in ops_in(self)):
            raise VerifyException("where shared memory lies is not decided before a cuda.func")
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
        if has_flat_addresses(self) and self.value.type not in (f32, f64, i32, i64):
            raise VerifyException(f"C++ shuffles 32- and 64-bit values, not {self.value.type}")
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
