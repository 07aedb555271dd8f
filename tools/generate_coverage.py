"""Writes `docs/coverage.md`: which operators deplo supports, and what PyTorch's operator tests say.

    python -m deplo.tools.generate_coverage            # writes the page
    python -m deplo.tools.generate_coverage --check    # fails if the page is out of date

The page is made from the contract of the `torch` dialect and from two files of results: that of
`make test-ops`, `test/python/opinfo.json`, and that of `test/python/model_table.py`, `models.json` beside it.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..dialects.torch import ALL_OPS
from .generated_file import write_or_check

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "coverage.md"
RESULTS = ROOT / "test" / "python" / "opinfo.json"
MODELS = RESULTS.with_name("models.json")

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

Written by `python -m deplo.tools.generate_coverage` from the contract of the `torch` dialect, from
`test/python/opinfo.json` and `test/python/models.json`; do not edit. The results by operators are those of
`make test-ops`: eight samples of each f32 entry, two of the others.

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


MODELS_HEAD = """\
## By models

Tiny configurations of architectures of transformers with random weights, under
`torch.compile(backend="deplo")` on the CPU target, as `python test/python/model_table.py --train --write
test/python/models.json` finds them. *whole*: a model compiles with `fallback="error"`; *partly*: PyTorch runs
what the last column says. Results are judged against eager's, as are losses and parameters after three steps
of training.
"""


def models(results: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How many architectures have each status, and one row for each."""
    counts = Counter(row["status"] for row in results.values())
    trained = Counter(row.get("training", "").partition(":")[0] for row in results.values())
    said = ", ".join(f"{counts[each]} {each}" for each in sorted(counts, reverse=True))
    lines = [
        f"{len(results)} architectures: {said}.",
        f"Trained: {trained['whole']} whole, {trained['partly']} partly.",
        "",
        "| architecture | inference | graphs | launches | calls | training | why |",
        "|---" * 7 + "|",
    ]
    for name, row in sorted(results.items()):
        keys = ("status", "graphs", "launches", "calls", "training", "why")
        cells = [row.get(key, "") for key in keys]
        lines.append(f"| {name} | {' | '.join(str(cell).replace('|', '/') for cell in cells)} |")
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
    lines += [MODELS_HEAD, *models(json.loads(MODELS.read_text())), ""]
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
