"""Writes `docs/onnx-operators.md`: the operators of ONNX that have rules, and their versions.

python -m deplo.tools.generate_onnx_operators            # writes the page
python -m deplo.tools.generate_onnx_operators --check    # fails if the page is out of date
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ..onnx_import.control import CONTROL
from ..onnx_import.model_files import RULES
from .generated_file import write_or_check

PAGE = Path(__file__).parent.parent / "docs" / "onnx-operators.md"

HEAD = """\
# Operators of ONNX

Written by `python -m deplo.tools.generate_onnx_operators` from the rules in `onnx_import/`; do not edit.

A version is that of the opset in which ONNX changed the operator. A model may mean any opset whose operators
are here, or are functions of ONNX, which have a body of other operators. See [ONNX models](onnx.md).

| operator | versions | computes |
|---|---|---|
"""


def generate() -> str:
    """The page."""
    found = {name: (rule.versions, rule.text) for (_, name), rule in RULES.items()}
    for name, control in CONTROL.items():
        found[name] = control.versions, " ".join((control.function.__doc__ or "").split())
    rows = [
        f"| {name} | {', '.join(map(str, versions))} | {text} |"
        for name, (versions, text) in sorted(found.items())
    ]
    return HEAD + "\n".join(rows) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page or, with `--check`, compare it."""
    return write_or_check(PAGE, generate, "generate_onnx_operators", arguments)


if __name__ == "__main__":
    sys.exit(main())
