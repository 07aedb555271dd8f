"""The base class of primitives: passes that rewrite the named axes of a kernel's launch.

A primitive knows no machine. It declines, with the reason, if the IR lacks something that it needs; its
options say everything else. So a schedule is a pipeline of primitives, which can be typed behind `deplo-opt
-p`:

    tileify,split{axis=j by=256 into=j_block,j_thread},bind{axis=j_block to=block}
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.launches import launches_of
from ...dialects.inside import ops_in
from ...dialects.tile import CombineOp, LaunchOp, Level, PrefixOp, StageOp
from ...dialects.tile_mma import MmaOp, WgmmaOp
from ...dialects.tile_pack import PackOp
from ...errors import UsageError
from ..decisions import record
from ..tile.named_axes import axis_names

SHARED = CombineOp | PrefixOp | StageOp | MmaOp | WgmmaOp
"""What the threads of a block do together."""


@dataclass(frozen=True)
class Primitive(ModulePass):
    """A step of a schedule; without `kernel`, it is carried out on each kernel that is one launch."""

    rewrites_axes: ClassVar[bool] = True
    keeps_copies: ClassVar[bool] = False
    """Whether each point reads the packed copies that it read, whatever becomes of the axes."""

    kernel: str = ""

    @abstractmethod
    def change(self, launch: LaunchOp) -> str | None:
        """Rewrite a launch; gives why not, and then leaves it as it is."""

    @property
    @abstractmethod
    def done(self) -> str:
        """What it did, for people."""

    def settled(self, launch: LaunchOp) -> str | None:
        """Why what it would rewrite is to stay as it is, or None."""
        return settled_axes(launch, copies=not self.keeps_copies) if self.rewrites_axes else None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Carry the step out and record the result. Raises UsageError for a kernel that is not there."""
        names: list[str] = []
        for kernel, launch in launches_of(op):
            name, location = kernel.sym_name.data, launch.location
            names.append(name)
            if self.kernel in ("", name):
                reason = self.settled(launch) or self.change(launch)
                record(self.name, name, reason is None, reason or self.done, location)
        if self.kernel and self.kernel not in names:
            listed = f"there are {', '.join(names)}" if names else "there is none"
            raise UsageError(f"no kernel with a launch is named {self.kernel}; {listed}")


def carry_out(steps: Sequence[Primitive], launch: LaunchOp) -> None:
    """Take steps that are known to be legal."""
    for step in steps:
        reason = step.change(launch)
        assert reason is None, reason


def settled_axes(launch: LaunchOp, *, copies: bool = True) -> str | None:
    """Why the axes of a launch are to stay as they are, or None; packed copies count if `copies`."""
    if works_together(launch):
        return "its threads already work together"
    if copies and any(isinstance(op, PackOp) for op in ops_in(launch)):
        return "its blocks read packed copies, which are made for its axes"
    if launch.extents(Level.CLUSTER):
        return "its blocks form clusters"
    if launch.schedule is not None and launch.schedule.numbers_axes:
        return "its schedule numbers its axes"
    return None


def works_together(launch: LaunchOp) -> bool:
    """Whether the threads of a block do something together."""
    return any(isinstance(op, SHARED) for op in ops_in(launch))


def of_blocks(launch: LaunchOp, names: Sequence[str]) -> bool:
    """Whether axes count blocks in whose order nothing is laid out yet: they may change at any time."""
    levels = dict(zip(axis_names(launch), launch.axes, strict=True))
    packs = any(isinstance(op, PackOp) for op in ops_in(launch))
    return not packs and all(
        name in levels and levels[name].level.data is Level.BLOCK for name in names
    )


def check_word(option: str, word: str, words: Sequence[str]) -> None:
    """Raise UsageError for an option that is none of the words it may be."""
    if word not in words:
        raise UsageError(f"{option} is one of {', '.join(words)}, not {word or 'nothing'}")
