"""Every operation of the torch dialect comes back from its custom and its generic text, argument by argument.

`test/dialects/torch.mlir` shows the text form on valid programs; here each operation has every argument
set to something other than its default, and each optional tensor present and absent.
"""

import io

import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region
from xdsl.irdl import OptOperandDef, VarOperandDef, VarResultDef
from xdsl.parser import Parser
from xdsl.printer import Printer

from deplo.dialects.sizes import Size
from deplo.dialects.torch_base import (
    BOOL,
    DTYPE,
    EXTENT,
    EXTENTS,
    FLOAT,
    INT,
    INTS,
    SCALAR,
    STR,
    argument_attr,
)
from deplo.dialects.torch_ops import TORCH_OPS
from deplo.program_stages import make_context

TENSOR = TensorType(f32, (2, 3))

VALUES = {
    INT.expected: argument_attr(7),
    BOOL.expected: argument_attr(True),
    FLOAT.expected: argument_attr(0.1),
    SCALAR.expected: argument_attr(-2.5),
    INTS.expected: argument_attr([3, -1]),
    EXTENT.expected: argument_attr(Size.symbol(1) * 4),
    EXTENTS.expected: argument_attr([3, Size.symbol(0) + 1, -1]),
    STR.expected: argument_attr('a "quoted" word'),
    DTYPE.expected: f32,
}


def module_of(op_class, optional):
    """A module with one operation; `optional` says whether optional tensors are there."""
    definition = op_class.get_irdl_definition()
    block = Block(arg_types=[TENSOR] * 8)
    arguments = iter(block.args)
    tensors = []
    for _, operand in definition.operands:
        if isinstance(operand, OptOperandDef):
            tensors.append(next(arguments) if optional else None)
        elif isinstance(operand, VarOperandDef):
            tensors.append([next(arguments), next(arguments)])
        else:
            tensors.append(next(arguments))
    properties = {
        name: VALUES[prop.constr.expected]
        for name, prop in definition.properties.items()
        if name != "operandSegmentSizes"
    }
    variadic = any(isinstance(result, VarResultDef) for _, result in definition.results)
    count = 2 if variadic else len(definition.results)
    op = op_class.build_op(tensors, properties, [TENSOR] * count)
    block.add_ops([op, ReturnOp()])
    return ModuleOp([FuncOp("main", ([TENSOR] * 8, []), Region(block))])


@pytest.mark.parametrize("optional", [True, False])
@pytest.mark.parametrize("op_class", TORCH_OPS, ids=lambda op: op.name)
def test_round_trip(op_class, optional):
    module = module_of(op_class, optional)
    generic = io.StringIO()
    Printer(generic, print_generic_format=True).print_op(module)
    for text in (str(module), generic.getvalue()):
        assert Parser(make_context(), text).parse_module().is_structurally_equivalent(module), text
