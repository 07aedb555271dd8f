"""The base class of recipes: passes that look at each launch alone and take the steps that suit it.

    @dataclass(frozen=True)
    class StageInputsPass(Recipe):
        name = "stage-inputs"

        def take(self, launch: LaunchOp) -> Taken | str:
            found = find_staging(launch)
            if isinstance(found, str):
                return found  # why the launch stays as it is
            step = StagePass(to="shared")
            carry_out([step], launch)
            return Taken(f"slabs of {found.bytes} bytes", [step])

What a recipe says goes to whoever listens (`decisions.py`); its steps are the launch's part of the schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from ...analysis.cost import hints_of
from ...analysis.launches import open_launches
from ...dialects.loop import KernelOp
from ...dialects.tile import LaunchOp
from ...machine.targets import Target, get_gpu, get_target
from ..decisions import record


@dataclass(frozen=True)
class Taken:
    """What a recipe did to a launch."""

    told: str
    """The same in words, for people."""
    steps: Sequence[ModulePass] | None = None
    """The primitives that it carried out; None where it takes more than primitives."""


@dataclass(frozen=True)
class Recipe(ModulePass):
    """A pass that changes each launch that has no given schedule, or says why not."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every launch, with dynamic sizes as the module hints they are."""
        with hints_of(op):
            for kernel, launch in open_launches(op):
                self.visit(kernel, launch)

    def visit(self, kernel: KernelOp, launch: LaunchOp) -> None:
        """Decide about one launch and record that. What decides several things overrides it."""
        name, location = kernel.sym_name.data, launch.location
        taken = self.take(launch)
        if isinstance(taken, str):
            record(self.name, name, False, taken, location)
        else:
            record(self.name, name, True, taken.told, location, steps=taken.steps)

    def take(self, launch: LaunchOp) -> Taken | str:
        """Take the steps that suit a launch; gives them, or why it stays as it is."""
        raise NotImplementedError(f"{self.name} decides by `visit`")


@dataclass(frozen=True)
class MachineRecipe(Recipe):
    """A recipe that asks for the limits of a machine."""

    target: str = "sm_90a"

    @property
    def machine(self) -> Target:
        """The machine to compile for. Raises UsageError if there is none of that name."""
        return get_target(self.target)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Look at every launch. Raises UsageError for a target that is none, whatever the module holds."""
        _ = self.machine
        super().apply(ctx, op)


@dataclass(frozen=True)
class GpuRecipe(MachineRecipe):
    """A recipe that asks for the limits of a GPU; another target is a UsageError."""

    @property
    def machine(self) -> Target:
        """The GPU to compile for."""
        return get_gpu(self.target)
