"""The step `fill` that says one thing of some slabs of a launch, and what recipes tell of it."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.tile import LaunchOp, StageOp
from ..decisions import record
from ..schedule.fill import FillPass, slabs_of, value_of
from ..schedule.primitive import carry_out


def fill_slabs(launch: LaunchOp, option: str, values: Mapping[StageOp, int | str]) -> FillPass:
    """Let an option say something of some slabs, which is known to be possible; gives the step."""
    listed = [values.get(stage, value_of(stage, option)) for stage in slabs_of(launch)]
    step = FillPass(**{option: tuple(listed[:1] if len(set(listed)) == 1 else listed)})  # pyright: ignore
    carry_out([step], launch)
    return step


def record_filled(
    recipe: str,
    kernel: str,
    launch: LaunchOp,
    option: str,
    values: Mapping[StageOp, int | str],
    said: Mapping[StageOp, str],
) -> None:
    """Let an option say something of some slabs; tell for a recipe what is said of each, or why nothing."""
    told = [
        (stage in values, f"{stage.slab.name_hint or 'a slab'}: {why}", stage.location)
        for stage, why in said.items()
    ]
    steps = [fill_slabs(launch, option, values)] if values else []
    for fired, reason, location in told:
        record(recipe, kernel, fired, reason, location, steps=steps if fired else None)
        steps = [] if fired else steps
