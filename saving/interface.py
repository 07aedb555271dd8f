"""How a program's inputs and outputs stand for what its plan takes and gives, as JSON data.

`runtime/loaded.py` reads it, `runtime/trees.py` and `runtime/outputs.py` say its form. What a runtime without
PyTorch cannot do is refused, all at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._sympy.functions import FloorDiv, Mod, PythonMod

from ..errors import UsageError
from ..frontend.call_sizes import ReturnedSize
from ..frontend.capture import Captured
from ..frontend.view_outputs import Output, View
from ..runtime.trees import LEAF

aten = torch.ops.aten


class CannotSay(Exception):
    """A part of a program that a file cannot say; the text says which."""


def interface_of(captured: Captured, name: str) -> dict[str, Any]:
    """The interface of a captured program. Raises UsageError, which lists all that a file cannot say."""
    problems: list[str] = []

    def said(what: str, make: Any, *args: Any) -> Any:
        try:
            return make(*args)
        except CannotSay as reason:
            problems.append(f"  {what}: {reason}")
            return None

    complex_arguments = captured.complex_arguments
    weights = weight_names(captured)
    arguments = [
        {
            "name": each.name,
            **({"input": each.flat_index} if each.flat_index is not None else {"weight": weights[i]}),
            **({"complex": True} if i in complex_arguments else {}),
        }
        for i, each in enumerate(captured.arguments)
    ]
    values = [
        said(f"output {i}", _value, captured, each) for i, each in enumerate(captured.outputs)
    ]
    updates = [
        {
            "argument": each.argument,
            "value": said(
                f"the new value of {captured.arguments[each.argument].name}",
                *(_value, captured, each.value),
            ),
            "assigned": each.owner is not None,
        }
        for each in captured.updates
    ]
    strides = {
        str(each.position): said(f"input {each.position}", _strides, each) for each in captured.read
    }
    constants = {
        str(place): said(f"input {place}", _constant, value)
        for place, value in captured.constants.items()
    }
    found = {
        "name": name,
        "inputs": said("the inputs", tree_of, captured.in_spec),
        "outputs": said("the outputs", tree_of, captured.out_spec),
        "arguments": arguments,
        "constants": constants,
        "strides": strides,
        "values": values,
        "updates": updates,
    }
    if captured.numbers:
        problems.append("  inputs that are numbers which change from call to call")
    if problems:
        raise UsageError("the program cannot be saved:\n" + "\n".join(problems))
    return found


def weight_names(captured: Captured) -> dict[int, str]:
    """The name in the file of each argument that the program holds; one tensor has one name."""
    first: dict[int, str] = {}
    names: dict[int, str] = {}
    for i, each in enumerate(captured.arguments):
        if each.flat_index is None:
            tensor = captured.tensors[each.name]
            names[i] = first.setdefault(id(tensor), each.target)
    return names


def tree_of(spec: pytree.TreeSpec) -> Any:
    """A tree as data. Raises CannotSay for types of a program's own."""
    if spec.is_leaf():
        return LEAF
    children = [tree_of(child) for child in _children(spec)]
    kind, context = spec.type, spec.context
    if kind in (list, tuple):
        return {kind.__name__: children}
    if hasattr(context, "_fields"):
        return {"named": [context.__name__, list(context._fields), children]}
    keys = context if isinstance(context, list) else None
    plain = isinstance(kind, type) and issubclass(kind, dict)
    if keys is None or len(keys) != len(children) or not plain:
        raise CannotSay(f"a {getattr(kind, '__name__', kind)}; take and return tuples, lists and dicts")
    if not all(isinstance(key, str | int) for key in keys):
        raise CannotSay(f"a dict with the keys {keys}; use strings")
    return {"dict": [[key, child] for key, child in zip(keys, children, strict=True)]}


def _children(spec: pytree.TreeSpec) -> Sequence[pytree.TreeSpec]:
    """What PyTorch 2.11 has as a list, and 2.13 as a method."""
    listed: Any = spec
    return listed.children() if hasattr(listed, "children") else listed.children_specs


def _constant(value: Any) -> Any:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float) and value == value and abs(value) != float("inf"):
        return value
    raise CannotSay(f"the value {value!r} of an argument that is no tensor")


def _strides(read: Any) -> list[int]:
    if read.offset is not None or not all(isinstance(n, int) for n in read.strides):
        raise CannotSay(f"the program {read.why}")
    return list(read.strides)


def _value(captured: Captured, output: Output) -> dict[str, Any]:
    if isinstance(output.value, ReturnedSize):
        found = {"of": "result"} if output.source == "found" else {}
        return {**_size(output.value), **found}
    if output.index is None:
        return {"constant": _constant(output.value)}
    said: dict[str, Any] = {"from": output.source, "index": output.index}
    if output.source == "result":
        if output.index in captured.complex_results:
            said["complex"] = True
        if output.layout is not None and output.layout.order is not None:
            said["order"] = list(output.layout.order)
    if output.view is not None:
        said["views"] = _views(output.view)
    return said


def _views(view: View) -> list[list[Any]]:
    """Views one of the other; one of several that an operator gives is a slice."""
    said: list[list[Any]] = []
    steps = iter(view.steps)
    for step in steps:
        if step.target in PARTS and not step.keywords:
            said.append(PARTS[step.target](next(steps).arguments[0], *step.arguments))
        else:
            said.append(_view(step.target, step.arguments, step.keywords))
    return said


def _part_by_sizes(index: int, sizes: Sequence[Any], axis: int = 0) -> list[Any]:
    if not all(isinstance(size, int) for size in sizes):
        raise CannotSay("parts of sizes that change from call to call")
    return ["slice", axis, sum(sizes[:index]), sum(sizes[: index + 1]), 1]


def _part(index: int, size: Any, axis: int = 0) -> list[Any]:
    if not isinstance(size, int):
        raise CannotSay("parts of a size that changes from call to call")
    return ["slice", axis, index * size, (index + 1) * size, 1]


def _item(index: int, axis: int = 0) -> list[Any]:
    return ["select", axis, index]


PARTS: dict[Any, Callable[..., list[Any]]] = {
    aten.split_with_sizes.default: _part_by_sizes,
    aten.split.Tensor: _part,
    aten.unbind.int: _item,
}
"""The operators that give several views: the view that one is, by its number and the other arguments."""


def _view(target: Any, given: Sequence[Any], keywords: Mapping[str, Any]) -> list[Any]:
    """A view's name in `runtime/outputs.py`, and what it takes."""
    if target not in VIEWS or keywords:
        raise CannotSay(f"a view by {target}; return a copy (.clone())")
    name, defaults = VIEWS[target]
    values = [*given, *defaults[len(given) :]]
    return [name, *(_said(value) for value in values)]


VIEWS: dict[Any, tuple[str, tuple[Any, ...]]] = {
    aten.permute.default: ("permute", ((),)),
    aten.transpose.int: ("swap", (0, 1)),
    aten.t.default: ("swap", (0, 1)),
    aten.select.int: ("select", (0, 0)),
    aten.slice.Tensor: ("slice", (0, None, None, 1)),
    aten.unsqueeze.default: ("unsqueeze", (0,)),
    aten.squeeze.dim: ("squeeze", (0,)),
    aten.squeeze.dims: ("squeeze", ((),)),
    aten.expand.default: ("expand", ((),)),
    aten.diagonal.default: ("diagonal", (0, 0, 1)),
    aten.view.default: ("reshape", ((),)),
    aten.reshape.default: ("reshape", ((),)),
    aten.alias.default: ("same", ()),
    aten.detach.default: ("same", ()),
}
"""The views of ATen that a file can say: the name there, and the values of arguments that are left out."""


def _said(value: Any) -> Any:
    """An argument of a view as data."""
    if isinstance(value, list | tuple):
        return [_said(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, ReturnedSize):
        return _size(value)
    return _constant(value)


def _size(returned: ReturnedSize) -> dict[str, Any]:
    """A number that is computed from sizes."""
    symbols = sorted(returned.expr.free_symbols, key=str)
    names = {symbol: f"s{number}" for number, symbol in enumerate(symbols)}
    places = [returned.axes[symbol] for symbol in symbols]
    return {
        "size": _text(returned.expr, names),
        "axes": [
            [each.argument, each.axis, each.multiple.scale, each.multiple.offset]
            for each in places
        ],
    }


def _text(expr: Any, names: Mapping[Any, str]) -> str:
    """An expression as `runtime/sizes.py` reads it."""
    match expr:
        case sympy.Integer():
            return str(expr)
        case sympy.Symbol():
            return names[expr]
        case sympy.Add():
            return f"({' + '.join(_text(each, names) for each in expr.args)})"
        case sympy.Mul():
            return f"({' * '.join(_text(each, names) for each in expr.args)})"
        case FloorDiv():
            left, right = (_text(each, names) for each in expr.args)
            return f"({left} // {right})"
        case Mod() | PythonMod():
            left, right = (_text(each, names) for each in expr.args)
            return f"({left} % {right})"
        case _:
            raise CannotSay(f"the size {expr}")
