"""Calls of a plan that need no PyTorch: a size that a kernel found, and loops and choices by data.

    deplo.size.default(count)                               as many elements, not set, as `count` says
    deplo.cond.default(predicate, if_true, if_false, ...)   what one of two plans gives (`part_calls.py`)
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..errors import CheckError, DeploError
from .arrays import Library, is_like
from .part_calls import SIZE, Program, parts_of, run_parts
from .plan_parts import Array, CallStep, Ref, references

Resolve = Callable[[Any], Any]
"""Gives an argument, of all arrays of a plan."""


class BoundCall(ABC):
    """A step with everything settled but its arrays, which it finds in a container, each by its key."""

    def __init__(
        self, step: CallStep, key: Callable[[Ref], Any], array: Callable[[Ref], Array] | None
    ):
        """`array` says what a result has to be, if anything does."""
        self.step = step
        self.inputs = [key(ref) for ref in references([*step.arguments.values()])]
        self.results = [key(ref) for ref in step.results]
        self.expected = None if array is None else [array(ref) for ref in step.results]

    @abstractmethod
    def run(self, tensors: Any, given: Sequence[Any] | None = None) -> Sequence[Any]:
        """Run the call; each result, or a copy of it, takes the place of its array.

        `given` is what the call gave before, if it is not to run again. Gives what the call gave. What fails
        raises what it raises in eager. Raises DeploError for other results than the plan says.
        """


class OwnCall(BoundCall):
    """A call that the runtime makes itself, on arrays of any library."""

    def __init__(
        self,
        step: CallStep,
        library: Library,
        key: Callable[[Ref], Any] = lambda ref: ref,
        array: Callable[[Ref], Array] | None = None,
        programs: Mapping[str, Program] | None = None,
    ):
        """`programs` are the plan's parts."""
        super().__init__(step, key, array)
        self._library = library
        self._operator = run_parts(step, programs or {}) if parts_of(step) else self._sized
        self._keywords = {name: _resolver(v, key) for name, v in step.arguments.items()}

    def run(self, tensors: Any, given: Sequence[Any] | None = None) -> Sequence[Any]:
        """See `BoundCall.run`."""
        made = given
        if made is None:
            made = self._operator(**{name: get(tensors) for name, get in self._keywords.items()})
        if self.expected is not None:
            self._check(made, self.expected)
        others = [tensors[key] for key in self.inputs]
        for result, key in zip(made, self.results, strict=True):
            is_new = given is None and all(result is not other for other in others)
            tensors[key] = result if is_new else self._library.copy(result)
            others.append(result)
        return made

    def _sized(self, count: Any) -> Sequence[Any]:
        return [self._library.empty(Array("i8", (int(count.item()),)))]

    def _check(self, made: Sequence[Any], expected: Sequence[Array]) -> None:
        """Raise unless results are as the plan says."""
        if len(made) == len(expected) and all(map(is_like, made, expected)):
            return
        if self.step.operator == SIZE:
            (size,), (other,) = expected[0].shape, made[0].shape
            raise CheckError(f"two sizes that the program needs to be equal are {size} and {other}")
        got = [f"{value.dtype}{list(value.shape)}" for value in made]
        raise DeploError(
            f"{self.step.operator} gave {', '.join(got)} where the program was compiled for "
            f"{', '.join(map(str, expected))}"
        )


def is_own(step: CallStep) -> bool:
    """Whether the runtime makes a call itself."""
    return step.operator == SIZE or bool(parts_of(step))


def _resolver(value: Any, key: Callable[[Ref], Any]) -> Resolve:
    """What gives an argument of a call, of which all is known but the arrays."""
    if isinstance(value, Ref):
        place = key(value)
        return lambda tensors: tensors[place]
    if isinstance(value, list):
        items = [_resolver(item, key) for item in cast(list[Any], value)]
        return lambda tensors: [resolve(tensors) for resolve in items]
    return lambda tensors: value
