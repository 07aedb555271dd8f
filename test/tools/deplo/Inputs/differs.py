"""A program that is another one each time it is called."""

import torch

CALLS: list[None] = []
example_inputs = (torch.ones(4),)


def differs(x: torch.Tensor) -> torch.Tensor:
    """`x` times the number of calls so far."""
    CALLS.append(None)
    return x * len(CALLS)
