"""From the text of a pipeline to passes and back; a mistake is a `UsageError` that says the remedy.

a,b{x=1}                         xDSL's spelling
builtin.module(a,b{x=1})         MLIR's spelling: deplo's passes all work on the module
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from difflib import get_close_matches

from xdsl.passes import ModulePass, PassOptionInfo, get_pass_option_infos
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from ..errors import DeploError, UsageError

_ANCHORED = re.compile(r"\s*([A-Za-z_][\w.]*)\s*\((.*)\)\s*", re.DOTALL)
_SPACE = re.compile(r'("(?:[^"\\]|\\.)*")|\s*([,{}=])\s*')
_CPU = re.compile(r"=(cpu:[\w:=.-]+)")
"""A CPU as the value of an option, which xDSL wants in quotes."""

Available = Mapping[str, Callable[[], type[ModulePass]]]


def read_pipeline(text: str, available: Available) -> tuple[ModulePass, ...]:
    """The passes that `text` names, with their options. Raises UsageError for what is wrong."""
    return tuple(_make_pass(spec, available) for spec in _parse(unanchored(text)))


def unanchored(text: str) -> str:
    """`text` without `builtin.module( )` around it and without spaces that mean nothing."""
    if (match := _ANCHORED.fullmatch(text)) is not None:
        anchor, text = match.groups()
        if anchor not in ("builtin.module", "any"):
            raise UsageError(
                f"pipeline is anchored on '{anchor}', but every pass here works on the module: "
                f"write builtin.module({text}) or {text}"
            )
        return unanchored(text)
    return _CPU.sub(r'="\1"', _SPACE.sub(r"\1\2", text.strip()))


def _parse(text: str) -> tuple[ArgSpec, ...]:
    try:
        return tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        lines = str(error).strip().splitlines()
        reason = lines[-1].strip() if lines else "malformed"
        raise UsageError(f"malformed pass pipeline '{_shortened(text)}': {reason}") from error
    except ValueError as error:
        raise UsageError(f"malformed pass pipeline '{_shortened(text)}': {error}") from error


def _shortened(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:77]}..."


def _make_pass(spec: ArgSpec, available: Available) -> ModulePass:
    if spec.name not in available:
        near = get_close_matches(spec.name, available, n=3)
        hint = f"did you mean {' or '.join(repr(n) for n in near)}?" if near else ""
        raise UsageError(f"unknown pass '{spec.name}'; {hint or 'see --list-passes'}")
    try:
        pass_class = available[spec.name]()
    except ModuleNotFoundError as error:
        raise UsageError(f"pass '{spec.name}' cannot be loaded: {error}") from error
    try:
        return pass_class.from_spec(spec)
    except DeploError as error:
        raise UsageError(f"pass '{spec.name}': {error}") from error
    except (ValueError, TypeError) as error:
        reason = _wrong_option(spec, pass_class, str(error))
        raise UsageError(f"pass '{spec.name}': {reason}; {_options(pass_class)}") from error


_KINDS = {
    "str": "a name",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "tuple[str, ...]": "names with commas between them",
    "tuple[int, ...]": "whole numbers with commas between them",
}
"""What the values of an option of a type are."""


def _wrong_option(spec: ArgSpec, pass_class: type[ModulePass], said: str) -> str:
    """Which option is wrong, and why; what xDSL says of it names none."""
    types = {option.name: _type_of(option) for option in get_pass_option_infos(pass_class)}
    for given, value in spec.parameters.items():
        if (kind := types.get(given.replace("-", "_"))) is None:
            return f"it has no option '{given}'"
        if said.startswith(f"Incompatible types: given {value}, expected"):
            shown = ",".join(map(str, value)) or "nothing"
            return f"option '{given}' is {_KINDS.get(kind, f'of type {kind}')}, not {shown}"
    return said


def _type_of(option: PassOptionInfo) -> str:
    return option.expected_type.strip("'").replace(" | None", "")


def _options(pass_class: type[ModulePass]) -> str:
    options = ", ".join(
        f"{option.name.replace('_', '-')}: {_type_of(option)}"
        + ("" if default is None else f" = {default}" if default else ' = ""')
        for option in get_pass_option_infos(pass_class)
        for default in (option.default_value,)
    )
    return f"its options are {options}" if options else "it has no options"


def steps_text(steps: Sequence[ModulePass]) -> str:
    """The steps as a pipeline: `split{axis=j by=256 into=j_block,j_thread}`; what is as usual is left out."""
    return ",".join(map(_text, steps))


def _text(step: ModulePass) -> str:
    given = {field.name: getattr(step, field.name) for field in fields(step)}
    options = [
        f"{field.name}={_value(given[field.name])}"
        for field in fields(step)
        if given[field.name] != field.default
    ]
    return f"{step.name}{{{' '.join(sorted(options))}}}" if options else step.name


def _value(value: bool | int | str | tuple[str, ...] | tuple[int, ...]) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
