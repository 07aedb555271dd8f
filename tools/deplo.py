"""`deplo`: compile and run PyTorch programs from the command line.

The commands, and with them PyTorch, are imported when one is run: by then garbage is collected less often,
which spares a quarter of the time that importing takes.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

from .console import run_console


def run(arguments: Sequence[str]) -> int:
    """Run one command; gives its exit code."""
    return import_module(".commands", __package__).run(arguments)


def main() -> None:
    """The console script."""
    run_console(run)


if __name__ == "__main__":
    main()
