"""The `loop` dialect: fused loop nests that know no hardware.

    %y = loop.kernel @k_exp(%x) : (tensor<4x8xf32>) -> tensor<4x1xf32> {
    ^bb0(%xv: memref<4x8xf32>, %out: memref<4x1xf32>):
      loop.for %i = 0 to 4 {
        %sum = loop.for %k = 0 to 8 reduce(add) -> f32 {
          %v = loop.load %xv[%i, %k] : memref<4x8xf32>
          loop.yield %v : f32                    // a contribution; the loop folds it with `add`
        }
        %e = math.exp %sum : f32
        loop.store %e, %out[%i, 0] : memref<4x1xf32>
      }
    }

A kernel takes and gives tensors, so kernels are values at graph level. Inside, arguments are the inputs
and then the outputs; loads read inputs only and every element of every output is stored exactly once.
Loops count from 0 to an extent: a number, or an expression over the program's dynamic sizes. One may end
earlier, at a limit that is computed from other counters.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from xdsl.dialects.builtin import (
    AffineMapAttr,
    ArrayAttr,
    FunctionType,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
)
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import (
    Attribute,
    Block,
    BlockArgument,
    Dialect,
    Operation,
    Region,
    SSAValue,
)
from xdsl.ir.affine import AffineExpr
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import (
    HasParent,
    IsolatedFromAbove,
    IsTerminator,
    NoTerminator,
    Pure,
    RecursiveMemoryEffect,
    SingleBlockImplicitTerminator,
    ensure_terminator,
)
from xdsl.utils.exceptions import VerifyException

from ..index.text import parse_index_expr, print_index_expr
from .index import Index, OperandNames, index_properties, verify_one_index
from .inside import ops_in
from .loop_access import (
    INDEX,
    AccumulateOp,
    AssertOp,
    CheckedIndexOp,
    IndexOp,
    LoadOp,
    PrefetchOp,
    RegistersOp,
    StoreOp,
    TestOp,
)
from .loop_transpose import TransposeOp
from .scalars import Combiner, CombinerAttr, bits_of, verify_combiners, verify_element
from .sizes import Extent, ExtentAttr, memref_of, parse_extent, print_extent, shape_of


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """Gives one contribution per reduction of the enclosing loop: `loop.yield %v : f32`."""

    name = "loop.yield"

    traits = lazy_traits_def(lambda: (HasParent(ForOp), IsTerminator(), Pure()))


@irdl_op_definition
class ForOp(IRDLOperation):
    """Count from 0 to an extent.

    Iterations of a loop without results are independent. A `reduce` loop folds what its body yields,
    one combiner per result; with no iterations it gives the combiners' identities. `max, weight, mean` fold
    together: contributions are exponents, weights and values (`scalars.verify_combiners`).
    ```
    loop.for %i = 0 to 32 { ... }
    %s, %m = loop.for %k = 0 to s0 reduce(add, max) -> f32, f32 { ... loop.yield %a, %b : f32, f32 }
    %x, %l, %v = loop.for %j = 0 to 8 reduce(max, weight, mean) -> f32, f32, f32 { ... }
    loop.for %j = 0 to min(32, %i + 1) { ... }       // ends at a limit, if that is less than the extent
    ```
    """

    name = "loop.for"

    extent = prop_def(ExtentAttr)
    combiners = prop_def(ArrayAttr[CombinerAttr])
    limit_map = opt_prop_def(AffineMapAttr)
    limit_operands = var_operand_def(INDEX)
    res = var_result_def()
    body = region_def("single_block")

    traits = traits_def(SingleBlockImplicitTerminator(YieldOp), RecursiveMemoryEffect())

    def __init__(
        self,
        extent: Extent,
        body: Region,
        *,
        combiners: Sequence[Combiner] = (),
        result_types: Sequence[Attribute] = (),
        limit: Index | None = None,
    ):
        limit_map, operands = (None, []) if limit is None else index_properties(limit)
        super().__init__(
            operands=[operands],
            properties={
                "extent": ExtentAttr(extent),
                "combiners": ArrayAttr([CombinerAttr(c) for c in combiners]),
                "limit_map": limit_map,
            },
            result_types=[result_types],
            regions=[body],
        )
        for trait in self.get_traits_of_type(SingleBlockImplicitTerminator):
            ensure_terminator(self, trait)

    @property
    def induction_var(self) -> BlockArgument:
        """The counter."""
        return self.body.block.args[0]

    @property
    def limit(self) -> AffineExpr | None:
        """Where it ends if that is before its extent, an expression over `limit_operands`."""
        return None if self.limit_map is None else self.limit_map.data.results[0]

    @property
    def never_runs(self) -> bool:
        """Whether it has no iterations; a loop over a dynamic extent without a limit has at least one."""
        return self.extent.data == 0

    @property
    def yielded(self) -> Sequence[SSAValue]:
        """The contributions of one iteration."""
        terminator = self.body.block.last_op
        assert isinstance(terminator, YieldOp)
        return terminator.arguments

    def verify_(self) -> None:
        extent = self.extent.data
        if isinstance(extent, int) and extent < 0:
            raise VerifyException(f"extent must not be negative, got {extent}")
        if tuple(self.body.block.arg_types) != (INDEX,):
            raise VerifyException("body must take exactly the loop counter, an index")
        if self.limit_map is not None:
            verify_one_index(self.limit_map, self.limit_operands, "the limit of a loop")
        if len(self.combiners) != len(self.res):
            raise VerifyException(f"{len(self.combiners)} combiners for {len(self.res)} results")
        verify_combiners([combiner.data for combiner in self.combiners], self.res.types)
        types = tuple(value.type for value in self.yielded)
        if types != tuple(self.res.types):
            listed = ", ".join(map(str, types)), ", ".join(map(str, self.res.types))
            raise VerifyException(f"yields ({listed[0]}) but gives results ({listed[1]})")

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_block_argument(self.induction_var, print_type=False)
        printer.print_string(" = 0 to ")
        if self.limit is None:
            print_extent(printer, self.extent.data)
        else:
            printer.print_string("min(")
            print_extent(printer, self.extent.data)
            printer.print_string(", ")
            names = self.limit_operands
            print_index_expr(printer, self.limit, lambda i: printer.print_ssa_value(names[i]))
            printer.print_string(")")
        if self.res:
            printer.print_string(" reduce")
            with printer.in_parens():
                printer.print_list(self.combiners, lambda c: printer.print_string(c.data))
            printer.print_string(" -> ")
            printer.print_list(self.res.types, printer.print_attribute)
        printer.print_string(" ")
        printer.print_region(
            self.body, print_entry_block_args=False, print_block_terminators=bool(self.res)
        )
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> ForOp:
        counter = parser.parse_argument(expect_type=False).resolve(INDEX)
        parser.parse_punctuation("=")
        pos = parser.pos
        if parser.parse_integer(allow_boolean=False) != 0:
            parser.raise_error("loops count from 0; put the offset into the index", pos)
        parser.parse_keyword("to")
        limit: Index | None = None
        if parser.parse_optional_keyword("min"):
            parser.parse_punctuation("(")
            extent = parse_extent(parser)
            parser.parse_punctuation(",")
            names = OperandNames(parser)
            expr = parse_index_expr(parser, names.parse_dim)
            limit = [expr], [parser.resolve_operand(each, INDEX) for each in names.operands]
            parser.parse_punctuation(")")
        else:
            extent = parse_extent(parser)
        combiners: list[Combiner] = []
        result_types: list[Attribute] = []
        if parser.parse_optional_keyword("reduce"):
            combiners = parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, lambda: parser.parse_str_enum(Combiner)
            )
            parser.parse_punctuation("->")
            result_types = list(
                parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
            )
        body = parser.parse_region((counter,))
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(extent, body, combiners=combiners, result_types=result_types, limit=limit)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


@irdl_op_definition
class KernelOp(IRDLOperation):
    """One kernel: tensors in, tensors out; see the dialect's example."""

    name = "loop.kernel"

    sym_name = prop_def(SymbolNameConstraint())
    inputs = var_operand_def()
    outputs = var_result_def(TensorType)
    body = region_def("single_block")

    traits = traits_def(IsolatedFromAbove(), NoTerminator(), Pure())

    def __init__(
        self,
        sym_name: str,
        inputs: Sequence[SSAValue],
        output_types: Sequence[Attribute],
        body: Region | None = None,
    ):
        if body is None:
            types = [*(v.type for v in inputs), *output_types]
            body = Region(Block(arg_types=[self.buffer_type(t) for t in types]))
        super().__init__(
            operands=[inputs],
            properties={"sym_name": StringAttr(sym_name)},
            result_types=[output_types],
            regions=[body],
        )

    @staticmethod
    @lru_cache(4096)
    def buffer_type(type: Attribute) -> Attribute:
        """The type of the body's argument for an input or output of `type`."""
        if isinstance(type, TensorType):
            return memref_of(bits_of(type.element_type), shape_of(type))
        return type

    @property
    def input_args(self) -> Sequence[BlockArgument]:
        """The block arguments that hold the inputs."""
        return self.body.block.args[: len(self.inputs)]

    @property
    def output_args(self) -> Sequence[BlockArgument]:
        """The block arguments that the outputs are stored to."""
        return self.body.block.args[len(self.inputs) :]

    def verify_(self) -> None:
        if not self.outputs:
            raise VerifyException("a kernel has at least one output")
        for value in self.inputs:
            if not isinstance(value.type, TensorType):
                raise VerifyException(f"inputs are tensors, got {value.type}")
        types = [*self.inputs.types, *self.outputs.types]
        for t in types:
            if isinstance(t, TensorType):
                verify_element(t.element_type)
        expected = tuple(self.buffer_type(t) for t in types)
        if tuple(self.body.block.arg_types) != expected:
            listed = ", ".join(map(str, expected))
            raise VerifyException(f"body must take the inputs and the outputs: ({listed})")
        stored: set[SSAValue] = set()
        for op in ops_in(self.body):
            self._verify_access(op, stored)
        for position, output in enumerate(self.output_args):
            if output not in stored:
                raise VerifyException(f"output #{position} is never stored")

    def _verify_access(self, op: Operation, stored: set[SSAValue]) -> None:
        if op.name.startswith(("kernel.", "cuda.", "memref.")):
            raise VerifyException(f"'{op.name}' stands in a loop.kernel, which knows no device")
        if not isinstance(op, StoreOp | AccumulateOp) and set(op.operands) & set(self.output_args):
            raise VerifyException(f"{op.name} loads from an output; a kernel reads its inputs only")
        if isinstance(op, StoreOp):
            if op.memref in self.input_args:
                raise VerifyException("stores to an input; a kernel writes its outputs only")
            if op.memref not in self.output_args and not isinstance(op.memref.owner, RegistersOp):
                raise VerifyException("stores to what is neither an output nor loop.registers")
            stored.add(op.memref)
        if isinstance(op, AccumulateOp):
            if op.memref not in self.output_args or op.start not in self.input_args:
                raise VerifyException("accumulates in an output, which begins as an input")
            for use in (*op.start.uses, *op.memref.uses):
                other = use.operation
                pair = isinstance(other, AccumulateOp) and (other.start, other.memref)
                if pair != (op.start, op.memref):
                    raise VerifyException(
                        "an output that is accumulated in, and the input that it begins as, have "
                        "no other use"
                    )
            stored.add(op.memref)

    @property
    def replaced_inputs(self) -> dict[int, int]:
        """The outputs that begin as inputs and take their place, by position."""
        found = [op for op in ops_in(self.body) if isinstance(op, AccumulateOp)]
        inputs, outputs = list(self.input_args), list(self.output_args)
        return {
            outputs.index(op.memref): inputs.index(op.start)  # pyright: ignore[reportArgumentType]
            for op in found
        }

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_symbol_name(self.sym_name.data)
        printer.print_operands(self.inputs)
        printer.print_string(" : ")
        printer.print_function_type(self.inputs.types, self.outputs.types)
        printer.print_string(" ")
        printer.ssa_names.clear()  # the body sees no outer name, so it may reuse them all
        printer.print_region(self.body)
        printer.print_op_attributes(self.attributes, print_keyword=True)

    @classmethod
    def parse(cls, parser: Parser) -> KernelOp:
        sym_name = parser.parse_symbol_name()
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        parser.parse_punctuation(":")
        pos = parser.pos
        function_type: FunctionType = parser.parse_function_type()
        inputs = parser.resolve_operands(names, function_type.inputs.data, pos)
        outer, parser.ssa_values = parser.ssa_values, {}
        body = parser.parse_region()
        parser.ssa_values = outer
        attributes = parser.parse_optional_attr_dict_with_keyword()
        op = cls(sym_name.data, inputs, function_type.outputs.data, body)
        if attributes is not None:
            op.attributes |= attributes.data
        return op


Loop = Dialect(
    "loop",
    [
        LoadOp,
        StoreOp,
        AccumulateOp,
        IndexOp,
        TestOp,
        CheckedIndexOp,
        AssertOp,
        PrefetchOp,
        RegistersOp,
        TransposeOp,
        YieldOp,
        ForOp,
        KernelOp,
    ],
    [],
)
