"""Tensor IR that runs a function once per step of a leading axis.

%hs = tensor_ir.scan @step carried(%h) slices(%x) shared(%w)
  : (tensor<4xf32>, tensor<9x4xf32>, tensor<4x4xf32>) -> tensor<9x4xf32>

`@step` is a private function of the module: (carried, slices, shared) -> (carried, outputs). All passes
lower it as they lower `@main`; the IR never has a copy of it per step. Passes from `lift-to-loops` to
`tileify` leave the operation as it is, and the host form has it as `kernel.loop`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects import func
from xdsl.dialects.builtin import FlatSymbolRefAttrConstr, SymbolRefAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import Pure, SymbolTable
from xdsl.utils.exceptions import VerifyException

from .scalars import storage_bytes, verify_element
from .sizes import Extent, shape_of, tensor_of
from .syntax import tensor_type

SLICE_BYTES = 16
"""What the size of a slice in bytes must be a multiple of: the width of the widest vector access of a GPU,
whose address must be a multiple of it (CUDA C++ Programming Guide, "Device Memory Accesses")."""

GROUPS = ("carried", "slices", "shared")
"""The groups of operands of a scan."""


def is_aligned(element: Attribute, shape: Sequence[Extent]) -> bool:
    """Whether slices of `shape` that follow each other all begin at multiples of `SLICE_BYTES`."""
    known = prod(extent for extent in shape if isinstance(extent, int))
    return known * storage_bytes(element) % SLICE_BYTES == 0


@irdl_op_definition
class ScanOp(IRDLOperation):
    """Run a function once per step of the leading axis of the results, each step on what the one before gave.

    Step `t` gets the carried values, slice `t` of each of `slices`, and `shared` as it is. It gives the
    carried values of the next step, and then further outputs. Slice `t` of each result is what step `t`
    gave. With `reversed`, the last step runs first.
    ```
    %hs, %cs = tensor_ir.scan @step reversed carried(%h, %c) slices(%x) shared(%w)
      : (tensor<4xf32>, tensor<4xf32>, tensor<9x4xf32>, tensor<4x4xf32>) -> (tensor<9x4xf32>, tensor<9x4xf32>)
    ```
    """

    name = "tensor_ir.scan"

    step = prop_def(FlatSymbolRefAttrConstr)
    reversed = opt_prop_def(UnitAttr)
    carried = var_operand_def(TensorType)
    slices = var_operand_def(TensorType)
    shared = var_operand_def(TensorType)
    stacks = var_result_def(TensorType)

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())

    def __init__(
        self,
        step: str,
        operands: Sequence[Sequence[SSAValue]],
        result_types: Sequence[Attribute],
        *,
        reversed: bool = False,
    ):
        super().__init__(
            operands=[list(group) for group in operands],
            properties={
                "step": SymbolRefAttr(step),
                "reversed": UnitAttr() if reversed else None,
            },
            result_types=[list(result_types)],
        )

    @property
    def trips(self) -> Extent:
        """How many steps there are."""
        return shape_of(tensor_type(self.stacks[0]))[0]

    def step_types(self) -> tuple[list[TensorType], list[TensorType]]:
        """The types of what the function takes, and of what it gives."""
        taken = [tensor_type(v) for v in self.carried]
        taken += [_slice_type(tensor_type(v)) for v in self.slices]
        taken += [tensor_type(v) for v in self.shared]
        return taken, [_slice_type(tensor_type(v)) for v in self.stacks]

    def verify_(self) -> None:
        if not self.stacks:
            raise VerifyException("must have a result")
        for value in (*self.operands, *self.results):
            verify_element(tensor_type(value).element_type)
        stacked = [tensor_type(value) for value in (*self.slices, *self.stacks)]
        extents = [shape_of(each)[:1] for each in stacked]
        if any(extent != extents[0] or extent in ((), (0,)) for extent in extents):
            raise VerifyException(
                "slices and results need one number of steps, not 0, as their first axis, got "
                + ", ".join(map(str, stacked))
            )
        for each in stacked:
            if not is_aligned(each.element_type, shape_of(each)[1:]):
                raise VerifyException(f"slices of {each} are no multiple of {SLICE_BYTES} bytes")
        taken, given = self.step_types()
        if given[: len(self.carried)] != taken[: len(self.carried)]:
            raise VerifyException(
                f"carries {_listed(taken[: len(self.carried)])}, but its first results have slices "
                f"{_listed(given[: len(self.carried)])}"
            )
        self._verify_step(taken, given)

    def _verify_step(self, taken: Sequence[Attribute], given: Sequence[Attribute]) -> None:
        """Raise VerifyException unless the module has a function of these types."""
        step = SymbolTable.lookup_symbol(self, self.step)
        if self.parent_op() is None:
            return
        name = self.step.root_reference.data
        if not isinstance(step, func.FuncOp):
            raise VerifyException(f"there is no function @{name}")
        type = step.function_type
        if (list(type.inputs), list(type.outputs)) != (list(taken), list(given)):
            raise VerifyException(
                f"needs a function ({_listed(taken)}) -> ({_listed(given)}), but @{name} is {type}"
            )

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.step)
        if self.reversed is not None:
            printer.print_string(" reversed")
        print_groups(printer, self, GROUPS)

    @classmethod
    def parse(cls, parser: Parser) -> ScanOp:
        step = parser.parse_symbol_name()
        reversed = parser.parse_optional_keyword("reversed") is not None
        operands, results, attributes = parse_groups(parser, GROUPS)
        op = cls(step.data, operands, results, reversed=reversed)
        op.attributes |= attributes
        return op


def print_groups(printer: Printer, op: IRDLOperation, names: Sequence[str]) -> None:
    """Print ` carried(%h) slices(%x)` and so on, the attributes, and the types."""
    for name in names:
        printer.print_string(f" {name}")
        printer.print_operands(getattr(op, name))
    printer.print_op_attributes(op.attributes, print_keyword=True)
    printer.print_string(" : ")
    printer.print_function_type(op.operand_types, op.result_types)


def parse_groups(
    parser: Parser, names: Sequence[str]
) -> tuple[list[list[SSAValue]], Sequence[Attribute], dict[str, Attribute]]:
    """Parse what `print_groups` prints: the operands of each group, the types of results, and attributes."""
    groups: list[list[UnresolvedOperand]] = []
    for name in names:
        parser.parse_keyword(name)
        groups.append(
            parser.parse_comma_separated_list(
                parser.Delimiter.PAREN, parser.parse_unresolved_operand
            )
        )
    attributes = parser.parse_optional_attr_dict_with_keyword()
    parser.parse_punctuation(":")
    pos = parser.pos
    signature = parser.parse_function_type()
    given = [name for group in groups for name in group]
    if len(given) != len(signature.inputs):
        parser.raise_error(
            f"{len(given)} operands need as many types, got {len(signature.inputs)}", pos
        )
    values = iter(parser.resolve_operands(given, signature.inputs.data, pos))
    operands = [[next(values) for _ in group] for group in groups]
    return operands, signature.outputs.data, dict(attributes.data) if attributes else {}


def _slice_type(stack: TensorType) -> TensorType:
    return tensor_of(stack.element_type, shape_of(stack)[1:])


def _listed(types: Sequence[Attribute]) -> str:
    return ", ".join(map(str, types))
