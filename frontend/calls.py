"""Calls of PyTorch: an operator that deplo does not compute, with every argument as data.

    torch.linalg.eigh(x.mT, UPLO="U")     # as aten._linalg_eigh.default(x.transpose(-2, -1), "U", True)

becomes

    %w, %v = torch.call "aten._linalg_eigh.default"(A = permute(%x, [1, 0]), UPLO = "U")
      : (tensor<4x4xf32>) -> (tensor<4xf32>, tensor<4x4xf32>)

PyTorch runs it on contiguous tensors, or on these with their axes exchanged, and its results are copied, so a
view is as good as any operator, but one that changes its arguments, or goes by strides in memory, has no such
form.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, cast

import torch
from xdsl.dialects.builtin import ArrayAttr, UnitAttr
from xdsl.ir import Attribute, SSAValue

from ..dialects.calls import OperandAttr
from ..dialects.sizes import Size
from ..dialects.torch import CallOp
from ..dialects.torch_base import argument_attr
from .arguments import CHECKS, sized_arguments
from .dtypes import ELEMENTS, OPAQUE_ELEMENTS
from .recurrent import ATEN_NAMES
from .sizes import Refused, Sizes

aten = torch.ops.aten

WHERE = ("layout", "device", "pin_memory", "memory_format")
"""Arguments that say where a result lies, and not what it holds."""

BY_MEMORY = ("as_strided", "_reshape_alias", "as_strided_copy", "as_strided_scatter")
"""Operators whose result depends on the strides of their argument, which the IR does not keep."""

EXCHANGES = (aten.permute.default, aten.transpose.int, aten.t.default)
"""Operators whose result is a view with axes in another order."""

MESSAGES = {"assert_msg"}
"""Arguments that are texts for the user."""

_OPTION = re.compile(r"[A-Za-z0-9_.]*")


def read_call(
    node: torch.fx.Node,
    value_of: Callable[[torch.fx.Node], SSAValue],
    types: Sequence[Attribute],
    sizes: Sizes,
) -> CallOp:
    """The call that runs `node` in PyTorch; its results are of `types`.

    Raises Refused if it cannot be expressed.
    """
    target: Any = node.target
    schema = target._schema
    if schema.is_mutable:
        raise Refused("changes its arguments in place")
    if schema.name.rpartition("::")[2] in BY_MEMORY:
        raise Refused("goes by strides in memory")
    bound = sized_arguments(node, sizes)
    names = {argument.name for argument, _ in bound}
    operands: list[SSAValue] = []
    arguments: dict[str, Attribute] = {}

    def attribute(name: str, value: Any) -> Attribute:
        if isinstance(value, torch.fx.Node):
            base, axes = permuted(value)
            operands.append(value_of(base))
            return OperandAttr(len(operands) - 1, axes)
        if isinstance(value, (list, tuple)):
            items = cast(Sequence[Any], value)
            return ArrayAttr([attribute(name, item) for item in items])
        return _plain(name, value)

    for argument, value in bound:
        if argument.name in WHERE:
            CHECKS[argument.name](argument.name, value, node)
        elif not _is_default(argument, value):
            named_input = argument.name == "self" and "input" not in names
            key = "input" if named_input else argument.name
            arguments[key] = attribute(argument.name, value)
    return CallOp(_overload(target), arguments, operands, types)


def permuted(node: torch.fx.Node) -> tuple[torch.fx.Node, list[int]]:
    """The value of which a view exchanges the axes, and their order in the view; empty if it does not."""
    order: list[int] = []
    while not node.kwargs and (axes := _exchanged(node)) is not None:
        order = [axes[i] for i in order] if order else axes
        node = cast(torch.fx.Node, node.args[0])
    return node, order if order != sorted(order) else []


def _exchanged(node: torch.fx.Node) -> list[int] | None:
    """Which axis of its argument each axis of a node is, if that is all it does."""
    if node.target not in EXCHANGES:
        return None
    axes = list(range(node.meta["val"].ndim))
    if node.target == aten.permute.default:
        return [axes[i] for i in cast(Sequence[int], node.args[1])]
    first, second = cast(Sequence[int], node.args[1:]) or (0, -1)
    if axes:
        axes[first], axes[second] = axes[second], axes[first]
    return axes


def _overload(target: Any) -> str:
    """`aten.add.Tensor`; the overload without a name is `default`."""
    if target in ATEN_NAMES:
        return ATEN_NAMES[target]
    return f"{target.namespace}.{target._opname}.{target._overloadname}"


def _is_default(argument: Any, value: Any) -> bool:
    if not argument.has_default_value() or isinstance(value, torch.fx.Node):
        return False
    default = argument.default_value
    return type(value) is type(default) and value == default


def _plain(name: str, value: Any) -> Attribute:
    """The attribute for an argument without tensors."""
    if value is None:
        return UnitAttr()
    if isinstance(value, torch.dtype):
        if (element := (ELEMENTS | OPAQUE_ELEMENTS).get(value)) is not None:
            return element
    elif isinstance(value, str):
        if name in MESSAGES or _OPTION.fullmatch(value):
            return argument_attr(value)
        raise Refused(f"{name} = {value!r}, a text that is no operator's option")
    elif isinstance(value, (bool, float, Size)) or (
        type(value) is int and -(2**63) <= value < 2**63
    ):
        return argument_attr(value)
    raise Refused(f"{name} = {value}")
