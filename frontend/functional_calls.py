"""Operators of other libraries that write to an argument, as operators that return its new value.

    out = torch.empty(n, 2, 8)
    library.attention(q, k, v, out, "layers.0")        # Tensor(a!) output

reaches a backend as `auto_functionalized_v2(library.attention, ...)`, and becomes

    out = deplo.library_attention(q, k, v, torch.empty(n, 2, 8), "layers.0")

which copies `out`, has the operator write to the copy, and returns it: a call of PyTorch like any other.
Operators that return something besides, and arguments that are parts of other tensors, stay as they are.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import torch
from torch._higher_order_ops.auto_functionalize import (
    AliasViewInfo,
    AsStridedViewInfo,
    NotView,
    auto_functionalized_v2,
    get_mutable_args,
    read_view_information_from_args,
)
from torch._prims_common import make_contiguous_strides_for

NAMESPACE = "deplo"
_LIBRARY = torch.library.Library(NAMESPACE, "FRAGMENT")

AUTO_FUNCTIONALIZED = auto_functionalized_v2

TENSORS = {"Tensor": "Tensor", "Optional[Tensor]": "Tensor?"}
"""The types of arguments that may be written to, and what a schema calls them."""

ALIAS = re.compile(r"Tensor\([^)]*!\)")


def functional_call(operator: Any, **kwargs: Any) -> tuple[Any, ...]:
    """What `auto_functionalized_v2` gives: the result of the operator, None, and the new values of the bases.

    Raises NotImplementedError for an operator or arguments of another form.
    """
    bases: list[Any] = kwargs.pop("_all_bases")
    names, kinds = get_mutable_args(operator)
    if operator._schema.returns or not all(str(kind) in TENSORS for kind in kinds):
        raise NotImplementedError(f"{operator} gives or changes something else than tensors")
    views = read_view_information_from_args(names, kinds, kwargs, bases)
    places = {name: view.base_index for name, view in views.items() if view is not None}
    if len(set(places.values())) < len(places):
        raise NotImplementedError(f"{operator} writes to a tensor twice")
    values = {name: _whole(views[name], bases) for name in names}
    made = _functional(operator)(**kwargs, **values)
    new = list(bases)
    for name, value in zip(names, made if isinstance(made, tuple) else [made], strict=True):
        if name in places:
            new[places[name]] = value.reshape(bases[places[name]].shape)
    return None, *new


def _whole(view: Any, bases: Sequence[torch.Tensor]) -> torch.Tensor | None:
    """What a view has of its base, where it is the whole base in another shape."""
    if view is None:
        return None
    base = bases[view.base_index]
    if isinstance(view, (AliasViewInfo, NotView)):
        return base
    if isinstance(view, AsStridedViewInfo) and view.storage_offset == 0 and base.is_contiguous():
        size: Any = view.size
        dense = tuple(make_contiguous_strides_for(size))
        if base.numel() == math.prod(view.size) and tuple(view.stride) == dense:
            return base.reshape(view.size)
    raise NotImplementedError("an operator writes to a part of a tensor")


@cache
def _functional(operator: Any) -> Any:
    """The operator that returns new values of what `operator` writes to; made where there is none yet."""
    schema = operator._schema
    written = {a.name: a for a in schema.arguments if a.alias_info is not None}
    name = f"{operator.namespace}_{operator._opname}_{operator._overloadname}"

    def run(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(schema, args, kwargs)
        new = {key: None if bound[key] is None else bound[key].clone() for key in written}
        operator(**{**bound, **new})
        return _results([*new.values()])

    def shapes(*args: Any, **kwargs: Any) -> Any:
        bound = _bound(schema, args, kwargs)
        return _results(
            [None if bound[key] is None else torch.empty_like(bound[key]) for key in written]
        )

    returned = ", ".join(TENSORS[str(argument.type)] for argument in written.values())
    arguments = ALIAS.sub("Tensor", str(schema).partition("(")[2].rpartition(") -> ")[0])
    _LIBRARY.define(f"{name}({arguments}) -> ({returned})")
    _LIBRARY.impl(name, run, "CompositeExplicitAutograd")
    _LIBRARY.impl(name, shapes, "Meta")
    return getattr(getattr(torch.ops, NAMESPACE), name).default


def _bound(schema: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call by name."""
    names = [argument.name for argument in schema.arguments]
    defaults = {a.name: a.default_value for a in schema.arguments if a.has_default_value()}
    return {**defaults, **dict(zip(names, args, strict=False)), **kwargs}


def _results(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else tuple(values)
