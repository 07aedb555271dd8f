"""Random numbers: PyTorch's generator gives them, in the order in which the program asks.

deplo computes no random numbers: an operator that draws some is a call of PyTorch, in eager's order. Two
things would change the numbers. Export drops an operator whose result has no use, and the operators that
follow would draw other numbers. And PyTorch fills a result in the order of its memory, which is that of an
operand, whereas a call gets row-major operands: so

    aten.bernoulli(x)            # x: 4 by 8 elements with strides (1, 4)

becomes

    moved = aten.clone(aten.permute(x, [1, 0]))        # 8 by 4 elements, row by row
    aten.bernoulli(aten.permute(moved, [1, 0]))        # the call gets this view
"""

from __future__ import annotations

from typing import Any

import torch
from torch._prims_common import compute_elementwise_output_logical_to_physical_perm

from ..errors import UnsupportedOpError
from .arguments import bound_arguments
from .unsupported import OpOverload

aten = torch.ops.aten


def draws(node: torch.fx.Node) -> bool:
    """Whether running `node` advances PyTorch's generator."""
    target: Any = node.target
    if node.op != "call_function" or not isinstance(target, OpOverload):
        return False
    given = {argument.name: value for argument, value in bound_arguments(node)}
    if given.get("train") is False or given.get("training") is False:
        return False
    if "dropout_p" in given or "dropout" in given:
        return bool(given.get("dropout_p")) or bool(given.get("dropout"))
    if "dropout" in target._schema.name and given.get("p") == 0:
        return False
    return torch.Tag.nondeterministic_seeded in target.tags


def number_of_draws(exported: torch.export.ExportedProgram) -> int:
    """How many operators of a program draw random numbers."""
    return sum(draws(node) for node in exported.graph.nodes)


def check_all_kept(before: int, decomposed: torch.export.ExportedProgram) -> None:
    """Raise UnsupportedOpError if decomposing dropped one of `before` operators that draw."""
    after = number_of_draws(decomposed)
    if before != after:
        raise UnsupportedOpError(
            f"this program draws random numbers in {before} places but uses those of {after} only, so "
            "what follows would get other numbers than in eager: leave out what is not used"
        )


def draw_in_memory_order(graph: torch.fx.Graph) -> None:
    """Let each operator that draws random numbers read its operands with their axes in memory as in eager."""
    for node in [node for node in graph.nodes if draws(node)]:
        chooses_order = any(a.name == "memory_format" for a, _ in bound_arguments(node))
        for source in node.all_input_nodes:
            like = node if chooses_order else source
            if (order := _memory_order(like)) is not None:
                node.replace_input_with(source, _laid_out(node, source, order))


def _memory_order(node: torch.fx.Node) -> list[int] | None:
    """The axes of a tensor from the outermost in memory to the innermost; None if they are row-major."""
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return None
    shape, strides = ([_hint(n) for n in numbers] for numbers in (value.shape, value.stride()))
    if None in shape or None in strides:
        return None
    lying = torch.empty_strided(shape, strides, device="meta")  # type: ignore[arg-type]
    order, _ = compute_elementwise_output_logical_to_physical_perm(lying)
    return list(order) if list(order) != sorted(order) else None


def _hint(number: int | torch.SymInt) -> int | None:
    return number.node.hint if isinstance(number, torch.SymInt) else number


def _laid_out(node: torch.fx.Node, source: torch.fx.Node, order: list[int]) -> torch.fx.Node:
    """A view of a row-major copy of `source`, whose axes lie in memory in `order`."""
    graph, value = node.graph, source.meta["val"]
    inverse = [order.index(axis) for axis in range(len(order))]
    with graph.inserting_before(node):
        moved = graph.call_function(aten.permute.default, (source, order))
        copied = graph.call_function(aten.clone.default, (moved,))
        viewed = graph.call_function(aten.permute.default, (copied, inverse))
    moved.meta = {**node.meta, "val": value.permute(order)}
    copied.meta = {**node.meta, "val": moved.meta["val"].contiguous()}
    viewed.meta = {**node.meta, "val": copied.meta["val"].permute(inverse)}
    return viewed
