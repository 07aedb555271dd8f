"""States of PyTorch's random generator as tensors, for a backward pass that draws numbers again.

Under activation checkpointing PyTorch's partitioner makes

    state, y = run_and_save_rng_state(aten.rand_like, x)      # in the forward graph
    z = run_with_rng_state(state, aten.rand_like, x)          # in the backward graph

of an operator that both passes run. They become calls, which keep their order:

    state = deplo.random_state()
    y = aten.rand_like(x)

    before = deplo.exchange_random_state(state)
    z = aten.rand_like(x)
    deplo.exchange_random_state(before)
"""

from __future__ import annotations

from typing import Any

import torch
from torch._prims.rng_prims import run_and_save_rng_state, run_with_rng_state
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from .recurrent import NAMESPACE

_LIBRARY = torch.library.Library(NAMESPACE, "FRAGMENT")
_EFFECTFUL = (torch.Tag.nondeterministic_seeded,)
_STATE_BYTES = torch.get_rng_state().numel()


def _exchange(state: torch.Tensor) -> torch.Tensor:
    before = torch.get_rng_state()
    torch.set_rng_state(state)
    return before


_LIBRARY.define("random_state() -> Tensor", tags=_EFFECTFUL)
_LIBRARY.impl("random_state", torch.get_rng_state, "CompositeExplicitAutograd")
_LIBRARY.define("exchange_random_state(Tensor state) -> Tensor", tags=_EFFECTFUL)
_LIBRARY.impl("exchange_random_state", _exchange, "CPU")

RANDOM_STATE: Any = torch.ops.deplo.random_state.default
EXCHANGE: Any = torch.ops.deplo.exchange_random_state.default


def states_as_calls(graph: torch.fx.Graph) -> None:
    """Replace what saves and restores the state of the CPU's generator by calls, in place.

    A state has a fixed size, where PyTorch traces a dynamic one. The state of a GPU's generator stays, and is
    not supported.
    """
    for node in graph.find_nodes(op="call_function", target=run_and_save_rng_state):
        _save(graph, node)
    for node in graph.find_nodes(op="call_function", target=run_with_rng_state):
        _restore(graph, node)


def _save(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    items = {user.args[1]: user for user in node.users}
    if not _is_on_cpu(items[1].meta["val"]):
        return
    operator, *arguments = node.args
    with graph.inserting_before(node):
        state = graph.call_function(RANDOM_STATE)
        drawn = graph.call_function(operator, tuple(arguments), node.kwargs)  # type: ignore[arg-type]
    state.meta["val"] = _state_of(items[0].meta["val"].fake_mode)
    drawn.meta = dict(items[1].meta)
    for place, made in enumerate((state, drawn)):
        items[place].replace_all_uses_with(made)
        graph.erase_node(items[place])
    graph.erase_node(node)


def _restore(graph: torch.fx.Graph, node: torch.fx.Node) -> None:
    state, operator, *arguments = node.args
    assert isinstance(state, torch.fx.Node)
    mode = state.meta["val"].fake_mode
    value = _traced(operator, arguments, node.kwargs, mode)
    if not _is_on_cpu(value):
        return
    state.meta["val"] = _state_of(mode)
    with graph.inserting_before(node):
        before = graph.call_function(EXCHANGE, (state,))
        drawn = graph.call_function(operator, tuple(arguments), node.kwargs)  # type: ignore[arg-type]
        after = graph.call_function(EXCHANGE, (before,))
    drawn.meta = {**node.meta, "val": value}
    for exchange in (before, after):
        exchange.meta["val"] = _state_of(mode)
    node.replace_all_uses_with(drawn)
    graph.erase_node(node)


def _state_of(mode: FakeTensorMode) -> torch.Tensor:
    """Return a state as PyTorch traces a tensor."""
    with mode:
        return torch.empty(_STATE_BYTES, dtype=torch.uint8)


def _is_on_cpu(values: Any) -> bool:
    tensors = (each for each in pytree.tree_leaves(values) if isinstance(each, torch.Tensor))
    return all(tensor.device.type == "cpu" for tensor in tensors)


def _traced(operator: Any, args: Any, kwargs: Any, mode: FakeTensorMode) -> Any:
    """Return the result of a call as PyTorch traces it; the partitioner does not say it."""
    args, kwargs = pytree.tree_map_only(
        torch.fx.Node, lambda each: each.meta["val"], (tuple(args), dict(kwargs))
    )
    with mode:
        return operator(*args, **kwargs)
