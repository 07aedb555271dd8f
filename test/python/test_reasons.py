"""Each reason that a rule of Tile IR or Kernel IR can give stands in a lit test."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    *sorted((ROOT / "passes" / "tile").glob("*.py")),
    *sorted((ROOT / "passes" / "kernel").glob("*.py")),
    *sorted((ROOT / "passes" / "llvm").glob("*.py")),
    *sorted((ROOT / "passes" / "loop").glob("*.py")),
    ROOT / "analysis" / "contraction.py",
    ROOT / "analysis" / "tiling_choice.py",
    ROOT / "analysis" / "tilings.py",
]
TOLD = ("record", "append")
"""Functions that a reason is handed to."""


VALUE = "\0"
"""Stands for a value in a text."""


def pattern(node: ast.expr) -> str | None:
    """What a text looks like, wherever values stand in it; None of what is no text."""
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(
                pattern(p) or "" if isinstance(p, ast.Constant) else VALUE for p in parts
            )
        case _:
            return None


def texts(node: ast.expr | None) -> Iterator[str]:
    """The texts that an expression may be."""
    match node:
        case ast.IfExp(body=then, orelse=otherwise):
            yield from texts(then)
            yield from texts(otherwise)
        case ast.BoolOp(values=values) | ast.Tuple(elts=values):
            for value in values:
                yield from texts(value)
        case ast.expr() if (found := pattern(node)) is not None:
            yield found


def reasons(path: Path) -> dict[str, int]:
    """The texts of a file that are returned, recorded or called a reason, with their lines."""
    found: dict[str, int] = {}
    for node in ast.walk(ast.parse(path.read_text())):
        values: list[ast.expr | None] = []
        match node:
            case ast.Return(value=value):
                values = [value]
            case ast.Assign(targets=[ast.Name(id="reason")], value=value):
                values = [value]
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args):
                values = [*args] if name in TOLD else []
            case _:
                pass
        for value in values:
            found |= {text: node.lineno for text in texts(value) if " " in text.strip()}
    return found


@pytest.fixture(scope="module")
def tests() -> list[str]:
    """The lines of all lit tests."""
    paths = sorted(p for p in (ROOT / "test").rglob("*") if p.suffix in (".mlir", ".test"))
    return [line for path in paths for line in path.read_text().splitlines()]


def stands(reason: str, lines: list[str]) -> bool:
    """Whether a reason stands in a line, with some value for each of its own."""
    parts = reason.split(VALUE)
    longest = max(parts, key=len)
    whole = re.compile(".+?".join(map(re.escape, parts)))
    return any(whole.search(line) for line in lines if longest in line)


def test_reasons_are_found() -> None:
    found = reasons(ROOT / "passes" / "tile" / "double_buffer.py")
    assert "there is one chunk only" in found
    assert len(found) >= 6


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_reason_stands_in_a_lit_test(path: Path, tests: list[str]) -> None:
    missing = [
        f"{path.name}:{line}: {text.replace(VALUE, '{...}')}"
        for text, line in reasons(path).items()
        if not stands(text, tests)
    ]
    assert not missing, "no lit test holds\n  " + "\n  ".join(missing)
