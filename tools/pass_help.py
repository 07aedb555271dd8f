"""What `deplo-opt` tells of its passes: options, levels, the IR before and after.

All of it stands in the passes: the docstring of a pass's module has the example, the line under a field of
its class says what the option means, `passes/levels.py` has the levels.
"""

from __future__ import annotations

import ast
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from xdsl.passes import get_pass_option_infos
from xdsl.transforms import get_all_passes as get_xdsl_passes

from ..dialects.schedule import CHOICES
from ..errors import UsageError
from ..machine.targets import TARGETS
from ..passes import PASSES
from ..passes.levels import LEVELS, levels_of
from ..passes.pipelines import PIPELINES, families_of, get_all_available_passes

_PASSES = Path(__file__).resolve().parent.parent / "passes"

_COMMON = {
    "target": f"the machine: {', '.join(TARGETS)}, or a CPU by its core or vectors, such as cpu:znver4",
    "kernel": "the kernel that it is for; all, if it is empty",
    "schedule": "choices that contractions are to make: BM=16,BN=16",
}
"""What options mean that several passes have."""


@dataclass(frozen=True)
class Option:
    """An option of a pass."""

    name: str
    type: str
    default: str
    meaning: str

    def __str__(self) -> str:
        return f"{self.name}: {self.type} = {self.default}"


def first_line(name: str) -> str:
    """What a pass or pipeline does, in a line, read without importing it."""
    if name in PIPELINES:
        return f"runs {', '.join(PIPELINES[name])}"
    if name not in PASSES:
        docstring = (get_all_available_passes()[name]().__doc__ or "one of xDSL's passes").strip()
        return docstring.partition("\n")[0]
    return _docstring(name).partition("\n")[0].removeprefix(f"`{name}`: ")


def options_of(name: str) -> list[Option]:
    """The options of a pass or pipeline."""
    pass_class = get_all_available_passes()[name]()
    meanings = _field_docstrings(name) if name in PASSES else {}
    options: list[Option] = []
    for info in get_pass_option_infos(pass_class):
        default = "unset" if info.default_value in (None, "none") else info.default_value or '""'
        meaning = meanings.get(info.name) or _COMMON.get(info.name) or _choice(info.name)
        kind = info.expected_type.strip("'").replace(" | None", "")
        options.append(Option(info.name.replace("_", "-"), kind, default, meaning))
    return options


def _choice(name: str) -> str:
    """What a choice of a schedule means, and its words if it is one; "" for what is none."""
    if (choice := CHOICES.get(name)) is None:
        return ""
    return f"{choice.meaning}: {', '.join(choice.values)}" if choice.values else choice.meaning


def levels_line(name: str) -> str:
    """The levels that a pass reads and leaves, and the machines it is for."""
    reads, leaves = levels_of(name)
    if not reads:
        return "any level"
    words = f"reads {LEVELS[reads].name} ({LEVELS[reads].mark})"
    words += f", leaves {LEVELS[leaves].name}" if leaves != reads else " and leaves it"
    families = families_of(name)
    return f"{words}; for {families.pop()}" if len(families) == 1 else words


def example(name: str) -> str:
    """What a pass's module says after its first line, such as the IR before and after; "" for a pipeline."""
    if name in PIPELINES:
        return ""
    return _docstring(name).partition("\n")[2].strip("\n")


def help_text(name: str) -> str:
    """What `--help-pass` prints of a pass or pipeline, xDSL's too. Raises UsageError for another name."""
    options = option_lines(options_of(name)) if name in get_all_available_passes() else None
    if options is None:
        raise UsageError(f"unknown pass '{name}'; see --list-passes")
    parts = [f"{name}: {first_line(name)}", options or "It has no options."]
    if name in PASSES:
        parts = [parts[0], levels_line(name), parts[1], example(name)]
    return "\n\n".join(part for part in parts if part) + "\n"


def list_text(*, options: bool) -> str:
    """What `--list-passes` prints: a line for each pass and pipeline, then xDSL's names."""
    width = max(len(name) for name in (*PASSES, *PIPELINES))
    lines: list[str] = []
    for title, names in (("Passes", PASSES), ("Pipelines", PIPELINES)):
        lines.append(f"{title}:")
        for name in names:
            lines.append(f"  {name:{width}}  {first_line(name)}")
            if options and (told := option_lines(options_of(name), "    ")):
                lines.append(told)
        lines.append("")
    xdsl = [f"  {name}" for name in sorted(get_xdsl_passes())]
    return "\n".join([*lines, "From xDSL:", *xdsl]) + "\n"


def option_lines(options: Sequence[Option], indent: str = "  ") -> str:
    """A line for each option: its name, type and default, and what it means."""
    width = max((len(str(option)) for option in options), default=0)
    return "\n".join(f"{indent}{option!s:{width}}  {option.meaning}" for option in options)


def markdown(name: str) -> str:
    """The section of a pass in `docs/passes.md`."""
    parts = [f"### `{name}`", _sentence(first_line(name))]
    parts += [_sentence(levels_line(name))] if name in PASSES else []
    if options := options_of(name):
        rows = [f"| `{o.name}` | {o.type} | {o.default} | {o.meaning} |" for o in options]
        parts.append("\n".join(["| option | type | default | meaning |", "|---|---|---|---|", *rows]))
    parts.append(_code_apart(example(name)))
    return "\n\n".join(part for part in parts if part)


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:].rstrip(".") + "."


def _code_apart(text: str) -> str:
    """`text` with an empty line between its prose and its indented code, as Markdown wants it."""
    lines: list[str] = []
    for line in text.splitlines():
        is_code = line.startswith("    ")
        if lines and lines[-1] and line and lines[-1].startswith("    ") != is_code:
            lines.append("")
        lines.append(line)
    return "\n".join(lines)


@cache
def _source(name: str) -> ast.Module:
    where = PASSES[name].partition(":")[0].strip(".").replace(".", "/")
    return ast.parse((_PASSES / f"{where}.py").read_text(encoding="utf-8"))


def _docstring(name: str) -> str:
    return ast.get_docstring(_source(name)) or ""


def _field_docstrings(name: str) -> dict[str, str]:
    """What stands under the fields of a pass's class."""
    wanted = PASSES[name].partition(":")[2]
    body = next(n.body for n in _source(name).body if isinstance(n, ast.ClassDef) and n.name == wanted)
    found: dict[str, str] = {}
    for field, text in pairwise(body):
        match field, text:
            case (
                ast.AnnAssign(target=ast.Name(id=option)),
                ast.Expr(value=ast.Constant(value=str(meaning))),
            ):
                found[option] = textwrap.dedent(meaning).replace("\n", " ").rstrip(".")
            case _:
                pass
    return found
