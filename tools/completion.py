"""`--completion SHELL`: a script by which a shell completes the command line, made by `shtab`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ..errors import MissingEnvironmentError
from ..passes import PASSES
from ..passes.pipelines import PIPELINES

SHELLS = ("bash", "zsh", "fish", "tcsh")

_NAMES = " ".join([*PASSES, *PIPELINES])

_PIPELINE: dict[str, Any] = {
    "bash": "_deplo_pipeline",
    "zsh": "_deplo_pipeline",
    "preamble": {
        "bash": f"""\
_deplo_pipeline() {{
  local last="${{1##*,}}"
  compgen -P "${{1%"$last"}}" -W "{_NAMES}" -- "$last"
}}""",
        "zsh": f"_deplo_pipeline() {{ _sequence compadd - {_NAMES} }}",
    },
}
"""How the last name of a list of passes is completed, for an option's attribute `complete`."""


class PrintCompletion(argparse.Action):
    """Prints the completion script of the parser that it is an option of, and exits."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        """Print the script. Exits with 4 where `shtab` is not installed."""
        try:
            shtab = import_module("shtab")
        except ModuleNotFoundError:
            parser.exit(
                MissingEnvironmentError.exit_code,
                "error: --completion needs shtab: pip install 'deplo[completion]'\n",
            )
        _say_what_completes(parser, {"FILE": shtab.FILE, "DIR": shtab.DIRECTORY, "PIPELINE": _PIPELINE})
        sys.stdout.write(f"{shtab.complete(parser, str(values))}\n")
        parser.exit()


def add_completion(parser: argparse.ArgumentParser) -> None:
    """Add the option to `parser`."""
    text = "print a completion script for this shell, and exit; needs shtab"
    parser.add_argument("--completion", action=PrintCompletion, choices=SHELLS, help=text)


def _say_what_completes(parser: argparse.ArgumentParser, kinds: dict[str, Any]) -> None:
    """Give each option of `parser` and of its commands what `shtab` completes it with, by its metavar."""
    for action in parser._actions:  # pyright: ignore[reportPrivateUsage]
        metavar = "FILE" if action.dest == "input_file" else str(action.metavar)
        if metavar in kinds:
            action.complete = kinds[metavar]  # pyright: ignore[reportAttributeAccessIssue]
        if isinstance(action, argparse._SubParsersAction):  # pyright: ignore[reportPrivateUsage]
            for command in action.choices.values():
                _say_what_completes(command, kinds)
