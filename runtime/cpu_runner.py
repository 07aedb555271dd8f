"""Runs the plans of a program file on this CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from .arrays import numpy_array
from .cpu import CpuProgram
from .cpu_features import machine, missing
from .linked_code import load_code, texts_of
from .plan import Plan
from .plan_parts import Argument
from .runners import Members, Said


class CpuRunner:
    """This CPU: arrays are numpy's."""

    def active(self) -> AbstractContextManager[object]:
        """See `Runner.active`."""
        return nullcontext()

    def take(self, name: str, value: Any) -> Any:
        """See `Runner.take`."""
        return numpy_array(name, value)

    def hold(self, array: Any, argument: Argument) -> Any:
        """See `Runner.hold`."""
        return array

    def program(self, plan: Plan, code: Any, members: Members) -> Callable[..., Sequence[Any]]:
        """See `Runner.program`."""
        load_code(members[code], texts_of(plan))
        return CpuProgram(plan)

    def finish(self) -> None:
        """See `Runner.finish`."""

    def give(self, values: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """See `Runner.give`."""
        return list(values)


def runner(target: Said, device: int | None) -> CpuRunner:
    """What runs the plans of a target that has no obstacle."""
    return CpuRunner()


def obstacle(target: Said, device: int | None) -> str | None:
    """Why this CPU does not run the code of a target, or None."""
    if target["machine"] != machine():
        return f"is for {target['machine']}, this machine is {machine()}"
    if lacking := missing(target["features"]):
        return f"needs a CPU with {', '.join(lacking)}"
    return None


def described(target: Said) -> str:
    """What runs a target, in words."""
    return str(target["machine"])


def code_described(code: Any, members: Members) -> dict[str, Any]:
    """What a file has of code, as JSON data."""
    return {"code_bytes": len(members[code])}
