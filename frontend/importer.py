"""Turns an exported PyTorch graph into Torch IR.

    y = torch.exp(x)          # model.py:3, as aten.exp.default(x)

becomes

    %exp = torch.exp %x : (tensor<4xf32>) -> tensor<4xf32> loc("model.py":3:1)

Only what is listed in the dialect is imported. What is not is collected and reported all at once, or with
`fallback="eager"` becomes a `torch.call`, which says why.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Literal, cast

import torch
from torch._ops import HigherOrderOperator
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    IntegerAttr,
    ModuleOp,
    StringAttr,
    TensorType,
    f32,
    f64,
    i1,
    i64,
)
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.utils.exceptions import VerifyException

from ..dialects.allowed_sizes import SIZES, allowing
from ..dialects.calls import FALLBACK, OPAQUE, REASON
from ..dialects.sizes import Size
from ..dialects.syntax import tensor_type
from ..dialects.torch import OPS_BY_ATEN
from ..dialects.torch_base import ScalarValue, argument_attr
from ..dialects.torch_ops import ScalarTensorOp
from ..dialects.torch_syntax import TensorArgument
from .arguments import overload_name, read_arguments, tensor_inputs
from .calls import read_call
from .complex_values import PARTS
from .counter_random import REASON as SEED
from .counter_random import is_seed
from .devices import CPU, refusal_of_call
from .dtypes import ELEMENTS, OPAQUE_ELEMENTS, tensor_type_of
from .imported_parts import import_parts
from .sizes import Refused, Sizes, is_symbolic
from .unsupported import OpOverload, Unsupported, location_of

aten = torch.ops.aten

Fallback = Literal["error", "eager"]
"""What becomes of an operator that deplo does not support: an error, or a call of PyTorch."""

DROPPED = {aten._assert_tensor_metadata.default}
"""Assertions about shapes and dtypes, which export has checked."""

OF_SHAPES = {aten.sym_size.int, aten.sym_numel.default}
"""What gives sizes of tensors. Others, such as `item`, give numbers that depend on values."""

ASSERTIONS = {
    aten._assert_scalar.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
}
"""Assertions about numbers, which hold if they follow from the ranges of the sizes."""

ADDED_BY_PYTORCH = {
    aten.view_as_real.default,
    aten.view_as_complex.default,
    aten._conj.default,
    aten._linalg_check_errors.default,
}
"""What PyTorch puts between the operators that the user called: other views of complex numbers, checks."""

CHECKS = {aten._assert_async.default, aten._linalg_check_errors.default}
"""Checks of values that PyTorch's `is_impure` does not count as such."""


def has_effect(node: torch.fx.Node) -> bool:
    """Whether a node does something besides giving its results: draws random numbers, or checks."""
    return node.target in CHECKS or node.is_impure()


def _place(producer: torch.fx.Node, index: int) -> int:
    """Where a result is among those of an operation: of some that were not asked for, there are None."""
    values: Sequence[Any] = producer.meta["val"]
    return sum(value is not None for value in values[:index])


class Importer:
    """Builds `@main` from a graph whose placeholders are its arguments."""

    def __init__(
        self,
        fallback: Fallback = "error",
        sizes: Sizes | None = None,
        device: torch.device = CPU,
    ) -> None:
        self.fallback: Fallback = fallback
        self.device = device
        self.sizes = Sizes() if sizes is None else sizes
        self.unsupported = Unsupported(offers_fallback=fallback == "error")
        self.unknown: set[torch.fx.Node] = set()
        """Calls of which it is noted already why they cannot be imported."""
        self.reasons: dict[torch.fx.Node, str] = {}
        """Calls that PyTorch is to run, with why."""
        self.values: dict[torch.fx.Node, list[SSAValue]] = {}
        self.block = Block()
        self.functions: list[FuncOp] = []
        """The parts of the program that calls run."""
        self._attributes: list[DictionaryAttr] = []

    def inside(self, fallback: Fallback) -> Importer:
        """What imports a part of the program."""
        inner = Importer(fallback, self.sizes, self.device)
        inner.unsupported, inner.functions = self.unsupported, self.functions
        return inner

    def fresh(self, name: str) -> str:
        """A name that no part of the program has."""
        taken = {"main", *(function.sym_name.data for function in self.functions)}
        names = (name, *(f"{name}_{i}" for i in range(1, len(taken) + 1)))
        return next(each for each in names if each not in taken)

    def add_argument(
        self, node: torch.fx.Node, value: torch.Tensor, name: str, attributes: dict[str, str]
    ) -> None:
        """Make `node` an argument of `@main`; `attributes` say where its tensor comes from."""
        try:
            type = self._type(value, crosses=True)
        except Refused as reason:
            self.unsupported.add(node, str(reason))
            return
        argument = self.block.insert_arg(type, len(self.block.args))
        argument.name_hint = name
        self.values[node] = [argument]
        self._attributes.append(
            DictionaryAttr({key: StringAttr(text) for key, text in attributes.items()})
        )

    def add_attribute(self, node: torch.fx.Node, name: str, value: int) -> None:
        """Give the argument that `node` is one more attribute, if it could be made one."""
        for argument in self.values.get(node, ()):
            assert isinstance(argument, BlockArgument)
            known = self._attributes[argument.index].data
            self._attributes[argument.index] = DictionaryAttr(
                {**known, name: IntegerAttr(value, i64)}
            )

    def add_call(self, node: torch.fx.Node) -> None:
        """Import one call, or note why it cannot be."""
        if node.target in DROPPED or node in self.unknown:
            return
        if isinstance(node.target, HigherOrderOperator):
            import_parts(self, node)
            return
        if is_symbolic(node.meta.get("val")) and (
            node.target in OF_SHAPES or not isinstance(node.target, OpOverload)
        ):
            return  # a size is an extent where it is used
        if node.target in ASSERTIONS:
            self._check_assertion(node)
            return
        if node.target is operator.getitem:
            self._add_item(node)
            return
        known = all(n in self.values for n in tensor_inputs(node))
        if node.target in ADDED_BY_PYTORCH and not known:
            return  # the cause, the operator before it, is noted
        # A call on values that could not be imported has its own cause reported already.
        if self.fallback == "eager" and not known:
            return
        try:
            self._add_op(node)
        except Refused as reason:
            if self.fallback == "eager" or is_seed(node):
                self._add_eager_call(node, SEED if is_seed(node) else str(reason))
            else:
                self.unsupported.add(node, str(reason))

    def _add_item(self, node: torch.fx.Node) -> None:
        """Import one of several results; if they were not imported, the cause is noted."""
        producer, index = node.args
        if not isinstance(producer, torch.fx.Node) or not isinstance(index, int):
            return
        if producer in self.values:
            self.values[node] = [self.values[producer][_place(producer, index)]]
            self.values[node][0].name_hint = node.name

    def add_object(self, node: torch.fx.Node) -> None:
        """Note an object that is no argument, but for a part of the program, of which its call tells."""
        of_calls = all(isinstance(user.target, HigherOrderOperator) for user in node.users)
        if node not in self.values and not of_calls:
            self.unsupported.add(node, "it is no tensor")

    def _add_op(self, node: torch.fx.Node) -> None:
        """Import a call as an operation of the dialect. Raises Refused, without words if there is none."""
        target: Any = node.target
        if node in self.reasons or not isinstance(target, OpOverload):
            raise Refused(self.reasons.get(node, ""))
        op_class = OPS_BY_ATEN.get(overload_name(node, self.sizes))
        if op_class is None:
            raise Refused
        arguments = read_arguments(node, op_class, self.sizes)
        if any(n not in self.values for n in tensor_inputs(node)):
            return
        for value in (n.meta.get("val") for n in node.all_input_nodes):
            if isinstance(value, torch.Tensor) and value.dtype in OPAQUE_ELEMENTS:
                raise Refused(f"a tensor of {str(value.dtype).removeprefix('torch.')}")
        types = self.result_types(node)
        known = self.block.last_op
        op = op_class.build_op(
            [self._tensor(node, tensor) for tensor in arguments.tensors],
            arguments.properties,
            types,
        )
        op.location = location_of(node)
        try:
            with allowing(self.sizes.attributes):
                op.verify()
        except VerifyException as error:  # PyTorch allows what the dialect does not
            self._erase_after(known)
            raise Refused(str(error)) from None
        self.append(op, node)

    def _add_eager_call(self, node: torch.fx.Node, reason: str) -> None:
        """Import a call as one that PyTorch runs, or note why it cannot be."""
        if not isinstance(node.target, OpOverload):
            self.unsupported.add(node, reason)
            return
        try:
            if (told := refusal_of_call(node, self.device)) is not None:
                raise Refused(told)
            types = self.result_types(node)
            op = read_call(node, lambda n: self.values[n][0], types, self.sizes)
            op.verify()
        except (Refused, VerifyException) as error:
            what = f"cannot run in PyTorch either: {error}"
            self.unsupported.add(node, f"{reason}; {what}" if reason else what)
            return
        op.location = location_of(node)
        if reason:
            op.attributes[REASON] = StringAttr(reason)
        self.append(op, node)

    def _check_assertion(self, node: torch.fx.Node) -> None:
        """An assertion must follow from the sizes' ranges; what gives a number by values is noted already."""
        condition: Any = node.args[0]
        value = condition.meta.get("val") if isinstance(condition, torch.fx.Node) else condition
        if is_symbolic(value) and not self.sizes.knows(value.node.expr):
            return
        said = value.node.expr if is_symbolic(value) else value
        if node.target != aten._assert_scalar.default or not self.sizes.holds(said):
            text = self.sizes.text(said)
            self.unsupported.add(node, f"of {text}, which does not follow from the program's sizes")

    def append(self, op: Operation, node: torch.fx.Node) -> None:
        self.block.add_op(op)
        self.values[node] = list(op.results)
        for result in op.results:
            result.name_hint = node.name

    def _erase_after(self, last: Operation | None) -> None:
        """Erase what was built after `last`."""
        while (op := self.block.last_op) is not None and op is not last:
            op.detach()
            op.erase()

    def result_types(self, node: torch.fx.Node) -> list[TensorType]:
        """The types of a call's results. Raises Refused."""
        value: Any = node.meta.get("val")
        if not isinstance(value, (list, tuple)):
            value = () if value is None else (value,)
        given = [result for result in cast(Sequence[Any], value) if result is not None]
        return [self._type(result) for result in given]

    def _tensor(self, node: torch.fx.Node, tensor: Any) -> TensorArgument:
        match tensor:
            case None:
                return None
            case list():
                nodes: list[torch.fx.Node] = tensor
                return [self.values[each][0] for each in nodes]
            case torch.fx.Node():
                return self.values[tensor][0]
            case _:
                return self._number(node, tensor)

    def _number(self, node: torch.fx.Node, number: ScalarValue | Size) -> SSAValue:
        """A number in a tensor's place, as a 0-d tensor that does not decide the result's type."""
        element: Attribute = i64
        if isinstance(number, bool):
            element = i1
        elif isinstance(number, float):
            result = ELEMENTS[node.meta["val"].dtype]
            element = f64 if result == f64 else f32
        op = ScalarTensorOp.build_op([], {"s": argument_attr(number)}, [TensorType(element, ())])
        op.location = location_of(node)
        self.block.add_op(op)
        return op.result

    def _type(self, value: Any, *, crosses: bool = False) -> TensorType:
        """The type of a value; one that `crosses` between the program and its caller is no opaque one.

        A complex one is the real one of its parts.
        """
        if not isinstance(value, torch.Tensor):
            raise Refused(f"gives a {type(value).__name__}, not a tensor")
        if value.layout is not torch.strided:
            raise Refused(f"layout {value.layout}")
        if crosses and value.dtype in PARTS:
            return tensor_type_of(PARTS[value.dtype], (*self.sizes.shape(value), 2))
        opaque = self.fallback == "eager" and not crosses
        try:
            return tensor_type_of(value.dtype, self.sizes.shape(value), opaque=opaque)
        except KeyError:
            raise Refused(f"dtype {str(value.dtype).removeprefix('torch.')}") from None

    def finish(self, outputs: Sequence[torch.fx.Node]) -> ModuleOp:
        """The module whose `@main` returns `outputs`. Raises UnsupportedOpError if anything was noted."""
        for node in outputs:
            if is_symbolic(node.meta.get("val")) and node not in self.values:
                self.unsupported.add(node, "gives a number that depends on values in tensors")
            if node in self.values and tensor_type(self.values[node][0]).element_type in OPAQUE:
                dtype = str(node.meta["val"].dtype).removeprefix("torch.")
                self.unsupported.add(node, f"gives {dtype} as a result of the program")
        self.unsupported.raise_if_any()
        values = [self.values[node][0] for node in outputs]
        self.block.add_op(ReturnOp(*values))
        inputs: list[Attribute] = [argument.type for argument in self.block.args]
        function = FuncOp("main", (inputs, [v.type for v in values]), Region(self.block))
        if self.sizes.attributes:
            function.attributes[SIZES] = ArrayAttr(self.sizes.attributes)
        if any(attributes.data for attributes in self._attributes):
            function.arg_attrs = ArrayAttr(self._attributes)
        module = ModuleOp([*self.functions, function])
        if self.fallback == "eager":
            module.attributes[FALLBACK] = StringAttr("eager")
        function.verify(verify_nested_ops=False)  # each operation was verified when it was made
        return module
