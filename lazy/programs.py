"""From expressions to arrays: one module of Torch IR, one program, one call.

The programs are found by what the expressions say, whatever the arrays hold, so a step that is repeated is
compiled once. On disk they are kept like all programs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ..analysis.targets import get_target
from ..dialects.torch_syntax import TensorArgument
from ..program_stages import Compilation, asked_schedule, compile_module, module_at, text_of
from ..runtime.cpu import CpuProgram
from ..runtime.plan import Plan
from .expression import LEAF, Argument, Node, make_op, tensor_types

MAX_PROGRAMS = 512
"""Programs that are kept in memory; that which was not used for longest makes room."""


@dataclass
class LazyProgram:
    """What computes expressions of some structure from arrays."""

    module: ModuleOp

    def __post_init__(self) -> None:
        self.compilation = Compilation()

    @cached_property
    def plan(self) -> Plan:
        """The compiled program."""
        compiled = compile_module(
            self.module, get_target("cpu"), asked_schedule(None), self.compilation
        )
        return Plan.from_data(compiled.plan)

    @cached_property
    def executable(self) -> CpuProgram:
        """Its machine code."""
        return CpuProgram(self.plan)

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of its kernels."""
        return tuple(kernel.name for kernel in self.plan.kernels)

    def ir(self, stage: str) -> str:
        """The text of a stage: torch, tensor, loop, tile, llvm or asm. Raises UsageError for another."""
        return text_of(
            stage, module_at(stage, self.module, get_target("cpu"), asked_schedule(None))
        )


_PROGRAMS: OrderedDict[Any, LazyProgram] = OrderedDict()
_LOCK = threading.RLock()
"""Held while expressions are read and become leaves."""


def realize_nodes(outputs: Sequence[Node]) -> None:
    """Compute nodes, all in one program; each becomes a leaf."""
    with _LOCK:
        wanted = [node for node in dict.fromkeys(outputs) if node.array is None]
        if not wanted:
            return
        program, leaves = program_of(wanted)
        results = program.executable(*(node.array for node in leaves))
        for node, array in zip(wanted, results, strict=True):
            node.settle(array)


def program_of(outputs: Sequence[Node]) -> tuple[LazyProgram, list[Node]]:
    """The program that computes nodes, and the leaves whose arrays it takes."""
    with _LOCK:
        nodes = _in_order(outputs)
        numbers = {node: i for i, node in enumerate(nodes)}
        key = (*(_said(node, numbers) for node in nodes), *(numbers[node] for node in outputs))
        if key in _PROGRAMS:
            _PROGRAMS.move_to_end(key)
        else:
            _PROGRAMS[key] = LazyProgram(build_module(nodes, outputs))
            if len(_PROGRAMS) > MAX_PROGRAMS:
                _PROGRAMS.popitem(last=False)
        return _PROGRAMS[key], [node for node in nodes if node.operator == LEAF]


def _in_order(outputs: Sequence[Node]) -> list[Node]:
    """All nodes that the outputs are computed from, each after its sources."""
    found: dict[Node, None] = {}
    waiting = [(node, False) for node in reversed(outputs)]
    while waiting:
        node, is_ready = waiting.pop()
        if node in found:
            continue
        if is_ready:
            found[node] = None
            continue
        waiting.append((node, True))
        waiting += [(source, False) for source in reversed(list(node.sources))]
    return list(found)


def _said(node: Node, numbers: dict[Node, int]) -> Any:
    """What a node says, with numbers in the place of its sources."""

    def number(argument: Argument) -> Any:
        if isinstance(argument, tuple):
            return tuple(numbers[each] for each in argument)
        return argument and numbers[argument]

    arguments = tuple(map(number, node.arguments))
    return node.operator, arguments, repr(node.properties), node.shape, node.dtypes, node.index


def build_module(nodes: Sequence[Node], outputs: Sequence[Node]) -> ModuleOp:
    """The module of Torch IR whose `@main` takes the leaves among `nodes` and gives `outputs`."""
    block = Block()
    values: dict[Node, SSAValue] = {}
    made: dict[Any, Sequence[SSAValue]] = {}

    def tensor(argument: Argument) -> TensorArgument:
        if isinstance(argument, tuple):
            return [values[each] for each in argument]
        return argument and values[argument]

    for node in nodes:
        types = tensor_types(node.shape, node.dtypes)
        if node.operator == LEAF:
            values[node] = block.insert_arg(types[0], len(block.args))
            values[node].name_hint = f"x{len(block.args) - 1}"
            continue
        key = (node.operator, node.arguments, repr(node.properties), node.dtypes)
        if key not in made:
            tensors = [tensor(argument) for argument in node.arguments]
            op = make_op(node.operator, tensors, node.properties, types)
            op.verify()
            block.add_op(op)
            for result in op.results:
                result.name_hint = op.name.rpartition(".")[2]
            made[key] = op.results
        values[node] = made[key][node.index]
    results = [values[node] for node in outputs]
    block.add_op(ReturnOp(*results))
    inputs = [argument.type for argument in block.args]
    function = FuncOp("main", (inputs, [value.type for value in results]), Region(block))
    return ModuleOp([function])
