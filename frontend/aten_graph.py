"""Captures a graph of ATen operators, as AOTAutograd makes it, as Torch IR."""

from __future__ import annotations

import copy
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch
from torch.utils._sympy.value_ranges import ValueRanges

from ..dialects.sizes import Extent
from ..errors import UnsupportedOpError
from .capture import Argument, Captured, import_graph, importer_of
from .effect_tokens import without_tokens
from .found_sizes import example_of
from .guarded_extents import pad_to_guarded_extents
from .higher_order import expand_calls
from .importer import Fallback, Importer
from .numbers import numbers_as_extents, numbers_of
from .prims import prims_as_aten
from .random_numbers import draw_in_memory_order
from .random_states import states_as_calls
from .size_guards import shape_environment
from .sizes import TRACED_EXTENT, InputTensor, Limits, Refused, input_sizes
from .updates import take_updates


def _tensors(placeholders: Sequence[torch.fx.Node], limits: Limits) -> list[InputTensor]:
    """The inputs that are tensors; numbers besides them are their sizes."""
    tensors: list[InputTensor] = []
    for position, node in enumerate(placeholders):
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor):
            example = tuple(example_of(extent, limits) for extent in value.shape)
            tensors.append(InputTensor(position, node.name, value, example))
        elif value is not None and not isinstance(value, torch.SymInt):
            raise UnsupportedOpError(f"input {node.name} is a {type(value).__name__}, not a tensor")
    return tensors


def _constants(
    module: torch.fx.GraphModule, graph: torch.fx.Graph
) -> dict[torch.fx.Node, torch.Tensor]:
    """The tensors that the graph holds, such as that of `torch.tensor(8.0)`, by what reads them."""
    found: dict[torch.fx.Node, torch.Tensor] = {}
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = operator.attrgetter(str(node.target))(module)
        if isinstance(value, torch.Tensor):
            found[node] = value
    return found


def _limits(graph: torch.fx.Graph, *, from_one: bool) -> Limits:
    """The range of each symbol, which Dynamo's guards check before each call; with `from_one`, 1 is in it."""
    environment = shape_environment(graph)
    limits = {} if environment is None else environment.var_to_range
    if not from_one:
        return limits
    return {
        symbol: ValueRanges(1, values.upper) if values.lower == TRACED_EXTENT else values
        for symbol, values in limits.items()
    }


def _shape(value: torch.Tensor, importer: Importer) -> tuple[Extent, ...]:
    """The shape of an argument; raises UnsupportedOpError where the importer has noted an extent."""
    try:
        return tuple(importer.sizes.extent(n) for n in value.shape)
    except Refused:
        importer.unsupported.raise_if_any()
        raise


def _add_arguments(
    importer: Importer,
    placeholders: Sequence[torch.fx.Node],
    tensors: Sequence[InputTensor],
    constants: Mapping[torch.fx.Node, torch.Tensor],
) -> list[Argument]:
    """Make the inputs and the constants arguments of the program, in this order."""
    arguments: list[Argument] = []
    for tensor in tensors:
        node, value = placeholders[tensor.position], tensor.value
        importer.add_argument(node, value, node.name, {})
        kind = _shape(value, importer), value.dtype, value.device
        arguments.append(Argument(node.name, "input", node.name, tensor.position, *kind))
    for node, value in constants.items():
        target = str(node.target)
        importer.add_argument(node, value, node.name, {"deplo.constant": target})
        kind = tuple(value.shape), value.dtype, value.device
        arguments.append(Argument(node.name, "constant", target, None, *kind))
    return arguments


def capture_graph(
    module: torch.fx.GraphModule,
    fallback: Fallback = "error",
    *,
    shares_memory: bool = False,
    from_one: bool = False,
) -> Captured:
    """A graph as Torch IR; its placeholders become the arguments and what it returns the results.

    With `fallback="eager"` an operator that is not supported becomes a call of PyTorch. If results are to
    share the memory that they share in PyTorch, one that cannot be made as a view is not supported. What the
    graph copies to its inputs are updates of the program. With `from_one`, the program holds for sizes of 1,
    too, where PyTorch traced the graph for sizes from 2 on: for those who drop Dynamo's guards, and so
    answer for it that the graph is the same. Raises UnsupportedOpError, which
    lists everything that is not supported, and SeveralDevices for tensors that cannot be together. Leaves the
    graph module as it is.
    """
    graph = copy.deepcopy(module.graph)
    expand_calls(module, graph)
    prims_as_aten(graph)
    without_tokens(graph)
    states_as_calls(graph)
    pad_to_guarded_extents(graph)
    draw_in_memory_order(graph)
    updated = take_updates(graph)
    carriers = numbers_as_extents(graph)
    placeholders = [node for node in graph.nodes if node.op == "placeholder"]
    limits = _limits(graph, from_one=from_one)
    tensors = _tensors(placeholders, limits)
    sizes = input_sizes(tensors, (), limits, limits if from_one else ())
    importer = importer_of(graph, sizes, limits, fallback)
    constants = _constants(module, graph)
    arguments = _add_arguments(importer, placeholders, tensors, constants)
    hidden = "it is returned as a view of memory, of sizes that no input has"
    held = {node.name: value for node, value in constants.items()}
    captured = import_graph(
        importer, graph, arguments, held, updated, lambda _: hidden if shares_memory else None
    )
    return replace(captured, numbers=numbers_of(carriers, placeholders, importer.sizes))
