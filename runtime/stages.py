"""A plan whose sizes are found while it runs, cut behind the calls of PyTorch that find them.

    %rows = kernel.call "aten.nonzero.default"(...)        // stage 0 ends: its result has s1 rows
    %y = kernel.alloc : memref<?x8xf32, #sym.extents<s1>>  // made when stage 1 begins
    kernel.launch @k(%rows, %y) ...

A plan without such sizes is one stage.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import DeploError
from .arrays import is_like
from .plan import Plan
from .plan_parts import CallStep, Ref, Step, references
from .sizes import EmptySize, Extent, sizes_in


@dataclass(frozen=True)
class Stage:
    """Steps `begin` to `end`, and the buffers that are made before them."""

    begin: int
    end: int
    buffers: tuple[int, ...]
    groups: tuple[range, ...]
    """Its steps, by number, those that may run at once together."""
    finds: tuple[int, ...] = ()
    """The numbers of the sizes that the last step's results say."""


def stages_of(plan: Plan) -> tuple[Stage, ...]:
    """The stages of a plan. Raises DeploError if a step needs a size that is found later."""
    extents = [(*b.array.shape, *(() if b.offset is None else (b.offset,))) for b in plan.buffers]
    known = {n for n, size in enumerate(plan.sizes) if size.argument is not None}
    made: set[int] = set()
    stages: list[Stage] = []
    begin = 0
    ready = _ready(extents, known, made)
    for position, step in enumerate(plan.steps):
        results = _buffers(step.results) if isinstance(step, CallStep) else set[int]()
        finds = tuple(
            n for n, size in enumerate(plan.sizes) if n not in known and size.buffer in results
        )
        for used in _extents(step, (extents[b] for b in _buffers(_given(step)))):
            if missing := sizes_in(used) - known:
                name = plan.sizes[min(missing)].name
                raise DeploError(
                    f"not a valid plan: step {position} needs the size {name} too early"
                )
        if finds:
            groups = tuple(each for each in plan.groups if begin <= each.start <= position)
            stages.append(Stage(begin, position + 1, ready, groups, finds))
            made |= {*ready, *results}
            known |= set(finds)
            begin, ready = position + 1, _ready(extents, known, made)
    groups = tuple(each for each in plan.groups if each.start >= begin)
    stages.append(Stage(begin, len(plan.steps), ready, groups))
    return tuple(stages)


def find_sizes(
    plan: Plan, stage: Stage, made: Mapping[int, Any], given: Sequence[Sequence[Any]]
) -> dict[int, int]:
    """The sizes that the end of a stage finds, by number, from the buffers made.

    `given` is what the calls gave so far. Raises EmptySize for 0, UsageError for a size not allowed.
    """
    found: dict[int, int] = {}
    for number in stage.finds:
        size = plan.sizes[number]
        assert size.buffer is not None
        found[number] = size.found(tuple(made[size.buffer].shape))
        if found[number] == 0:
            raise EmptySize(number, given)
    return found


def check_found(plan: Plan, stage: Stage, made: Mapping[int, Any]) -> None:
    """Raise DeploError unless a stage's last call gave what the plan, its sizes known by now, says."""
    step = plan.steps[stage.end - 1]
    assert isinstance(step, CallStep)
    for ref in step.results:
        array, tensor = plan.array(ref), made[ref.index]
        if not is_like(tensor, array):
            dtype = str(tensor.dtype).removeprefix("torch.")
            raise DeploError(
                f"{step.operator} gave {dtype}{list(tensor.shape)} where the program was compiled for {array}"
            )


def _ready(extents: Sequence[Sequence[Extent]], known: set[int], made: set[int]) -> tuple[int, ...]:
    """The buffers not yet made all of whose extents are known."""
    return tuple(
        number
        for number, of_one in enumerate(extents)
        if number not in made and all(sizes_in(extent) <= known for extent in of_one)
    )


def _given(step: Step | CallStep) -> Iterable[Ref]:
    return references([*step.arguments.values()]) if isinstance(step, CallStep) else step.arguments


def _buffers(refs: Iterable[Ref]) -> set[int]:
    return {ref.index for ref in refs if ref.kind == "buffer"}


def _extents(step: Step | CallStep, shapes: Iterable[Sequence[Extent]]) -> Iterable[Extent]:
    """The extents that a step needs to be known."""
    for shape in shapes:
        yield from shape
    yield from (*step.sizes, step.blocks) if isinstance(step, Step) else step.extents
