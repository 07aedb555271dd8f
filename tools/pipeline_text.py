"""The text of `--pass-pipeline`: passes whose target is `cpu` get the CPU at hand."""

from __future__ import annotations

from dataclasses import replace

from xdsl.passes import ModulePass

from ..machine.host_cpu import find_target
from ..passes.pipeline_text import Available, read_pipeline


def parse_passes(text: str, available: Available) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options; those whose target is `cpu` get the CPU at hand."""
    return tuple(map(_for_host, read_pipeline(text, available)))


def _for_host(each: ModulePass) -> ModulePass:
    if getattr(each, "target", None) != "cpu":
        return each
    return replace(each, target=find_target("cpu").text)  # pyright: ignore[reportCallIssue]


def pipeline_text(passes: tuple[ModulePass, ...]) -> str:
    """The pipeline in MLIR's spelling, as a reproducer records it."""
    return f"builtin.module({','.join(str(each.spec()) for each in passes)})"
