"""Calls of functions on functions, as the operators that they come to.

    flex_attention(q, k, v, score_mod, block_mask, ...)
    map_impl(body, [x], [w])
    invoke_subgraph(part, "name", x)

become what PyTorch's dense form of `flex_attention` computes, the body on all rows at once (`torch.vmap`),
and the part itself. Each is traced on the fake tensors that its arguments are. A call that cannot be traced,
or whose body draws random numbers, stays as it is; deplo does not compile it. Calls of `cond` become choices
(`conditionals.py`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._higher_order_ops.flex_attention import sdpa_dense, sdpa_dense_backward
from torch._higher_order_ops.scan import scan_op

from .conditionals import COND, choose_results
from .decompose import Parts, call_key, inputs_of, splice, trace_call
from .decompositions import decompositions
from .functional_calls import AUTO_FUNCTIONALIZED, functional_call
from .importer import has_effect
from .part_calls import LOOP
from .recurrent import NETWORKS
from .recurrent_layers import network
from .scans import hold_parts


def _run(part: Callable[..., Any], _name: str | None, *operands: Any) -> Any:
    return part(*operands)


def _map(
    body: Callable[..., Any], mapped: Sequence[torch.Tensor], shared: Sequence[Any]
) -> list[torch.Tensor]:
    """What a body gives for each row of the mapped tensors, stacked row-major as PyTorch stacks it."""
    along = (*(0 for _ in mapped), *(None for _ in shared))
    results = torch.vmap(body, in_dims=along)(*mapped, *shared)
    return [result.contiguous() for result in results]


MEANINGS: dict[Any, Callable[..., Any]] = {
    torch.ops.higher_order.flex_attention: sdpa_dense,
    torch.ops.higher_order.flex_attention_backward: sdpa_dense_backward,
    torch.ops.higher_order.invoke_subgraph: _run,
    torch.ops.higher_order.map_impl: _map,
    AUTO_FUNCTIONALIZED: functional_call,
    **{operator: partial(network, name) for operator, name in NETWORKS.items()},
}
"""What computes the same as a call, in operators."""


def expand_calls(module: torch.fx.GraphModule, graph: torch.fx.Graph) -> None:
    """Replace the calls of a graph, whose parts `module` has, as far as they can be replaced.

    Those that stay hold their parts.
    """
    _expand(module, graph)
    _hold(module, graph)


def _hold(module: torch.fx.GraphModule, graph: torch.fx.Graph) -> None:
    for node in [n for n in graph.nodes if n.target in (scan_op, LOOP, COND)]:
        for part in hold_parts(module, node):
            _hold(part, part.graph)


def _expand(module: torch.fx.GraphModule, graph: torch.fx.Graph) -> None:
    for node in graph.find_nodes(op="get_attr"):
        part = operator.attrgetter(str(node.target))(module)
        if isinstance(part, torch.fx.GraphModule):
            _expand(part, part.graph)
            part.recompile()
    traced: dict[Hashable, torch.fx.GraphModule | None] = {}
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in MEANINGS:
            continue
        got = (each for each in node.all_input_nodes if each.op == "get_attr")
        held = {each: operator.attrgetter(str(each.target))(module) for each in got}
        parts = {each: part for each, part in held.items() if callable(part)}
        if any("val" not in each.meta for each in inputs_of(node, parts)):
            continue
        key = call_key(node, parts)
        if key not in traced:
            traced[key] = _trace(node, parts)
        if (made := traced[key]) is None:
            continue
        splice(node, made, parts, {})
        for part in parts:
            if not part.users:
                graph.erase_node(part)
    choose_results(module, graph)


def _trace(node: torch.fx.Node, parts: Parts) -> torch.fx.GraphModule | None:
    """What a call computes, over the values of its inputs; None if it cannot be traced."""
    values = [each.meta["val"] for each in inputs_of(node, parts)]
    mode = detect_fake_mode(values) or torch.no_grad()
    # A step would have copies of its views, and a network changes nothing.
    meaning, changes = MEANINGS[node.target], node.target not in NETWORKS
    try:
        traced = trace_call(node, meaning, parts, values, decompositions(), mode, changes=changes)
    except (RuntimeError, NotImplementedError, ValueError):
        return None
    traced.graph.eliminate_dead_code(has_effect)
    _hold(traced, traced.graph)
    constants = [getattr(traced, n.target) for n in traced.graph.find_nodes(op="get_attr")]
    if any(not isinstance(each, torch.Tensor) or each.ndim for each in constants):
        return None  # a part of the program makes a tensor of constants
    return traced
