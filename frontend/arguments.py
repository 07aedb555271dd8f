"""Matches the arguments of an ATen call with the schema: each is an operand, a property, or checked.

No argument is ignored. One that has no place in the IR, such as `layout`, must have a value that does not
matter to the result; anything else raises `Refused`. Where a result lies in memory, as `memory_format` says,
does not: how results of the program lie is read from PyTorch's trace, and so is what `as_strided` reads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import torch
from xdsl.ir import Attribute

from ..dialects.sizes import Size
from ..dialects.torch_base import ScalarValue, TorchOp, argument_attr
from ..dialects.torch_ops import WITHOUT_EFFECT
from .dtypes import ELEMENTS
from .recurrent import ATEN_NAMES
from .sizes import Refused, Sizes, is_symbolic

Given: TypeAlias = torch.fx.Node | list[torch.fx.Node] | ScalarValue | Size | None
"""What is given in a tensor's place."""


@dataclass(frozen=True)
class Arguments:
    """An ATen call's arguments: tensors in schema order, and properties by name."""

    tensors: list[Given]
    properties: dict[str, Attribute]


NO_END = 2**63 - 1
"""The end of a slice that has none."""

BY_STRIDES = ("as_strided.default", "as_strided_copy.default", "as_strided_scatter.default")
"""Overloads that count places in memory, and so mean the same only if their argument is contiguous."""

NUMBER = (bool, int, float, Size)
_NUMBER_NAMES = ("other", "exponent")

NUMBER_OVERLOADS = {
    "Tensor": "Scalar",
    "Tensor_mode": "Scalar_mode",
    "Tensor_Tensor": "Tensor_Scalar",
}
"""The overload that takes a Python number where the key's takes a tensor."""


def bound_arguments(node: torch.fx.Node) -> list[tuple[Any, Any]]:
    """(schema argument, value) for every argument of the schema, defaults filled in."""
    schema: Any = node.target._schema  # type: ignore[union-attr]
    bound: list[tuple[Any, Any]] = []
    for i, argument in enumerate(schema.arguments):
        if i < len(node.args) and not argument.kwarg_only:
            value: Any = node.args[i]
        elif argument.name in node.kwargs:
            value = node.kwargs[argument.name]
        else:
            value = argument.default_value
        bound.append((argument, value))
    return bound


def sized_arguments(node: torch.fx.Node, sizes: Sizes) -> list[tuple[Any, Any]]:
    """`bound_arguments`, with extents in place of what export computes from sizes. Raises Refused."""
    return [
        (argument, _in_extents(argument.name, value, sizes))
        for argument, value in bound_arguments(node)
    ]


def _in_extents(name: str, value: Any, sizes: Sizes) -> Any:
    """`value` with extents in place of export's symbolic numbers."""
    if isinstance(value, (list, tuple)):
        return [_in_extents(name, item, sizes) for item in cast(Sequence[Any], value)]
    computed = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    if not is_symbolic(computed):
        return value
    match computed:
        case torch.SymInt():
            return sizes.extent(computed)
        case torch.SymFloat():
            text = sizes.text(computed.node.expr)
            of_sizes = sizes.knows(computed.node.expr)
            origin = "computed from sizes" if of_sizes else "that depends on the values in tensors"
            raise Refused(f"{name} = {text}, a float {origin}")
        case _:
            raise Refused(f"{name} = {sizes.text(computed.node.expr)}, a condition on sizes")


def tensor_inputs(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The nodes that a call reads, but for numbers that export computes from sizes."""
    return [n for n in node.all_input_nodes if not is_symbolic(n.meta.get("val"))]


def overload_name(node: torch.fx.Node, sizes: Sizes) -> str:
    """The contract's name of the overload called, such as `add.Tensor`.

    PyTorch's graphs may pass a number to `other` of a tensor overload; that is the number overload.
    """
    target: Any = node.target
    if target in ATEN_NAMES:
        return ATEN_NAMES[target].removeprefix("aten.")
    operator, overload = target._schema.name.removeprefix("aten::"), target._overloadname
    if overload in NUMBER_OVERLOADS:
        for argument, value in sized_arguments(node, sizes):
            if argument.name in _NUMBER_NAMES and isinstance(value, NUMBER):
                overload = NUMBER_OVERLOADS[overload]
    return f"{operator}.{overload}"


def is_plain(node: Any) -> bool:
    """Whether PyTorch holds the value of `node` in row-major order from the start of its memory."""
    value = node.meta["val"]
    return value.is_contiguous() and value.storage_offset() == 0


def read_arguments(node: torch.fx.Node, op_class: type[TorchOp], sizes: Sizes) -> Arguments:
    """The arguments of an ATen call, to make an `op_class` of.

    Raises Refused for a value that cannot be expressed.
    """
    if op_class.ATEN in BY_STRIDES and not is_plain(node.args[0]):
        raise Refused("a tensor that is not contiguous memory of its own")
    arguments = Arguments([], {})
    known = op_class.get_irdl_definition().properties
    for argument, value in sized_arguments(node, sizes):
        name, type_text = argument.name, str(argument.real_type)
        key = "input" if name == "self" else name
        if name in CHECKS:
            CHECKS[name](name, value, node)
        elif name == "indices" and isinstance(value, (list, tuple)):
            arguments.tensors.append(_read_indices(arguments, list(value)))
        elif "Tensor" in type_text and not (key in known and isinstance(value, NUMBER)):
            arguments.tensors.append(_read_tensor(name, value))
        elif value is not None and not (name == "end" and value == NO_END):
            arguments.properties[key] = _read_value(name, value, type_text)
    return arguments


def _read_tensor(name: str, value: Any) -> Given:
    if value is None or isinstance(value, (torch.fx.Node, *NUMBER)):
        return value
    if isinstance(value, (list, tuple)):
        items: list[Any] = list(value)  # pyright: ignore[reportUnknownArgumentType]
        if all(isinstance(item, torch.fx.Node) for item in items):
            return items
    raise Refused(f"{name} = {value}")


def _read_indices(arguments: Arguments, values: list[Any]) -> list[torch.fx.Node]:
    """The tensors of `x[…]`, which must index neighbouring axes; `dim` becomes the first of these."""
    present = [i for i, value in enumerate(values) if value is not None]
    nodes = [values[i] for i in present]
    if not present or present[-1] - present[0] + 1 != len(present):
        raise Refused("indices of axes that are not next to each other")
    if any(node.meta["val"].dtype == torch.uint8 for node in nodes):
        raise Refused("indices = a mask of uint8, which PyTorch no longer wants: make it bool")
    if len(nodes) > 1 and any(node.meta["val"].dtype == torch.bool for node in nodes):
        raise Refused("indices = a mask among other indices")
    arguments.properties["dim"] = argument_attr(present[0])
    return nodes


def _read_value(name: str, value: Any, type_text: str) -> Attribute:
    if isinstance(value, torch.dtype):
        if value not in ELEMENTS:
            raise Refused(f"{name} = {value}")
        return ELEMENTS[value]
    if type_text.removeprefix("Optional[").rstrip("]") == "float" and type(value) is int:
        value = float(value)
    try:
        return argument_attr(value)
    except TypeError:
        raise Refused(f"{name} = {value}") from None


# --------------------------------------------------------------------------- checked arguments

Check = Callable[[str, Any, torch.fx.Node], None]


def _one_of(*allowed: object) -> Check:
    def check(name: str, value: Any, node: torch.fx.Node) -> None:
        if value not in allowed:
            raise Refused(f"{name} = {value}")

    return check


def _device_with_memory(name: str, value: Any, node: torch.fx.Node) -> None:
    """A CPU or a GPU; which of them, all values of the program say together (`devices.py`)."""
    if value is not None and torch.device(value).type not in ("cpu", "cuda"):
        raise Refused(f"{name} = {value}")


def _any_value(name: str, value: Any, node: torch.fx.Node) -> None:
    """The argument has no effect on the values of the result."""


CHECKS: dict[str, Check] = {
    "layout": _one_of(None, torch.strided),
    "device": _device_with_memory,
    "pin_memory": _one_of(None, False),
    **dict.fromkeys(WITHOUT_EFFECT, _any_value),
}
"""For each argument with no place in the IR, what raises Refused if its value matters."""
