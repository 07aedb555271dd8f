"""Whether a program that was captured for larger sizes is the same where a size is 1.

PyTorch treats an axis of extent 1 in its own way: it broadcasts, `squeeze` drops it, programs ask for it.
So torch.export assumes that a dynamic size is at least 2. To allow 1, the program is exported once more with
this size fixed to 1. If the same operators follow each other, with the same arguments and shapes, then what
was captured for larger sizes holds for 1 too.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from ..errors import DeploError, UnsupportedOpError
from .dynamic_shapes import AskedAxis, by_position, shapes_at, traceable, with_extents
from .export import export
from .importer import Fallback
from .python_values import Inputs
from .sizes import InputTensor, Sizes, input_sizes, input_tensors, is_symbolic, multiple_of
from .unsupported import OpOverload, operator_name, source_line

aten = torch.ops.aten

SAME_ELEMENTS = {
    aten.alias.default,
    aten.clone.default,
    aten.expand.default,
    aten.view.default,
    aten._unsafe_view.default,
}
"""Operators whose result has its input's elements in their order. Which of them PyTorch puts between the
others depends on strides; where one is read, its shape is compared."""


def dynamic_sizes(
    exported: torch.export.ExportedProgram,
    module: torch.nn.Module,
    inputs: Inputs,
    fallback: Fallback,
    asked: Sequence[AskedAxis],
    *,
    assertions: bool = False,
) -> Sizes:
    """The sizes of a program; those that are to be 1, as in the example or as was asked, are checked for it.

    `assertions` is how the program was exported.
    Raises UnsupportedOpError if the program is another one for them.
    """
    tensors = input_tensors(exported, inputs)
    extents = {(t.position, axis): expr for t in tensors for axis, expr in t.dynamic_extents()}
    wanted = {
        extents[each.position, each.axis]: each.name or f"axis {each.axis}"
        for each in asked
        if (each.position, each.axis) in extents and _wants_one(each, tensors)
    }
    wanted = {expr: name for expr, name in wanted.items() if isinstance(expr, sympy.Symbol)}
    groups = [[symbol] for symbol in wanted] + ([[*wanted]] if len(wanted) > 1 else [])
    for group in groups:
        told = " and ".join(f"{wanted[symbol]} = 1" for symbol in group)
        traced = traceable(inputs, asked)
        symbols = _examples(exported, traced) | dict.fromkeys(group, 1)
        ones = {
            place: int(expr.xreplace(symbols))
            for place, expr in extents.items()
            if expr.free_symbols & set(group)
        }
        fixed_inputs = with_extents(traced, ones)
        others = [each for each in asked if (each.position, each.axis) not in ones]
        shapes = shapes_at(module, inputs.args, inputs.kwargs, by_position(others))
        try:
            among = shapes if others else None
            fixed, _ = export(module, fixed_inputs, fallback, among, others, assertions=assertions)
        except DeploError as error:
            raise UnsupportedOpError(f"for {told}: {error}") from error
        others_at = _examples(fixed, fixed_inputs)
        where = first_difference(exported.graph, symbols, fixed.graph, others_at)
        if where is not None:
            raise UnsupportedOpError(
                f"for {told} this program is another one, from {where} on; ask for sizes from 2 on, and "
                "compile it for 1 apart"
            )
    return input_sizes(tensors, asked, exported.range_constraints, wanted)


def _wants_one(asked: AskedAxis, tensors: Sequence[InputTensor]) -> bool:
    """Whether an axis is to have extent 1 sometimes: it was asked for, or is so in the example."""
    examples = {tensor.position: tensor.example for tensor in tensors}
    example = examples[asked.position][asked.axis]
    return asked.minimum == 1 or (asked.minimum is None and example == 1)


def _examples(exported: torch.export.ExportedProgram, inputs: Inputs) -> dict[sympy.Symbol, int]:
    """The symbols' values where `exported` was made."""
    return {
        symbol: multiple.least_size(tensor.example[axis])
        for tensor in input_tensors(exported, inputs)
        for axis, expr in tensor.dynamic_extents()
        if (said := multiple_of(expr)) is not None
        for symbol, multiple in [said]
    }


# --------------------------------------------------------------------------- comparing graphs


Symbols = Mapping[sympy.Symbol, int]


def first_difference(
    dynamic: torch.fx.Graph, symbols: Symbols, fixed: torch.fx.Graph, others: Symbols
) -> str | None:
    """Where a graph with its symbols at `symbols` first differs from one with its at `others`, or None."""
    left, right = _Trace(dynamic, symbols), _Trace(fixed, others)
    for (node, mine), (_, other) in zip(left.steps, right.steps, strict=False):
        if mine != other:
            return _described(node)
    longer = max(left.steps, right.steps, key=len)
    if len(left.steps) != len(right.steps):
        return _described(longer[min(len(left.steps), len(right.steps))][0])
    return None if left.results == right.results else "its results"


def _described(node: torch.fx.Node) -> str:
    line = source_line(node)
    return f"{operator_name(node)} at {line}" if line is not None else operator_name(node)


class _Trace:
    """What a graph computes, step by step, with numbers for its symbols."""

    def __init__(self, graph: torch.fx.Graph, symbols: Symbols):
        self.symbols = symbols
        self.steps: list[tuple[torch.fx.Node, object]] = []
        self.results: object = None
        self._sources: dict[torch.fx.Node, object] = {}
        for node in graph.nodes:
            self._add(node)

    def _add(self, node: torch.fx.Node) -> None:
        if node.op == "placeholder":
            self._sources[node] = node.name
        elif node.op == "output":
            self.results = self._described(node.args)
        elif self._keeps_elements(node):
            self._sources[node] = self._sources[node.all_input_nodes[0]]
        elif not node.users and not node.is_impure():
            pass  # what nothing needs, PyTorch leaves in some graphs
        elif isinstance(node.target, OpOverload) or node.target is operator.getitem:
            if self._number(node.meta.get("val")) is None and _gives_tensors(node):
                self._sources[node] = len(self.steps)
                described = self._described((node.args, node.kwargs, node.meta.get("val")))
                self.steps.append((node, (node.target, described)))

    def _keeps_elements(self, node: torch.fx.Node) -> bool:
        """Whether the result is the input, but for its shape; a slice may take everything there is."""
        if node.target != aten.slice.Tensor:
            return node.target in SAME_ELEMENTS
        return self._shape(node.meta["val"]) == self._shape(node.all_input_nodes[0].meta["val"])

    def _described(self, value: Any) -> object:
        """Equal for what is the same: tensors by where they come from and their shape, sizes by value."""
        leaves, structure = pytree.tree_flatten(value)
        return str(structure), [self._leaf(leaf) for leaf in leaves]

    def _leaf(self, leaf: Any) -> object:
        if isinstance(leaf, torch.fx.Node):
            value = leaf.meta.get("val")
            if (number := self._number(value)) is not None:
                return number
            return "tensor", self._sources.get(leaf), self._shape(value)
        if isinstance(leaf, torch.Tensor):
            return "result", self._shape(leaf), leaf.dtype
        if (number := self._number(leaf)) is not None:
            return number
        return type(leaf), leaf

    def _shape(self, value: Any) -> Sequence[object]:
        return [self._number(n) for n in value.shape] if isinstance(value, torch.Tensor) else []

    def _number(self, value: Any) -> str | None:
        """A number, or what export computes from sizes; None for anything else."""
        if is_symbolic(value):
            return str(value.node.expr.xreplace(self.symbols))
        return str(value) if type(value) is int else None


def _gives_tensors(node: torch.fx.Node) -> bool:
    leaves = pytree.tree_leaves(node.meta.get("val"))
    return any(isinstance(leaf, torch.Tensor) for leaf in leaves)
