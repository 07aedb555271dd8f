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
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._sympy.value_ranges import ValueRanges

from ..dialects.allowed_sizes import DEFAULT_HINT, MAX_SIZE
from ..dialects.multiples import Range
from .sizes import Limits, Sizes, expression_of, range_of


def with_found(sizes: Sizes, graph: torch.fx.Graph, limits: Limits) -> Sizes:
    """`sizes` and those that operators of `graph` find in their data, as `limits` allows them.

    What `graph` asserts to be equal is one size: finding another value of it is an error.
    """
    found = _found_sizes(graph, limits)
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


def _found_sizes(graph: torch.fx.Graph, limits: Limits) -> dict[sympy.Symbol, Range]:
    """The sizes that operators find, where one gives a tensor with such an axis."""
    found: dict[sympy.Symbol, Range] = {}
    for node in graph.nodes:
        new, most = _bindings(node), _most_selected(node)
        for value in pytree.tree_leaves(node.meta.get("val")):
            if not isinstance(value, torch.Tensor) or node.op != "call_function":
                continue
            for axis, extent in enumerate(value.shape):
                expr: Any = expression_of(extent) if isinstance(extent, torch.SymInt) else None
                if expr in new and expr not in found:
                    known = limits.get(expr) if most is None else ValueRanges(0, most)
                    found[expr] = _found_size(f"{node.name}:{axis}", known)
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


def _bindings(node: torch.fx.Node) -> set[Any]:
    """The symbols that a node makes, as the shapes of tensors have them: some are found to be others."""
    made = node.meta.get("unbacked_bindings") or {}
    values = pytree.tree_leaves(node.meta.get("val"))
    environment = next((v.fake_mode.shape_env for v in values if isinstance(v, FakeTensor)), None)
    return set(made) if environment is None else {environment.replace(symbol) for symbol in made}


def _found_size(label: str, limits: ValueRanges[Any] | None) -> Range:
    return range_of(label, limits or ValueRanges(0, MAX_SIZE), 0, found_hint(limits))


def found_hint(limits: ValueRanges[Any] | None) -> int:
    """What a size that depends on values is expected to be."""
    if limits is None or not limits.upper.is_Integer:
        return DEFAULT_HINT
    return max(1, int(limits.upper) // 2)
