"""What a plan is made of: arrays, arguments, buffers, the steps, and how each is read from its JSON form.

What is no such form raises KeyError, TypeError or ValueError when it is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any, TypeVar, cast

from .sizes import Expression, Extent, evaluate, read_extent, static

ITEM_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "f16": 2,
    "bf16": 2,
    "tf32": 4,
    "f32": 4,
    "f64": 8,
    "ui8": 1,
    "complex<f32>": 8,
    "complex<f64>": 16,
}
"""Bytes of one element of each dtype. Only calls of PyTorch read and make the last three."""

ALIGNMENT = 64
"""Alignment of the arena and of every buffer in it, a cache line."""


@dataclass(frozen=True)
class Array:
    """The dtype and shape of a contiguous array."""

    dtype: str
    shape: tuple[Extent, ...]

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return prod(map(static, self.shape)) * ITEM_BYTES[self.dtype]

    @cached_property
    def is_static(self) -> bool:
        """Whether its shape depends on no size."""
        return not any(isinstance(extent, Expression) for extent in self.shape)

    def at(self, sizes: Sequence[int]) -> Array:
        """The same where the sizes are known."""
        if self.is_static:
            return self
        return Array(self.dtype, tuple(evaluate(extent, sizes) for extent in self.shape))

    def named(self, names: Sequence[str]) -> str:
        """Its text with the sizes' own names."""
        shape = (e.named(names) if isinstance(e, Expression) else str(e) for e in self.shape)
        return f"{self.dtype}[{', '.join(shape)}]"

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Argument:
    """One array that a call passes; `kind` is input, parameter, buffer or constant."""

    name: str
    kind: str
    array: Array
    said: str = ""
    """The array as the program says it, dynamic sizes by their names; if empty, `array` is that."""

    def at(self, sizes: Sequence[int]) -> Argument:
        """The same where the sizes are known."""
        if self.array.is_static:
            return self
        return Argument(self.name, self.kind, self.array.at(sizes), self.said)


@dataclass(frozen=True)
class Buffer:
    """One array that the program makes; `offset` is its place in the arena, if it lies there."""

    array: Array
    offset: Extent | None

    def at(self, sizes: Sequence[int]) -> Buffer:
        """The same where the sizes are known."""
        if self.array.is_static and not isinstance(self.offset, Expression):
            return self
        offset = None if self.offset is None else evaluate(self.offset, sizes)
        return Buffer(self.array.at(sizes), offset)


@dataclass(frozen=True)
class Ref:
    """An array of the program: `kind` is argument or buffer, `index` its position in that list.

    Of what a kernel gets, it may also be tensor_map, or in a loop place.
    """

    kind: str
    index: int


@dataclass(frozen=True)
class TensorMap:
    """What a GPU's copy engine is told of an array: the box that a copy takes, and how it is swizzled.

    `swizzle` is the width in bytes of the rows within which 16-byte units are exchanged, or 0.
    """

    of: Ref
    box: tuple[int, ...]
    swizzle: int


@dataclass(frozen=True)
class Step:
    """One launch: the kernel by name, the arrays and sizes it gets, its grid."""

    kernel: str
    arguments: tuple[Ref, ...]
    blocks: Extent
    threads: int
    sizes: tuple[Extent, ...] = ()
    group: int | None = None
    """Neighbours with one number may run at once."""
    writes: tuple[int, ...] = ()
    """By number, which arguments a launch in a group writes."""

    def at(self, sizes: Sequence[int]) -> Step:
        """The same where the sizes are known."""
        if not self.sizes and not isinstance(self.blocks, Expression):
            return self
        numbers = tuple([evaluate(size, sizes) for size in self.sizes])
        blocks, threads = evaluate(self.blocks, sizes), self.threads
        names = self.kernel, self.arguments
        return Step(*names, blocks, threads, numbers, self.group, self.writes)


@dataclass(frozen=True)
class Permuted:
    """A view of an array, which a call gets: its axis i is the array's axis `axes[i]`."""

    of: Ref
    axes: tuple[int, ...]


@dataclass(frozen=True)
class CallStep:
    """One operator that PyTorch runs.

    Its arguments, by name, are numbers, strings, None, lists, references to arrays, views of these,
    expressions over sizes, `{"dtype": "f32"}` or `{"float": "inf"}`.
    """

    operator: str
    arguments: Mapping[str, Any]
    results: tuple[Ref, ...]

    @property
    def extents(self) -> list[Expression]:
        """The arguments, and the items of arguments, that depend on sizes."""
        return _leaves([*self.arguments.values()], Expression)

    def at(self, sizes: Sequence[int]) -> CallStep:
        """The same where the sizes are known."""
        if not self.extents:
            return self
        known = {name: _at(value, sizes) for name, value in self.arguments.items()}
        return CallStep(self.operator, known, self.results)


def _at(value: Any, sizes: Sequence[int]) -> Any:
    if isinstance(value, list):
        return [_at(item, sizes) for item in cast(list[Any], value)]
    return evaluate(value, sizes) if isinstance(value, Expression) else value


@dataclass(frozen=True)
class Kernel:
    """One kernel's source, LLVM IR or CUDA C++, and the messages its checks may end with."""

    name: str
    source: str
    messages: tuple[str, ...]
    shared_bytes: int = 0
    """Shared memory that a launch asks for, above what the source declares."""
    size_bits: int = 64
    """Width of the sizes that it takes."""


# --------------------------------------------------------------------------- reading


def read_kernel(data: Mapping[str, Any]) -> Kernel:
    """A kernel from its JSON form."""
    messages = tuple(data["messages"])
    more = {key: int(data[key]) for key in ("shared_bytes", "size_bits") if key in data}
    return Kernel(data["name"], data["source"], messages, **more)


def read_tensor_map(data: Mapping[str, Any]) -> TensorMap:
    """A tensor map from its JSON form."""
    (of,) = read_refs([data["of"]])
    return TensorMap(of, tuple(map(int, data["box"])), int(data["swizzle"]))


def read_argument(data: Mapping[str, Any], names: Sequence[str]) -> Argument:
    """An argument from its JSON form; sizes have `names`."""
    array = read_array(data)
    return Argument(data["name"], data["kind"], array, array.named(names))


def read_step(data: Mapping[str, Any]) -> Step | CallStep:
    """A launch or a call from its JSON form."""
    if "call" in data:
        return read_call(data)
    sizes = tuple(read_extent(size) for size in data["sizes"])
    blocks, threads = read_extent(data["blocks"]), int(data["threads"])
    group, writes = data.get("group"), tuple(map(int, data.get("writes", ())))
    arguments = read_refs(data["arguments"])
    if any(not 0 <= i < len(arguments) for i in writes):
        raise ValueError(f"a launch of {len(arguments)} arguments does not write {list(writes)}")
    return Step(data["kernel"], arguments, blocks, threads, sizes, group, writes)


def read_call(data: Mapping[str, Any]) -> CallStep:
    """A call from its JSON form."""
    arguments = {name: _call_argument(value) for name, value in data["arguments"].items()}
    return CallStep(data["call"], arguments, read_refs(data["results"]))


def _call_argument(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [_call_argument(item) for item in cast(list[Any], value)]
        case {"axes": [*axes], **of}:
            if sorted(axes) != list(range(len(axes))):
                raise ValueError(f"{axes} does not name each axis once")
            (ref,) = read_refs([of])
            return Permuted(ref, tuple(axes))
        case {"argument": int(index)}:
            return Ref("argument", index)
        case {"buffer": int(index)}:
            return Ref("buffer", index)
        case {"size": str(text)}:
            return read_extent(text)
        case {"dtype": str(dtype)} if dtype in ITEM_BYTES:
            return value
        case {"float": "inf" | "-inf" | "nan"}:
            return value
        case _:
            raise ValueError(f"a call cannot have the argument {value}")


_Leaf = TypeVar("_Leaf")


def _leaves(value: Any, kind: type[_Leaf]) -> list[_Leaf]:
    """What is of a kind in an argument of a call."""
    if isinstance(value, kind):
        return [value]
    items = cast(list[Any], value) if isinstance(value, list) else []
    return [each for item in items for each in _leaves(item, kind)]


def tensors_in(value: Any) -> list[Ref | Permuted]:
    """The arrays, and views of arrays, that an argument of a call names."""
    return _leaves(value, Ref | Permuted)  # type: ignore[arg-type]


def references(value: Any) -> list[Ref]:
    """The arrays that an argument of a call names."""
    return [each.of if isinstance(each, Permuted) else each for each in tensors_in(value)]


def read_array(data: Mapping[str, Any]) -> Array:
    """A dtype and a shape from their JSON form."""
    if data["dtype"] not in ITEM_BYTES:
        raise ValueError(f"unknown dtype {data['dtype']}")
    return Array(data["dtype"], tuple(read_extent(extent) for extent in data["shape"]))


def read_refs(data: Sequence[Mapping[str, int]]) -> tuple[Ref, ...]:
    """References to arrays from their JSON form."""
    return tuple(Ref(kind, index) for ref in data for kind, index in ref.items())
