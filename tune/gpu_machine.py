"""PyTorch's current GPU, as a worker measures on it.

A turn is replays of a CUDA graph of some calls, between two events: what Python takes for a call, it does
not see. Where inputs take turns, each call has results of its own, so nothing lies in the L2 cache when it
is read or written; where they do not, results take the same memory each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ..runtime.gpus import torch_with_gpu
from ..runtime.plan import Plan
from .machines import Inputs, Run, Turn, random_sets

CACHES = 8
"""Inputs take turns until they and the results have filled this many times the L2 cache."""

MAX_COPIES = 64
"""Sets of inputs, and calls of a graph, at most."""

GRAPH_SECONDS = 1e-3
"""A graph of calls on the same inputs has as many as take about this long, at least two."""

TURN_SECONDS = 4e-3
"""A turn is as many replays as take about this long."""

MAX_REPLAYS = 50
"""Replays of a turn at most."""


class GpuMachine:
    """Calls of a turn are timed together."""

    def __init__(self) -> None:
        self._torch = torch_with_gpu()

    def inputs(self, plan: Plan, *, positive: bool) -> Inputs:
        """Sets of random inputs that together are larger than the L2 cache."""
        arrays = [argument.array for argument in plan.arguments]
        results = [plan.array(ref) for ref in plan.results]
        bytes_of_set = max(sum(array.nbytes for array in (*arrays, *results)), 1)
        properties = self._torch.cuda.get_device_properties(self._torch.cuda.current_device())
        copies = -(-CACHES * properties.L2_cache_size // bytes_of_set)
        return random_sets(arrays, min(max(copies, 2), MAX_COPIES), "cuda", positive=positive)

    def turns(self, programs: Sequence[Run], inputs: Inputs) -> list[Turn]:
        """A turn of each program."""
        return [self._turn(program, inputs) for program in programs]

    def is_lost(self) -> bool:
        """Whether a kernel has failed: all that comes after it in this process fails, too."""
        try:
            self._torch.cuda.synchronize()
        except RuntimeError:
            return True
        return False

    def _turn(self, program: Run, inputs: Inputs) -> Turn:
        recorded = _Recorded(self._torch, program, inputs, max(len(inputs), 2))
        if len(inputs) == 1:
            calls = min(max(int(GRAPH_SECONDS / recorded.warm_seconds()), 2), MAX_COPIES)
            recorded = _Recorded(self._torch, program, inputs, calls)
        seconds = recorded.warm_seconds() * recorded.calls
        replays = min(max(int(TURN_SECONDS / seconds), 1), MAX_REPLAYS)
        return partial(recorded.seconds, replays)


class _Recorded:
    """Some calls of a program as a graph."""

    def __init__(self, torch: Any, program: Run, inputs: Inputs, calls: int):
        self.calls = calls
        self._graph = torch.cuda.CUDAGraph()
        self._begin, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self._results: list[Sequence[Any]] = []
        # What other threads compile meanwhile has nothing to do with this stream.
        with torch.cuda.graph(self._graph, capture_error_mode="thread_local"):
            for number in range(calls):
                results = program(*inputs[number % len(inputs)])
                if len(inputs) > 1:
                    self._results.append(results)

    def warm_seconds(self) -> float:
        """The seconds of a call once it was called before."""
        return min(self.seconds(1), self.seconds(1))

    def seconds(self, replays: int) -> float:
        """The seconds of a call in so many replays."""
        self._begin.record()
        for _ in range(replays):
            self._graph.replay()
        self._end.record()
        self._end.synchronize()
        return self._begin.elapsed_time(self._end) / 1000 / (replays * self.calls)
