"""Captures a PyTorch module or function as Torch IR, with everything needed to call it like the original.

captured = capture(nn.RMSNorm(2048), (torch.randn(1, 32, 2048),))
captured.module      # builtin.module with func.func @main(%x, %p_weight)
captured.arguments   # x: the first input; p_weight: parameter "weight"
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch.export.graph_signature import InputKind
from torch.utils import _pytree as pytree
from xdsl.dialects.builtin import ModuleOp

from ..dialects.sizes import Extent
from ..errors import DeploError, UsageError
from .call_sizes import ReturnedSize
from .complex_graphs import without_complex
from .devices import CPU, away_results, check_arguments, device_of
from .dynamic_shapes import asked_axes
from .export import UNUSED, SizesDoNotFit, export
from .exported_updates import MemoryChanges, take_exported_updates
from .factorizations import keep_factored_order
from .found_sizes import with_found
from .function_modules import ClosedOver, FunctionModule
from .higher_order import expand_calls
from .importer import Fallback, Importer, has_effect
from .items import items_as_sizes
from .layouts import Layout
from .numbers import Number
from .plain_tensors import check_plain
from .python_values import Inputs, close_over, unflatten, with_closed_over
from .random_numbers import draw_in_memory_order
from .size_guards import as_multiples, check_guards, guards_of
from .size_numbers import numbers_as_tensors
from .size_one import dynamic_sizes
from .sizes import Limits, Sizes
from .strided_views import ReadInput, changed_inputs, permute_to_memory_order, read_inputs
from .tensor_parts import with_parts
from .updates import Update, Updated, mark_updates, updates_of, write
from .view_outputs import Output, hidden_views, outputs_of, results_of, root_of

Source = Literal["input", "parameter", "buffer", "constant"]


@dataclass(frozen=True)
class Argument:
    """One argument of `@main`."""

    name: str
    source: Source
    target: str
    """The dotted name of a parameter, buffer or constant; for an input, its name."""
    flat_index: int | None
    """An input's position among the flattened inputs."""
    shape: tuple[Extent, ...]
    dtype: torch.dtype
    device: torch.device


@dataclass(frozen=True)
class Captured:
    """A program as Torch IR, and how its arguments and results stand for the original's."""

    module: ModuleOp
    arguments: tuple[Argument, ...]
    tensors: dict[str, torch.Tensor]
    """The parameters, buffers and constants, by the name of the argument."""
    constants: dict[int, object]
    """Inputs that are not tensors, by flat position: the program holds for these values only."""
    outputs: tuple[Output, ...]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec
    keyword_order: tuple[str, ...]
    read: tuple[ReadInput, ...] = ()
    """Inputs for whose strides alone the program holds."""
    updates: tuple[Update, ...] = ()
    """The arguments that it changes in place."""
    numbers: tuple[Number, ...] = ()
    """Inputs that are numbers, and tensors of that extent to the program."""
    device: torch.device = CPU
    """Where all of it is computed."""
    away: frozenset[int] = frozenset()
    """The results of `@main` that are on the CPU in PyTorch, where the program runs on a GPU."""
    complex_results: frozenset[int] = frozenset()
    """The results of `@main` that are real tensors of the parts of complex ones."""
    has_transforms: bool = False
    """Whether it has Fourier transforms: sums, which spread NaN and infinities otherwise than eager's do."""

    def flatten_inputs(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """The inputs of a call in the order of `flat_index`.

        Raises UsageError if they are not organized, or their Python values are not, as when captured.
        """
        if not kwargs and len(args) == self._takes_tensors and all(map(torch.is_tensor, args)):
            for each in self.read:
                each.check(args)
            return list(args)
        ordered = {name: kwargs[name] for name in self.keyword_order if name in kwargs} | dict(
            kwargs
        )
        flat, spec = pytree.tree_flatten((tuple(args), ordered))
        if spec != self.in_spec:
            raise UsageError(
                f"inputs must be organized as when compiled\n  compiled for {self.in_spec}\n  "
                f"called with {spec}"
            )
        for position, expected in self.constants.items():
            if flat[position] != expected or type(flat[position]) is not type(expected):
                raise UsageError(
                    f"input {position} is {flat[position]!r}, but the program was compiled for "
                    f"{expected!r}; compile it again for the new value"
                )
        for each in self.read:
            each.check(flat)
        return flat

    @functools.cached_property
    def _takes_tensors(self) -> int:
        """How many tensors the program takes if it takes them one by one and nothing else, or -1."""
        count = self.in_spec.num_leaves
        plain = pytree.tree_structure(((None,) * count, {}))
        return count if not self.constants and self.in_spec == plain else -1

    @functools.cached_property
    def _gives(self) -> type[list[Any] | tuple[Any, ...]] | None:
        """What the outputs are, if a list or a tuple of nothing else: pytree takes 10 us to make one."""
        for kind in (list, tuple):
            if self.out_spec == pytree.tree_structure(kind([None] * self.out_spec.num_leaves)):
                return kind
        return None

    @functools.cached_property
    def _values(self) -> tuple[Output, ...]:
        """The outputs, then the new values of the arguments that change."""
        return *self.outputs, *(update.value for update in self.updates)

    @functools.cached_property
    def _layouts(self) -> dict[int, Layout]:
        """The layouts of the results of `@main` that are not row-major."""
        found = ((o.index, o.layout) for o in self._values if o.source == "result")
        return {i: layout for i, layout in found if i is not None and layout is not None}

    @property
    def takes_any_tensors(self) -> bool:
        """Whether its inputs are tensors one by one, whatever their strides and with no values among them."""
        return self._takes_tensors >= 0 and not self.read

    @functools.cached_property
    def complex_arguments(self) -> tuple[int, ...]:
        """The arguments of `@main` that are real tensors of the parts of complex ones."""
        return tuple(i for i, each in enumerate(self.arguments) if each.dtype.is_complex)

    def unflatten_outputs(self, results: Sequence[Any], arguments: Sequence[Any]) -> Any:
        """The outputs of a call, organized as the original's, from `@main`'s results and arguments.

        The results are the call's own: some become outputs, with other axes. Arguments that the program
        changes get their new values.
        """
        if self.away:
            results = [r.cpu() if i in self.away else r for i, r in enumerate(results)]
        if self._layouts:
            results = [
                r if (layout := self._layouts.get(i)) is None else layout.of(r, arguments)
                for i, r in enumerate(results)
            ]
        flat: list[Any] = []
        sources = {"result": results, "argument": arguments, "output": flat}
        for output in self._values:
            if isinstance(output.value, ReturnedSize):
                flat.append(output.value.of(results if output.source == "found" else arguments))
            elif output.index is None:
                flat.append(output.value)
            else:
                flat.append(output.of(sources[output.source][output.index], arguments))
        if self.updates:
            count = len(self.outputs)
            write(self.updates, flat[count:], arguments)
            del flat[count:]
        if self._gives is not None:
            return self._gives(flat)
        return flat[0] if self.out_spec.is_leaf() else unflatten(flat, self.out_spec)


def capture(
    program: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None = None,
    dynamic_shapes: Any = None,
    fallback: Fallback = "error",
) -> Captured:
    """Capture `program` as it runs on `args` and `kwargs`, whose shapes become fixed.

    But the extents that `dynamic_shapes` names, as torch.export takes it, become dynamic sizes.
    A module is captured in the mode it is in: call `.eval()` first for inference. With `fallback="eager"`
    an operator that is not supported becomes a call of PyTorch. Raises UnsupportedOpError, which lists
    every operator, argument and dtype that is not supported, and DeploError if export fails.
    """
    inputs = close_over(args, kwargs or {})
    if not isinstance(program, torch.nn.Module):
        module: torch.nn.Module = FunctionModule(with_closed_over(program, inputs.closed_over))
    elif inputs.closed_over:
        module = ClosedOver(with_parts(program), inputs.closed_over)
    else:
        module = with_parts(program)
    check_plain(module, (inputs.args, inputs.kwargs))
    asked = asked_axes(module, inputs, dynamic_shapes)

    def attempt(*, assertions: bool) -> Captured:
        exported, changes = export(
            module, inputs, fallback, dynamic_shapes, asked, assertions=assertions
        )
        sizes = Sizes()
        if dynamic_shapes is not None:
            sizes = dynamic_sizes(exported, module, inputs, fallback, asked, assertions=assertions)
        return _import(exported, changes, module, tuple(kwargs or {}), fallback, sizes)

    try:
        captured = attempt(assertions=False)
    except SizesDoNotFit as told:
        try:  # PyTorch 2.11 cannot prove min(8 * n, 16 * n) == 8 * n; what it asserts is proved here
            captured = attempt(assertions=True)
        except DeploError:
            raise told from None
    return _as_called(captured, module, args, kwargs or {}, inputs)


def _as_called(
    captured: Captured,
    module: torch.nn.Module,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    inputs: Inputs,
) -> Captured:
    """`captured`, with the structure of the inputs and outputs that the caller sees."""
    out_spec = module.out_spec if isinstance(module, FunctionModule) else None
    if out_spec is None or out_spec.num_leaves != captured.out_spec.num_leaves:
        out_spec = captured.out_spec
    return replace(
        captured,
        in_spec=pytree.tree_structure((tuple(args), dict(kwargs))),
        out_spec=out_spec,
        constants=captured.constants | dict(inputs.closed_over),
    )


_SOURCES: dict[InputKind, Source] = {
    InputKind.PARAMETER: "parameter",
    InputKind.BUFFER: "buffer",
    InputKind.CONSTANT_TENSOR: "constant",
    InputKind.USER_INPUT: "input",
}


def _import(
    exported: torch.export.ExportedProgram,
    changes: MemoryChanges,
    module: torch.nn.Module,
    keyword_order: tuple[str, ...],
    fallback: Fallback,
    sizes: Sizes,
) -> Captured:
    graph = exported.graph
    updated = take_exported_updates(exported, changes, module)
    expand_calls(exported.graph_module, graph)
    draw_in_memory_order(graph)
    guards = guards_of(graph)
    importer = importer_of(graph, sizes, exported.range_constraints, fallback)
    arguments, constants = _add_arguments(exported, importer)
    held = {a.name: _lifted(exported, a.target) for a in arguments if a.source != "input"}
    changing = {each.node for each in updated}
    changes_too = "it is returned as memory of an argument that changes"
    captured = import_graph(
        *(importer, graph, arguments, held, updated),
        lambda view: changes_too if root_of(view) in changing else None,
    )
    check_guards(guards, importer.sizes)
    positions = {a.name: a.flat_index for a in arguments if a.flat_index is not None}
    changed = changed_inputs(updated, positions) if changes.depends_on_strides else ()
    spec = exported.call_spec
    assert spec.in_spec is not None and spec.out_spec is not None
    return replace(
        captured,
        constants=constants,
        in_spec=spec.in_spec,
        out_spec=spec.out_spec,
        keyword_order=keyword_order,
        read=captured.read + changed,
    )


def importer_of(
    graph: torch.fx.Graph, sizes: Sizes, limits: Limits, fallback: Fallback
) -> Importer:
    """An importer of a graph: with its sizes as multiples, those found in data too, and its device."""
    items_as_sizes(graph, limits)
    sizes = with_found(as_multiples(sizes, guards_of(graph)), graph, limits)
    return Importer(fallback, sizes, device_of(graph.nodes))


def import_graph(
    importer: Importer,
    graph: torch.fx.Graph,
    arguments: Sequence[Argument],
    tensors: dict[str, torch.Tensor],
    updated: Sequence[Updated],
    refused_view: Callable[[torch.fx.Node], str | None],
) -> Captured:
    """Import a graph, whose `arguments` the importer has, as a program from inputs to a list of outputs.

    `tensors` are those that the program holds, by argument; `refused_view` says why a result that cannot be
    made the view that it is in eager is not supported, or None.
    """
    device = importer.device
    places = tuple(range(len(graph.find_nodes(op="placeholder"))))
    check_arguments(arguments, device)
    positions = {argument.name: i for i, argument in enumerate(arguments)}
    for node in hidden_views(graph, positions):
        if (reason := refused_view(node)) is not None:
            importer.unsupported.add(node, reason)
    outputs, updates = updates_of(updated, outputs_of(graph, positions), positions)
    permute_to_memory_order(graph)
    keep_factored_order(graph)
    numbers_as_tensors(graph)
    mark_updates(importer, updated, outputs, updates)
    graph.eliminate_dead_code(has_effect)
    pairs = without_complex(graph, importer)
    for node in graph.nodes:
        if node.op == "call_function":
            importer.add_call(node)
        elif node.op == "get_attr":
            importer.add_object(node)
    returned = results_of(graph)
    inputs = {a.name: a.flat_index for a in arguments if a.flat_index is not None}
    tables = {node.name: table for node, table in pairs.constants.items()}
    kinds = ((name, (tuple(t.shape), t.dtype, t.device)) for name, t in tables.items())
    of_tables = (Argument(name, "constant", name, None, *kind) for name, kind in kinds)
    return Captured(
        module=importer.finish(returned),
        arguments=(*arguments, *of_tables),
        tensors=tensors | tables,
        constants={},
        outputs=outputs,
        in_spec=pytree.tree_structure((places, {})),
        out_spec=pytree.tree_structure(list(range(len(outputs)))),
        keyword_order=(),
        read=read_inputs(graph, inputs),
        updates=updates,
        device=device,
        away=away_results(returned, device),
        complex_results=pairs.results,
        has_transforms=bool(tables),
    )


def _add_arguments(
    exported: torch.export.ExportedProgram, importer: Importer
) -> tuple[list[Argument], dict[int, object]]:
    """Make the arguments of `@main`: inputs first, then what the program holds."""
    placeholders = {node.name: node for node in exported.graph.nodes if node.op == "placeholder"}
    arguments: list[Argument] = []
    constants: dict[int, object] = {}
    flat_index = 0
    for spec in exported.graph_signature.input_specs:
        if spec.target == UNUSED:
            continue
        node, source = placeholders[spec.arg.name], _SOURCES.get(spec.kind)
        value = node.meta.get("val")
        position = None
        if source == "input":
            position, flat_index = flat_index, flat_index + 1
        if position is not None and not isinstance(value, torch.Tensor):
            constants[position] = getattr(spec.arg, "value", value)
        elif source is None or not isinstance(value, torch.Tensor):
            importer.unsupported.add_what(f"{spec.kind.name.lower()} {spec.arg.name}")
        else:
            target = spec.arg.name if spec.target is None else spec.target
            shape = importer.sizes.shape(value)
            arguments.append(
                Argument(node.name, source, target, position, shape, value.dtype, value.device)
            )
    arguments.sort(key=lambda argument: argument.source != "input")
    for argument in arguments:
        node, is_input = placeholders[argument.name], argument.source == "input"
        attributes = {} if is_input else {f"deplo.{argument.source}": argument.target}
        importer.add_argument(node, node.meta["val"], argument.name, attributes)
    return arguments, constants


def _lifted(exported: torch.export.ExportedProgram, target: str) -> torch.Tensor:
    tensor = exported.state_dict.get(target)
    if tensor is None:
        tensor = exported.constants[target]
    assert isinstance(tensor, torch.Tensor)
    return tensor.detach()
