"""Calls that the runtime makes itself, of functions of the module: a loop whose turns data decide, a choice.

    %j, %y = tensor_ir.call "deplo.while_loop.default"(
        test = "loop_test", body = "loop_body", carried = [%i, %x], shared = [%w])
    %z = tensor_ir.call "deplo.cond.default"(
        predicate = %p, if_true = "then", if_false = "otherwise", shared = [%x])

The parts are private functions, which all passes lower as they lower `@main`. Each takes the values carried,
then those shared. `test` gives one bool, `body` the values carried on; both branches give the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DictionaryAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    TensorType,
    i1,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import SymbolTable
from xdsl.utils.exceptions import VerifyException

from .sizes import shape_of

WHILE = "deplo.while_loop.default"
CHOICE = "deplo.cond.default"
PARTS: Mapping[str, tuple[str, ...]] = {WHILE: ("test", "body"), CHOICE: ("if_true", "if_false")}
"""Each such call, and the arguments that name a part."""


def parts_of(callee: str, arguments: DictionaryAttr) -> list[str]:
    """The functions that a call runs, by name; none for an operator of PyTorch."""
    named = (arguments.data.get(role) for role in PARTS.get(callee, ()))
    return [name.data for name in named if isinstance(name, StringAttr)]


def part_functions(op: Operation, callee: str, arguments: DictionaryAttr) -> list[func.FuncOp]:
    """The functions that a call runs. Raises VerifyException where the module has none of the name."""
    found: list[func.FuncOp] = []
    for name in parts_of(callee, arguments):
        function = SymbolTable.lookup_symbol(op, SymbolRefAttr(name))
        if not isinstance(function, func.FuncOp):
            raise VerifyException(f"there is no function @{name}")
        found.append(function)
    return found


def verify_parts(
    op: Operation,
    callee: str,
    arguments: DictionaryAttr,
    inputs: Sequence[SSAValue],
    given: Sequence[Attribute],
) -> None:
    """Raise VerifyException unless the functions that a call runs take its inputs and give what it gives."""
    if callee not in PARTS or op.parent_op() is None:
        return
    if len(parts_of(callee, arguments)) != len(PARTS[callee]):
        raise VerifyException(f"{callee} must name {' and '.join(PARTS[callee])}")
    taken = [value.type for value in inputs[1 if callee == CHOICE else 0 :]]
    first, second = part_functions(op, callee, arguments)
    for function, gives in ((first, None if callee == WHILE else given), (second, given)):
        outputs = list(function.function_type.outputs)
        fits = _is_one_bool(outputs) if gives is None else outputs == list(gives)
        if list(function.function_type.inputs) != taken or not fits:
            name, type = function.sym_name.data, function.function_type
            raise VerifyException(
                f"@{name} is {type}, which does not fit what {callee} gets or gives"
            )
    if callee == CHOICE and not (inputs and _is_one_bool([inputs[0].type])):
        raise VerifyException(f"{callee} needs a predicate of one bool")


def _is_one_bool(types: Sequence[Attribute]) -> bool:
    if len(types) != 1 or not isinstance(type := types[0], TensorType | MemRefType):
        return False
    return type.element_type == i1 and all(extent == 1 for extent in shape_of(type))
