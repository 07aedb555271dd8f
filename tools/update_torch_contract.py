"""Updates the ATen schemas in `dialects/torch_contract.txt` from the installed PyTorch.

    python -m deplo.tools.update_torch_contract            # writes the file
    python -m deplo.tools.update_torch_contract --check    # fails if the file is out of date

To add an operator, add a line with its family, rule and name, such as `PointwiseOp float aten::angle`, run
this, and give the operation a lowering in `passes/torch`.
"""

from __future__ import annotations

import argparse
import re
import sys
from typing import Any

from ..dialects.torch_contract import CONTRACT

_ENTRY = re.compile(r"(\w+ [\w/]+) aten::(\w+)(?:\.(\w+))?(?:\(.*)?")


def header() -> str:
    """The contract's first line, with the release of the installed PyTorch."""
    import torch

    return "# PyTorch " + ".".join(torch.__version__.split(".")[:2])


def updated(text: str) -> str:
    """The contract `text` with the installed PyTorch's schemas; exits if a line names no overload."""
    _, *lines = text.splitlines()
    return "\n".join([header(), *map(_updated_line, lines)]) + "\n"


def _updated_line(line: str) -> str:
    import torch

    if line.startswith("#"):
        return line
    entry = _ENTRY.fullmatch(line)
    if entry is None:
        raise SystemExit(
            f"{CONTRACT}: expected a family, a rule and an ATen overload, got {line!r}"
        )
    classification, operator, overload = entry.groups("default")
    try:
        packet: Any = getattr(torch.ops.aten, operator)
        return f"{classification} {getattr(packet, overload)._schema}"
    except AttributeError as error:
        raise SystemExit(f"{CONTRACT}: PyTorch has no overload {operator}.{overload}") from error


def main(argv: list[str] | None = None) -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only compare with the file")
    options = parser.parse_args(argv)
    before = CONTRACT.read_text()
    after = updated(before)
    if not options.check:
        CONTRACT.write_text(after)
        return 0
    if before == after:
        return 0
    remedy = "run python -m deplo.tools.update_torch_contract"
    print(f"{CONTRACT} is out of date: {remedy}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
