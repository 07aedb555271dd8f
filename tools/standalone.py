"""`deplo compile --standalone`: kernels with a host program around them that a plain `nvcc k.cu` builds.

The host program fills the arguments, launches every kernel of the plan, compares the results with PyTorch's
and times the launches. Floating-point arguments are not written down: they are numbers that a short function
makes of their place, the same in C++ and in Python (`placed_values`); integers, bools and buffers of the
model are listed. Of each result some elements are compared, with what PyTorch computes in float64.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
import torch
from torch.utils import _pytree as pytree

from ..analysis.roundings import roundings
from ..errors import UsageError
from ..frontend.capture import Argument, Captured
from ..frontend.sources import Program as Source
from ..program import Program
from ..runtime.plan import Plan
from ..runtime.plan_parts import ITEM_BYTES, Array, Kernel, Ref, Step
from ..runtime.sizes import static
from ..runtime.tensor_maps import describe
from .judge import error_bound, float64_reference

TEMPLATE = Path(__file__).with_name("standalone.cu.in")

MAX_LISTED = 1 << 16
"""Elements of an argument that are listed in the source, at most."""

SAMPLES = 64
"""Elements of each result that are compared."""

C_TYPES = {
    "i1": "unsigned char",
    "i8": "signed char",
    "ui8": "unsigned char",
    "i16": "short",
    "i32": "int",
    "i64": "long long",
    "f16": "unsigned short",
    "bf16": "unsigned short",
    "tf32": "unsigned",
    "f32": "float",
    "f64": "double",
}
"""The type in which a listed element is written: halves as their bits."""


def placed_values(argument: int, count: int) -> torch.Tensor:
    """An argument's first `count` numbers: in [-1, 1), multiples of 1/64, which every dtype holds exactly."""
    with np.errstate(over="ignore"):
        z = np.arange(count, dtype=np.uint64) + np.uint64((argument + 1) << 40)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    steps = ((z ^ (z >> np.uint64(31))) >> np.uint64(57)).astype(np.float64)
    return torch.from_numpy(steps / 64 - 1)


def place_values(captured: Captured, flat: Sequence[Any]) -> set[int]:
    """Write `placed_values` into the floating-point inputs and parameters of a program, in place.

    Gives the positions of the arguments that hold them; the others keep their values.
    """
    placed: set[int] = set()
    for position, argument in enumerate(captured.arguments):
        tensor = tensor_of(captured, argument, flat)
        if argument.source in ("buffer", "constant") or not tensor.is_floating_point():
            continue
        if any(s == 0 and n > 1 for s, n in zip(tensor.stride(), tensor.shape, strict=True)):
            continue  # elements that share memory
        with torch.no_grad():
            tensor.copy_(placed_values(position, tensor.numel()).reshape(tensor.shape))
        placed.add(position)
    return placed


def tensor_of(captured: Captured, argument: Argument, flat: Sequence[Any]) -> torch.Tensor:
    """The tensor that an argument stands for; `flat` are the program's inputs."""
    if argument.flat_index is None:
        return captured.tensors[argument.name]
    return flat[argument.flat_index]


@dataclass(frozen=True)
class Expected:
    """What PyTorch computes, and how far from it each element of the result with that number may be."""

    values: torch.Tensor
    slack: torch.Tensor


def expected_results(captured: Captured, source: Source, reduction: int) -> dict[int, Expected]:
    """What PyTorch computes for the results of a program's plan, in float64 if it can, by number.

    `reduction` is the length of the longest reduction of the program.
    """
    with torch.no_grad():
        eager = pytree.tree_leaves(source.program(*source.args, **source.kwargs))
    exact: list[Any] = eager
    wide = float64_reference(source.program, source.args, source.kwargs)
    if wide is not None:
        exact = pytree.tree_leaves(wide)
    flat = pytree.tree_leaves((tuple(source.args), dict(source.kwargs)))
    arguments = [
        captured.tensors[a.name] if a.flat_index is None else flat[a.flat_index]
        for a in captured.arguments
    ]
    found: dict[int, Expected] = {}
    for output, narrow, value in zip(captured.outputs, eager, exact, strict=True):
        if output.source != "result" or output.index is None or not torch.is_tensor(narrow):
            continue
        result = output.source_of(value, arguments)
        if result is None:
            continue
        doubles = result.detach().double().contiguous()
        slack = torch.zeros_like(doubles)
        if narrow.is_floating_point():
            slack = error_bound(doubles, narrow.dtype, reduction)
        found[output.index] = Expected(doubles, slack)
    return found


def standalone_source(program: Program, source: Source, origin: str) -> str:
    """The source for a program compiled for a GPU; writes other numbers into its inputs and parameters.

    `origin` is what the program was called on the command line. Raises UsageError for a program that needs
    more than its kernels.
    """
    if program.plan.calls:
        raise UsageError(
            f"--standalone: PyTorch runs a part of this program ({program.plan.calls[0].operator})"
        )
    if program.plan.loops:
        raise UsageError(
            "--standalone: a recurrent network is a loop of launches, which it does not write"
        )
    return write_source(program.plan, *prepare(program, source), origin)


def prepare(
    program: Program, source: Source
) -> tuple[list[torch.Tensor], set[int], dict[int, Expected]]:
    """A program's arguments, which of them hold `placed_values` now, and what PyTorch computes from them."""
    captured = program.captured
    if captured.updates:
        raise UsageError("--standalone: this program changes its arguments in place")
    if captured.complex_arguments or captured.complex_results:
        raise UsageError("--standalone: this program takes or gives complex numbers")
    flat = captured.flatten_inputs(source.args, source.kwargs)
    placed = place_values(captured, flat)
    tensors = [tensor_of(captured, argument, flat) for argument in captured.arguments]
    expected = expected_results(captured, source, roundings(program.stage("loop")))
    return tensors, placed, expected


def write_source(
    plan: Plan,
    tensors: Sequence[torch.Tensor],
    placed: set[int],
    expected: Mapping[int, Expected],
    origin: str,
) -> str:
    """The kernels of `plan`, then the host program that launches them on `tensors`.

    Those that are `placed` hold `placed_values`. Raises UsageError if another one is too large to list.
    """
    plan = plan.at([tuple(t.shape) for t in tensors])
    kernels = "\n".join(kernel.source for kernel in plan.kernels)
    lists = [
        _listed(i, plan.arguments[i].array, tensor)
        for i, tensor in enumerate(tensors)
        if i not in placed
    ]
    body = [_argument(i, a.array, i in placed) for i, a in enumerate(plan.arguments)]
    body += [f"    char *arena = device({plan.arena_bytes or 0}, 0);"] * any(
        b.offset is not None for b in plan.buffers
    )
    for i, buffer in enumerate(plan.buffers):
        where = f"device({buffer.array.nbytes}, 0)"
        if buffer.offset is not None:
            where = f"arena + {static(buffer.offset)}"
        body.append(f"    char *buffer_{i} = {where};  // {buffer.array}")
    body += [_tensor_map(plan, i) for i in range(len(plan.tensor_maps))]
    body += ["    for (int round = 0; round <= ROUNDS; ++round) {"]
    named = {kernel.name: kernel for kernel in plan.kernels}
    body += [_launch(step, named[step.kernel]) for step in plan.launches]
    body += ["    }", '    check(cudaDeviceSynchronize(), "running the kernels");', "    report();"]
    body += [
        _comparison(i, ref, plan, value)
        for i, ref in enumerate(plan.results)
        if (value := expected.get(i)) is not None
    ]
    template = Template(TEMPLATE.read_text(encoding="utf-8"))
    return template.substitute(
        origin=origin.encode("unicode_escape").decode().replace("`", "'"),
        architecture=plan.target,
        kernels=kernels,
        lists="\n".join(lists),
        body="\n".join(body),
    )


def _name(ref: Ref) -> str:
    return f"{ref.kind}_{ref.index}"


def _listed(index: int, array: Array, tensor: torch.Tensor) -> str:
    """An argument as an array of C."""
    listed = listed_elements(index, array, tensor)
    return f"static const {C_TYPES[array.dtype]} listed_{index}[] = {{{listed}}};"


def listed_elements(index: int, array: Array, tensor: torch.Tensor) -> str:
    """The elements of an argument, as C writes them. Raises UsageError if they are too many."""
    if tensor.numel() > MAX_LISTED:
        raise UsageError(
            f"--standalone: argument {index} has {tensor.numel()} elements of {array.dtype}, more than the "
            f"{MAX_LISTED} that are listed in a source"
        )
    flat = tensor.detach().reshape(-1).cpu()
    if array.dtype in ("f16", "bf16"):
        texts = [str(int(bits) & 0xFFFF) for bits in flat.view(torch.int16)]
    elif array.dtype in ("f32", "f64"):
        texts = [_literal(float(value)) for value in flat]
    else:
        texts = [f"{int(value)}" + "LL" * (array.dtype == "i64") for value in flat]
    return ", ".join(texts) or "0"


def _literal(value: float) -> str:
    if value != value:
        return "NAN"
    if value in (float("inf"), float("-inf")):
        return "INFINITY" if value > 0 else "-INFINITY"
    return value.hex()


def _argument(index: int, array: Array, placed: bool) -> str:
    count = array.nbytes // ITEM_BYTES[array.dtype]
    if placed:
        made = f"placed({index}, {count}, {array.dtype.upper()})"
    else:
        made = f"device({array.nbytes}, listed_{index})"
    return f"    char *argument_{index} = {made};  // {array}"


def _tensor_map(plan: Plan, index: int) -> str:
    told = plan.tensor_maps[index]
    numbers = describe(plan.array(told.of), told)
    lists = (
        "{" + (", ".join(map(str, values)) or "0") + "}"
        for values in (numbers.dims, numbers.strides, numbers.box)
    )
    return (
        f"    CUtensorMap tensor_map_{index} = describe({_name(told.of)}, "
        f"CU_TENSOR_MAP_DATA_TYPE_{numbers.data_type}, {len(numbers.dims)}, {', '.join(lists)}, "
        f"CU_TENSOR_MAP_SWIZZLE_{numbers.swizzle});"
    )


def _launch(step: Step, kernel: Kernel) -> str:
    passed = [f"&{_name(ref)}" for ref in step.arguments]
    type = "int" if kernel.size_bits == 32 else "long long"
    sizes = [f"{type} size_{i} = {static(size)}; " for i, size in enumerate(step.sizes)]
    passed += [f"&size_{i}" for i in range(len(step.sizes))]
    if not static(step.blocks):
        return f"        // {step.kernel} has no block to run"
    return (
        f"        {{ {''.join(sizes)}void *passed[] = {{{', '.join(passed)}}}; "
        f'launch("{step.kernel}", (const void *){step.kernel}, {static(step.blocks)}, {step.threads}, '
        f"{kernel.shared_bytes}, passed, round); }}"
    )


def samples_of(expected: Expected) -> list[str]:
    """Elements of a result spread over all of it: place, value and how far from it is right."""
    flat = expected.values.reshape(-1)
    slack = expected.slack.reshape(-1)
    count = flat.numel()
    if not count:
        return []
    places = sorted({round(i * (count - 1) / max(SAMPLES - 1, 1)) for i in range(SAMPLES)})
    return [f"{{{p}, {_literal(float(flat[p]))}, {_literal(float(slack[p]))}}}" for p in places]


def _comparison(index: int, ref: Ref, plan: Plan, expected: Expected) -> str:
    rows = samples_of(expected)
    array = plan.array(ref)
    if not rows:
        return f"    // result {index} is empty"
    count = expected.values.numel()
    return (
        f"    {{ static const Sample samples[] = {{{', '.join(rows)}}}; "
        f"wrong += compare({index}, {_name(ref)}, {count}, {array.dtype.upper()}, samples, {len(rows)}); }}"
    )
