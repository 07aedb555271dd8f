"""Torch IR that runs a part of the program once per step of a leading axis.

%h, %hs = torch.scan carried(%h0) slices(%x) shared(%w)
    : (tensor<2x4xf32>, tensor<9x2x4xf32>, tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<9x2x4xf32>) {
^bb0(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>, %c: tensor<4x4xf32>):
  %0 = torch.mm %a, %c : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = torch.add %0, %b : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
  torch.yield %1, %1 : tensor<2x4xf32>, tensor<2x4xf32>
}
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Self

from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.dialects.utils import AbstractYieldOperation
from xdsl.ir import Attribute, Region, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    irdl_op_definition,
    lazy_traits_def,
    opt_prop_def,
    region_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import HasParent, IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from .sizes import shape_of, tensor_of
from .syntax import tensor_type
from .tensor_ir_scan import GROUPS, parse_groups, print_groups
from .torch_base import TorchOp


@irdl_op_definition
class YieldOp(AbstractYieldOperation[Attribute]):
    """What a step of a scan gives: `torch.yield %h, %y : tensor<4xf32>, tensor<4xf32>`."""

    name = "torch.yield"

    traits = lazy_traits_def(lambda: (HasParent(ScanOp), IsTerminator(), Pure()))


@irdl_op_definition
class ScanOp(TorchOp):
    """`torch.scan`: run a part of the program once per step of the leading axis of `slices`.

    Step `t` gets the carried values, slice `t` of each of `slices`, and `shared` as it is. It gives the
    carried values of the next step, and then further outputs. The results are the last carried values, and
    each output of all steps. With `reversed`, the last step runs first.
    ```
    %h, %hs = torch.scan carried(%h0) slices(%x) shared()
        : (tensor<4xf32>, tensor<9x4xf32>) -> (tensor<4xf32>, tensor<9x4xf32>) {
    ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
      %0 = torch.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
      torch.yield %0, %0 : tensor<4xf32>, tensor<4xf32>
    }
    ```
    """

    name = "torch.scan"
    ATEN: ClassVar[str] = "scan"

    reversed = opt_prop_def(UnitAttr)
    carried = var_operand_def(TensorType)
    slices = var_operand_def(TensorType)
    shared = var_operand_def(TensorType)
    results_ = var_result_def(TensorType)
    body = region_def("single_block")

    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(IsolatedFromAbove(), Pure())

    @classmethod
    def of_body(
        cls,
        operands: Sequence[Sequence[SSAValue]],
        result_types: Sequence[Attribute],
        body: Region,
        *,
        reversed: bool = False,
    ) -> Self:
        """A scan over carried values, slices and shared values."""
        return cls.build(
            operands=[list(group) for group in operands],
            properties={"reversed": UnitAttr() if reversed else None},
            result_types=[list(result_types)],
            regions=[body],
        )

    def verify_(self) -> None:
        if not self.slices or not self.carried:
            raise VerifyException("needs a carried value, and slices")
        trips = {shape_of(tensor_type(value))[:1] for value in self.slices}
        if len(trips) != 1 or trips & {(), (0,)}:
            raise VerifyException("slices need one number of steps, not 0, as their first axis")
        carried = [tensor_type(value) for value in self.carried]
        sliced = [tensor_type(value) for value in self.slices]
        taken = carried + [tensor_of(t.element_type, shape_of(t)[1:]) for t in sliced]
        taken += [tensor_type(value) for value in self.shared]
        if list(self.body.block.arg_types) != taken:
            raise VerifyException(f"its body must take {', '.join(map(str, taken))}")
        last = self.body.block.last_op
        if not isinstance(last, YieldOp):
            raise VerifyException("its body must end with torch.yield")
        given = [tensor_type(value) for value in last.arguments]
        (lead,) = trips
        outputs = given[len(carried) :]
        results = carried + [tensor_of(t.element_type, (*lead, *shape_of(t))) for t in outputs]
        if given[: len(carried)] != carried or list(self.result_types) != results:
            raise VerifyException("its body or its results do not fit what it carries and yields")

    def print(self, printer: Printer) -> None:
        if self.reversed is not None:
            printer.print_string(" reversed")
        print_groups(printer, self, GROUPS)
        printer.print_string(" ")
        printer.print_region(self.body)

    @classmethod
    def parse(cls, parser: Parser) -> Self:
        reversed = parser.parse_optional_keyword("reversed") is not None
        operands, results, attributes = parse_groups(parser, GROUPS)
        op = cls.of_body(operands, results, parser.parse_region(), reversed=reversed)
        op.attributes |= attributes
        return op
