"""What runs the plans of a program file: this CPU, or a GPU by CUDA's driver. Neither needs PyTorch.

Each has a module with `obstacle`, `runner`, `described` and `code_described`, which is imported where a file
has such a target.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, Protocol

from .plan import Plan
from .plan_parts import Argument

KINDS = {"cpu": ".cpu_runner", "gpu": ".gpu_runner"}
"""The module for each kind of target."""

Members = Mapping[str, memoryview]
Said = Mapping[str, Any]


class Runner(Protocol):
    """Where a loaded program runs."""

    def active(self) -> AbstractContextManager[object]:
        """What all of a call is done in."""
        ...

    def take(self, name: str, value: Any) -> Any:
        """An argument as an array, in the memory that it has. Raises UsageError for what cannot be read."""
        ...

    def hold(self, array: Any, argument: Argument) -> Any:
        """A numpy array of the program's own, where programs read it."""
        ...

    def program(self, plan: Plan, code: Any, members: Members) -> Callable[..., Sequence[Any]]:
        """What runs a plan; `code` is what a file says of its machine code."""
        ...

    def finish(self) -> None:
        """Wait for what a call has begun."""
        ...

    def give(self, values: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """The outputs of a call with these inputs, as its caller gets them."""
        ...


def module_for(target: Said) -> Any:
    """The module for the kind of a target."""
    return import_module(KINDS[target["kind"]], __package__)


def obstacle(target: Said, device: int | None = None) -> str | None:
    """Why this machine does not run the code of a target, or None; on GPU `device` if that is given."""
    if target["kind"] not in KINDS:
        return f"is for a {target['kind']}, for which this deplo loads no programs"
    return module_for(target).obstacle(target, device)
