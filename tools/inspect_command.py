"""`deplo inspect`: what a program file holds, whether this machine runs it, and nothing is executed."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..runtime.loaded import described
from ..runtime.program_file import read_program_file
from .console import write_output

NAME = "inspect"
HELP = "check a program file, and say what it holds"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("file", metavar="FILE.deplo", help="what `deplo compile -o FILE.deplo` wrote")
    parser.add_argument("--json", action="store_true", help="print it as JSON")


def main(options: argparse.Namespace) -> int:
    """Check and print."""
    found = described(read_program_file(options.file))
    write_output(json.dumps(found, indent=2) + "\n" if options.json else _text(found))
    return 0


def _text(found: dict[str, Any]) -> str:
    lines = [f"{found['name']}, saved by deplo {found['deplo']}, {found['bytes']:,} bytes"]
    for kind in ("inputs", "outputs", "weights"):
        lines += ["", f"{kind}:", *(f"  {each}" for each in found[kind] or ("none",))]
    for target in found["targets"]:
        lines += ["", f"target {target['name']} ({target['machine']}): {target['runs'] or 'runs here'}"]
        lines += [
            f"  {each['kernels']} kernels, {each['launches']} launches, {each['code_bytes']:,} bytes of code"
            f"{_hints(each['hints'])}"
            for each in target["variants"]
        ]
    return "\n".join(lines) + "\n"


def _hints(hints: dict[str, int]) -> str:
    """The sizes that code is made for."""
    return f", made for {', '.join(f'{name} = {n}' for name, n in hints.items())}" if hints else ""
