"""Calls that run parts of the program as data decide: `while_loop`, and `cond` whose branches may fail.

    while_loop(test, body, (i, x), (w,))

becomes a call that the runtime makes itself, of functions that are compiled as the program is:

    func.func private @while_loop_test(%i, %x, %w) { ... }
    func.func private @while_loop_body(%i, %x, %w) { ... }
    %j, %y = torch.call "deplo.while_loop.default"(
        test = "while_loop_test", body = "while_loop_body", carried = [%i, %x], shared = [%w])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..dialects.part_calls import CHOICE, PARTS, WHILE
from .conditionals import COND
from .sizes import Refused, is_symbolic

LOOP: Any = torch.ops.higher_order.while_loop


@dataclass(frozen=True)
class PartCall:
    """What a call of `while_loop` or `cond` is about."""

    callee: str
    parts: dict[str, torch.fx.Graph]
    predicate: torch.fx.Node | None
    carried: list[Any]
    shared: list[Any]


def read_part_call(node: torch.fx.Node) -> PartCall:
    """The parts of a call, which `hold_parts` put there. Raises Refused for any that is not compiled."""
    args: Any = node.args
    if node.kwargs:
        raise Refused(f"with {', '.join(node.kwargs)}")
    if node.target is LOOP:
        *held, carried, shared = args
        if any(not isinstance(x, torch.fx.Node) or is_symbolic(x.meta["val"]) for x in carried):
            raise Refused("it carries a number, not a tensor")
        return PartCall(WHILE, _graphs(WHILE, held), None, list(carried), list(shared))
    if node.target is COND:
        predicate, *held, shared = args
        if not isinstance(predicate, torch.fx.Node) or is_symbolic(predicate.meta["val"]):
            raise Refused("its predicate is a number, not a tensor")
        return PartCall(CHOICE, _graphs(CHOICE, held), predicate, [], list(shared))
    raise Refused("it runs a part of the program under a condition, or many times")


def _graphs(callee: str, held: Sequence[torch.fx.GraphModule]) -> dict[str, torch.fx.Graph]:
    return {role: part.graph for role, part in zip(PARTS[callee], held, strict=True)}


def results_of(graph: torch.fx.Graph) -> list[Any]:
    """What a part of the program gives."""
    return pytree.tree_leaves(graph.output_node().args)
