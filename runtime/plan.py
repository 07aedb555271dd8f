"""A compiled program as data: what `analysis/plan.py` writes, read back and checked.

A plan names its arrays by reference: `Ref("argument", 0)` is the first argument of a call,
`Ref("buffer", 2)` the third buffer. Steps run in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, cast

from ..errors import DeploError

VERSION = 1
"""The version of the format that this runtime reads."""

ITEM_BYTES = {
    "i1": 1,
    "i8": 1,
    "i16": 2,
    "i32": 4,
    "i64": 8,
    "f16": 2,
    "bf16": 2,
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
    shape: tuple[int, ...]

    @property
    def nbytes(self) -> int:
        """Its size in bytes."""
        return prod(self.shape) * ITEM_BYTES[self.dtype]

    def __str__(self) -> str:
        return f"{self.dtype}[{', '.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Argument:
    """One array that a call passes; `kind` is input, parameter, buffer or constant."""

    name: str
    kind: str
    array: Array


@dataclass(frozen=True)
class Buffer:
    """One array that the program makes; `offset` is its place in the arena, if it lies there."""

    array: Array
    offset: int | None


@dataclass(frozen=True)
class Ref:
    """An array of the program: `kind` is argument or buffer, `index` its position in that list."""

    kind: str
    index: int


@dataclass(frozen=True)
class Step:
    """One launch: the kernel by name, the arrays it gets, its grid."""

    kernel: str
    arguments: tuple[Ref, ...]
    blocks: int
    threads: int


@dataclass(frozen=True)
class CallStep:
    """One operator that PyTorch runs.

    Its arguments, by name, are numbers, strings, None, lists, references to arrays, `{"dtype": "f32"}` or
    `{"float": "inf"}`.
    """

    operator: str
    arguments: Mapping[str, Any]
    results: tuple[Ref, ...]


@dataclass(frozen=True)
class Kernel:
    """One kernel's source, LLVM IR or CUDA C++, and the messages its checks may end with."""

    name: str
    source: str
    messages: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """A program ready to run on its target."""

    target: str
    arguments: tuple[Argument, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step | CallStep, ...]
    results: tuple[Ref, ...]
    arena_bytes: int
    kernels: tuple[Kernel, ...]

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Plan:
        """Read a plan from its JSON form; raises DeploError if it is not one that can run."""
        version = data.get("version")
        if version != VERSION:
            raise DeploError(f"plan version {version} cannot be read; expected {VERSION}")
        try:
            plan = _read(data)
        except (KeyError, TypeError, ValueError) as error:
            raise DeploError(f"not a valid plan: {type(error).__name__}: {error}") from error
        _check(plan)
        return plan

    @property
    def launches(self) -> tuple[Step, ...]:
        """The steps that launch a kernel."""
        return tuple(step for step in self.steps if isinstance(step, Step))

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """The steps that PyTorch runs."""
        return tuple(step for step in self.steps if isinstance(step, CallStep))

    def array(self, ref: Ref) -> Array:
        """The dtype and shape of what `ref` names."""
        return (self.arguments if ref.kind == "argument" else self.buffers)[ref.index].array


def _read(data: Mapping[str, Any]) -> Plan:
    return Plan(
        target=str(data["target"]),
        arguments=tuple(Argument(a["name"], a["kind"], _array(a)) for a in data["arguments"]),
        buffers=tuple(Buffer(_array(b), b["offset"]) for b in data["buffers"]),
        steps=tuple(map(_step, data["steps"])),
        results=_refs(data["results"]),
        arena_bytes=int(data["arena_bytes"]),
        kernels=tuple(
            Kernel(k["name"], k["source"], tuple(k["messages"])) for k in data["kernels"]
        ),
    )


def _step(data: Mapping[str, Any]) -> Step | CallStep:
    if "call" in data:
        return read_call(data)
    return Step(data["kernel"], _refs(data["arguments"]), int(data["blocks"]), int(data["threads"]))


def read_call(data: Mapping[str, Any]) -> CallStep:
    """A call from its JSON form; raises KeyError, TypeError or ValueError if it is none."""
    arguments = {name: _argument(value) for name, value in data["arguments"].items()}
    return CallStep(data["call"], arguments, _refs(data["results"]))


def _argument(value: Any) -> Any:
    match value:
        case None | bool() | int() | float() | str():
            return value
        case list():
            return [_argument(item) for item in cast(list[Any], value)]
        case {"argument": int(index)}:
            return Ref("argument", index)
        case {"buffer": int(index)}:
            return Ref("buffer", index)
        case {"dtype": str(dtype)} if dtype in ITEM_BYTES:
            return value
        case {"float": "inf" | "-inf" | "nan"}:
            return value
        case _:
            raise ValueError(f"a call cannot have the argument {value}")


def _references(value: Any) -> list[Ref]:
    """The arrays that an argument of a call names."""
    if isinstance(value, Ref):
        return [value]
    items = cast(list[Any], value) if isinstance(value, list) else []
    return [ref for item in items for ref in _references(item)]


def _array(data: Mapping[str, Any]) -> Array:
    if data["dtype"] not in ITEM_BYTES:
        raise ValueError(f"unknown dtype {data['dtype']}")
    return Array(data["dtype"], tuple(int(extent) for extent in data["shape"]))


def _refs(data: Sequence[Mapping[str, int]]) -> tuple[Ref, ...]:
    return tuple(Ref(kind, index) for ref in data for kind, index in ref.items())


def _check(plan: Plan) -> None:
    """Raise unless every reference has something to refer to and the arena holds its buffers."""
    counts = {"argument": len(plan.arguments), "buffer": len(plan.buffers)}
    called = [ref for step in plan.calls for ref in step.results]
    called += [ref for step in plan.calls for ref in _references([*step.arguments.values()])]
    refs = [*plan.results, *(ref for step in plan.launches for ref in step.arguments), *called]
    for ref in refs:
        if not 0 <= ref.index < counts.get(ref.kind, 0):
            raise DeploError(f"not a valid plan: there is no {ref.kind} {ref.index}")
    names = {kernel.name for kernel in plan.kernels}
    for step in plan.launches:
        if step.kernel not in names:
            raise DeploError(f"not a valid plan: there is no kernel @{step.kernel}")
        if step.blocks < 0 or step.threads < 1:
            raise DeploError(f"not a valid plan: @{step.kernel} has an impossible grid")
    for buffer in plan.buffers:
        if buffer.offset is None:
            continue
        inside = 0 <= buffer.offset <= plan.arena_bytes - buffer.array.nbytes
        if not inside or buffer.offset % ALIGNMENT:
            raise DeploError(f"not a valid plan: a buffer at {buffer.offset} is not in the arena")
    for what, listed in (("a result", plan.results), ("what a call gets or gives", called)):
        if any(r.kind == "buffer" and plan.buffers[r.index].offset is not None for r in listed):
            raise DeploError(f"not a valid plan: {what} lies in the arena")
    if any(ref.kind != "buffer" for step in plan.calls for ref in step.results):
        raise DeploError("not a valid plan: a call gives an argument")
