"""Writes `docs/coverage.md`: which operators deplo supports, and what PyTorch's operator tests say.

    python -m deplo.tools.generate_coverage            # writes the page
    python -m deplo.tools.generate_coverage --check    # fails if the page is out of date

The page is made from the contract of the `torch` dialect and from `test/python/opinfo.json`, the results
of `make test-ops`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..dialects.torch import ALL_OPS
from .generated_file import write_or_check

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"
RESULTS = ROOT / "test" / "python" / "opinfo.json"

COLUMNS = {
    "float32": "f32",
    "bfloat16": "bf16",
    "float16": "f16",
    "int64": "i64",
    "uint8": "ui8",
    "bool": "bool",
}
"""The dtypes of the results, and how the page calls them."""

MARKS = {"pass": "yes", "partly": "partly", "refused": "refused", "skipped": ""}
"""How the page spells a status; what is WRONG or a CRASH keeps its name."""

HEAD = """\
# Operator coverage

Written by `python -m deplo.tools.generate_coverage` from the contract of the `torch` dialect and from
`test/python/opinfo.json`; do not edit. The results are those of `make test-ops`: eight samples of each f32
entry, two of the others.

## By PyTorch's operator tests

Each row is an entry of PyTorch's OpInfo database, run on the CPU target against eager.
*yes*: every sample agrees; *partly*: some samples agree and the others are refused; *refused*: deplo says
what it does not support, in one error; empty: eager does not support it either.
"""


def summary(results: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One line per dtype: how many entries have each status."""
    lines = [
        "| dtype | entries | yes | partly | refused | wrong | crash |",
        "|---" * 7 + "|",
    ]
    for dtype, name in COLUMNS.items():
        counts = Counter(results.get(dtype, {}).values())
        run = sum(counts.values()) - counts["skipped"]
        shown = [counts[s] for s in ("pass", "partly", "refused", "WRONG", "CRASH")]
        lines.append(f"| {name} | {run} | {' | '.join(map(str, shown))} |")
    return lines


def table(results: Mapping[str, Mapping[str, str]]) -> list[str]:
    """One row per entry."""
    names = sorted({name for statuses in results.values() for name in statuses})
    lines = [f"| entry | {' | '.join(COLUMNS.values())} |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name in names:
        statuses = [results.get(dtype, {}).get(name, "skipped") for dtype in COLUMNS]
        cells = " | ".join(MARKS.get(status, status) for status in statuses)
        lines.append(f"| `{name}` | {cells} |")
    return lines


def contract() -> list[str]:
    """The ATen overloads that the dialect has, as one wrapped paragraph per first letter."""
    groups: dict[str, list[str]] = {}
    for name in sorted((op.ATEN for op in ALL_OPS), key=lambda n: n.lstrip("_").lower()):
        groups.setdefault(name.lstrip("_")[0].lower(), []).append(f"`{name}`")
    return [f"- {' '.join(names)}" for names in groups.values()]


def generate() -> str:
    """The text of the page."""
    results: dict[str, dict[str, str]] = json.loads(RESULTS.read_text())
    lines = [HEAD, *summary(results), "", *table(results), ""]
    lines += [
        "## The contract",
        "",
        f"The {len(ALL_OPS)} ATen overloads that the `torch` dialect has, each with a lowering.",
        "PyTorch's own decompositions reduce other operators to these where they can.",
        "",
        *contract(),
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the page or, with `--check`, compare it."""
    return write_or_check(PAGE, generate, "generate_coverage", arguments)


if __name__ == "__main__":
    sys.exit(main())
