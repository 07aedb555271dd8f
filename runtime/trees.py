"""Nested inputs and outputs as JSON data: `{"tuple": ["*", {"dict": [["mask", "*"]]}]}`, where `*` is a leaf.

A named tuple is `{"named": ["Pair", ["first", "second"], ["*", "*"]]}`.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, cast

from ..errors import UsageError

LEAF = "*"


def flatten(tree: Any, value: Any, where: str) -> list[Any]:
    """The leaves of `value`, in order. Raises UsageError if it is organized otherwise than `tree`.

    `where` says what the value is, in messages.
    """
    if tree == LEAF:
        return [value]
    ((kind, parts),) = tree.items()
    if kind == "dict":
        keys = [key for key, _ in parts]
        if not isinstance(value, Mapping) or set(value) != set(keys):
            raise UsageError(f"{where} must have {_listed(keys)}, got {_what(value)}")
        given = cast(Mapping[Any, Any], value)
        items = [(part, given[key], f"{where}[{key!r}]") for key, part in parts]
    else:
        children: Sequence[Any] = parts[2] if kind == "named" else parts
        if not isinstance(value, list | tuple) or len(cast(Sequence[Any], value)) != len(children):
            raise UsageError(f"{where} must be {len(children)} values, got {_what(value)}")
        given_items = enumerate(cast(Sequence[Any], value))
        items = [(children[i], item, f"{where}[{i}]") for i, item in given_items]
    return [leaf for part, item, place in items for leaf in flatten(part, item, place)]


def unflatten(tree: Any, leaves: Iterator[Any]) -> Any:
    """What `tree` says, of the next of `leaves`."""
    if tree == LEAF:
        return next(leaves)
    ((kind, parts),) = tree.items()
    if kind == "dict":
        return {key: unflatten(part, leaves) for key, part in parts}
    if kind == "named":
        name, fields, children = parts
        return _named(name, tuple(fields))(*[unflatten(part, leaves) for part in children])
    made = [unflatten(part, leaves) for part in parts]
    return tuple(made) if kind == "tuple" else made


def count(tree: Any) -> int:
    """How many leaves a tree has. Raises KeyError, TypeError or ValueError for what is none."""
    if tree == LEAF:
        return 1
    ((kind, parts),) = tree.items()
    if kind not in ("dict", "list", "tuple", "named"):
        raise ValueError(f"no tree: {kind}")
    children = parts
    if kind == "dict":
        if not all(isinstance(key, str | int) for key, _ in parts):
            raise ValueError("a key that is none")
        children = [part for _, part in parts]
    elif kind == "named":
        name, fields, children = parts
        if len(_named(name, tuple(fields))._fields) != len(children):
            raise ValueError(f"{name} has other fields than parts")
    return sum(map(count, children))


@cache
def _named(name: str, fields: tuple[str, ...]) -> Any:
    return namedtuple(name, fields, rename=True)  # noqa: PYI024  # pyright: ignore[reportUntypedNamedTuple]


def _listed(keys: Sequence[Any]) -> str:
    return f"the keys {', '.join(map(repr, keys))}" if keys else "no keys"


def _what(value: Any) -> str:
    if isinstance(value, Mapping):
        return _listed(list(cast(Mapping[Any, Any], value)))
    if isinstance(value, list | tuple):
        return f"{len(cast(Sequence[Any], value))} values"
    return f"a {type(value).__name__}"
