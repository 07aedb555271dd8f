"""Schedules as text: passes and their options as `deplo-opt -p` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from xdsl.passes import ModulePass


def steps_text(steps: Sequence[ModulePass]) -> str:
    """The steps as a pipeline: `split{axis=j by=256 into=j_block,j_thread}`; what is as usual is left out."""
    return ",".join(map(_text, steps))


def _text(step: ModulePass) -> str:
    given = {field.name: getattr(step, field.name) for field in fields(step)}
    options = [
        f"{field.name}={_value(given[field.name])}"
        for field in fields(step)
        if given[field.name] != field.default
    ]
    return f"{step.name}{{{' '.join(sorted(options))}}}" if options else step.name


def _value(value: bool | int | str | tuple[str, ...]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(value) if isinstance(value, tuple) else str(value)
