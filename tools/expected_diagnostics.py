"""`--verify-diagnostics`: the program says which diagnostics it expects, as for mlir-opt.

    %0 = arith.addi %a, %b : i32   // expected-error {{used with type i32}}
    // expected-error@+1 {{unknown op}}
    // expected-remark@below 2 {{fused}}
    // expected-error-re {{block of {{[0-9]+}} threads}}

The kinds are `error`, `warning`, `remark` and `note`; `@+N`, `@-N`, `@above` and `@below` move the
line the diagnostic must be on, `@unknown` means no line; a number before `{{` asks for so many. The
text must occur in the message.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from .diagnostics import Diagnostic, Position

_EXPECTED = re.compile(
    r"expected-(?P<kind>error|warning|remark|note)(?P<re>-re)?"
    r"(?P<at>@(?:[+-]\d+|above|below|unknown))?[ \t]*(?P<count>\d+)?[ \t]*\{\{(?P<text>.*)\}\}"
)
_MARKER = re.compile(r"expected-(error|warning|remark|note)")
_INNER = re.compile(r"\{\{(.*?)\}\}")


@dataclass(frozen=True)
class Expectation:
    """One `expected-...` comment."""

    kind: str
    line: int | None
    text: str
    is_regex: bool
    at: Position

    def matches(self, diagnostic: Diagnostic) -> bool:
        """Is `diagnostic` the one this comment speaks of?"""
        line = diagnostic.position.line if diagnostic.position is not None else None
        if diagnostic.severity != self.kind or line != self.line:
            return False
        if not self.is_regex:
            return self.text in diagnostic.message
        return re.search(_pattern(self.text), diagnostic.message) is not None


def find_expectations(text: str, file: str) -> list[Expectation]:
    """The expectations in `text`; raises `ValueError` at a comment that is almost one."""
    found: list[Expectation] = []
    line_of_code = 0
    for number, line in enumerate(text.split("\n"), 1):
        if (match := _EXPECTED.search(line)) is None:
            if _MARKER.search(line):
                raise ValueError(f"{file}:{number}: malformed expectation: {line.strip()}")
            continue
        line_of_code = _target_line(match["at"], number)
        at = Position(file, number, match.start() + 1)
        wanted = None if match["at"] == "@unknown" else line_of_code
        each = Expectation(match["kind"], wanted, match["text"], match["re"] is not None, at)
        found.extend([each] * int(match["count"] or 1))
    return found


def unmet(
    expectations: Iterable[Expectation], diagnostics: Iterable[Diagnostic]
) -> list[Diagnostic]:
    """One error for each diagnostic nobody expected and each expectation nothing met."""
    pending = list(expectations)
    problems: list[Diagnostic] = []
    for diagnostic in _flattened(diagnostics):
        if (met := next((e for e in pending if e.matches(diagnostic)), None)) is not None:
            pending.remove(met)
        elif diagnostic.severity != "note":
            message = f"unexpected {diagnostic.severity}: {diagnostic.message}"
            problems.append(Diagnostic("error", message, diagnostic.position))
    for each in pending:
        message = f'expected {each.kind} "{each.text}" was not produced'
        problems.append(Diagnostic("error", message, each.at))
    return problems


def _target_line(at: str | None, number: int) -> int:
    match at:
        case None | "@unknown":
            return number
        case "@above":
            return number - 1
        case "@below":
            return number + 1
        case _:
            return number + int(at[1:])


def _flattened(diagnostics: Iterable[Diagnostic]) -> Iterable[Diagnostic]:
    for diagnostic in diagnostics:
        yield diagnostic
        yield from diagnostic.notes


def _pattern(text: str) -> str:
    """`text` as a regular expression: only what stands in `{{ }}` is one."""
    parts = _INNER.split(text)
    return "".join(f"(?:{p})" if i % 2 else re.escape(p) for i, p in enumerate(parts))
