"""`torch.compile(model, backend="deplo")`.

PyTorch finds the backend by the entry point `torch_dynamo_backends`. Dynamo traces the model,
AOTAutograd makes functional graphs of ATen operators of it, forward and backward, and each of them is
compiled like any other program of deplo.

As `torch.compile` promises to run any model, operators that deplo does not support run in PyTorch, between
the kernels, and a FallbackWarning says which do, once; with `options={"fallback": "error"}` they are an
error. `DEPLO_LOGS` has topics, separated by commas: `graphs` says what each graph became, `recompiles` why
Dynamo traced a function again.
"""

from __future__ import annotations

import functools
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.exc import RestartAnalysis
from torch._functorch._aot_autograd.utils import make_boxed_func
from torch._guards import CompileContext
from torch._logging import set_logs  # pyright: ignore[reportPrivateImportUsage]
from torch._ops import HigherOrderOperator
from torch.nn.attention import SDPBackend, sdpa_kernel

from .analysis.eager_calls import summary
from .dialects.sizes import UndecidedSize
from .errors import DeploError, FallbackWarning, UnsupportedOpError, UsageError, counted
from .frontend.assignments import assign_by_positions
from .frontend.aten_graph import capture_graph
from .frontend.attention import expand_attention
from .frontend.composites import replace_composites
from .frontend.counter_random import COUNTER_RULES, save_seeds
from .frontend.counter_random import REASON as SEED
from .frontend.decompositions import decompositions
from .frontend.devices import SeveralDevices
from .frontend.eager_checks import RefusedByEager, asking_first, is_refused_by_eager
from .frontend.eager_strides import with_eager_strides
from .frontend.experts import grouped_products
from .frontend.export_errors import reason_of
from .frontend.fixed_point import in_fixed_point
from .frontend.gradients import training_decompositions
from .frontend.importer import Fallback
from .frontend.margins import replace_margin_losses
from .frontend.numbers import with_numbers_carried
from .frontend.saved_values import save_before_change
from .frontend.scans import partition
from .frontend.view_inputs import permuted, read_as_they_lie
from .program import Program, choose_target
from .runtime.sizes import Size

MODES = ("default", "reduce-overhead", "max-autotune", "max-autotune-no-cudagraphs")
"""The modes that `torch.compile` documents; deplo compiles alike in all of them."""

OPTIONS: dict[str, tuple[object, ...]] = {
    "fallback": ("eager", "error"),
    "random": ("eager", "counter"),
}
"""Each option and the values it may have; the first is the default."""

TOPICS = ("graphs", "recompiles")
"""What `DEPLO_LOGS` may name."""

Boxed = Callable[[list[Any]], list[Any]]


def deplo_backend(
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    mode: str | None = None,
    options: Mapping[str, Any] | None = None,
) -> Callable[..., Any]:
    """Compile what Dynamo traced. Raises UsageError for a mode or an option that is unknown.

    With the option `fallback="error"`, what deplo does not support surfaces as PyTorch's
    `BackendCompilerFailed` with deplo's message.
    """
    given = options or {}
    _check(mode, given)
    if "recompiles" in log_topics():
        set_logs(recompiles=True)
    if any(map(in_fixed_point, graph.graph.nodes)):
        _warn(
            "deplo: a graph runs in PyTorch: a resized image of uint8, which eager makes in fixed point"
        )
        return _run_in_pytorch(graph, example_inputs)
    fallback = given.get("fallback", OPTIONS["fallback"][0])
    replace_margin_losses(graph)
    replace_composites(graph)
    expand_attention(graph)
    assign_by_positions(graph)
    compiled: list[torch.fx.GraphModule] = []

    def compiler(traced: torch.fx.GraphModule, inputs: Sequence[Any], **options: Any) -> Boxed:
        compiled.append(traced)
        return _compile(fallback, traced, inputs, **options)

    calls_pytorch = fallback == "eager"
    rules = decompositions() | training_decompositions(calls_pytorch=calls_pytorch)
    rules |= grouped_products(calls_pytorch=calls_pytorch)
    if given.get("random") == "counter":
        rules |= {op: with_eager_strides(op, rule) for op, rule in COUNTER_RULES.items()}
    forward = functools.partial(compiler, shares_memory=True)
    aot = aot_autograd(
        fw_compiler=forward,
        bw_compiler=compiler,
        inference_compiler=forward,
        partition_fn=_partition,
        decompositions=asking_first(rules),
        keep_inference_input_mutations=True,
    )
    try:
        with _attention_in_products(example_inputs):
            return aot(graph, example_inputs)
    except _RunsInPyTorch:
        return _run_in_pytorch(graph, example_inputs)
    except RefusedByEager:
        _warn("deplo: a graph runs in PyTorch, which refuses a call in it")
        return _run_in_pytorch(graph, example_inputs)
    except Exception as error:
        known = isinstance(error, (DeploError, RestartAnalysis))
        if compiled or fallback == "error" or known:
            raise
        _warn(f"deplo: a graph runs in PyTorch, which cannot trace it: {reason_of(error)}")
        return _run_in_pytorch(graph, example_inputs)


def _partition(joint: torch.fx.GraphModule, inputs: Any, **options: Any) -> Any:
    """Cut a graph into forward and backward; seeds are saved, and inputs as they were before a change."""
    save_seeds(joint)
    forward, backward = partition(joint, inputs, **options)
    save_before_change(forward, options["num_fwd_outputs"])
    return forward, backward


def _attention_in_products(example_inputs: Sequence[Any]) -> AbstractContextManager[Any]:
    """Have PyTorch trace attention on a GPU as products and a softmax, as long as this lasts.

    Its own kernels for it are operators with results that are no tensors, or that need memory aligned as
    only PyTorch's own padding makes it.
    """
    if any(isinstance(value, torch.Tensor) and value.is_cuda for value in example_inputs):
        return sdpa_kernel(SDPBackend.MATH)
    return nullcontext()


def _run_in_pytorch(
    graph: torch.fx.GraphModule, example_inputs: Sequence[Any]
) -> Callable[..., Any]:
    """Return a callable that has PyTorch run all of what Dynamo traced.

    Dynamo's own graph does not keep the generator's state for what a checkpoint computes again: PyTorch's
    partitioner does. Nor can all other calls of functions on functions be differentiated as they stand there.
    """
    nodes = (
        n for m in graph.modules() if isinstance(m, torch.fx.GraphModule) for n in m.graph.nodes
    )
    if not any(isinstance(node.target, HigherOrderOperator) for node in nodes):
        return graph.forward
    eager = aot_autograd(
        fw_compiler=lambda traced, _: make_boxed_func(traced.forward),
        partition_fn=_partition,
    )
    return eager(graph, example_inputs)


class _RunsInPyTorch(Exception):
    """PyTorch runs all of a graph: what Dynamo traced, as its operators make many of each that are slower."""


def log_topics() -> frozenset[str]:
    """What the environment variable DEPLO_LOGS asks for; raises UsageError for a topic that there is not."""
    named = [topic.strip() for topic in os.environ.get("DEPLO_LOGS", "").split(",")]
    topics = frozenset(filter(None, named))
    if unknown := sorted(topics - set(TOPICS)):
        raise UsageError(
            f"DEPLO_LOGS names {', '.join(unknown)}; topics are {', '.join(TOPICS)}, separated by commas"
        )
    return topics


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


def _compile(
    fallback: Fallback,
    graph: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    shares_memory: bool = False,
) -> Boxed:
    """Compile one graph of ATen operators, of a program that returns views or of its gradients."""
    if shares_memory and is_refused_by_eager(graph.graph):
        raise RefusedByEager
    started = time.perf_counter()
    orders = {} if shares_memory else read_as_they_lie(graph.graph)
    try:
        captured = capture_graph(graph, fallback, shares_memory=shares_memory)
        program = Program(captured, choose_target("auto", captured))
    except (UnsupportedOpError, SeveralDevices, UndecidedSize) as error:
        if fallback == "error":
            raise
        nodes = [node for node in graph.graph.nodes if node.op == "call_function"]
        operators = counted(len(nodes), "operator")
        _warn(f"deplo: a graph of {operators} runs in PyTorch: {error}")
        if shares_memory:  # it is a forward pass, and Dynamo's graph can still take its place
            raise _RunsInPyTorch from None
        graph.recompile()
        return make_boxed_func(lambda *inputs: graph.forward(*permuted(inputs, orders)))
    calls = tuple(each for each in program.fallbacks if each.reason != SEED)
    if (told := summary(calls)) is not None:
        _warn(told)
    if "graphs" in log_topics():
        _log_graph(graph, program, time.perf_counter() - started)
    ones = functools.cache(lambda: _for_ones(fallback, graph, shares_memory=shares_memory))
    places = _places_of_sizes(program)
    if captured.numbers or captured.read or places:
        graph.recompile()  # for inputs that the program does not hold for

    def run(*given: Any) -> list[Any]:
        lying = permuted(given, orders)
        is_sized = all(size.at(lying[at].shape[size.axis]) is not None for at, size in places)
        chosen = program if is_sized else ones()
        if chosen is None:
            return graph.forward(*lying)
        numbers, read = chosen.captured.numbers, chosen.captured.read
        inputs = with_numbers_carried(lying, numbers) if numbers else lying
        if inputs is None or not all(each.fits(lying) for each in read):
            return graph.forward(*lying)
        return chosen.run_flat(inputs)

    return make_boxed_func(run)


def _for_ones(
    fallback: Fallback, graph: torch.fx.GraphModule, *, shares_memory: bool
) -> Program | None:
    """The program of a graph for sizes that may be 1; None if there is none.

    Dynamo's guards keep these from a graph that is for sizes from 2 on, unless they were dropped
    (`torch.compiler.skip_all_guards_unsafe`, as vLLM does).
    """
    try:
        captured = capture_graph(graph, fallback, shares_memory=shares_memory, from_one=True)
        return Program(captured, choose_target("auto", captured))
    except (UnsupportedOpError, UndecidedSize):
        return None


def _places_of_sizes(program: Program) -> list[tuple[int, Size]]:
    """The inputs whose shapes say sizes of a program, by position; numbers say theirs themselves."""
    captured = program.captured
    numbers = {each.position for each in captured.numbers}
    said = ((captured.arguments[s.argument], s) for s in program.plan.sizes if s.argument is not None)
    return [
        (argument.flat_index, size)
        for argument, size in said
        if argument.flat_index is not None and argument.flat_index not in numbers
    ]


def _log_graph(graph: torch.fx.GraphModule, program: Program, seconds: float) -> None:
    """Say what a graph became, and how long that took."""
    kernels, calls = len(program.kernels), sum(len(each.where) for each in program.fallbacks)
    print(
        f"deplo: graph {CompileContext.current_compile_id()}: "
        f"{counted(len(graph.graph.nodes), 'node')}, {counted(kernels, 'kernel')}, "
        f"{counted(calls, 'call')} of PyTorch, {seconds:.2f} s",
        file=sys.stderr,
    )


@functools.cache
def _warn(told: str) -> None:
    """Say what runs in PyTorch, once in a process: a function that is compiled again has it again."""
    warnings.warn(told, FallbackWarning, stacklevel=2)
