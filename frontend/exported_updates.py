"""Arguments that an exported program changes in place, and its outputs that are memory of these.

    def forward(self, x):
        self.cache.add_(x)
        return self.cache[0], x + 1

torch.export keeps `add_` at first. Decomposing makes the program functional: it returns the new value of the
cache first, then a view of that value. The graph before says that the first output is memory of the cache
(`memory_changes`). `take_exported_updates` lets the graph return

    cache[0], x + 1, cache + x

where `cache` is the argument, whose view is taken when its new value is written.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export.graph_signature import InputKind, InputSpec, OutputKind
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils import _pytree as pytree

from ..errors import UnsupportedOpError, also
from .aliasing import is_composite
from .arguments import bound_arguments
from .effects import Effects
from .layouts import is_row_major
from .overlaps import overlap_partly
from .random_numbers import draws
from .undo import STATISTICS, is_written
from .unsupported import OpOverload, source_line
from .updates import COPY, Owner, Updated
from .view_outputs import root_of, viewed_by

_KINDS = {
    "USER_INPUT": "input",
    "PARAMETER": "parameter",
    "USER_INPUT_MUTATION": "input",
    "PARAMETER_MUTATION": "parameter",
    "BUFFER_MUTATION": "buffer",
}


@dataclass(frozen=True)
class MemoryChanges:
    """What a program does to memory in eager: read before the program is functional."""

    targets: Mapping[str, str]
    """The targets of the arguments, by the names of their placeholders."""
    shared: Mapping[int, tuple[str, torch.fx.Node]]
    """Outputs that are memory of an argument, by position, with the argument's target."""
    written: frozenset[str]
    """The targets of the arguments that operators write to."""
    assigned: Mapping[str, str]
    """The targets of the buffers in whose place the program puts new tensors, and their dotted names."""
    depends_on_strides: bool
    """Whether other strides of its arguments may give it other memory to change, or other random numbers."""
    known: bool
    """Whether operators still wrote to arguments when this was read."""


def memory_changes(exported: torch.export.ExportedProgram, effects: Effects) -> MemoryChanges:
    """What a program that is not decomposed yet does to memory; `effects` are those of its export.

    Constants that it may write to become buffers: PyTorch refuses to change constants. Raises
    UnsupportedOpError for a change that is lost when PyTorch makes the program functional.
    """
    signature = exported.graph_signature
    targets = {spec.arg.name: _target(spec) for spec in signature.input_specs}
    written: list[str] = []
    maybe: set[str] = set()
    for node in exported.graph.nodes:
        for argument, certain in _written_arguments(node):
            memory, views = _memory_of(argument)
            _check_known(node, memory, views)
            _check_reads(node, argument, memory)
            _check_order(node, argument.meta["val"])
            if certain:
                written.append(memory.name)
            else:
                maybe.add(memory.name)
    for spec in signature.input_specs:
        if spec.kind is InputKind.CONSTANT_TENSOR and spec.arg.name in {*written, *maybe}:
            spec.kind, spec.persistent = InputKind.BUFFER, False
    (returned,) = exported.graph.output_node().args
    outputs = pytree.tree_leaves(returned, is_leaf=lambda value: value is None)
    shared = {
        position: (targets[memory.name], value)
        for position, value in enumerate(outputs)
        if isinstance(value, torch.fx.Node) and (memory := _memory_of(value)[0]).name in targets
    }
    assigned = {name: f"buffer '{name}'" for name in effects.assigned}
    _check_assigned(
        exported.graph, {n: t for n, t in targets.items() if t in assigned.values()}, written
    )
    return MemoryChanges(
        targets,
        shared,
        written=frozenset(targets[name] for name in written if name in targets),
        assigned={target: name for name, target in assigned.items()},
        depends_on_strides=effects.depends_on_strides or any(map(draws, exported.graph.nodes)),
        known={spec.kind for spec in signature.output_specs} <= {OutputKind.USER_OUTPUT},
    )


def _check_assigned(
    graph: torch.fx.Graph, assigned: Mapping[str, str], written: Sequence[str]
) -> None:
    """Raise UnsupportedOpError if an operator writes to a buffer before or after it is assigned.

    `written` has the argument of each operator that writes, also of the copy that export makes in the end.
    """
    for node in graph.find_nodes(op="call_function", target=COPY):
        buffer, value = node.args[:2]
        if buffer.name not in assigned:
            continue
        memory, _ = _memory_of(value)
        if written.count(buffer.name) > 1 or memory.name in written:
            raise UnsupportedOpError(
                f"this program assigns a tensor to {assigned[buffer.name]}, and changes that tensor or the "
                "one before in place, which is not supported: do one of both, or assign a .clone()"
            )


def _target(spec: InputSpec) -> str:
    """What an argument is called before and after decomposing: PyTorch may rename its placeholder."""
    kind = _KINDS.get(spec.kind.name, "buffer")
    return f"{kind} '{spec.arg.name if spec.target is None else spec.target}'"


def _written_arguments(node: torch.fx.Node) -> Iterator[tuple[torch.fx.Node, bool]]:
    """The tensors that a call writes to, and whether it is certain to."""
    if not isinstance(node.target, OpOverload):
        return
    for argument, value in bound_arguments(node):
        if is_written(argument):
            for each in pytree.tree_leaves(value):
                if isinstance(each, torch.fx.Node):
                    yield each, argument.name not in STATISTICS


def _memory_of(node: torch.fx.Node) -> tuple[torch.fx.Node, list[torch.fx.Node]]:
    """The tensor whose memory a node is in eager, and the views from there to the node."""
    views: list[torch.fx.Node] = []
    while True:
        if (changed := _changed_by(node)) is not None:
            if _changes_axes(node):
                views.insert(0, node)
            node = changed
        elif (viewed := viewed_by(node)) is not None:
            views.insert(0, node)
            node = viewed
        else:
            return node, views


def _changed_by(node: torch.fx.Node) -> torch.fx.Node | None:
    """The argument that a node is: the call gives what it wrote to."""
    index: Any = 0
    if node.target is operator.getitem:
        node, index = node.args  # type: ignore[assignment]
    target: Any = node.target
    if not isinstance(target, OpOverload) or not target._schema.is_mutable:
        return None
    results = target._schema.returns
    alias = results[index].alias_info if index < len(results) else None
    if alias is None or not alias.is_write:
        return None
    for argument, value in bound_arguments(node):
        own = argument.alias_info
        if own is not None and own.before_set == alias.before_set:
            return value if isinstance(value, torch.fx.Node) else None
    return None


def _changes_axes(node: torch.fx.Node) -> bool:
    """Whether a call changes where the elements of its argument are: its shape, its strides or its memory."""
    target: Any = node.target
    return isinstance(target, OpOverload) and torch.Tag.inplace_view in target.tags


def _check_known(node: torch.fx.Node, memory: torch.fx.Node, views: list[torch.fx.Node]) -> None:
    """Raise UnsupportedOpError if PyTorch does not know that a call changes `memory`, or how."""
    line = source_line(node)
    where = "" if line is None else f"\n  {line}"
    if _changes_axes(node) and memory.op == "placeholder" and not views:
        raise UnsupportedOpError(
            f"this program changes the shape, the strides or the memory of its argument '{memory.name}' in "
            f"place ({node.target}), which is not supported; only its elements may change:{where}"
        )
    if _is_its_argument(memory):
        raise UnsupportedOpError(
            f"this program changes in place what {memory.target} gives, which is its argument in eager; "
            f"torch.export loses that change:{where}\nChange the argument, or a clone of the result."
        )


def _check_reads(node: torch.fx.Node, written: torch.fx.Node, memory: torch.fx.Node) -> None:
    """Raise UnsupportedOpError if a call reads memory that it writes to at another position."""
    for read in node.all_input_nodes:
        if read is written or _memory_of(read)[0] is not memory:
            continue
        if overlap_partly(written.meta["val"], read.meta["val"]):
            line = source_line(node)
            raise also(UnsupportedOpError, RuntimeError)(
                f"this program changes memory in place that the same operator ({node.target}) reads at other "
                f"positions, which PyTorch refuses:\n  {line}\nLet it read a .clone()."
            )


FILLING = (
    torch.ops.aten.alpha_dropout_.default,
    torch.ops.aten.bernoulli_.float,
    torch.ops.aten.dropout_.default,
)
"""Operators that draw numbers for a tensor in the order of its memory, which PyTorch's trace forgets."""


def _check_order(node: torch.fx.Node, value: torch.Tensor) -> None:
    """Raise UnsupportedOpError for a call whose trace does not say in what order it fills memory."""
    if node.target not in FILLING or is_row_major(value.shape, value.stride()):
        return
    if all(given is not False for argument, given in bound_arguments(node) if argument.name == "train"):
        raise UnsupportedOpError(
            f"this program has {node.target} draw numbers for a tensor that is not row-major, whose order in "
            f"memory torch.export loses:\n  {source_line(node)}\nLet it draw for a row-major one."
        )


def _is_its_argument(node: torch.fx.Node) -> bool:
    """Whether an operator of several others gives memory of an argument, which its schema does not say."""
    target: Any = node.target
    if not isinstance(target, OpOverload) or not is_composite(target):
        return False
    args, kwargs = pytree.tree_map(
        lambda x: x.meta["val"] if isinstance(x, torch.fx.Node) else x, (node.args, node.kwargs)
    )
    with torch.no_grad():
        results = pytree.tree_leaves(target(*args, **kwargs))
    given = [x for x in pytree.tree_leaves((args, kwargs)) if isinstance(x, torch.Tensor)]
    return any(
        StorageWeakRef(each.untyped_storage()) == StorageWeakRef(tensor.untyped_storage())
        for each in results
        if isinstance(each, torch.Tensor)
        for tensor in given
    )


def take_exported_updates(
    exported: torch.export.ExportedProgram, changes: MemoryChanges, module: torch.nn.Module
) -> list[Updated]:
    """Let a decomposed graph return its outputs, then the new values of arguments; gives these arguments.

    `module` is what was exported. Raises UnsupportedOpError for a change that cannot be made as in eager.
    """
    signature, graph = exported.graph_signature, exported.graph
    (returned,) = graph.output_node().args
    nodes = {node.name: node for node in graph.find_nodes(op="placeholder")}
    placeholders = {_target(spec): nodes[spec.arg.name] for spec in signature.input_specs}
    values: dict[str, Any] = {}
    outputs: list[Any] = []
    for spec, value in zip(signature.output_specs, returned, strict=True):  # type: ignore[arg-type]
        if spec.kind is OutputKind.TOKEN:
            raise UnsupportedOpError(
                "this program calls an operator that has effects besides its results, which is not supported"
            )
        if spec.kind is OutputKind.USER_OUTPUT:
            outputs.append(value)
        else:
            values[f"{_KINDS[spec.kind.name]} '{spec.target}'"] = value
    _check_updates(values, placeholders, changes)
    changed = {placeholders[target] for target in values}
    views = _Views(graph, {name: placeholders[target] for name, target in changes.targets.items()})
    for position, value in enumerate(outputs):
        target, node = changes.shared.get(position, ("", None))
        if node is not None and target in values:
            outputs[position] = views.of(node)
        elif isinstance(value, torch.fx.Node) and root_of(value) in changed:
            outputs[position] = _copied(
                graph, value
            )  # the old value, which only PyTorch's rules view
    graph.output_node().args = ((*outputs, *values.values()),)
    return [
        Updated(placeholders[target], _owner(module, changes.assigned.get(target)))
        for target in values
    ]


def _owner(module: torch.nn.Module, buffer: str | None) -> Owner | None:
    """Who has a buffer that a program assigns to."""
    if buffer is None:
        return None
    path, _, name = buffer.rpartition(".")
    return module.get_submodule(path), name


def _check_updates(
    values: Mapping[str, Any], placeholders: Mapping[str, torch.fx.Node], changes: MemoryChanges
) -> None:
    """Raise UnsupportedOpError unless each change is known and is one of elements."""
    if values and not changes.known:
        raise UnsupportedOpError(
            f"this program changes {', '.join(values)} in place, in a function that torch.export "
            "follows below autograd only (as those of torch.func are), which is not supported"
        )
    if lost := changes.written - values.keys():
        raise UnsupportedOpError(
            f"this program changes {', '.join(sorted(lost))} in place, which torch.export loses"
        )
    for target, value in values.items():
        old, new = placeholders[target].meta["val"], value.meta["val"]
        if old.shape != new.shape or old.dtype != new.dtype:
            raise UnsupportedOpError(
                f"this program changes {target} from {old.dtype}{list(old.shape)} to "
                f"{new.dtype}{list(new.shape)}, which is not supported"
            )


def _copied(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    with graph.inserting_before(graph.output_node()):
        copy = graph.call_function(torch.ops.aten.clone.default, (node,))
    copy.meta = {"val": node.meta["val"].clone()}
    return copy


class _Views:
    """Views of arguments in a decomposed graph, as in the graph before."""

    def __init__(self, graph: torch.fx.Graph, arguments: Mapping[str, torch.fx.Node]):
        """`arguments` are the placeholders, by their names in the graph before."""
        self._graph = graph
        self._arguments = arguments
        self._made: dict[torch.fx.Node, torch.fx.Node] = {}

    def of(self, node: torch.fx.Node) -> torch.fx.Node:
        """The memory that a node of the graph before is in eager, or the number that it gives."""
        if node.op == "placeholder":
            return self._arguments[node.name]
        if node not in self._made:
            changed = _changed_by(node)
            if changed is not None and _changes_axes(node):
                raise UnsupportedOpError(
                    f"this program returns memory of an argument that it changes, with axes changed in place "
                    f"({node.target}), which is not supported: return a view instead"
                )
            self._made[node] = self._copied(node) if changed is None else self.of(changed)
        return self._made[node]

    def _copied(self, node: torch.fx.Node) -> torch.fx.Node:
        with self._graph.inserting_before(self._graph.output_node()):
            return self._graph.node_copy(node, self.of)
