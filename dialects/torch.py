"""The `torch` dialect: the captured program, one operation per ATen operator.

    %rms_norm = torch.rms_norm %x, %p_weight {normalized_shape = [2048], eps = 1.1920929e-07 : f64}
      : (tensor<1x32x2048xf32>, tensor<2048xf32>) -> tensor<1x32x2048xf32>

The classes in `torch_ops.py` are generated from PyTorch's schemas; nothing here needs PyTorch. What
they share is in `torch_base.py`, their text form in `torch_syntax.py`, their checks of shapes in
`torch_shapes.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute, Dialect, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .scalars import verify_element
from .syntax import tensor_type
from .torch_base import INT, TorchOp, argument_attr
from .torch_ops import TORCH_OPS
from .torch_shapes import IndexShapeOp


@irdl_op_definition
class IndexOp(IndexShapeOp):
    """`aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor`

    Not generated, as the schema's list may have gaps: here it has none and starts at axis `dim`.
    ```
    %y = torch.index %x, [%i, %j] {dim = 1}
      : (tensor<2x8x9xf32>, tensor<4x1xi64>, tensor<3xi64>) -> tensor<2x4x3xf32>
    ```
    """

    name = "torch.index"
    ATEN: ClassVar[str] = "index.Tensor"

    input = operand_def(TensorType)
    indices = var_operand_def(TensorType)
    dim = prop_def(INT, default_value=argument_attr(0))
    result = result_def(TensorType)

    traits = traits_def(Pure())


ALL_OPS: list[type[TorchOp]] = [*TORCH_OPS, IndexOp]
"""Every operation that stands for an ATen overload."""

OPS_BY_ATEN: dict[str, type[TorchOp]] = {op.ATEN: op for op in ALL_OPS}
"""The operation class for each ATen overload of the contract, such as `add.Tensor`."""


@irdl_op_definition
class CallOp(IRDLOperation):
    """The explicit escape: PyTorch itself runs the operator. Assumed to have effects.

    Tensor operands are in schema order; `arguments` holds what is not a tensor.
    ```
    %u, %s = torch.call "aten.foo.default"(%x) {full = false}
      : (tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4xf32>)
    ```
    """

    name = "torch.call"

    callee = prop_def(StringAttr)
    arguments = opt_prop_def(DictionaryAttr)
    inputs = var_operand_def(TensorType)
    outputs = var_result_def(TensorType)

    def __init__(
        self,
        callee: str,
        inputs: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        arguments: DictionaryAttr | None = None,
    ):
        super().__init__(
            operands=[inputs],
            properties={"callee": StringAttr(callee), "arguments": arguments},
            result_types=[list(result_types)],
        )

    def verify_(self) -> None:
        if self.callee.data.count(".") < 2:
            raise VerifyException(
                f"callee must read namespace.operator.overload, got {self.callee.data!r}"
            )
        for value in (*self.operands, *self.results):
            verify_element(tensor_type(value).element_type)

    def print(self, printer: Printer) -> None:
        printer.print_string(" ")
        printer.print_attribute(self.callee)
        printer.print_operands(self.inputs)
        if self.arguments is not None and self.arguments.data:
            printer.print_string(" ")
            printer.print_attr_dict(self.arguments.data)
        if self.attributes:
            printer.print_string(" attributes ")
            printer.print_attr_dict(self.attributes)
        printer.print_string(" : ")
        printer.print_function_type(self.operand_types, self.result_types)

    @classmethod
    def parse(cls, parser: Parser) -> CallOp:
        callee = parser.parse_str_literal()
        names = parser.parse_comma_separated_list(
            parser.Delimiter.PAREN, parser.parse_unresolved_operand
        )
        arguments = parser.parse_optional_attr_dict()
        attributes = parser.parse_optional_attr_dict_with_keyword()
        parser.parse_punctuation(":")
        pos = parser.pos
        signature = parser.parse_function_type()
        inputs = parser.resolve_operands(names, signature.inputs.data, pos)
        op = CallOp(
            callee,
            inputs,
            signature.outputs.data,
            DictionaryAttr(arguments) if arguments else None,
        )
        op.attributes |= attributes.data if attributes else {}
        return op


Torch = Dialect("torch", [*ALL_OPS, CallOp], [])
