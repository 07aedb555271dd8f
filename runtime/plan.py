"""A compiled program as data: what `analysis/plan.py` writes, read back and checked.

A plan names its arrays by reference: `Ref("argument", 0)` is the first argument of a call,
`Ref("buffer", 2)` the third buffer. Steps run in order.

A plan with dynamic sizes has expressions for extents; `Plan.at` puts in the sizes of a call's arguments.
Sizes that are found while it runs cut it into stages (`runtime/stages.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..errors import DeploError, UsageError
from .loops import Loop, Place, check_loops, check_slices, read_loop, read_place, slice_of
from .part_calls import check_call, parts_of
from .plan_parts import (
    ALIGNMENT,
    Argument,
    Array,
    Buffer,
    CallStep,
    Kernel,
    Permuted,
    Ref,
    Step,
    TensorMap,
    read_argument,
    read_array,
    read_kernel,
    read_refs,
    read_step,
    read_tensor_map,
    references,
    tensors_in,
)
from .sizes import EmptySize, Expression, Extent, Size, evaluate, read_extent, sizes_in, static

VERSION = 3
"""The version of the format that this runtime reads."""

MAX_KNOWN = 256
"""Choices of sizes for which a plan remembers its numbers."""


@dataclass(frozen=True)
class Plan:
    """A program ready to run on its target."""

    target: str
    arguments: tuple[Argument, ...]
    buffers: tuple[Buffer, ...]
    steps: tuple[Step | CallStep, ...]
    results: tuple[Ref, ...]
    arena_bytes: int | None
    """The size of the arena; None as long as sizes decide it."""
    kernels: tuple[Kernel, ...]
    sizes: tuple[Size, ...] = ()
    positive: tuple[Expression, ...] = ()
    """Extents inside the program that must be at least 1."""
    tensor_maps: tuple[TensorMap, ...] = ()
    updated: tuple[int, ...] = ()
    """The arguments that it writes to."""
    loops: tuple[Loop, ...] = ()
    places: tuple[Place, ...] = ()
    """The slices of arrays that the steps of loops get."""
    parts: Mapping[str, Plan] = field(default_factory=dict[str, "Plan"])
    """What calls run of the program itself, by name."""
    _known: dict[tuple[int | None, ...], Plan] = field(
        default_factory=dict[tuple[int | None, ...], "Plan"], compare=False, repr=False
    )

    def at(self, shapes: Sequence[Sequence[int]], found: Mapping[int, int] | None = None) -> Plan:
        """The plan where its arguments have `shapes`, with numbers in place of its dynamic sizes.

        `found` has sizes that calls have found, by number; what depends on sizes that are not found yet is
        not to be used. Raises UsageError if the sizes that the shapes say are not allowed, EmptySize for 0.
        """
        if not self.sizes:
            return self
        arguments = [argument.name for argument in self.arguments]
        found = found or {}
        sizes = tuple(
            found.get(number) if size.argument is None else size.of(shapes, arguments)
            for number, size in enumerate(self.sizes)
        )
        for number, size in enumerate(self.sizes):
            if size.argument is not None and sizes[number] == 0:
                raise EmptySize(number, ())
        plan = self._known.get(sizes)
        if plan is None:
            plan = self._at(sizes)
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[sizes] = plan
        return plan

    def _at(self, known: tuple[int | None, ...]) -> Plan:
        names = [size.name for size in self.sizes]
        sizes = tuple(1 if size is None else size for size in known)
        for extent in self.positive:
            if any(known[number] is None for number in sizes_in(extent)):
                continue
            if extent.evaluate(sizes) < 1:
                said = ", ".join(f"{n} = {s}" for n, s in zip(names, sizes, strict=True))
                raise UsageError(
                    f"with {said} a tensor inside the program would have {extent.named(names)} = "
                    f"{extent.evaluate(sizes)} elements along an axis; compile the program for such sizes"
                )
        buffers = tuple(buffer.at(sizes) for buffer in self.buffers)
        ends = [static(b.offset) + b.array.nbytes for b in buffers if b.offset is not None]
        plan = replace(
            self,
            arguments=tuple(a.at(sizes) for a in self.arguments),
            buffers=buffers,
            steps=tuple(step.at(sizes) for step in self.steps),
            loops=tuple(loop.at(sizes) for loop in self.loops),
            arena_bytes=max(ends, default=0),
            sizes=(),
            positive=(),
        )
        _check_numbers(plan)
        return plan

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
        plan.check()
        return plan

    def check(self) -> None:
        """Raise DeploError unless the plan can run."""
        _check(self)

    @property
    def whole(self) -> list[Plan]:
        """The plan, its parts and theirs."""
        return [self, *(each for part in self.parts.values() for each in part.whole)]

    @property
    def launches(self) -> tuple[Step, ...]:
        """The steps that launch a kernel."""
        return tuple(step for step in self.steps if isinstance(step, Step))

    def launch_count(self, kernel: str | None = None) -> int:
        """How many launches a call has, or has of a kernel; a loop counts once if sizes decide its turns."""
        count = 0
        for number, step in enumerate(self.steps):
            if isinstance(step, Step) and kernel in (None, step.kernel):
                loops = [loop for loop in self.loops if loop.begin <= number < loop.end]
                trips = loops[0].trips if loops else 1
                count += trips if isinstance(trips, int) else 1
        return count

    @property
    def groups(self) -> tuple[range, ...]:
        """The steps, by number, those that may run at once together; in order."""
        found: list[range] = []
        for i, step in enumerate(self.steps):
            group = step.group if isinstance(step, Step) else None
            before = self.steps[i - 1] if i else None
            if group is not None and isinstance(before, Step) and before.group == group:
                found[-1] = range(found[-1].start, i + 1)
            else:
                found.append(range(i, i + 1))
        return tuple(found)

    @property
    def calls(self) -> tuple[CallStep, ...]:
        """The steps that PyTorch runs."""
        return tuple(step for step in self.steps if isinstance(step, CallStep))

    def array(self, ref: Ref) -> Array:
        """The dtype and shape of what `ref` names."""
        if ref.kind == "place":
            return slice_of(self.array(self.places[ref.index].of))
        return (self.arguments if ref.kind == "argument" else self.buffers)[ref.index].array


def _read(data: Mapping[str, Any]) -> Plan:
    sizes = tuple(Size(**size) for size in data["sizes"])
    names = [size.name for size in sizes]
    return Plan(
        target=str(data["target"]),
        arguments=tuple(read_argument(a, names) for a in data["arguments"]),
        buffers=tuple(
            Buffer(read_array(b), None if b["offset"] is None else read_extent(b["offset"]))
            for b in data["buffers"]
        ),
        steps=tuple(map(read_step, data["steps"])),
        results=read_refs(data["results"]),
        arena_bytes=data["arena_bytes"],
        kernels=tuple(map(read_kernel, data["kernels"])),
        sizes=sizes,
        positive=tuple(e for e in map(read_extent, data["positive"]) if isinstance(e, Expression)),
        tensor_maps=tuple(map(read_tensor_map, data.get("tensor_maps", ()))),
        updated=tuple(map(int, data.get("updated", ()))),
        loops=tuple(map(read_loop, data.get("loops", ()))),
        places=tuple(map(read_place, data.get("places", ()))),
        parts={name: Plan.from_data(part) for name, part in data.get("parts", {}).items()},
    )


def _check_refs(plan: Plan) -> list[Ref]:
    """Raise unless every reference has something to refer to; gives what calls get and give."""
    counts = {"argument": len(plan.arguments), "buffer": len(plan.buffers)}
    named = {name for step in plan.calls for name in parts_of(step)}
    if missing := named - plan.parts.keys():
        raise DeploError(f"not a valid plan: there is no part {min(missing)}")
    for step in plan.calls:
        check_call(step)
    called = [ref for step in plan.calls for ref in step.results]
    called += [ref for step in plan.calls for ref in references([*step.arguments.values()])]
    arrays = [*plan.results, *called, *(ref for place in plan.places for ref in place.arrays)]
    arrays += [Ref("argument", index) for index in plan.updated]
    passed = [ref for step in plan.launches for ref in step.arguments]
    mapped = [each.of for each in plan.tensor_maps]
    moving = counts | {"place": len(plan.places)}
    for refs, kinds in (
        (arrays, counts),
        (mapped, moving),
        (passed, moving | {"tensor_map": len(plan.tensor_maps)}),
    ):
        for ref in refs:
            if not 0 <= ref.index < kinds.get(ref.kind, 0):
                raise DeploError(f"not a valid plan: there is no {ref.kind} {ref.index}")
    for each in plan.tensor_maps:
        if len(each.box) != len(plan.array(each.of).shape) or plan.target.startswith("cpu"):
            raise DeploError(f"not a valid plan: no box {each.box} of {plan.array(each.of)}")
    for each in (each for step in plan.calls for each in tensors_in([*step.arguments.values()])):
        if isinstance(each, Permuted) and len(each.axes) != len(plan.array(each.of).shape):
            raise DeploError(f"not a valid plan: no axes {each.axes} of {plan.array(each.of)}")
    return called


def _check(plan: Plan) -> None:
    """Raise unless every reference has something to refer to and the arena holds its buffers."""
    called = _check_refs(plan)
    names = {kernel.name for kernel in plan.kernels}
    for step in plan.launches:
        if step.kernel not in names:
            raise DeploError(f"not a valid plan: there is no kernel @{step.kernel}")
    launched = [_arrays(plan, step) if isinstance(step, Step) else None for step in plan.steps]
    check_loops(plan.loops, plan.places, launched, plan.array)
    for size in plan.sizes:
        for what, index, arrays in (
            ("argument", size.argument, plan.arguments),
            ("buffer", size.buffer, plan.buffers),
        ):
            if index is not None and not 0 <= index < len(arrays):
                raise DeploError(f"not a valid plan: there is no {what} {index}")
    for what, listed in (("a result", plan.results), ("what a call gets or gives", called)):
        if any(r.kind == "buffer" and plan.buffers[r.index].offset is not None for r in listed):
            raise DeploError(f"not a valid plan: {what} lies in the arena")
    if any(ref.kind != "buffer" for step in plan.calls for ref in step.results):
        raise DeploError("not a valid plan: a call gives an argument")
    try:
        _ = [evaluate(extent, [MAX_KNOWN] * len(plan.sizes)) for extent in _extents(plan)]
    except IndexError as error:
        raise DeploError("not a valid plan: it has fewer sizes than it uses") from error
    if not plan.sizes:
        _check_numbers(plan)


def _arrays(plan: Plan, step: Step) -> list[Ref]:
    """The arrays that a launch gets, or gets maps of."""
    maps = plan.tensor_maps
    return [maps[ref.index].of if ref.kind == "tensor_map" else ref for ref in step.arguments]


def _extents(plan: Plan) -> Iterator[Extent]:
    """All extents of a plan."""
    for each in (*plan.arguments, *plan.buffers):
        yield from each.array.shape
    yield from (buffer.offset for buffer in plan.buffers if buffer.offset is not None)
    for step in plan.launches:
        yield from (*step.sizes, step.blocks)
    for step in plan.calls:
        yield from step.extents
    yield from plan.positive
    yield from (loop.trips for loop in plan.loops)


def _check_numbers(plan: Plan) -> None:
    """Raise unless the grids of a plan with known sizes are possible and the arena holds its buffers."""
    for step in plan.launches:
        if static(step.blocks) < 0 or step.threads < 1:
            raise DeploError(f"not a valid plan: @{step.kernel} has an impossible grid")
    for buffer in plan.buffers:
        if buffer.offset is None:
            continue
        offset = static(buffer.offset)
        inside = 0 <= offset <= (plan.arena_bytes or 0) - buffer.array.nbytes
        if not inside or offset % ALIGNMENT:
            raise DeploError(f"not a valid plan: a buffer at {offset} is not in the arena")
    check_slices(plan.loops, plan.places, plan.array)
    for group in plan.groups:
        _check_group(plan, [plan.steps[i] for i in group])


def _check_group(plan: Plan, steps: Sequence[Step | CallStep]) -> None:
    """Raise unless no launch of a group touches memory that another writes."""
    launches = [step for step in steps if isinstance(step, Step)] if len(steps) > 1 else []
    touched = [[_memory(plan, ref) for ref in launch.arguments] for launch in launches]
    for i, launch in enumerate(launches):
        for mine in (touched[i][k] for k in launch.writes):
            for j, other in enumerate(launches):
                if i != j and any(_overlap(mine, theirs) for theirs in touched[j]):
                    raise DeploError(
                        f"not a valid plan: @{launch.kernel} and @{other.kernel} run at once, and one "
                        "writes what the other touches"
                    )


def _memory(plan: Plan, ref: Ref) -> tuple[object, int, int]:
    """Where an array lies: in what, and from which byte to before which."""
    if ref.kind == "tensor_map":
        ref = plan.tensor_maps[ref.index].of
    if ref.kind == "place":
        ref = plan.places[ref.index].of
    buffer = plan.buffers[ref.index] if ref.kind == "buffer" else None
    if buffer is None or buffer.offset is None:
        return ref, 0, 1
    offset = static(buffer.offset)
    return "arena", offset, offset + buffer.array.nbytes


def _overlap(one: tuple[object, int, int], other: tuple[object, int, int]) -> bool:
    return one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
