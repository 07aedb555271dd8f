"""Replaces calls by traces: operators that the dialect does not have, by what PyTorch decomposes them into.

`ExportedProgram.run_decompositions` traces the whole program a second time. Here each operator that is not
in the contract is traced alone, once for each way it is called, so the layers of a deep model cost one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, cast

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode, unset_fake_temporarily
from torch.func import functionalize
from torch.fx.experimental.proxy_tensor import make_fx
from torch.fx.traceback import preserve_node_meta
from torch.utils import _pytree as pytree

from .aliasing import is_composite
from .decompositions import ORIGINAL, OWN, decompositions, is_kept, is_mutable, rules_of_calls
from .eager_strides import KERNELS
from .experts import grouped_products
from .fixed_point import in_fixed_point
from .unsupported import Unsupported

aten = torch.ops.aten

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

Rules = dict[Any, Callable[..., Any]]
Parts = Mapping[torch.fx.Node, Any]
"""The sub-graphs that a call names, by the nodes that get them."""


def decompose(
    exported: torch.export.ExportedProgram, *, calls_pytorch: bool = False
) -> torch.export.ExportedProgram:
    """`exported` in operators of the dialect, as far as PyTorch can decompose the others.

    With `calls_pytorch` what PyTorch computes faster stays a call of it.
    A program that changes tensors in place, even inside of an operator, has sub-graphs or symbolic sizes is
    left to `run_decompositions`, which makes it functional; any other is changed itself.
    """
    calls = [node for node in exported.graph.nodes if node.op in ("call_function", "get_attr")]
    products = grouped_products(calls_pytorch=calls_pytorch)
    if not all(_is_plain(node) for node in calls):
        return _functional(exported, products)
    rules = rules_of_calls() | products
    traced: dict[Hashable, torch.fx.GraphModule] = {}
    mode = FakeTensorMode()
    keys: dict[torch.fx.Node, Hashable] = {}
    moved: set[torch.fx.Node] = set()
    for node in calls:
        if not moved.isdisjoint(node.all_input_nodes):
            _run(node, mode, moved)
        if not _has_rule(node):
            continue
        key = keys[node] = call_key(node, {})
        if key not in traced:
            traced[key] = _trace(node, rules, mode)
            if any(_changes(inner) for inner in traced[key].graph.nodes):
                return _functional(exported, products)
        _take(node, _result(traced[key].graph), moved)
    for node, key in keys.items():
        is_one = node.target in OWN or not is_composite(node.target)
        splice(node, traced[key], {}, {ORIGINAL: node.target} if is_one else {})
    return exported


def _has_rule(node: torch.fx.Node) -> bool:
    """Whether a call is to be traced in terms of other operators."""
    if node.target is operator.getitem or in_fixed_point(node):
        return False
    return not is_kept(node.target) or node.target in KERNELS


def _run(node: torch.fx.Node, mode: FakeTensorMode, moved: set[torch.fx.Node]) -> None:
    """Run a call again on its arguments' fake tensors, which have other strides than export said."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    leaves = [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in leaves]
    if node.target is operator.getitem:
        producer, index = leaves
        _take(node, producer[index], moved)
        return
    with mode:
        flat = [_fake(x) if isinstance(x, torch.Tensor) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(flat, structure)
        target: Any = node.target
        _take(node, target(*args, **kwargs), moved)


def _result(traced: torch.fx.Graph) -> Any:
    """The fake tensors that a trace gives."""
    (returned,) = traced.output_node().args
    return pytree.tree_map(lambda x: x.meta["val"] if isinstance(x, torch.fx.Node) else x, returned)


def _take(node: torch.fx.Node, value: Any, moved: set[torch.fx.Node]) -> None:
    """Let a node have the value, and be among those moved, if strides are others than export said."""
    pairs = zip(*map(pytree.tree_leaves, (node.meta["val"], value)), strict=False)
    if any(isinstance(a, torch.Tensor) and a.stride() != b.stride() for a, b in pairs):
        node.meta["val"] = value
        moved.add(node)


def _functional(
    exported: torch.export.ExportedProgram, products: Rules
) -> torch.export.ExportedProgram:
    """`exported` as PyTorch decomposes it: all operators. Raises UnsupportedOpError if one must stay."""
    unsupported = Unsupported(offers_fallback=False)
    for node in filter(in_fixed_point, exported.graph.nodes):
        reason = "an image of uint8, in a program with sizes that change or changes of tensors"
        unsupported.add(node, reason)
    unsupported.raise_if_any()
    return exported.run_decompositions(decompositions() | products)


def _changes(node: torch.fx.Node) -> bool:
    return isinstance(node.target, OpOverload) and is_mutable(node.target)


def _is_plain(node: torch.fx.Node) -> bool:
    """Whether a node is a functional call on tensors of fixed sizes."""
    if node.target is operator.getitem:
        return True
    if not isinstance(node.target, OpOverload) or is_mutable(node.target):
        return False
    values = [n.meta.get("val") for n in (node, *node.all_input_nodes)]
    leaves = pytree.tree_leaves((values, node.args, node.kwargs))
    sizes = [n for leaf in leaves if isinstance(leaf, torch.Tensor) for n in leaf.shape]
    return not any(isinstance(x, SYMBOLIC) for x in (*leaves, *sizes))


def _trace(node: torch.fx.Node, rules: Rules, mode: FakeTensorMode) -> torch.fx.GraphModule:
    """What a call does in terms of other operators."""
    target: Any = node.target

    def call(*args: Any, **kwargs: Any) -> Any:
        # The trace asks the rules for what is not composite only.
        made = rules[target](*args, **kwargs) if target in OWN else NotImplemented
        return target(*args, **kwargs) if made is NotImplemented else made

    with mode:
        values = [_fake(each.meta["val"]) for each in node.all_input_nodes]
    with preserve_node_meta():
        return trace_call(node, call, {}, values, rules, mode)


def _fake(value: torch.Tensor) -> torch.Tensor:
    """A tensor like `value`, in the current mode."""
    return torch.empty_strided(
        value.shape, value.stride(), dtype=value.dtype, device=value.device, layout=value.layout
    )


def inputs_of(node: torch.fx.Node, parts: Parts) -> list[torch.fx.Node]:
    """Return the nodes that a call reads values of, each once."""
    return [each for each in node.all_input_nodes if each not in parts]


def call_key(node: torch.fx.Node, parts: Parts) -> Hashable:
    """Return a key that is equal for calls with equal traces."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    inputs = inputs_of(node, parts)
    given = {**parts, **{each: each.meta["val"] for each in inputs}}
    # An input that stands in two places is one input of the trace.
    said = [
        (each in inputs and inputs.index(each), _said(given[each]))
        if isinstance(each, torch.fx.Node)
        else _said(each)
        for each in leaves
    ]
    return node.target, str(structure), repr(said)


def _said(value: Any) -> Any:
    """Return what a trace depends on of an argument, or of a sub-graph."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), value.layout, value.device
    if isinstance(value, torch.fx.GraphModule):
        named = (str(each.target) for each in value.graph.find_nodes(op="get_attr"))
        held = (operator.attrgetter(name)(value) for name in named)
        return value.code, [id(x) if isinstance(x, torch.Tensor) else _said(x) for x in held]
    return type(value), value


def trace_call(
    node: torch.fx.Node,
    function: Callable[..., Any],
    parts: Parts,
    values: Sequence[Any],
    rules: Rules,
    mode: AbstractContextManager[Any],
    *,
    changes: bool = True,
) -> torch.fx.GraphModule:
    """Return what `function` computes of a call's arguments, over the fake `values` of its inputs.

    One that `changes` tensors in place does so in copies of its own.
    """
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    inputs = inputs_of(node, parts)

    def call(*given: Any) -> Any:
        held = {**parts, **dict(zip(inputs, given, strict=True))}
        flat = [held[x] if isinstance(x, torch.fx.Node) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(flat, structure)
        return function(*args, **kwargs)

    pure = functionalize(call, remove="mutations") if changes else call
    trace = make_fx(pure, decomposition_table=rules)
    with enable_python_dispatcher(), mode:
        return trace(*values)


def splice(
    node: torch.fx.Node, traced: torch.fx.GraphModule, parts: Parts, own: Mapping[str, Any]
) -> None:
    """Put copies of the nodes of a trace, whose meta has `own` as well, in the place of a call."""
    graph = node.graph
    places = traced.graph.find_nodes(op="placeholder")
    copies = dict(zip(places, inputs_of(node, parts), strict=True))
    with graph.inserting_before(node):
        for inner in traced.graph.nodes:
            if inner.op == "get_attr":
                copies[inner] = _number(graph, getattr(traced, inner.target))
            elif inner.op == "call_function":
                copies[inner] = graph.node_copy(inner, copies.__getitem__)
            else:
                continue
            kept = {ORIGINAL: inner.meta[ORIGINAL]} if ORIGINAL in inner.meta else {}
            copies[inner].meta = {**node.meta, "val": inner.meta.get("val"), **kept, **own}
    (results,) = traced.graph.output_node().args
    replace_results(node, pytree.tree_map(lambda x: copies.get(x, x), results))
    graph.erase_node(node)


def _number(graph: torch.fx.Graph, constant: torch.Tensor) -> torch.fx.Node:
    """Make a tensor of one number, which a trace holds, a call."""
    options: dict[str, Any] = {"dtype": constant.dtype, "device": constant.device}
    with unset_fake_temporarily():
        number = constant.item()
    return graph.call_function(aten.full.default, ([], number), options)


def replace_results(node: torch.fx.Node, results: Any) -> None:
    """Let the users of `node` read `results`: a node, or a list of such results."""
    if not isinstance(results, list | tuple):
        node.replace_all_uses_with(results)
        return
    made = cast(Sequence[Any], results)
    for user in list(node.users):
        assert user.target is operator.getitem
        index: Any = user.args[1]
        replace_results(user, made[index])
        node.graph.erase_node(user)
