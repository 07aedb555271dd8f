"""Numbers that a call computes from the extents of its arguments: sizes, strides, arguments of views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import sympy
import torch
from sympy.logic.boolalg import Boolean

from ..dialects.multiples import Multiple
from .sizes import is_symbolic, multiple_of


@dataclass(frozen=True)
class DefiningAxis:
    """The axis of an argument, or a result, that says a size."""

    argument: int
    axis: int
    multiple: Multiple
    """What its extent is."""

    def size(self, arguments: Sequence[Any]) -> int:
        """The size in a call with these arguments."""
        return self.multiple.least_size(arguments[self.argument].shape[self.axis])


Axes: TypeAlias = Mapping[sympy.Symbol, DefiningAxis]


@dataclass(frozen=True)
class ReturnedSize:
    """A number that a program returns, or makes a view with, computed from sizes of its arguments.

    One that is found in data is computed from sizes of its results.
    """

    expr: Any
    axes: Axes

    def of(self, arguments: Sequence[Any]) -> int:
        """The number for these arguments."""
        known = {symbol: axis.size(arguments) for symbol, axis in self.axes.items()}
        found = self.expr.xreplace(known)
        return bool(found) if isinstance(found, Boolean) else int(found)


def defining_axes(graph: torch.fx.Graph, arguments: Mapping[str, int]) -> Axes:
    """For each symbol, the axis of an argument that says it."""
    found: dict[sympy.Symbol, DefiningAxis] = {}
    for node in graph.nodes:
        value = node.meta.get("val")
        if node.op == "placeholder" and isinstance(value, torch.Tensor) and node.name in arguments:
            for axis, extent in enumerate(value.shape):
                said = multiple_of(extent.node.expr) if isinstance(extent, torch.SymInt) else None
                if said is not None:
                    place = DefiningAxis(arguments[node.name], axis, said[1])
                    found.setdefault(said[0], place)
    return found


def symbol_of(value: Any) -> sympy.Expr | None:
    """The expression of a number that depends on sizes, or None for another value."""
    said = value.meta.get("val") if isinstance(value, torch.fx.Node) else value
    return said.node.expr if is_symbolic(said) else None


def at_call(value: Any, axes: Axes) -> Any:
    """A value; of a number that depends on sizes what computes it, or None if some size is not known."""
    expr = symbol_of(value)
    if expr is None:
        return value
    return ReturnedSize(expr, axes) if expr.free_symbols <= axes.keys() else None
