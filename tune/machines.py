"""What a worker needs of the machine that it measures on: inputs there, turns of programs, and their time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from ..runtime.arrays import TORCH_DTYPES
from ..runtime.plan import Plan
from ..runtime.plan_parts import Array
from ..runtime.sizes import static

Inputs = Sequence[Sequence[torch.Tensor]]
"""Sets of arguments that calls take in turn."""

Run = Callable[..., Sequence[Any]]
"""A compiled program."""

Turn = Callable[[], float]
"""Some calls of a program, one after the other: gives the seconds of one."""


class Machine(Protocol):
    """The CPU, or a GPU."""

    def inputs(self, plan: Plan, *, positive: bool) -> Inputs:
        """Sets of random inputs that together are larger than what a kernel finds in its caches."""
        ...

    def turns(self, programs: Sequence[Run], inputs: Inputs) -> list[Turn]:
        """A turn of each program, which is warm then; the calls of all take the inputs in turn."""
        ...

    def is_lost(self) -> bool:
        """Whether nothing can be run any more in this process."""
        ...


def random_sets(arrays: Sequence[Array], copies: int, device: str, *, positive: bool) -> Inputs:
    """So many sets of random arrays, the same in every process.

    They are of the normal distribution, or `positive`, from 0.5 to 1.5, as variances and what is divided by.
    """
    generator = torch.Generator(device).manual_seed(0)
    draw = _around_one if positive else torch.randn
    return [[_random(array, draw, generator) for array in arrays] for _ in range(copies)]


def _around_one(
    shape: Sequence[int], *, generator: torch.Generator, device: torch.device
) -> torch.Tensor:
    return torch.rand(shape, generator=generator, device=device) + 0.5


def _random(
    array: Array, draw: Callable[..., torch.Tensor], generator: torch.Generator
) -> torch.Tensor:
    dtype: torch.dtype = getattr(torch, TORCH_DTYPES[array.dtype])
    shape = [static(extent) for extent in array.shape]
    device = generator.device
    if dtype.is_floating_point:
        return draw(shape, generator=generator, device=device).to(dtype)
    return torch.randint(0, 2, shape, generator=generator, device=device).to(dtype)
