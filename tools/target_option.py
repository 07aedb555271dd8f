"""`--target` of commands that print code: any target, a CPU that is not this one included."""

from __future__ import annotations

import argparse
from collections.abc import Container, Iterator

from ..errors import UsageError
from ..machine.targets import TARGETS, get_target
from ..passes.pipelines import DEFAULT_CUDA_TARGET


class TargetNames(Container[str]):
    """The names of targets, of which a usage line lists those of `TARGETS`."""

    def __contains__(self, name: object) -> bool:
        try:
            return isinstance(name, str) and bool(get_target(name))
        except UsageError:
            return False

    def __iter__(self) -> Iterator[str]:
        yield from TARGETS


def _target(name: str) -> str:
    """The name of a target; one of a CPU that is none is an error with the names of cores."""
    if name.startswith("cpu:"):
        try:
            get_target(name)
        except UsageError as error:
            raise argparse.ArgumentTypeError(str(error)) from error
    return name


def add_target_option(parser: argparse.ArgumentParser) -> None:
    """Add `--target`."""
    parser.add_argument(
        "--target",
        choices=TargetNames(),
        type=_target,
        help=f"machine to compile for ({DEFAULT_CUDA_TARGET}); cpu is this one, cpu:znver4 or "
        "cpu:neoverse-v2 one with that core",
    )
