"""The schedule of a launch, `#tile.schedule<block_m = 64, transport = cp_async>`: a value, apart from the IR.

Loop IR says what a kernel computes, its schedule how. A choice that is absent is left to the pass that
would carry it out; what stands in the attribute after that pass is what was realised.

People ask for choices in words, `BM=16,BN=16,thread_m=2`, which `parse_choices` reads; `SWITCHES` of other
passes stand among them, `atomics=1`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DictionaryAttr, IntegerAttr, StringAttr, i64
from xdsl.dialects.utils import EnumAttribute
from xdsl.ir import Attribute, Operation, ParametrizedAttribute, SpacedOpaqueSyntaxAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException
from xdsl.utils.str_enum import StrEnum

from ..errors import UsageError
from .syntax import repeated


class Transport(StrEnum):
    """How a slab of the scratchpad is filled."""

    SYNC = "sync"
    CP_ASYNC = "cp_async"
    TMA = "tma"


class Kept(StrEnum):
    """Where threads keep what several of their sweeps read."""

    REGISTERS = "registers"
    SHARED = "shared"
    NOWHERE = "nowhere"


@irdl_attr_definition
class TransportAttr(EnumAttribute[Transport], SpacedOpaqueSyntaxAttribute):
    """How a slab is filled: `#tile<transport cp_async>`."""

    name = "tile.transport"


SWIZZLE_BYTES = (32, 64, 128)
"""Widths of the rows within which the copy engine may exchange units of 16 bytes."""


@dataclass(frozen=True)
class Choice:
    """One decision that a schedule may hold, and what it means."""

    name: str
    meaning: str
    values: tuple[str, ...] = ()
    """The words it may be; empty for a choice that is a number."""
    least: int = 1
    """The smallest number it may be."""
    numbers: tuple[int, ...] = ()
    """The numbers it may be; empty if it may be all from `least` on."""
    short: str = ""
    """A shorter name that people may call it."""
    derived: bool = False
    """Whether it follows from the others and the kernel, so that nobody may ask for it."""

    @property
    def names(self) -> tuple[str, ...]:
        """What people may call it, the short name first."""
        return (self.short, self.name) if self.short else (self.name,)

    def allows(self, number: int) -> bool:
        """Whether a number is one it may be."""
        return number in self.numbers if self.numbers else number >= self.least

    @property
    def said(self) -> str:
        """The numbers it may be, in words."""
        if self.numbers[:1] not in ((), (1,)):
            *others, last = map(str, self.numbers)
            return f"{', '.join(others)} or {last}"
        if self.numbers:
            return f"a power of two, at most {self.numbers[-1]}"
        return f"a number, {self.least} or more"


INDEPENDENT_ATTRIBUTE = "deplo.independent"
"""Marks loads and stores of an innermost loop no iteration of which touches what another one writes."""

KERNEL_ATTRIBUTE = "deplo.kernel"
"""Marks the functions that run on the device among a module's functions."""

SCHEDULE_ATTRIBUTE = "deplo.schedule"
"""What of a launch's schedule the CPU function that runs it has still to carry out."""

POWERS = tuple(1 << n for n in range(11))
"""Powers of two, up to the threads of a block."""

CHOICES = {
    c.name: c
    for c in (
        Choice("threads", "threads of one block; 1 on a CPU", derived=True),
        Choice("serial", "elements that one thread computes in a loop of its own", derived=True),
        Choice("m", "axis of the rows of a contraction, counted from 0", least=0, derived=True),
        Choice("n", "axis of its columns", least=0, derived=True),
        Choice("block_m", "rows of the result that one block computes", short="BM"),
        Choice("block_n", "columns of the result that one block computes", short="BN"),
        Choice("block_k", "positions of the reduced axis in a block's scratchpad", short="BK"),
        Choice("thread_m", "rows of the result that one thread computes", short="FM"),
        Choice("thread_n", "columns of the result that one thread computes", short="FN"),
        Choice("dot", "1 if a CPU's vectors lie along K, and nothing is packed", derived=True),
        Choice(
            "in_place", "1 if a CPU packs columns only, and reads rows from memory", derived=True
        ),
        Choice("ahead", "positions of K that a CPU asks for rows in place early", derived=True),
        Choice("pairs", "1 if a CPU multiplies pairs of bf16 that are neighbours", derived=True),
        Choice("strip_m", "neighbouring rows among those of one thread", derived=True),
        Choice("strip_n", "neighbouring columns among those of one thread", derived=True),
        Choice("pair_m", "how far apart the rows of each pair of one thread are", derived=True),
        Choice(
            "mma",
            "1 if warps multiply matrices, or a CPU in matrix tiles; 2 if warpgroups do",
            numbers=(0, 1, 2),
        ),
        Choice(
            "cluster_m", "blocks along M that share slabs of columns", numbers=(0, 2), short="CM"
        ),
        Choice("cluster_n", "blocks along N that share slabs of rows", numbers=(0, 2), short="CN"),
        Choice("split_k", "parts of the reduced axis that blocks share", short="SK"),
        Choice("stages", "buffers of each slab of the scratchpad, which take turns"),
        Choice(
            "vectors",
            "whose vectors a CPU's register tile is made of",
            values=("amx", "avx512", "avx2", "neon", "sse2"),
            derived=True,
        ),
        Choice("transport", "who fills the slabs, and when", values=tuple(Transport)),
        Choice("vector", "neighbours that one thread accesses at once", numbers=POWERS[:5]),
        Choice("lanes", "threads that share a row", numbers=POWERS),
        Choice("grain", "loads and stores of a CPU block, about", derived=True),
        Choice("prefetch", "bytes ahead of a sweep that a CPU asks for", least=0, derived=True),
        Choice(
            "width",
            "bits of the vectors that LLVM makes of a CPU's loops",
            numbers=(128, 256, 512),
            derived=True,
        ),
        Choice("interleave", "of those, how many at once; 0: LLVM decides", least=0, derived=True),
        Choice("rows", "rows that a CPU computes side by side", least=2, derived=True),
        Choice("divide", "1 if a CPU divides rows by numbers, not by their inverses", derived=True),
        Choice("strip", "columns of a CPU block that reduces columns", derived=True),
        Choice("keep", "where threads keep what several sweeps read", values=tuple(Kept)),
        Choice("given", "1 if all is decided: no pass adds anything", numbers=(1,), derived=True),
    )
}
"""Every key a schedule may hold."""

SWITCHES = {
    "atomics": "split-matmul-k",
    "fusion_guard": "fuse-loops",
}
"""Options of other passes that people ask for beside a schedule's choices, 0 or 1, and the pass of each."""


@irdl_attr_definition
class ScheduleAttr(ParametrizedAttribute):
    """What was decided for a launch: `#tile.schedule<threads = 256>`.

    A launch without a schedule has nothing decided yet, one of `#tile.schedule<given = 1>` all;
    `#tile.schedule<>` was decided to be empty.
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

    def number(self, choice: str) -> int:
        """The number of a choice that is there."""
        value = self.get(choice)
        assert value is not None
        return value

    def lacks(self, *choices: str) -> str | None:
        """The reason to decline where one of these is absent, or None."""
        absent = next((choice for choice in choices if choice not in self.choices.data), None)
        return None if absent is None else f"the schedule has no `{absent}`"

    def word(self, choice: str) -> str | None:
        """The word of a choice such as `transport`, or None if it is absent."""
        value = self.choices.data.get(choice)
        assert value is None or isinstance(value, StringAttr)
        return None if value is None else value.data

    @property
    def settles_threads(self) -> bool:
        """Whether all is decided, or the threads of a block are: no pass is to make anything of the axes."""
        return "threads" in self.choices.data or "given" in self.choices.data

    @property
    def numbers_axes(self) -> bool:
        """Whether it says which axes of the launch are rows or columns."""
        return "m" in self.choices.data or "n" in self.choices.data

    def with_choices(self, **choices: int | str) -> ScheduleAttr:
        """This schedule with some choices made or made otherwise."""
        made = {key: _to_attribute(value) for key, value in choices.items()}
        return ScheduleAttr.new([DictionaryAttr(dict(self.choices.data) | made)])

    def without(self, choice: str) -> ScheduleAttr:
        """This schedule with one choice left open."""
        kept = {key: value for key, value in self.choices.data.items() if key != choice}
        return ScheduleAttr.new([DictionaryAttr(kept)])

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
            elif not isinstance(value, IntegerAttr) or not choice.allows(value.value.data):
                raise VerifyException(f"`{key}` must be {choice.said}, got {value}")

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

        pos = parser.pos
        pairs = parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parse_choice)
        if twice := repeated([key for key, _ in pairs]):
            parser.raise_error(f"`{twice}` is chosen twice", pos)
        return (DictionaryAttr(dict(pairs)),)


def _to_attribute(value: int | str) -> Attribute:
    return StringAttr(value) if isinstance(value, str) else IntegerAttr(value, i64)


_SCHEDULE = re.compile(r"\s*([\w.$-]+(?:\+[\w.$-]+)*)\s*:\s*(.*?)\s*")
"""A kernel, or several that become one, and the steps of the schedule."""


def split_schedules(text: str) -> tuple[dict[str, str], str]:
    """The schedules of kernels in a text, by kernel or kernels, and the choices that stand beside them.

    They stand in lines of their own, or between semicolons: `k: tileify,bind{axis=i to=block}; BM=16`. Raises
    UsageError for a kernel that has two.
    """
    given: dict[str, str] = {}
    choices: list[str] = []
    for line in filter(str.strip, re.split(r"[\n;]", text)):
        if (found := _SCHEDULE.fullmatch(line)) is None:
            choices.append(line)
            continue
        kernels, steps = found.groups()
        for kernel in kernels.split("+"):
            if any(kernel in each.split("+") for each in given):
                raise UsageError(f"schedule: {kernel} has two")
        given[kernels] = steps
    return given, ",".join(choices)


def parse_choices(text: str) -> dict[str, int | str]:
    """The choices that people ask for as `BM=16,thread_m=2`, by their full names. Raises UsageError."""
    names = {name: choice for choice in askable() for name in choice.names}
    asked: dict[str, int | str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        key, equals, value = (part.strip() for part in item.partition("="))
        if key not in names:
            listed = ", ".join(" or ".join(choice.names) for choice in askable())
            raise UsageError(f"schedule: unknown choice '{key}'; there are {listed}")
        choice = names[key]
        if not equals or not value:
            raise UsageError(f"schedule: '{key}' has no value; write {key}={_example(choice)}")
        if choice.name in asked:
            raise UsageError(f"schedule: {choice.name} is given twice")
        asked[choice.name] = _read(choice, value)
    return asked


def askable() -> list[Choice]:
    """The choices that people may ask for, switches included."""
    switches = [Choice(name, f"option of `{by}`", numbers=(0, 1)) for name, by in SWITCHES.items()]
    return [*(choice for choice in CHOICES.values() if not choice.derived), *switches]


def _example(choice: Choice) -> str:
    return choice.values[0] if choice.values else "16"


def _read(choice: Choice, value: str) -> int | str:
    """The number or word of a choice. Raises UsageError."""
    if choice.values:
        if value not in choice.values:
            listed = ", ".join(choice.values)
            raise UsageError(f"schedule: {choice.name} is one of {listed}, not '{value}'")
        return value
    number = int(value) if re.fullmatch("[0-9]{1,9}", value) else -1
    if choice.allows(number):
        return number
    said = (
        choice.said if choice.numbers else f"a number from {choice.least} on, of 9 digits at most"
    )
    raise UsageError(f"schedule: {choice.name} is {said}, not '{value}'")


def schedule_of(function: Operation) -> ScheduleAttr:
    """What of its launch's schedule a kernel has still to carry out."""
    schedule = function.attributes.get(SCHEDULE_ATTRIBUTE)
    return schedule if isinstance(schedule, ScheduleAttr) else ScheduleAttr()
