"""Updates the ATen schemas in `dialects/torch_contract.txt` from the installed PyTorch.

    python -m deplo.tools.update_torch_contract            # writes the file
    python -m deplo.tools.update_torch_contract --check    # fails if the file is out of date

To add an operator, add a line with its family, rule and name, such as `PointwiseOp float aten::angle`, run
this, and give the operation a lowering in `passes/torch`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any

from ..dialects.torch_contract import CONTRACT
from .generated_file import write_or_check

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


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the file or, with `--check`, compare it."""
    return write_or_check(CONTRACT, lambda: updated(CONTRACT.read_text()), "update_torch_contract", arguments)


if __name__ == "__main__":
    sys.exit(main())
