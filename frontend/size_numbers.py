"""Floats that a program computes from its sizes, or reads from tensors, as tensors without axes.

    x * (0.1 / x.shape[0])                   # as aten.mul.Tensor(x, 0.1 / sym_float(sym_size))

becomes

    n = scalar_tensor(x.shape[0], dtype=float64)
    x * (scalar_tensor(0.1, dtype=float64) / n).to(float32)

and `x * scale.item()` becomes `x * scale.to(float64).to(float32)`.

Python computes them in double precision, in this order. An operator gets one in the precision that it
computes in, as eager gives it a number.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, cast

import torch

from .arguments import NUMBER_OVERLOADS, bound_arguments
from .items import ITEMS
from .unsupported import OpOverload

aten = torch.ops.aten

_OF_MATH = (*("acos", "asin", "atan", "cos", "cosh", "log2", "sin", "sinh", "sqrt", "tan", "tanh"),)

FUNCTIONS: dict[Any, Any] = {
    operator.add: aten.add.Tensor,
    operator.sub: aten.sub.Tensor,
    operator.mul: aten.mul.Tensor,
    operator.truediv: aten.div.Tensor,
    operator.pow: aten.pow.Tensor_Tensor,
    operator.neg: aten.neg.default,
    torch.sym_max: aten.maximum.default,
    torch.sym_min: aten.minimum.default,
    **{getattr(torch, f"_sym_{name}"): getattr(aten, name).default for name in _OF_MATH},
}
"""What Python computes with numbers, as operators on tensors."""

OVERLOADS: dict[Any, Any] = {
    aten.clamp.default: aten.clamp.Tensor,
    aten.pow.Scalar: aten.pow.Tensor_Tensor,
}
"""The overload that takes tensors for numbers, where `NUMBER_OVERLOADS` does not say it."""

_WITH_TENSOR = {number: tensor for tensor, number in NUMBER_OVERLOADS.items()}

_VALUES = {
    aten.full.default: "fill_value",
    aten.full_like.default: "fill_value",
    aten.scalar_tensor.default: "s",
}
"""Operators that make a tensor of one number, and the name of that."""

_CONVERTING = (aten.scalar_tensor.default, aten._to_copy.default)
"""Operators of which an argument is the type of the result."""


def numbers_as_tensors(graph: torch.fx.Graph) -> None:
    """Let the operators of a graph of ATen operators have tensors for floats of sizes and of values.

    An operator that has no such form keeps its number.
    """
    made: dict[torch.fx.Node, torch.fx.Node] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        for argument, value in bound_arguments(node):
            if not _is_number(value) or (form := _form(node, argument)) is None:
                continue
            with graph.inserting_before(node):
                if _is_integer(value):
                    form(node, value, _read(node, value, _type_of(node, torch.int64)))
                elif (number := _as_tensor(node, value, made)) is not None:
                    form(node, value, _converted(node, number))


def _is_number(value: Any) -> bool:
    """Whether an argument is a float that is computed from sizes, or any number read from a tensor."""
    if not isinstance(value, torch.fx.Node):
        return False
    return value.target in ITEMS or isinstance(value.meta.get("val"), torch.SymFloat)


def _is_integer(number: torch.fx.Node) -> bool:
    return isinstance(number.meta.get("val"), torch.SymInt)


def _read(node: torch.fx.Node, item: Any, dtype: torch.dtype) -> torch.fx.Node:
    """The number that `node` gets from a tensor of one element, as a tensor of a type."""
    one = _call(node, aten.view.default, (item.args[0], []), item.args[0].meta["val"].dtype)
    return _call(node, aten._to_copy.default, (one,), dtype)


def _type_of(node: torch.fx.Node, otherwise: torch.dtype) -> torch.dtype:
    """The type in which `node` gets a number: that of a result filled with it, else another one."""
    return node.meta["val"].dtype if node.target in _VALUES else otherwise


def _form(node: torch.fx.Node, argument: Any) -> Callable[..., None] | None:
    """What has an operator take a tensor for the number that an argument is; None if it cannot."""
    target = cast(Any, node.target)
    if "Tensor" in str(argument.real_type):
        return _replace
    if _VALUES.get(target) == argument.name:
        return _fill
    if argument.name == "alpha":
        return _scale if _can_scale(node) else None
    if target is aten.rsub.Scalar and argument.name == "other" and not node.args[2:]:
        return _subtract
    name = _WITH_TENSOR.get(target._overloadname, "")
    taking = OVERLOADS.get(target) or getattr(target.overloadpacket, name or "default", None)
    if taking is None or not _takes_tensor(taking, argument.name):
        return None

    def take(node: torch.fx.Node, value: torch.fx.Node, number: torch.fx.Node) -> None:
        node.target = taking
        _replace(node, value, number)

    return take


def _takes_tensor(op: Any, name: str) -> bool:
    """Whether an argument of an operator is a tensor."""
    return any(
        each.name == name and "Tensor" in str(each.real_type) for each in op._schema.arguments
    )


def _replace(node: torch.fx.Node, value: torch.fx.Node, number: torch.fx.Node) -> None:
    node.replace_input_with(value, number)


def _subtract(node: torch.fx.Node, value: torch.fx.Node, number: torch.fx.Node) -> None:
    node.target, node.args, node.kwargs = aten.sub.Tensor, (number, node.args[0]), {}


def _can_scale(node: torch.fx.Node) -> bool:
    """Whether a sum or a difference is of tensors, and rounds a product of its own as eager does."""
    added = node.args[1] if node.target in (aten.add.Tensor, aten.sub.Tensor) else None
    is_half = node.meta["val"].dtype in (torch.float16, torch.bfloat16)
    return (
        isinstance(added, torch.fx.Node)
        and isinstance(added.meta["val"], torch.Tensor)
        and not is_half
    )


def _scale(node: torch.fx.Node, value: torch.fx.Node, number: torch.fx.Node) -> None:
    added = cast(torch.fx.Node, node.args[1])
    made = node.meta["val"]
    scaled = _call(node, aten.mul.Tensor, (added, number), made.dtype)
    scaled.meta["val"] = made.new_empty(added.meta["val"].shape)
    node.args, node.kwargs = (node.args[0], scaled), {}


def _fill(node: torch.fx.Node, value: torch.fx.Node, number: torch.fx.Node) -> None:
    size = list(node.meta["val"].shape)
    node.target, node.args, node.kwargs = aten.expand.default, (number, size), {}


def _as_tensor(
    node: torch.fx.Node, value: Any, made: dict[torch.fx.Node, torch.fx.Node]
) -> torch.fx.Node | None:
    """A number that `node` gets, as a tensor of float64; None if operators cannot compute it."""
    if isinstance(value, torch.fx.Node) and value.target in ITEMS:
        return _read(node, value, torch.float64)
    if not isinstance(value, torch.fx.Node) or _is_integer(value):
        return _call(node, aten.scalar_tensor.default, (value,), torch.float64)
    if value in made:
        return made[value]
    if value.target is torch.sym_float:
        return _as_tensor(node, value.args[0], made)
    if value.target not in FUNCTIONS:
        return None
    operands = [_as_tensor(node, each, made) for each in value.args]
    if None in operands:
        return None
    made[value] = _call(node, FUNCTIONS[value.target], tuple(operands), torch.float64)
    return made[value]


def _converted(node: torch.fx.Node, number: torch.fx.Node) -> torch.fx.Node:
    """A number in the type of a result that is filled with it, else in the precision of `node`."""
    values = [each.meta.get("val") for each in (node, *node.all_input_nodes)]
    types = [value.dtype for value in values if isinstance(value, torch.Tensor)]
    dtype = _type_of(node, torch.float64 if torch.float64 in types else torch.float32)
    if dtype == torch.float64:
        return number
    return _call(node, aten._to_copy.default, (number,), dtype)


def _call(
    node: torch.fx.Node, target: Any, args: tuple[Any, ...], dtype: torch.dtype
) -> torch.fx.Node:
    """A call that gives `node` a tensor without axes, on the device of its own results."""
    value = node.meta["val"].new_empty((), dtype=dtype)
    kwargs: dict[str, Any] = {"dtype": dtype} if target in _CONVERTING else {}
    if target is aten.scalar_tensor.default:
        kwargs["device"] = value.device
    called = node.graph.call_function(target, args, kwargs)
    called.meta = node.meta | {"val": value}
    return called
