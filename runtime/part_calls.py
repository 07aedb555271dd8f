"""Calls that a plan makes of plans of its own: a loop whose turns data decide, and a choice.

run_parts(step, programs)(test="loop_test", body="loop_body", carried=[i, x], shared=[w])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from .plan_parts import CallStep

Program = Callable[..., Sequence[Any]]
"""A compiled part of a program, on the values carried and then those shared."""


def _while_loop(
    programs: Mapping[str, Program],
    test: str,
    body: str,
    carried: Sequence[Any],
    shared: Sequence[Any],
) -> Sequence[Any]:
    """What is carried when the test says no."""
    while programs[test](*carried, *shared)[0]:
        carried = programs[body](*carried, *shared)
    return carried


def _choice(
    programs: Mapping[str, Program],
    predicate: Any,
    if_true: str,
    if_false: str,
    shared: Sequence[Any],
) -> Sequence[Any]:
    """What the branch gives that the predicate says."""
    return programs[if_true if predicate else if_false](*shared)


_ROLES = {
    "deplo.while_loop.default": (_while_loop, ("test", "body")),
    "deplo.cond.default": (_choice, ("if_true", "if_false")),
}


def parts_of(step: CallStep) -> list[str]:
    """The plans that a step runs, by name; none for an operator of PyTorch."""
    _, roles = _ROLES.get(step.operator, (None, ()))
    return [str(step.arguments.get(role)) for role in roles]


def run_parts(step: CallStep, programs: Mapping[str, Program]) -> Callable[..., Sequence[Any]]:
    """What runs a step that runs plans, of its arguments by name."""
    return partial(_ROLES[step.operator][0], programs)
