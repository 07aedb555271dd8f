"""`--target`: of commands that print code any target, of those that run it a machine that may be at hand."""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterator

from ..errors import UsageError
from ..machine.targets import TARGETS, get_target
from ..passes.pipelines import DEFAULT_CUDA_TARGET


class TargetNames(Container[str]):
    """The names of targets, of which a usage line lists those of `TARGETS`."""

    def __init__(self, *, several: bool = False):
        """`several` names may stand with commas between them."""
        self._several = several

    def __contains__(self, name: object) -> bool:
        try:
            names = str(name).split(",") if self._several else [str(name)]
            return all(map(get_target, names))
        except UsageError:
            return False

    def __iter__(self) -> Iterator[str]:
        yield from TARGETS


def _target(names: str) -> str:
    """The name of a target, or several; one of a CPU that is none is an error with the names of cores."""
    for name in names.split(","):
        if name.startswith("cpu:"):
            try:
                get_target(name)
            except UsageError as error:
                raise argparse.ArgumentTypeError(str(error)) from error
    return names


def add_target_option(parser: argparse.ArgumentParser, *, several: bool = False) -> None:
    """Add `--target`; it may name `several` targets, with commas between them."""
    parser.add_argument(
        "--target",
        choices=TargetNames(several=several),
        type=_target,
        help=f"machine to compile for ({DEFAULT_CUDA_TARGET}); cpu is this one, cpu:znver4 or "
        f"cpu:neoverse-v2 one with that core{'; -o FILE.deplo takes A,B for several' if several else ''}",
    )


def add_machine_option(parser: argparse.ArgumentParser, what: str) -> None:
    """Add `--target` of a command that runs code, on a machine to do `what` on or for."""
    parser.add_argument(
        "--target",
        default="auto",
        choices=["auto", *TARGETS],
        type=_machine,
        help=f"machine to {what} (auto)",
    )


def _machine(name: str) -> str:
    """The name of a machine; a core of a CPU is an error that says how to run what is made for it."""
    kind, _, core = _target(name).partition(":")
    if kind == "cpu" and core:
        raise argparse.ArgumentTypeError(
            f"{name} is another machine; DEPLO_CPU_MODEL={core} has --target cpu run what is made for it"
        )
    return name
