"""The table of rules: what an operator of ONNX means, said in operations of Torch IR.

    @rule("Relu", 6, 13, 14)
    def relu(call: Call) -> Node:
        return op("relu.default", call.tensor(0))

A rule names the versions of the operator that it knows, those in which ONNX changed it. It reads attributes
and inputs by `call`; an attribute that it does not read is refused, as is an input or an output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from ..dialects.sizes import Extent, Size
from ..lazy.dtypes import DType
from ..lazy.expression import Node

Results: TypeAlias = Node | Sequence[Node | None]


class Refused(Exception):
    """Something in a model that deplo does not compute; says what, and why."""


@dataclass
class Call:
    """A node of a graph, as a rule sees it."""

    operator: str
    version: int
    """The version of ONNX that last changed the operator, of those that the model may mean."""
    inputs: Sequence[Node | None]
    attributes: Mapping[str, Any]
    """What the node says, and the defaults of what it does not say."""
    outputs: Sequence[bool]
    """Which outputs the graph asks for."""
    know: Callable[[Node], np.ndarray[Any, Any]]
    """The elements of a tensor that depends on no input of the model. Raises Refused for another."""
    know_extents: Callable[[Node], np.ndarray[Any, Any]]
    """The same of integers, with sizes that calls choose among them."""
    depends: Callable[[Node], bool]
    """Whether a tensor depends on an input of the model."""
    said: frozenset[str]
    """The attributes that the node says."""
    read: set[str] = field(default_factory=lambda: set[str]())
    seen: set[int] = field(default_factory=lambda: set[int]())

    # ---- inputs

    def has(self, position: int) -> bool:
        """Whether an input is given."""
        self.seen.add(position)
        return position < len(self.inputs) and self.inputs[position] is not None

    def tensor(self, position: int) -> Node:
        """An input that must be there."""
        if not self.has(position):
            raise Refused(f"input {position} is missing")
        node = self.inputs[position]
        assert node is not None
        return node

    def optional(self, position: int) -> Node | None:
        """An input that may be absent."""
        return self.tensor(position) if self.has(position) else None

    def tensors(self) -> list[Node]:
        """All inputs."""
        return [self.tensor(i) for i in range(len(self.inputs))]

    def array(self, position: int, what: str) -> np.ndarray[Any, Any]:
        """The elements of an input that must be known now."""
        node = self.tensor(position)
        try:
            return self.know(node)
        except Refused as reason:
            raise Refused(
                f"its {what} must be known when the model is imported: {reason}"
            ) from None

    def integers(self, position: int, what: str) -> list[int]:
        """The elements of an input of integers that must be known now."""
        found = self.extents(position, what)
        if any(not isinstance(n, int) for n in found):
            raise Refused(f"its {what} must be fixed, not {found}")
        return [n for n in found if isinstance(n, int)]

    def extents(self, position: int, what: str) -> list[Extent]:
        """The elements of an input of integers and sizes, which must be known now."""
        node = self.tensor(position)
        try:
            array = self.know_extents(node)
        except Refused as reason:
            raise Refused(
                f"its {what} must be known when the model is imported: {reason}"
            ) from None
        if array.dtype.kind not in "iuO" or array.ndim > 1:
            raise Refused(f"its {what} must be a list of integers, not {node.dtype} {array.shape}")
        return [n if isinstance(n, Size) else int(n) for n in array.reshape(-1)]

    def is_sized(self, position: int) -> bool:
        """Whether the elements of an input are known, sizes that calls choose among them."""
        node = self.tensor(position)
        if not self.depends(node):
            return False
        try:
            return any(isinstance(n, Size) for n in self.know_extents(node).flat)
        except Refused:
            return False

    # ---- attributes

    def given(self, name: str) -> Any:
        """An attribute, or its default; None where there is neither."""
        self.read.add(name)
        return self.attributes.get(name)

    def needed(self, name: str) -> Any:
        """An attribute that must be there."""
        value = self.given(name)
        if value is None:
            raise Refused(f"attribute '{name}' is missing")
        return value

    def integer(self, name: str, default: int | None = None) -> int:
        """An attribute that is an integer."""
        value = self.given(name)
        if value is None:
            value = self.needed(name) if default is None else default
        return int(value)

    def flag(self, name: str) -> bool:
        """An attribute that is 0 or 1."""
        value = self.integer(name, 0)
        if value not in (0, 1):
            raise Refused(f"{name} = {value}, which is neither 0 nor 1")
        return bool(value)

    def real(self, name: str, default: float | None = None) -> float:
        """An attribute that is a float."""
        value = self.given(name)
        if value is None:
            value = self.needed(name) if default is None else default
        return float(value)

    def text(self, name: str, *allowed: str) -> str:
        """An attribute that is one of a few words."""
        value = self.needed(name)
        text = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if allowed and text not in allowed:
            raise Refused(f"{name} = '{text}'")
        return text

    def only(self, name: str, *allowed: Any) -> None:
        """Refuse an attribute that has another value than these."""
        value = self.given(name)
        if value not in allowed:
            text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
            raise Refused(f"{name} = {text!r}")

    def whatever(self, *names: str) -> None:
        """Attributes that change nothing of what is computed here."""
        self.read.update(names)

    # ---- outputs

    def wants(self, position: int) -> bool:
        """Whether the graph asks for an output."""
        return position < len(self.outputs) and self.outputs[position]

    def check_all_read(self) -> None:
        """Raise Refused for attributes and inputs that the rule did not read."""
        if unread := sorted(self.said - self.read):
            raise Refused(f"attribute {', '.join(repr(name) for name in unread)}")
        given = {i for i, node in enumerate(self.inputs) if node is not None}
        if strange := sorted(given - self.seen):
            raise Refused(f"input {', '.join(map(str, strange))}")


Function: TypeAlias = Callable[[Call], Results]


@dataclass(frozen=True)
class Rule:
    """What an operator means in the versions that the rule knows."""

    function: Function
    versions: tuple[int, ...]
    text: str
    """What is computed, in a few words."""


RULES: dict[tuple[str, str], Rule] = {}
"""The rules by domain, '' for ONNX's own, and operator."""


def rule(
    name: str, *versions: int, text: str = "", domain: str = ""
) -> Callable[[Function], Function]:
    """Enter a function as the rule of an operator; its docstring is the text if there is no other."""

    def enter(function: Function) -> Function:
        said = text or " ".join((function.__doc__ or "").split())
        RULES[domain, name] = Rule(function, versions, said)
        return function

    return enter


def same_dtype(*nodes: Node) -> DType:
    """The dtype of tensors that must have one. Raises Refused if they have several."""
    found = list(dict.fromkeys(node.dtype for node in nodes))
    if len(found) > 1:
        raise Refused(f"inputs of several dtypes: {', '.join(map(str, found))}")
    return found[0]
