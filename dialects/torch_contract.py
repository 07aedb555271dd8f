"""Reads the contract of Torch IR, the ATen schemas in `torch_contract.txt`.

Each line names a family, a base class in `torch_shapes.py` or a module beside it, and the rule of the
results' element types in `torch_elements.py`, and gives the schema of one overload as PyTorch prints it:

    PointwiseOp promoted aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor

Lines that begin with `#` are comments. Nothing here needs PyTorch.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTRACT = Path(__file__).with_name("torch_contract.txt")

_ENTRY = re.compile(
    r"(?P<family>\w+) (?P<elements>[\w/]+) (?P<text>aten::(?P<operator>\w+)(?:\.(?P<overload>\w+))?.*)"
)
_SCHEMA = re.compile(r"aten::[\w.]+\((?P<arguments>.*)\) -> (?P<results>.+)")
_ITEM = re.compile(
    r"(?P<base>\w+)(?:\(a(?: -> \*)?\))?(?P<length>\[\d*\])?(?P<optional>\??)"
    r"(?: (?P<name>\w+))?(?:=(?P<default>\[.*?\]|\".*?\"|[^,\[\"]+))?(?:, (?:\*, )?|$)"
)
"""One argument or result and the comma after it. `(a)` marks an alias, which Torch IR does not represent."""


@dataclass(frozen=True)
class Item:
    """One argument or result of a schema."""

    name: str
    """Empty for a result that has none."""
    type: str
    """As the schema spells it, without a list's length: `Tensor`, `SymInt[]`, `ScalarType`."""
    optional: bool
    default: Any
    """The Python value; None if the schema gives none."""


@dataclass(frozen=True)
class Schema:
    """One line of the contract."""

    family: str
    elements: str
    """The rule of each result's element type."""
    overload: str
    """The overload as PyTorch's Python names it, such as `add.Tensor` or `relu.default`."""
    text: str
    arguments: tuple[Item, ...]
    results: tuple[Item, ...]


def read_contract(path: Path = CONTRACT) -> list[Schema]:
    """Return the contract's schemas in order; raises ValueError for a line that cannot be read."""
    return [read_schema(line) for line in path.read_text().splitlines() if line[:1] != "#"]


def read_schema(line: str) -> Schema:
    """Parse one line of the contract; raises ValueError if it cannot be read."""
    entry = _ENTRY.fullmatch(line)
    schema = entry and _SCHEMA.fullmatch(entry["text"])
    if not entry or not schema:
        raise ValueError(f"expected a family, a rule and an ATen schema, got {line!r}")
    results = schema["results"]
    if results.startswith("("):
        results = results[1:-1]
    overload = f"{entry['operator']}.{entry['overload'] or 'default'}"
    return Schema(
        family=entry["family"],
        elements=entry["elements"],
        overload=overload,
        text=entry["text"],
        arguments=_read_items(schema["arguments"]),
        results=_read_items(results),
    )


def _read_items(text: str) -> tuple[Item, ...]:
    items: list[Item] = []
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            raise ValueError(f"expected an argument or a result, got {text[position:]!r}")
        position = match.end()
        items.append(_item(match))
    return tuple(items)


def _item(match: re.Match[str]) -> Item:
    length = match["length"] or ""
    default: Any = ast.literal_eval(match["default"]) if match["default"] else None
    if type(default) is int and match["base"] == "float":
        default = float(default)
    if length and isinstance(default, int):
        default = [default] * int(length[1:-1])
    type_text = match["base"] + ("[]" if length else "")
    return Item(match["name"] or "", type_text, bool(match["optional"]), default)
