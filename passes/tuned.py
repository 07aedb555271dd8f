"""Schedules that were measured: the lines that a tuner found stand in for what models would decide.

Passes do not know where lines are kept; whoever compiles hands them in:

    with tuned_by(lines):
        ...                           # `apply-schedules` asks for `tuned_groups(kernels)`

A line is kept under the digests of its kernels, of their Loop IR without the names in it, and has `$0`, `$1`
in place of these names (`without_names`). So it holds for all kernels that compute the same.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import chain
from types import MappingProxyType

from xdsl.dialects.builtin import IndexType, StringAttr
from xdsl.ir import Operation, SSAValue

from ..dialects.loop import KernelOp
from ..errors import UsageError

Lines = Mapping[tuple[str, ...], str]
"""From digests of kernels, in the order in which their line names them, to the steps that schedule them."""

_NONE: Lines = MappingProxyType({})
_LINES: ContextVar[Lines] = ContextVar("deplo_tuned", default=_NONE)

_NAMED = re.compile(r"\b(axis|axes|into|of|kernel)=([^ }]+)")
"""An option of a step that names axes, arrays or kernels."""

_COUNTER, _ARRAY, _KERNEL = "counter", "array", "kernel"
_KINDS = {"of": _ARRAY, "kernel": _KERNEL}
"""Option -> what it names; others name counters of loops."""


@contextmanager
def tuned_by(lines: Lines) -> Generator[None]:
    """Let passes inside the `with` block find these lines."""
    token = _LINES.set(lines)
    try:
        yield
    finally:
        _LINES.reset(token)


def tuned_groups(kernels: Sequence[KernelOp]) -> list[tuple[list[KernelOp], str]]:
    """The kernels that lines were found for, those of one line together, and the steps.

    Of the lines that end in the same kernel, the longest one counts.
    """
    if not (lines := _LINES.get()):
        return []
    ends: dict[str, list[tuple[str, ...]]] = {}
    for digests in sorted(lines, key=len, reverse=True):
        ends.setdefault(digests[-1], []).append(digests)
    free = {kernel: digest_of(kernel) for kernel in kernels}
    found: list[tuple[list[KernelOp], str]] = []
    for kernel in reversed(kernels):
        for digests in ends.get(free.get(kernel, ""), ()):
            if (group := _group(kernel, digests, free)) is not None:
                found.append((group, _with_names(lines[digests], group)))
                for each in group:
                    del free[each]
                break
    return found[::-1]


def _group(
    last: KernelOp, digests: Sequence[str], free: Mapping[KernelOp, str]
) -> list[KernelOp] | None:
    """Free kernels with these digests, the last of which is `last`; each other one is read by a later one."""
    group = [last]
    for digest in reversed(digests[:-1]):
        read = (value.owner for each in group for value in each.inputs)
        makers = (op for op in read if isinstance(op, KernelOp) and op not in group)
        maker = next((each for each in makers if free.get(each) == digest), None)
        if maker is None:
            return None
        group.insert(0, maker)
    return group


def without_names(steps: str, kernels: Sequence[KernelOp]) -> str:
    """The steps of a line with `$n` for the n-th name in its kernels, also where a longer name begins so."""
    numbers = {named: n for n, named in reversed([*enumerate(_names(kernels))])}

    def number(kind: str, name: str) -> str:
        parts = name.split("_")
        for count in range(len(parts), 0, -1):
            start = "_".join(parts[:count])
            if (n := numbers.get((kind, start))) is not None:
                return f"${n}{name[len(start) :]}"
        return name

    return _renamed(steps, number)


def _with_names(steps: str, kernels: Sequence[KernelOp]) -> str:
    """The steps with the names that these kernels have."""
    names = dict(enumerate(_names(kernels)))

    def name(_: str, text: str) -> str:
        match = re.match(r"\$(\d+)", text)
        if match is None:
            return text
        return f"{names.get(int(match[1]), ('', None))[1] or 'unnamed'}{text[match.end() :]}"

    return _renamed(steps, name)


def _renamed(steps: str, rename: Callable[[str, str], str]) -> str:
    def option(match: re.Match[str]) -> str:
        kind = _KINDS.get(match[1], _COUNTER)
        return f"{match[1]}={','.join(rename(kind, name) for name in match[2].split(','))}"

    return _NAMED.sub(option, steps)


def _names(kernels: Sequence[KernelOp]) -> list[tuple[str, str | None]]:
    """What has a name in kernels, and the name: in the same order in all that compute the same."""
    names: list[tuple[str, str | None]] = []
    for kernel in kernels:
        names.append((_KERNEL, kernel.sym_name.data))
        for value in (*kernel.inputs, *_values_in(kernel)):
            kind = _COUNTER if isinstance(value.type, IndexType) else _ARRAY
            names.append((kind, value.name_hint))
    return names


def _values_in(kernel: KernelOp) -> list[SSAValue]:
    def of(op: Operation) -> chain[SSAValue]:
        blocks = (block for region in op.regions for block in region.blocks)
        return chain(op.results, chain.from_iterable(block.args for block in blocks))

    return [value for op in kernel.walk() for value in of(op)]


def digest_of(kernel: KernelOp) -> str:
    """The digest of what a kernel computes, whatever the names in it."""
    return hashlib.sha256(canonical_text(kernel).encode()).hexdigest()


def canonical_text(kernel: KernelOp) -> str:
    """The text of a kernel without the names in it: those that compute the same have the same."""
    copy = kernel.clone()
    copy.sym_name = StringAttr("kernel")
    for value in _values_in(copy):
        value.name_hint = None
    text = _without_outer_names(copy)
    copy.erase()
    return text


def _without_outer_names(copy: KernelOp) -> str:
    """The text of a kernel whose inputs are named where they are made, outside of it."""
    held = [value.name_hint for value in copy.inputs]
    try:
        for value in copy.inputs:
            value.name_hint = None
        return str(copy)
    finally:
        for value, name in zip(copy.inputs, held, strict=True):
            value.name_hint = name


def check_names(steps: object) -> str:
    """The steps with some name for each number. Raises UsageError for what cannot be those of a line."""
    if not isinstance(steps, str) or not re.fullmatch(r"[\w$,{}= .:-]+", steps):
        raise UsageError(f"no steps of a schedule: {str(steps)[:60]!r}")
    return re.sub(r"\$\d+", "x", steps)
