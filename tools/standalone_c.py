"""`deplo compile --ir c --standalone`: the C of a program with a `main` that runs, checks and times it.

Its arguments, and what is compared with PyTorch, are those of the CUDA source (`standalone.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template

import torch

from ..codegen.c_helpers import C_TYPES
from ..codegen.c_printer import c_source
from ..frontend.sources import Program as Source
from ..program import Program
from ..runtime.plan import Plan
from ..runtime.plan_parts import ITEM_BYTES, Array
from .standalone import Expected, listed_elements, prepare, samples_of

TEMPLATE = Path(__file__).with_name("standalone.c.in")


def standalone_c_source(program: Program, source: Source, origin: str) -> str:
    """The C file for a program compiled for the CPU; writes other numbers into its inputs and parameters.

    `origin` is what the program was called on the command line. Raises DeploError for a program that C cannot
    say, UsageError for arguments that are too large to list.
    """
    code = c_source(program.stage("c"))
    tensors, placed, expected = prepare(program, source)
    return write_c_source(program.plan, code, tensors, placed, expected, origin)


def write_c_source(
    plan: Plan,
    code: str,
    tensors: Sequence[torch.Tensor],
    placed: set[int],
    expected: Mapping[int, Expected],
    origin: str,
) -> str:
    """The functions `code`, then a `main` that calls the last one, `program`, on `tensors`.

    Those that are `placed` hold `placed_values`. Raises UsageError if another one is too large to list.
    """
    arrays = [argument.array for argument in plan.arguments]
    lists = [
        f"static const {C_TYPES[arrays[i].dtype]} listed_{i}[] = {{{listed_elements(i, arrays[i], tensor)}}};"
        for i, tensor in enumerate(tensors)
        if i not in placed
    ]
    arguments = [_argument(i, array, i in placed) for i, array in enumerate(arrays)]
    results = [plan.array(ref) for ref in plan.results]
    arguments += [
        f"    void *result_{i} = allocate({array.nbytes}); // {array}"
        for i, array in enumerate(results)
    ]
    passed = [f"argument_{i}" for i in range(len(arrays))]
    passed += [f"result_{i}" for i in range(len(results))]
    comparisons = [
        _comparison(i, array, expected[i]) for i, array in enumerate(results) if i in expected
    ]
    return Template(TEMPLATE.read_text(encoding="utf-8")).substitute(
        origin=origin.encode("unicode_escape").decode().replace("`", "'"),
        kernels=code,
        lists="\n".join(lists),
        arguments="\n".join(arguments),
        passed=", ".join(passed),
        comparisons="\n".join(comparisons),
    )


def _argument(index: int, array: Array, is_placed: bool) -> str:
    count = array.nbytes // ITEM_BYTES[array.dtype]
    if is_placed:
        made = f"placed({index}, {count}, {array.dtype.upper()})"
    else:
        made = f"listed({array.nbytes}, listed_{index})"
    return f"    void *argument_{index} = {made}; // {array}"


def _comparison(index: int, array: Array, expected: Expected) -> str:
    rows = samples_of(expected)
    if not rows:
        return f"    // result {index} is empty"
    listed = ", ".join(rows)
    return (
        f"    {{ static const struct sample samples[] = {{{listed}}}; "
        f"wrong += compare({index}, result_{index}, {array.dtype.upper()}, samples, {len(rows)}); }}"
    )
