"""Whole numbers that a graph takes: each becomes the extent of an input without elements.

    def forward(self, x: "f32[s0, 64]", n: "Sym(s1)"): return x[:n]
becomes
    def forward(self, x: "f32[s0, 64]", n: "i8[s1, 0]"): return x[: n.shape[0]]

Sizes are what the shapes of inputs say, here and in all that follows. Where PyTorch gives the number itself,
a call makes such a tensor of it (`Number.carried`), also for a number that only adds to an input's extent.
A number that may be negative has a carrier that is longer by `SHIFT`. A number that an input's shape says as
well needs none.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..dialects.allowed_sizes import MAX_SIZE
from ..errors import UnsupportedOpError
from .devices import device_of
from .sizes import Sizes, expression_of, is_found, multiple_of

SHIFT = (MAX_SIZE + 1) // 2
"""The length of the carrier of 0, if numbers may be negative: half of them are, of those that extents say."""


@dataclass(frozen=True)
class Number:
    """A number among the inputs of a graph: its place, and from which one to which a program holds."""

    position: int
    least: int
    largest: int
    shift: int
    """How much longer its carrier is."""
    device: torch.device

    def carried(self, value: int) -> torch.Tensor | None:
        """The tensor that has a number for its extent; None for one that the program does not hold for."""
        if not self.least <= value <= self.largest:
            return None
        return torch.empty((value + self.shift, 0), dtype=torch.int8, device=self.device)


def numbers_as_extents(graph: torch.fx.Graph) -> list[torch.fx.Node]:
    """Let a graph take tensors in the place of numbers; gives the placeholders of these."""
    placeholders = graph.find_nodes(op="placeholder")
    tensors = [
        value for node in placeholders if isinstance(value := node.meta.get("val"), torch.Tensor)
    ]
    said = set(_symbols_of(tensors))
    parts = set[sympy.Symbol]().union(*(expr.free_symbols for expr in _extents(tensors)))
    device = device_of(graph.nodes)
    found: list[torch.fx.Node] = []
    for node in placeholders:
        value = _number(node, said)
        if value is not None and (node.users or expression_of(value) in parts):
            _carry(graph, node, value, device)
            found.append(node)
    return found


def numbers_of(
    carriers: Collection[torch.fx.Node], placeholders: list[torch.fx.Node], sizes: Sizes
) -> tuple[Number, ...]:
    """What a call needs to know of the numbers that became extents."""
    numbers: list[Number] = []
    for node in carriers:
        tensor = node.meta["val"]
        said = multiple_of(expression_of(tensor.shape[0]))
        assert said is not None
        symbol, carrier = said
        values, shift = sizes.known[symbol], carrier.offset
        largest = min(values.largest, MAX_SIZE - shift)
        at = placeholders.index(node)
        numbers.append(Number(at, values.minimum, largest, shift, tensor.device))
    return tuple(numbers)


def with_numbers_carried(inputs: Sequence[Any], numbers: Sequence[Number]) -> list[Any] | None:
    """The inputs of a call, with tensors for its numbers; None if the program does not hold for one."""
    carried = list(inputs)
    for number in numbers:
        tensor = number.carried(carried[number.position])
        if tensor is None:
            return None
        carried[number.position] = tensor
    return carried


def _symbols_of(tensors: Collection[torch.Tensor]) -> Iterator[sympy.Symbol]:
    """The sizes that the shapes of inputs say."""
    for expr in _extents(tensors):
        if (said := multiple_of(expr)) is not None:
            yield said[0]


def _extents(tensors: Collection[torch.Tensor]) -> Iterator[Any]:
    """Export's expressions of the dynamic extents of inputs."""
    for tensor in tensors:
        yield from (expression_of(n) for n in tensor.shape if isinstance(n, torch.SymInt))


def _number(node: torch.fx.Node, said: Collection[sympy.Symbol]) -> torch.SymInt | None:
    """The number that a placeholder is, if nothing else says it."""
    value = node.meta.get("val")
    if not isinstance(value, torch.SymInt):
        return None
    expr = expression_of(value)
    known = value.node.has_hint() or (expr.is_Symbol and is_found(expr))
    return value if expr.is_Symbol and expr not in said and known else None


def _carry(
    graph: torch.fx.Graph, node: torch.fx.Node, value: torch.SymInt, device: torch.device
) -> None:
    """Make a placeholder a tensor whose extent is what it was."""
    environment = value.node.shape_env
    with graph.inserting_after(node):
        number = graph.call_function(torch.ops.aten.sym_size.int, (node, 0))
    number.meta["val"] = value
    node.replace_all_uses_with(number, delete_user_cb=lambda user: user is not number)
    may_be_negative = environment.var_to_range[expression_of(value)].lower < 0
    length = value + SHIFT if may_be_negative else value
    if length.node.has_hint() and length.node.hint < 0:
        raise UnsupportedOpError(f"input {node.name} is {value.node.hint}, less than {-SHIFT}")
    with environment.suppress_guards(), FakeTensorMode(shape_env=environment):
        node.meta["val"] = torch.empty((length, 0), dtype=torch.int8, device=device)
