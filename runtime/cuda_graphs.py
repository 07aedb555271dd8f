"""A program's launches, recorded once as a CUDA graph and replayed with other numbers in the same places.

A call copies its inputs to the places that the graph reads, replays it, and copies the results out: they are
the caller's, and the next call does not change them. Recording uses torch's own graphs and pool of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import UsageError

WARM_UP = 2
"""Calls before recording: they load the kernels, which cannot be recorded."""


class GraphedCalls:
    """Calls `run` by replaying it; arguments must be like those that it was recorded with.

    Those at the positions `constant` are the program's own and are not copied: they must stay in place.
    """

    def __init__(
        self,
        run: Callable[..., Sequence[Any]],
        arguments: Sequence[Any],
        constant: Sequence[int] = (),
    ):
        """Record `run` on tensors like `arguments`, on the GPU that they live on."""
        import torch

        self._torch = torch
        self._constant = frozenset(constant)
        device = next((a.device for a in arguments if a.device.type == "cuda"), None)
        if device is None:
            raise UsageError("only calls on a GPU can be recorded: the arguments live on the CPU")
        self._places = [
            a if i in self._constant else a.detach().clone(memory_format=torch.contiguous_format)
            for i, a in enumerate(arguments)
        ]
        side = torch.cuda.Stream(device)
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARM_UP):
                run(*self._places)
        torch.cuda.current_stream(device).wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            self._results = tuple(run(*self._places))

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        """The results for `arguments`. Raises UsageError if they are not like those recorded."""
        if len(arguments) != len(self._places):
            raise UsageError(
                f"recorded with {len(self._places)} arrays, called with {len(arguments)}"
            )
        for position, (place, value) in enumerate(zip(self._places, arguments, strict=True)):
            if position in self._constant:
                if value.data_ptr() != place.data_ptr():
                    raise UsageError(
                        f"array {position} is the program's own and has moved since the graph was recorded; "
                        "record it again"
                    )
                continue
            if (value.shape, value.dtype, value.device) != (place.shape, place.dtype, place.device):
                raise UsageError(
                    f"array {position} is {_said(value)}, the graph was recorded with {_said(place)}"
                )
            place.copy_(value)
        self._graph.replay()
        return tuple(result.clone() for result in self._results)

    def replay(self) -> None:
        """Replay on the numbers of the last call; the results stay in the graph's own memory."""
        self._graph.replay()


def _said(value: Any) -> str:
    return f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)} on {value.device}"
