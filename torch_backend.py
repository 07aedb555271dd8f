"""`torch.compile(model, backend="deplo")`.

PyTorch finds the backend by the entry point `torch_dynamo_backends`. Dynamo traces the model,
AOTAutograd makes functional graphs of ATen operators of it, forward and backward, and each of them is
compiled like any other program of deplo.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch._aot_autograd.utils import make_boxed_func

from .errors import UsageError
from .frontend.aten_graph import capture_graph
from .frontend.decompositions import decompositions
from .frontend.gradients import training_decompositions
from .program import Program, choose_target

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""The modes that `torch.compile` documents; deplo compiles alike in all of them."""

OPTIONS: dict[str, tuple[object, ...]] = {}
"""Each option and the values it may have."""

Boxed = Callable[[list[Any]], list[Any]]


def deplo_backend(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile what Dynamo traced. Raises UsageError for a mode or an option that is unknown.

    What deplo does not support surfaces as PyTorch's `BackendCompilerFailed` with deplo's message.
    """
    _check(mode, options or {})
    compiler = aot_autograd(
        fw_compiler=_compile,
        bw_compiler=_compile,
        inference_compiler=_compile,
        decompositions=decompositions() | training_decompositions(),
    )
    return compiler(graph, example_inputs)


def _check(mode: str | None, options: Mapping[str, Any]) -> None:
    if mode is not None and mode not in MODES:
        raise UsageError(f"mode={mode!r} is unknown; modes are {', '.join(MODES)}")
    for name, value in options.items():
        if name not in OPTIONS:
            known = ", ".join(OPTIONS) or "none"
            raise UsageError(f"option {name!r} is unknown; options of backend 'deplo': {known}")
        if value not in OPTIONS[name]:
            allowed = ", ".join(map(repr, OPTIONS[name]))
            raise UsageError(f"option {name}={value!r}: must be one of {allowed}")


def _compile(graph: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> Boxed:
    """Compile one graph of ATen operators."""
    (returned,) = graph.graph.output_node().args
    restride = [_layout(node) for node in returned]  # type: ignore[union-attr]
    captured = capture_graph(graph)
    program = Program(captured, choose_target("auto", captured))

    def run(*inputs: Any) -> list[Any]:
        return [
            value if layout is None else layout(value)
            for value, layout in zip(program.run_flat(inputs), restride, strict=True)
        ]

    return make_boxed_func(run)


def _layout(node: object) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """What gives a result the strides that it has in PyTorch, or None where they are row-major.

    Results have them already unless PyTorch leaves gaps between elements, or repeats them.
    """
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or any(isinstance(n, torch.SymInt) for n in value.shape):
        return None
    if value.is_contiguous():
        return None
    shape, strides = value.shape, value.stride()
    repeated = [axis for axis, stride in enumerate(strides) if stride == 0]

    def laid_out(result: torch.Tensor) -> torch.Tensor:
        if result.stride() == strides:
            return result
        for axis in repeated:
            result = result.narrow(axis, 0, min(shape[axis], 1))
        made = torch.empty_strided(result.shape, strides, dtype=result.dtype, device=result.device)
        return made.copy_(result).expand(shape)

    return laid_out
