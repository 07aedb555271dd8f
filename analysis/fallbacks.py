"""Which operators of a program PyTorch runs, and why: what users are told, from the calls in any IR."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.traits import SymbolTable

from ..dialects.calls import REASON, TensorCallOp
from ..dialects.kernel import CallOp
from .locations import line_of


@dataclass(frozen=True)
class Fallback:
    """One operator that PyTorch runs in a program, for one reason."""

    operator: str
    """The overload, such as `aten.erfinv.default`."""
    reason: str
    """Why deplo does not run it, if it has the operator."""
    where: tuple[str, ...]
    """The user's line of each call as `file:line`, or nothing where it is not known."""

    def __str__(self) -> str:
        lines = ", ".join(dict.fromkeys(filter(None, self.where)))
        name = self.operator.removesuffix(".default")
        because = f" because of {self.reason}" if self.reason else ""
        return f"{name} \u00d7{len(self.where)}{f' ({lines})' if lines else ''}{because}"


def fallbacks(module: ModuleOp) -> tuple[Fallback, ...]:
    """The operators that PyTorch runs, in the order of their first calls."""
    found: dict[tuple[str, str], list[str]] = {}
    for op in _calls(module, "main"):
        reason = op.attributes.get(REASON)
        text = reason.data if isinstance(reason, StringAttr) else ""
        found.setdefault((op.callee.data, text), []).append(line_of(op))
    return tuple(Fallback(name, reason, tuple(where)) for (name, reason), where in found.items())


def _calls(module: ModuleOp, name: str) -> Iterator[TensorCallOp | CallOp]:
    """The calls of PyTorch that a host function makes, itself or through others."""
    function = SymbolTable.lookup_symbol(module, name)
    assert isinstance(function, func.FuncOp)
    for op in function.body.block.ops:
        if isinstance(op, TensorCallOp | CallOp):
            yield op
        elif isinstance(op, func.CallOp):
            yield from _calls(module, op.callee.root_reference.data)


def summary(listed: tuple[Fallback, ...]) -> str | None:
    """All of them in one line, or None if there are none."""
    if not listed:
        return None
    number = "1 operator runs" if len(listed) == 1 else f"{len(listed)} operators run"
    return f"deplo: {number} in PyTorch: {', '.join(map(str, listed))}"
