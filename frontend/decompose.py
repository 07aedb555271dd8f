"""Replaces the operators that the dialect does not have by what PyTorch decomposes them into.

`ExportedProgram.run_decompositions` traces the whole program a second time. Here each operator that is not
in the contract is traced alone, once for each way it is called, so the layers of a deep model cost one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Sequence
from typing import Any, cast

import torch
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensorMode
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

SYMBOLIC = (torch.SymInt, torch.SymFloat, torch.SymBool)

Rules = dict[Any, Callable[..., Any]]


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
    traced: dict[Hashable, torch.fx.Graph] = {}
    mode = FakeTensorMode()
    keys: dict[torch.fx.Node, Hashable] = {}
    moved: set[torch.fx.Node] = set()
    for node in calls:
        if not moved.isdisjoint(node.all_input_nodes):
            _run(node, mode, moved)
        if not _has_rule(node):
            continue
        key = keys[node] = _call_key(node)
        if key not in traced:
            traced[key] = _trace(node, rules, mode)
            if any(_changes(inner) for inner in traced[key].nodes):
                return _functional(exported, products)
        _take(node, _result(traced[key]), moved)
    for node, key in keys.items():
        _splice(node, traced[key])
    return exported


def _has_rule(node: torch.fx.Node) -> bool:
    """Whether a call is to be traced in terms of other operators."""
    if node.target is operator.getitem or in_fixed_point(node):
        return False
    return not is_kept(node.target) or node.target in KERNELS


def _run(node: torch.fx.Node, mode: FakeTensorMode, moved: set[torch.fx.Node]) -> None:
    """Run a call again on its arguments' fake tensors, which have other strides than export said."""
    leaves, structure = _values(node)
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


def _values(node: torch.fx.Node) -> tuple[list[Any], pytree.TreeSpec]:
    """The arguments of a call, flat, each input node as its fake tensor."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    return [x.meta["val"] if isinstance(x, torch.fx.Node) else x for x in leaves], structure


def _call_key(node: torch.fx.Node) -> Hashable:
    """Equal for calls that decompose alike."""
    leaves, structure = _values(node)
    parts = [
        (x.dtype, tuple(x.shape), x.stride(), x.layout, x.device)
        if isinstance(x, torch.Tensor)
        else (type(x), x)
        for x in leaves
    ]
    # An input that stands in two places is one input of the trace.
    inputs = node.all_input_nodes
    places = [inputs.index(x) for x in pytree.tree_leaves((node.args, node.kwargs)) if x in inputs]
    return node.target, str(structure), repr(parts), tuple(places)


def _trace(node: torch.fx.Node, rules: Rules, mode: FakeTensorMode) -> torch.fx.Graph:
    """What a call does in terms of other operators: a graph over the node's inputs, in order."""
    leaves, structure = pytree.tree_flatten((node.args, node.kwargs))
    inputs = node.all_input_nodes

    def call(*tensors: torch.Tensor) -> Any:
        values = dict(zip(inputs, tensors, strict=True))
        flat = [values.get(x, x) if isinstance(x, torch.fx.Node) else x for x in leaves]
        args, kwargs = pytree.tree_unflatten(flat, structure)
        target: Any = node.target
        # The trace asks the rules for what is not composite only.
        made = rules[target](*args, **kwargs) if target in OWN else NotImplemented
        return target(*args, **kwargs) if made is NotImplemented else made

    trace = make_fx(functionalize(call, remove="mutations"), decomposition_table=rules)
    with enable_python_dispatcher(), mode, preserve_node_meta():
        return trace(*(_fake(n.meta["val"]) for n in inputs)).graph


def _fake(value: torch.Tensor) -> torch.Tensor:
    """A tensor like `value`, in the current mode."""
    return torch.empty_strided(
        value.shape, value.stride(), dtype=value.dtype, device=value.device, layout=value.layout
    )


def _splice(node: torch.fx.Node, traced: torch.fx.Graph) -> None:
    """Put a copy of `traced` in the place of `node`."""
    graph = node.graph
    copies: dict[torch.fx.Node, torch.fx.Node] = {}
    inputs = iter(node.all_input_nodes)
    with graph.inserting_before(node):
        for inner in traced.nodes:
            if inner.op == "placeholder":
                copies[inner] = next(inputs)
            elif inner.op == "output":
                replace_results(node, pytree.tree_map(lambda x: copies.get(x, x), inner.args[0]))
            else:
                copy = graph.node_copy(inner, copies.__getitem__)
                own = {"val": inner.meta.get("val")}
                if ORIGINAL in inner.meta:
                    own[ORIGINAL] = inner.meta[ORIGINAL]
                if node.target in OWN or not is_composite(node.target):
                    own[ORIGINAL] = node.target
                copy.meta = {**node.meta, **own}
                copies[inner] = copy
    graph.erase_node(node)


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
