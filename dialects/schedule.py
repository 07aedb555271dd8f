"""The schedule of a launch, `#tile.schedule<block_m = 64, transport = cp_async>`: a value, apart from the IR.

Loop IR says what a kernel computes, its schedule how. A choice that is absent is left to the pass that
would carry it out; what stands in the attribute after that pass is what was realised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException


@dataclass(frozen=True)
class Choice:
    """One decision that a schedule may hold, and what it means."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    """The words it may be; empty for a choice that is a number."""
    least: int = 1
    """The smallest number it may be."""


CHOICES = {
    c.name: c
    for c in (
        Choice("threads", "threads of one block; 1 on a CPU"),
        Choice("serial", "output elements that one thread computes in a loop of its own"),
        Choice("vector", "neighbouring elements that one thread accesses at once"),
        Choice("m", "the axis of the rows of a contraction, counted from 0", least=0),
        Choice("n", "the axis of its columns", least=0),
        Choice("block_m", "rows of the result that one block computes"),
        Choice("block_n", "columns of the result that one block computes"),
        Choice("block_k", "positions of the reduced axis that a block has in its scratchpad"),
        Choice("thread_m", "rows of the result that one thread computes"),
        Choice("thread_n", "columns of the result that one thread computes"),
    )
}
"""Every key a schedule may hold."""


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """What was decided for a launch: `#tile.schedule<threads = 256>`.

    A launch without a schedule has nothing decided yet; `#tile.schedule<>` was decided to be empty.
    """

    name = "tile.schedule"

    choices: DictionaryAttr

    def __init__(self, **choices: int | str):
        super().__init__(DictionaryAttr({k: _to_attribute(v) for k, v in choices.items()}))

    def get(self, choice: str) -> int | None:
        """The number of a choice, or None if it is absent."""
        value = self.choices.data.get(choice)
        assert value is None or isinstance(value, IntegerAttr)
        return None if value is None else value.value.data

    def word(self, choice: str) -> str | None:
        """The word of a choice such as `transport`, or None if it is absent."""
        value = self.choices.data.get(choice)
        assert value is None or isinstance(value, StringAttr)
        return None if value is None else value.data

    def with_choices(self, **choices: int | str) -> ScheduleAttr:
        """This schedule with some choices made or made otherwise."""
        made = {key: _to_attribute(value) for key, value in choices.items()}
        return ScheduleAttr.new([DictionaryAttr(dict(self.choices.data) | made)])

    def verify(self) -> None:
        for key, value in self.choices.data.items():
            if key not in CHOICES:
                raise VerifyException(
                    f"unknown choice `{key}`; a schedule has {', '.join(CHOICES)}"
                )
            choice = CHOICES[key]
            if choice.values:
                if not isinstance(value, StringAttr) or value.data not in choice.values:
                    raise VerifyException(
                        f"`{key}` must be one of {', '.join(choice.values)}, got {value}"
                    )
            elif not isinstance(value, IntegerAttr) or value.value.data < choice.least:
                raise VerifyException(
                    f"`{key}` must be a number, {choice.least} or more, got {value}"
                )

    def print_parameters(self, printer: Printer) -> None:
        def print_choice(key: str) -> None:
            value = self.word(key) if CHOICES[key].values else self.get(key)
            printer.print_string(f"{key} = {value}")

        with printer.in_angle_brackets():
            printer.print_list(self.choices.data, print_choice)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        def parse_choice() -> tuple[str, Attribute]:
            key = parser.parse_identifier()
            parser.parse_punctuation("=")
            word = parser.parse_optional_identifier()
            if word is not None:
                return key, StringAttr(word)
            return key, IntegerAttr(parser.parse_integer(allow_boolean=False), i64)

        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_choice)
        return (DictionaryAttr(dict(pairs)),)


def _to_attribute(value: int | str) -> Attribute:
    return StringAttr(value) if isinstance(value, str) else IntegerAttr(value, i64)
