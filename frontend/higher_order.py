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
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._guards import detect_fake_mode
from torch._higher_order_ops.flex_attention import sdpa_dense, sdpa_dense_backward
from torch._subclasses.fake_tensor import unset_fake_temporarily
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from .conditionals import choose_results
from .decompose import replace_results
from .decompositions import decompositions
from .importer import has_effect

aten = torch.ops.aten


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
}
"""What computes the same as a call, in operators."""


def expand_calls(module: torch.fx.GraphModule, graph: torch.fx.Graph) -> None:
    """Replace the calls of a graph, whose parts `module` has, as far as they can be replaced."""
    for node in graph.find_nodes(op="get_attr"):
        part = operator.attrgetter(str(node.target))(module)
        if isinstance(part, torch.fx.GraphModule):
            expand_calls(part, part.graph)
            part.recompile()
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in MEANINGS:
            continue
        parts = {
            each: operator.attrgetter(str(each.target))(module)
            for each in node.all_input_nodes
            if each.op == "get_attr"
        }
        inputs = [n for n in node.all_input_nodes if not callable(parts.get(n))]
        if any("val" not in each.meta for each in inputs):
            continue
        try:
            traced = _trace(node, inputs, parts)
        except (RuntimeError, NotImplementedError, ValueError):
            continue
        _splice(node, inputs, traced)
        for part in parts:
            if not part.users:
                graph.erase_node(part)
    choose_results(module, graph)


def _trace(
    node: torch.fx.Node, inputs: Sequence[torch.fx.Node], parts: dict[torch.fx.Node, Any]
) -> torch.fx.GraphModule:
    """What a call computes, over the values of `inputs`."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))

    def call(*given: Any) -> Any:
        values = parts | dict(zip(inputs, given, strict=True))
        flat = [values[x] if isinstance(x, torch.fx.Node) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(flat, structure)
        return MEANINGS[node.target](*args, **kwargs)

    values = [each.meta["val"] for each in inputs]
    trace = make_fx(functionalize(call, remove="mutations"), decomposition_table=decompositions())
    with enable_python_dispatcher(), detect_fake_mode(values) or torch.no_grad():
        traced = trace(*values)
    traced.graph.eliminate_dead_code(has_effect)
    constants = [getattr(traced, n.target) for n in traced.graph.find_nodes(op="get_attr")]
    if any(not isinstance(each, torch.Tensor) or each.ndim for each in constants):
        raise ValueError("a part of the program makes a tensor of constants")
    return traced


def _splice(
    node: torch.fx.Node, inputs: Sequence[torch.fx.Node], traced: torch.fx.GraphModule
) -> None:
    """Put the nodes of a trace in the place of a call."""
    graph = node.graph
    places = traced.graph.find_nodes(op="placeholder")
    copies: dict[torch.fx.Node, torch.fx.Node] = dict(zip(places, inputs, strict=True))
    with graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "get_attr":
                copies[inner] = _number(graph, getattr(traced, inner.target))
            elif inner.op == "call_function":
                copies[inner] = graph.node_copy(inner, copies.__getitem__)
            else:
                continue
            copies[inner].meta = {**node.meta, "val": inner.meta.get("val")}
    (results,) = traced.graph.output_node().args
    replace_results(node, pytree.tree_map(lambda x: copies.get(x, x), results))
    graph.erase_node(node)


def _number(graph: torch.fx.Graph, constant: torch.Tensor) -> torch.fx.Node:
    """A tensor of one number, which a trace holds, as a call."""
    options: dict[str, Any] = {"dtype": constant.dtype, "device": constant.device}
    with unset_fake_temporarily():
        number = constant.item()
    return graph.call_function(aten.full.default, ([], number), options)
