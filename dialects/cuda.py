"""The `cuda` dialect: one operation per C++ construct, so that printing decides nothing.

    cuda.func @k_sum(%x: memref<65536xf32>, %y: memref<32xf32>) blocks(32) threads(256) index(i32) {
      %row = kernel.block_id
      %zero = cuda.literal 0.0 : f32
      %acc = cuda.variable %zero : f32
      cuda.for %k = 0 to 2048 {
        %v = loop.load %x[%row * 2048 + %k] : memref<65536xf32>
        %s = cuda.binary "+" %acc, %v : (f32, f32) -> f32
        cuda.assign %acc, %s : f32
      }
      loop.store %acc, %y[%row] : memref<32xf32>
    }

What C++ adds is here: declarations, literals, expressions, control flow. What a thread does with memory and
with others, it does by the operations of `loop` and `kernel`, one of them an instruction or a declaration.
Memory is one row of elements, so that an index is the offset in it. Types are C++'s: i32 is `int`, i64
`long long`, i1 `bool`, `index` whichever of the first two the function says; f16 and bf16 values are their
bits, which only loads, stores, selects and conversions touch. A `cuda.variable` is a mutable local: using it
reads its value at that moment.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from xdsl.dialects.builtin import (
    ArrayAttr,
    FunctionType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    StringAttr,
    SymbolNameConstraint,
    i32,
    i64,
)
from xdsl.ir import (
    Dialect,
    Region,
)
from xdsl.ir.affine import AffineSymExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    IsolatedFromAbove,
    NoTerminator,
    SymbolOpInterface,
)
from xdsl.utils.exceptions import VerifyException

from .cuda_arithmetic import BinaryOp, CallOp, CastOp, PtxOp, SelectOp, UnaryOp
from .cuda_control import ForOp, IfOp, TrapOp
from .cuda_values import IDENTIFIER, AssignOp, LiteralOp, VariableOp
from .inside import ops_in
from .kernel import (
    parse_bounds,
    parse_geometry,
    parse_index_type,
    print_bounds,
    print_geometry,
    verify_bounds,
    verify_geometry,
)
from .kernel_bulk import verify_clusters
from .kernel_shared import SharedOp
from .mbarriers import MbarriersOp
from .scalars import verify_bits
from .sizes import Extent, ExtentAttr, Size, parse_extent
from .tensor_map import TensorMapType

# --------------------------------------------------------------------------- functions


@irdl_op_definition
class FuncOp(IRDLOperation):
    """A `__global__` function with its launch bounds; see the dialect's example.

    `resident(2)` after the threads is the second launch bound: blocks that a multiprocessor must have room
    for; `cluster(2)` are its `__cluster_dims__`. `sizes(s0, s2)` after the index type are dynamic sizes it
    uses: arguments behind the pointers.
    """

    name = "cuda.func"

    sym_name = prop_def(SymbolNameConstraint())
    function_type = prop_def(FunctionType)
    blocks = prop_def(ExtentAttr)
    threads = prop_def(IntegerAttr.constr(i64))
    resident = opt_prop_def(IntegerAttr.constr(i64))
    cluster = opt_prop_def(IntegerAttr.constr(i64))
    index_type = prop_def(IntegerType)
    sizes = opt_prop_def(ArrayAttr[IntAttr])
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), SymbolOpInterface())

    def __init__(
        self,
        sym_name: str,
        body: Region,
        blocks: Extent,
        threads: int,
        index_type: IntegerType,
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

    @property
    def parts(self) -> list[SharedOp]:
        """The parts of the shared memory that its launch asks for."""
        return [op for op in ops_in(self) if isinstance(op, SharedOp) and op.offset is not None]

    @property
    def launch_shared_bytes(self) -> int:
        """Bytes of shared memory that its launch asks for."""
        return max((op.place[1] for op in self.parts if op.place is not None), default=0)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block, declared or asked for."""
        declared = (
            op.size
            for op in ops_in(self)
            if isinstance(op, MbarriersOp) or (isinstance(op, SharedOp) and op.offset is None)
        )
        return self.launch_shared_bytes + sum(declared)

    def verify_(self) -> None:
        verify_geometry(self.blocks.data, self.threads.value.data)
        verify_bounds(self.blocks.data, self.resident, self.cluster)
        verify_clusters(ops_in(self), self.cluster)
        if self.index_type not in (i32, i64):
            raise VerifyException(f"index arithmetic is in i32 or i64, got {self.index_type}")
        if not IDENTIFIER.fullmatch(self.sym_name.data):
            raise VerifyException(f"{self.sym_name.data!r} is not a C++ identifier")
        if tuple(self.body.block.arg_types) != tuple(self.function_type.inputs):
            raise VerifyException("the body's arguments differ from the function type")
        for argument in self.body.block.args:
            if not isinstance(argument.type, MemRefType | TensorMapType):
                raise VerifyException(f"arguments are memrefs or tensor maps, got {argument.type}")
        self._verify_memory()
        places = sorted(op.place for op in self.parts if op.place is not None)
        for (first, end), (begin, _) in pairwise(places):
            if begin < end:
                raise VerifyException(
                    f"shared memory at {first} ends at {end}, that at {begin} begins before"
                )

    def _verify_memory(self) -> None:
        """Raise unless memory is rows of elements."""
        results = [result for op in ops_in(self) for result in op.results]
        for value in (*self.body.block.args, *results):
            if isinstance(value.type, MemRefType):
                verify_bits(value.type.element_type)
                if value.type.get_num_dims() != 1:
                    raise VerifyException(f"memory is one row of elements, got {value.type}")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        with printer.in_parens():
            printer.print_list(self.body.block.args, printer.print_block_argument)
        print_geometry(printer, self.blocks.data, self.threads.value.data)
        print_bounds(printer, self.resident, self.cluster)
        printer.print_string(f" index({self.index_type}) ")
        if self.size_arguments:
            printer.print_string(f"sizes({', '.join(f's{i}' for i in self.size_arguments)}) ")
        printer.print_region(self.body, print_entry_block_args=False, print_empty_block=False)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> FuncOp:
        sym_name = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        blocks, threads = parse_geometry(parser)
        resident, cluster = parse_bounds(parser)
        parser.parse_keyword("index")
        index_type = parse_index_type(parser)
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


Cuda = Dialect(
    "cuda",
    [
        FuncOp,
        LiteralOp,
        UnaryOp,
        BinaryOp,
        SelectOp,
        CallOp,
        PtxOp,
        CastOp,
        VariableOp,
        AssignOp,
        ForOp,
        IfOp,
        TrapOp,
    ],
)
