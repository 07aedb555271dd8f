"""`deplo inspect`: what a program file holds, whether this machine runs it, and nothing is executed."""

from __future__ import annotations

import argparse
import json
from typing import Any

from ..errors import UsageError
from ..runtime.loaded import described
from ..runtime.program_file import ProgramFile, read_program_file
from .console import write_output

NAME = "inspect"
HELP = "check a program file, and say what it holds"


def add_options(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    parser.add_argument("file", metavar="FILE.deplo", help="what `deplo compile -o FILE.deplo` wrote")
    parser.add_argument("--json", action="store_true", help="print it as JSON")
    parser.add_argument("--ir", metavar="STAGE", help="print the program's text at a stage, if it was saved")
    parser.add_argument("--target", metavar="NAME", help="whose text (the first target's)")


def main(options: argparse.Namespace) -> int:
    """Check and print."""
    file = read_program_file(options.file)
    found = described(file)
    if options.ir:
        write_output(_ir(file, found["targets"], options))
        return 0
    write_output(json.dumps(found, indent=2) + "\n" if options.json else _text(found))
    return 0


def _text(found: dict[str, Any]) -> str:
    lines = [f"{found['name']}, saved by deplo {found['deplo']}, {found['bytes']:,} bytes"]
    for kind in ("inputs", "outputs", "weights"):
        lines += ["", f"{kind}:", *(f"  {each}" for each in found[kind] or ("none",))]
    for target in found["targets"]:
        lines += ["", f"target {target['name']} ({target['machine']}): {target['runs'] or 'runs here'}"]
        for each in target["variants"]:
            counts = f"{each['kernels']} kernels, {each['launches']} launches"
            lines.append(f"  {counts}, {each['code_bytes']:,} bytes of code{_hints(each['hints'])}")
            lines += [f"    {name}: {_used(usage)}" for name, usage in each.get("usage", {}).items()]
        if target["ir"]:
            lines.append(f"  its text as {', '.join(target['ir'])} (--ir STAGE prints it)")
    return "\n".join(lines) + "\n"


def _ir(file: ProgramFile, targets: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """The text asked for. Raises UsageError if it is not there."""
    for target in targets:
        if options.target in (None, target["name"]):
            if options.ir not in target["ir"]:
                has = ", ".join(target["ir"]) or "no text: save it with --with-ir"
                raise UsageError(f"{file.path} has no {options.ir} for {target['name']}; it has {has}")
            return bytes(file.members[target["ir"][options.ir]]).decode()
    raise UsageError(f"{file.path} has no target {options.target!r}")


def _used(usage: dict[str, int]) -> str:
    """What a kernel takes of a GPU."""
    spilled = usage["spill_stores"] + usage["spill_loads"]
    return f"{usage['registers']} registers, {spilled} bytes spilled, {usage['shared_bytes']} bytes shared"


def _hints(hints: dict[str, int]) -> str:
    """The sizes that code is made for."""
    return f", made for {', '.join(f'{name} = {n}' for name, n in hints.items())}" if hints else ""
