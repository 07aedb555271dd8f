"""A program that is another one each time it is called."""

import itertools

import torch

CALLS = itertools.count(1)
example_inputs = (torch.ones(4),)


def differs(x: torch.Tensor) -> torch.Tensor:
    """`x` times the number of calls so far."""
    return x * next(CALLS)
