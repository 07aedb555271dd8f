"""Random numbers: PyTorch's generator gives them, in the order in which the program asks.

deplo computes no random numbers, so operators that draw some are calls of PyTorch, in eager's order. But
export drops what nothing uses, and then a program would draw fewer numbers than in eager.
"""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UnsupportedOpError
from .arguments import bound_arguments
from .unsupported import OpOverload


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
