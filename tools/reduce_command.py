"""`deplo reduce`: make the program of a reproducer smaller."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ..errors import UsageError
from .console import write_output
from .reducer import reduce
from .reproducer import load_reproducer

NAME = "reduce"
HELP = "shrink a reproducer as long as it fails in the same way"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("reproducer", type=Path, metavar="DIR", help="what deplo wrote")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="N", help="how long it may take (60)"
    )
    parser.add_argument(
        "-o", dest="output", type=Path, metavar="FILE", help="write it there, not to stdout"
    )


def main(options: argparse.Namespace) -> int:
    """Write the smaller reproducer. Raises UsageError for a file that is none."""
    reproducer = load_reproducer(options.reproducer)
    reduction = reduce(reproducer, options.seconds)
    before, after = reproducer.text.count("\n"), reduction.reproducer.text.count("\n")
    sys.stderr.write(
        f"{reduction.failure}: {before} lines became {after}, {reduction.tried} programs tried\n"
    )
    if options.output is None:
        write_output(reduction.reproducer.text)
        return 0
    try:
        options.output.write_text(reduction.reproducer.text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {options.output}: {error.strerror}") from error
    return 0
