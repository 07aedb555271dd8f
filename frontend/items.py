"""Numbers that a program takes out of its tensors and makes sizes of, as sizes that are found in data.

    n = lengths.max().item()            # aten.item: a number that depends on values
    mask = torch.arange(n) < lengths[:, None]

`item` gives no tensor that could say the size. An operator that makes as many elements as a tensor's value
says does, so

    n = aten.sym_size.int(aten.repeat_interleave.Tensor(aten.view(lengths.max(), [1])), 0)
"""

from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor

from .sizes import Limits, expression_of

aten = torch.ops.aten

ITEMS = (aten.item.default, aten._local_scalar_dense.default)


def items_as_sizes(graph: torch.fx.Graph, limits: Limits) -> None:
    """Replace each `item` that gives an integer, proven to be no less than 0, in place."""
    for node in list(graph.nodes):
        number: Any = node.meta.get("val")
        if node.target not in ITEMS or not isinstance(number, torch.SymInt):
            continue
        of: Any = node.args[0]
        expr = expression_of(number)
        symbols = node.meta.get("unbacked_bindings") or {}
        made = {number.node.shape_env.replace(symbol) for symbol in symbols}
        if expr not in made or expr not in limits or limits[expr].lower < 0:
            continue
        if isinstance(of.meta.get("val"), FakeTensor):
            _replace(node, of, symbols)


def _replace(node: torch.fx.Node, of: torch.fx.Node, symbols: Any) -> None:
    graph, value = node.graph, of.meta["val"]
    with graph.inserting_before(node), value.fake_mode:

        def call(target: Any, args: tuple[Any, ...], result: Any) -> torch.fx.Node:
            made = graph.call_function(target, args)
            made.meta = {**node.meta, "val": result}
            made.meta.pop("unbacked_bindings", None)
            return made

        wide = value.to(torch.int64)
        widened = of if value.dtype == torch.int64 else call(aten._to_copy.default, (of,), wide)
        if widened is not of:
            widened.kwargs = {"dtype": torch.int64}
        one = call(aten.view.default, (widened, [1]), wide.view(1))
        elements = torch.empty((node.meta["val"],), dtype=torch.int64)
        counted = call(aten.repeat_interleave.Tensor, (one,), elements)
        counted.meta["unbacked_bindings"] = symbols
        size = call(aten.sym_size.int, (counted, 0), node.meta["val"])
    node.replace_all_uses_with(size)
    graph.erase_node(node)
