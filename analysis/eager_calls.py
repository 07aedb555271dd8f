"""What users are told of the operators of a program that PyTorch runs, and why it does."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class EagerCall:
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


def summary(listed: tuple[EagerCall, ...]) -> str | None:
    """All of them in one line, or None if there are none."""
    if not listed:
        return None
    number = "1 operator runs" if len(listed) == 1 else f"{len(listed)} operators run"
    return f"deplo: {number} in PyTorch: {', '.join(map(str, listed))}"
