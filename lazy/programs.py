"""From expressions to programs: one module of Torch IR for all that is computed together.

The programs are found by what the expressions say, whatever the arrays hold, so a step that is repeated is
compiled once. On disk they are kept like all programs.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from ..dialects.allowed_sizes import SIZES
from ..dialects.multiples import multiple_of
from ..dialects.torch_syntax import TensorArgument
from ..errors import UsageError
from ..execution import Code
from ..machine.host_cpu import find_target
from .expression import LEAF, Argument, Node, make_op, said, tensor_types
from .moves import moved, wholes
from .variables import Numbering, Variable, variables_in

MAX_PROGRAMS = 512
"""Programs that are kept in memory; that which was not used for longest makes room."""

_PROGRAMS: OrderedDict[Any, Code] = OrderedDict()
_NOTHING: Mapping[Node, Any] = {}
_LOCK = threading.RLock()
"""Held while expressions are read and become leaves."""


def realize_nodes(outputs: Sequence[Node]) -> None:
    """Compute nodes, all in one program; each becomes a leaf. Raises UsageError if they have variables.

    What they are parts of is computed before, in a program of its own.
    """
    with _LOCK:
        _check_fixed(outputs)
        wanted = [node for node in dict.fromkeys(outputs) if node.array is None]
        single = [node for node in in_order(wanted) if prod(node.shape) == 1]
        # Of numbers that are computed from elements, whoever asks for one will ask for the next.
        parts = single if all(prod(node.shape) == 1 for node in wanted) else wanted
        if of := dict.fromkeys(whole for node in parts for whole in wholes(node)):
            realize_nodes(list(of))
        for node in wanted:
            if (array := moved(node)) is not None:
                node.settle(array)
        wanted = [node for node in wanted if node.array is None]
        if not wanted:
            return
        # The elements of data are inputs: one program serves all places of x[i] * 2.
        found = [(node, moved(node)) for node in single]
        numbers = {node: array for node, array in found if array is not None}
        code, inputs = code_of(wanted, numbers)
        _check_fixed(inputs)
        results = code.run([numbers.get(node, node.array) for node in inputs])
        for node, array in zip(wanted, results, strict=True):
            node.settle(array)


def _check_fixed(nodes: Sequence[Node]) -> None:
    if free := [variable for node in nodes for variable in variables_in(node.shape)]:
        raise UsageError(
            f"the tensor depends on the variable '{free[0]}': execute_with({free[0]}=…) of "
            "deplo.prepare(…) computes it"
        )


def code_of(
    outputs: Sequence[Node], known: Mapping[Node, Any] = _NOTHING
) -> tuple[Code, list[Node]]:
    """The program that computes nodes, and its inputs: the leaves, and those whose elements are given."""
    with _LOCK:
        nodes = in_order(outputs, known)
        places = {node: i for i, node in enumerate(nodes)}
        key = (*(_said(node, places, known) for node in nodes), *(places[node] for node in outputs))
        if key in _PROGRAMS:
            _PROGRAMS.move_to_end(key)
        else:
            _PROGRAMS[key] = Code(build_module(nodes, outputs, known), find_target("cpu"))
            if len(_PROGRAMS) > MAX_PROGRAMS:
                _PROGRAMS.popitem(last=False)
        return _PROGRAMS[key], [node for node in nodes if _is_input(node, known)]


def _is_input(node: Node, known: Mapping[Node, Any]) -> bool:
    return node.operator == LEAF or node in known


def in_order(outputs: Sequence[Node], known: Mapping[Node, Any] = _NOTHING) -> list[Node]:
    """All nodes that outputs are computed from, each after its sources; those that are known have none."""
    found: dict[Node, None] = {}
    waiting = [(node, False) for node in reversed(outputs)]
    while waiting:
        node, is_ready = waiting.pop()
        if node in found:
            continue
        if is_ready or node in known:
            found[node] = None
            continue
        waiting.append((node, True))
        waiting += [(source, False) for source in reversed(list(node.sources))]
    return list(found)


def _said(node: Node, places: Mapping[Node, int], known: Mapping[Node, Any]) -> Any:
    """What a node says, with places in the order instead of its sources."""

    def number(argument: Argument) -> Any:
        if isinstance(argument, tuple):
            return tuple(places[each] for each in argument)
        return argument and places[argument]

    if node in known:
        return LEAF, (), (), node.shape, (node.dtype,), 0
    arguments = tuple(map(number, node.arguments))
    return node.operator, arguments, said(node.properties), node.shape, node.dtypes, node.index


def build_module(
    nodes: Sequence[Node], outputs: Sequence[Node], known: Mapping[Node, Any] = _NOTHING
) -> ModuleOp:
    """The module of Torch IR whose `@main` takes leaves and what is known of `nodes`, and gives `outputs`.

    Raises UsageError for a variable that is the extent of no leaf's axis.
    """
    block = Block()
    values: dict[Node, SSAValue] = {}
    made: dict[Any, Sequence[SSAValue]] = {}
    numbering = Numbering(_variables(nodes, known))

    def tensor(argument: Argument) -> TensorArgument:
        if isinstance(argument, tuple):
            return [values[each] for each in argument]
        return argument and values[argument]

    for node in nodes:
        types = tensor_types(numbering.of(node.dtype.stored_shape(node.shape)), node.dtypes)
        if _is_input(node, known):
            types = [types[node.index]]
            values[node] = block.insert_arg(types[0], len(block.args))
            values[node].name_hint = f"x{len(block.args) - 1}"
            continue
        key = (node.operator, node.arguments, said(node.properties), node.dtypes)
        if key not in made:
            tensors = [tensor(argument) for argument in node.arguments]
            properties = tuple((name, numbering.of(value)) for name, value in node.properties)
            op = make_op(node.operator, tensors, properties, types)
            with numbering.reckoning():
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
    if numbering.attributes:
        function.attributes[SIZES] = ArrayAttr(numbering.attributes)
    return ModuleOp([function])


def _variables(nodes: Sequence[Node], known: Mapping[Node, Any]) -> list[Variable]:
    """The variables of a program, in the order in which its leaves have them, or multiples, as extents."""
    extents = [n for node in nodes if node.operator == LEAF for n in node.shape]
    defined = variables_in(n for n in extents if multiple_of(n) is not None)
    for node in nodes:
        if node in known:
            continue
        for variable in variables_in((*node.shape, *said(node.properties)[1])):
            if variable not in defined:
                raise UsageError(
                    f"'{variable}' is the extent of no axis of an array: x[:{variable}] of data gives it one"
                )
    return defined
