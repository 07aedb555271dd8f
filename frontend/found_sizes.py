"""The sizes of a program that operators find in their data: extents that depend on values.

    at: "i64[u0, 2]" = aten.nonzero(mask)      # tensor<?x2xi64, #sym.extents<s0>>

They are symbols behind those of the inputs. They have no example: half of what a size may be is expected.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from math import prod
from typing import Any, cast

import sympy
import torch
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

from ..dialects.allowed_sizes import DEFAULT_HINT, MAX_SIZE
from ..dialects.multiples import Range
from .sizes import Limits, Sizes, expression_of, is_found, range_of


def with_found(sizes: Sizes, graph: torch.fx.Graph, limits: Limits) -> Sizes:
    """`sizes` and those that operators of `graph` find in their data, as `limits` allows them.

    What `graph` asserts to be equal is one size: finding another value of it is an error.
    """
    found = _found_sizes(graph, limits, sizes.known)
    same = _asserted_equal(graph, found)
    own = {symbol: values for symbol, values in found.items() if symbol not in same}
    return Sizes({**sizes.known, **own}, sizes.multiples, found=bool(found), same=same)


def example_of(extent: int | torch.SymInt, limits: Limits) -> int:
    """An extent in the example; if it depends on values, half of what it may be."""
    if not isinstance(extent, torch.SymInt):
        return extent
    if extent.node.has_hint():
        return extent.node.hint
    expr: Any = expression_of(extent)
    return int(expr.xreplace({s: found_hint(limits.get(s)) for s in expr.free_symbols}))


def _found_sizes(
    graph: torch.fx.Graph, limits: Limits, known: Collection[sympy.Symbol]
) -> dict[sympy.Symbol, Range]:
    """The sizes that operators find, where one gives a tensor with such an axis, of which it is not told.

    In the graph of a backward pass it may be an operator that PyTorch takes to be told.
    """
    found: dict[sympy.Symbol, Range] = {}
    for node in (node for node in graph.nodes if node.op == "call_function"):
        told = set[Any]().union(*map(_symbols_of, node.all_input_nodes))
        for value in pytree.tree_leaves(node.meta.get("val")):
            for axis, extent in enumerate(value.shape if isinstance(value, torch.Tensor) else ()):
                symbol: Any = expression_of(extent) if isinstance(extent, torch.SymInt) else None
                if symbol is None or not symbol.is_Symbol or not is_found(symbol):
                    continue
                if symbol not in {*told, *known, *found}:
                    found[symbol] = _found_size(node, axis, limits.get(symbol))
    return found


def _symbols_of(node: torch.fx.Node) -> set[Any]:
    """The symbols in the shapes of what a node gives, or in the number that it gives."""
    found = set[Any]()
    for value in pytree.tree_leaves(node.meta.get("val")):
        numbers = value.shape if isinstance(value, torch.Tensor) else (value,)
        for number in numbers:
            if isinstance(number, torch.SymInt):
                found |= expression_of(number).free_symbols
    return found


def _most_selected(node: torch.fx.Node) -> int | None:
    """How many elements `masked_select` gives at most: PyTorch forgets that the input may be broadcast."""
    if node.target is not torch.ops.aten.masked_select.default:
        return None
    shapes = [each.meta["val"].shape for each in node.all_input_nodes]
    if any(isinstance(extent, torch.SymInt) for shape in shapes for extent in shape):
        return MAX_SIZE
    return prod(torch.broadcast_shapes(*shapes))


def _asserted_equal(
    graph: torch.fx.Graph, found: Collection[sympy.Symbol]
) -> dict[sympy.Symbol, sympy.Symbol]:
    """The sizes found in data that a graph asserts to be an earlier one, with that."""
    order: list[Any] = list(found)
    same: dict[Any, Any] = {}
    for node in graph.find_nodes(op="call_function", target=torch.ops.aten._assert_scalar.default):
        asserted: Any = node.args[0]
        condition = asserted.meta.get("val") if isinstance(asserted, torch.fx.Node) else None
        expr: Any = condition.node.expr if isinstance(condition, torch.SymBool) else None
        sides = cast(Sequence[Any], expr.args) if isinstance(expr, sympy.Eq) else ()
        if sides and set(sides) <= set(order):
            first, second = sorted((same.get(s, s) for s in sides), key=order.index)
            same = {s: first if o == second else o for s, o in same.items()}
            if first != second:
                same[second] = first
    return same


def _found_size(node: torch.fx.Node, axis: int, limits: ValueRanges[Any] | None) -> Range:
    if (most := _most_selected(node)) is not None:
        limits = ValueRanges(0, most)
    limits = limits or ValueRanges(0, MAX_SIZE)
    return range_of(f"{node.name}:{axis}", limits, 0, found_hint(limits))


def found_hint(limits: ValueRanges[Any] | None) -> int:
    """What a size that depends on values is expected to be."""
    if limits is None or not limits.upper.is_Integer or limits.upper > MAX_SIZE:
        return DEFAULT_HINT
    return max(1, int(limits.upper) // 2)
