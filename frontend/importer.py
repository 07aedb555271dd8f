"""Turns an exported PyTorch graph into Torch IR.

    y = torch.exp(x)          # model.py:3, as aten.exp.default(x)

becomes

    %exp = torch.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:1)

Only what is listed in the dialect is imported. What is not is collected, and reported all at once.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import torch
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dialects.torch import OPS_BY_ATEN
from ..dialects.torch_base import ScalarValue, TorchOp, argument_attr
from ..dialects.torch_ops import ScalarTensorOp
from ..dialects.torch_syntax import TensorArgument
from .arguments import Refused, overload_name, read_arguments
from .dtypes import ELEMENTS, tensor_type_of
from .unsupported import OpOverload, Unsupported, location_of

aten = torch.ops.aten

DROPPED = {aten._assert_tensor_metadata.default}
"""Assertions about shapes and dtypes, which export has checked."""

OF_COMPLEX_NUMBERS = {aten.view_as_real.default, aten.view_as_complex.default, aten._conj.default}
"""Other views of complex numbers, which PyTorch puts between the operators that the user called."""


class Importer:
    """Builds `@main` from a graph whose placeholders are its arguments."""

    def __init__(self) -> None:
        self.unsupported = Unsupported()
        self._values: dict[torch.fx.Node, list[SSAValue]] = {}
        self._block = Block()
        self._attributes: list[DictionaryAttr] = []

    def add_argument(
        self, node: torch.fx.Node, value: torch.Tensor, name: str, attributes: dict[str, str]
    ) -> None:
        """Make `node` an argument of `@main`; `attributes` say where its tensor comes from."""
        if (type := self._type(node, value)) is None:
            return
        argument = self._block.insert_arg(type, len(self._block.args))
        argument.name_hint = name
        self._values[node] = [argument]
        self._attributes.append(
            DictionaryAttr({key: StringAttr(text) for key, text in attributes.items()})
        )

    def add_call(self, node: torch.fx.Node) -> None:
        """Import one call, or note why it cannot be."""
        if node.target in DROPPED:
            return
        if node.target is operator.getitem:
            producer, index = node.args
            assert isinstance(producer, torch.fx.Node) and isinstance(index, int)
            if producer in self._values:
                self._values[node] = [self._values[producer][index]]
                self._values[node][0].name_hint = node.name
            return
        known = all(n in self._values for n in node.all_input_nodes)
        if node.target in OF_COMPLEX_NUMBERS and not known:
            return  # the cause, what made the complex numbers, is noted
        target: Any = node.target
        if not isinstance(target, OpOverload) or target.namespace != "aten":
            self.unsupported.add(node)
            return
        op_class = OPS_BY_ATEN.get(overload_name(node))
        if op_class is None:
            self.unsupported.add(node)
            return
        self._add_op(node, op_class)

    def _add_op(self, node: torch.fx.Node, op_class: type[TorchOp]) -> None:
        try:
            arguments = read_arguments(node, op_class)
        except Refused as refused:
            self.unsupported.add(node, str(refused))
            return
        # A call on values that could not be imported has its own cause reported already.
        if any(n not in self._values for n in node.all_input_nodes):
            return
        value: Any = node.meta["val"]
        results = list(value) if isinstance(value, (list, tuple)) else [value]
        types = [t for result in results if (t := self._type(node, result)) is not None]
        if len(types) < len(results):
            return
        tensors = [self._tensor(node, tensor) for tensor in arguments.tensors]
        op = op_class.build_op(tensors, arguments.properties, types)
        op.location = location_of(node)
        try:
            op.verify()
        except VerifyException as error:  # PyTorch allows what the dialect does not
            self.unsupported.add(node, str(error))
            return
        self._block.add_op(op)
        self._values[node] = list(op.results)
        for result in op.results:
            result.name_hint = node.name

    def _tensor(self, node: torch.fx.Node, tensor: Any) -> TensorArgument:
        match tensor:
            case None:
                return None
            case list():
                nodes: list[torch.fx.Node] = tensor
                return [self._values[each][0] for each in nodes]
            case torch.fx.Node():
                return self._values[tensor][0]
            case _:
                return self._number(node, tensor)

    def _number(self, node: torch.fx.Node, number: ScalarValue) -> SSAValue:
        """A number in a tensor's place, as a 0-d tensor that does not decide the result's type."""
        element: Attribute = i64
        if isinstance(number, bool):
            element = i1
        elif isinstance(number, float):
            result = ELEMENTS[node.meta["val"].dtype]
            element = f64 if result == f64 else f32
        op = ScalarTensorOp.build_op([], {"s": argument_attr(number)}, [TensorType(element, ())])
        op.location = location_of(node)
        self._block.add_op(op)
        return op.result

    def _type(self, node: torch.fx.Node, value: Any) -> TensorType | None:
        if not isinstance(value, torch.Tensor):
            self.unsupported.add(node, f"gives a {type(value).__name__}, not a tensor")
            return None
        if value.layout is not torch.strided:
            self.unsupported.add(node, f"layout {value.layout}")
            return None
        try:
            return tensor_type_of(value)
        except KeyError:
            self.unsupported.add(node, f"dtype {str(value.dtype).removeprefix('torch.')}")
        except TypeError as error:
            self.unsupported.add(node, str(error))
        return None

    def finish(self, outputs: Sequence[torch.fx.Node]) -> ModuleOp:
        """The module whose `@main` returns `outputs`. Raises UnsupportedOpError if anything was noted."""
        self.unsupported.raise_if_any()
        values = [self._values[node][0] for node in outputs]
        self._block.add_op(ReturnOp(*values))
        inputs: list[Attribute] = [argument.type for argument in self._block.args]
        function = FuncOp("main", (inputs, [v.type for v in values]), Region(self._block))
        if any(attributes.data for attributes in self._attributes):
            function.arg_attrs = ArrayAttr(self._attributes)
        module = ModuleOp([function])
        module.verify()
        return module
