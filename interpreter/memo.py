"""What kernels computed, so that none of them runs a second time on the same arrays.

A kernel is recognised by its text, but for names and what changes no result; an array by where it comes from:
an argument of the program, the result of a kernel that is known, or else by its bytes. So a kernel runs again
only after a pass that changed it or what it reads. Where a changed kernel computes what one of the stage
before did from the same arrays, but for rounding, its results are taken to be that one's: what reads them has
not changed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from xdsl.ir import Attribute, Operation, SSAValue

from .compare import compare
from .numpy_types import Array
from .product import Product, Value, as_array
from .views import MAX_ELEMENTS

UNREAD = {
    "loop.kernel": ("sym_name",),
    "tile.launch": ("schedule",),
    "tile.stage": ("pad", "buffers", "via", "swizzle", "multicast"),
    "tile.pack": ("pad", "panels", "phases"),
    "kernel.func": ("sym_name", "index_type", "resident"),
    "cuda.func": ("sym_name",),
}
"""What an operation says of how it is carried out, which no interpreter reads. Nor does one read discardable
attributes."""

Tag: TypeAlias = tuple[str, Hashable]
"""What is known of an array: two with one tag hold the same."""


@dataclass(frozen=True)
class Result:
    """What a kernel computed from arrays with certain tags."""

    values: Sequence[Value]
    tags: Sequence[Tag]


class Memo:
    """The results of the kernels of the last execution that ended well, and of the present one."""

    def __init__(self) -> None:
        self._arguments: Sequence[Array] = ()
        self._tags: dict[int, tuple[Value, Tag]] = {}
        self._known: dict[Hashable, Result] = {}
        self._alike: dict[Hashable, list[Result]] = {}
        self._new: dict[Hashable, Result] = {}
        self._new_alike: dict[Hashable, list[Result]] = {}
        self._count = 0
        self._things: dict[Hashable, int] = {}

    def begin(self) -> None:
        """An execution begins."""
        self._tags, self._new, self._new_alike = {}, {}, {}

    def end(self) -> None:
        """It has ended well: the next one finds its results."""
        self._known, self._alike = self._new, self._new_alike
        self.begin()

    def name_arguments(self, arguments: Sequence[Array]) -> None:
        """Recognise the arguments of the program, if they are those of the execution before."""
        same = len(arguments) == len(self._arguments) and all(
            _same_bits(a, b) for a, b in zip(arguments, self._arguments, strict=True)
        )
        if not same:
            self._known, self._alike = {}, {}
            self._arguments = [np.array(value) for value in arguments]
        for number, value in enumerate(arguments):
            self.tag(value, ("argument", number))

    def tag(self, value: Value, tag: Tag) -> None:
        """Say what an array holds from now on."""
        self._tags[id(value)] = value, tag

    def forget(self, value: Value) -> None:
        """Know nothing of an array any more: parts of it were stored to."""
        self._tags.pop(id(value), None)

    def run(
        self,
        kernel: Operation,
        operands: Sequence[Value],
        compute: Callable[[], Sequence[Value]],
        elements: Sequence[Attribute],
        stored: Sequence[int] = (),
    ) -> Sequence[Value]:
        """The results of a kernel, which `compute` gives if they are not known.

        `elements` are their element types, `stored` the numbers of the operands that they are stored to.
        """
        tags = [self._tag_of(value) for value in operands]
        key = (self._key(kernel), *tags)
        read = tuple(tag for number, tag in enumerate(tags) if number not in stored)
        result = self._new.get(key) or self._known.get(key)
        if result is None:
            result = self._recognise(read, compute(), elements)
        self._new[key] = result
        self._new_alike.setdefault(read, []).append(result)
        for value, tag in zip(result.values, result.tags, strict=True):
            self.tag(value, tag)
        for number, tag in zip(stored, result.tags, strict=False):
            self.tag(operands[number], tag)
        return result.values

    def _recognise(
        self, read: Sequence[Tag], values: Sequence[Value], elements: Sequence[Attribute]
    ) -> Result:
        """What was computed, or what the stage before computed from the same arrays, if that is alike."""
        for result in self._alike.get(tuple(read), ()):
            if len(result.values) == len(values) and all(
                _alike(before, now, element)
                for before, now, element in zip(result.values, values, elements, strict=True)
            ):
                return result
        self._count += 1
        return Result(values, [("result", (self._count, n)) for n in range(len(values))])

    def _tag_of(self, value: Value) -> Tag:
        if (known := self._tags.get(id(value))) is not None:
            return known[1]
        array = np.asarray(as_array(value, MAX_ELEMENTS))
        tag = ("bytes", (array.shape, array.dtype.str, hashlib.sha1(_bytes(array).data).digest()))
        self.tag(value, tag)
        return tag

    def _key(self, kernel: Operation) -> Hashable:
        """What a kernel does, as numbers: its text but for names, locations, and what is `UNREAD`."""
        numbers: dict[SSAValue, int] = {}
        text: list[int] = []

        def number_of(thing: Hashable) -> int:
            return self._things.setdefault(thing, len(self._things))

        def declare(values: Sequence[SSAValue]) -> None:
            text.append(len(values))
            for value in values:
                numbers[value] = len(numbers)
                text.append(number_of(value.type))

        def visit(op: Operation) -> None:
            unread = UNREAD.get(op.name, ())
            said = sorted(name for name in op.properties if name not in unread)
            text.append(number_of(op.name))
            text.append(len(said))
            text.extend(number_of((name, op.properties[name])) for name in said)
            declare(op.results)
            text.append(len(op.regions))
            for region in op.regions:
                text.append(len(region.blocks))
                for block in region.blocks:
                    declare(block.args)
                    for inner in block.ops:
                        text.append(len(inner.operands))
                        text.extend(numbers[value] for value in inner.operands)
                        visit(inner)
                    text.append(-1)

        visit(kernel)
        return tuple(text)


def _alike(before: Value, now: Value, element: Attribute) -> bool:
    if isinstance(before, Product) or isinstance(now, Product):
        return False
    return compare(before, now, element) is None


def _bytes(array: Array) -> Array:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _same_bits(a: Array, b: Array) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and np.array_equal(_bytes(a), _bytes(b))
