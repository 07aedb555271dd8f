"""`hint`: tells the passes for native code how to lower the loops of a launch.

    tile.launch (%i = 64 : thread) { ... }
becomes, by `hint{width=512 interleave=4}`,
    tile.launch (%i = 64 : thread) schedule(#tile.schedule<width = 512, interleave = 4>) { ... }

| hint | what it says | for |
|---|---|---|
| `width` | bits of the vectors that LLVM makes of loops | `mask-tails` |
| `interleave` | vectors that a loop computes side by side; 0: LLVM decides | `mask-tails` |
| `prefetch` | bytes ahead of a sweep that the caches are asked for | `prefetch-sweeps` |
| `rows` | rows that a loop computes side by side, 2 or more | `jam-rows` |
| `divide` | 1: divide by what does not change, and do not multiply by its inverse | `invert-divisors` |
| `strip` | columns of a block that reduces columns | `split-loops` |

A hint changes no result, but for the last bit of a quotient and the order in which vectors add. What no hint
is given for stays as it was. GPUs take no hints.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.utils.exceptions import VerifyException

from ...dialects.schedule import ScheduleAttr
from ...dialects.tile import LaunchOp
from ...errors import UsageError
from .primitive import Primitive


@dataclass(frozen=True)
class HintPass(Primitive):
    """Say how loops become native code. Raises UsageError for numbers that no hint has."""

    name = "hint"
    rewrites_axes: ClassVar[bool] = False

    width: int | None = None
    interleave: int | None = None
    prefetch: int | None = None
    rows: int | None = None
    divide: int | None = None
    strip: int | None = None

    def __post_init__(self):
        try:
            ScheduleAttr(**self.given)
        except VerifyException as error:
            raise UsageError(str(error)) from None

    @property
    def given(self) -> dict[str, int]:
        """The hints that are given, by name."""
        hints = {
            "width": self.width,
            "interleave": self.interleave,
            "prefetch": self.prefetch,
            "rows": self.rows,
            "divide": self.divide,
            "strip": self.strip,
        }
        return {name: value for name, value in hints.items() if value is not None}

    @property
    def done(self) -> str:
        """The hints."""
        return ", ".join(f"{name} {value}" for name, value in self.given.items())

    def change(self, launch: LaunchOp) -> str | None:
        """Write the hints down; gives why not."""
        if not self.given:
            return "no hint is given"
        launch.schedule = (launch.schedule or ScheduleAttr()).with_choices(**self.given)
        return None
