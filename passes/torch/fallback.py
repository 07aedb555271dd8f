"""An operation that cannot be lowered, as a call of PyTorch with the same arguments.

    torch.pow %x {exponent = -1} : (tensor<4xi64>) -> tensor<4xi64>

becomes

    tensor_ir.call "aten.pow.Tensor_Scalar"(input = %x, exponent = -1)
      attributes {deplo.reason = "integers are only raised to a known exponent from 0 to 64"}
      : (tensor<4xi64>) -> tensor<4xi64>
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IntegerAttr,
    IntegerType,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, SSAValue

from ...dialects.calls import REASON, OperandAttr, TensorCallOp
from ...dialects.tensor_ir import CallOp
from ...dialects.torch import IndexOp, IndexPutOp
from ...dialects.torch_base import TorchOp
from ...dialects.torch_syntax import SEGMENTS
from ..decisions import record

PASS = "decompose-torch"


def replace_by_call(op: TorchOp, reason: str) -> None:
    """Let PyTorch run `op`, and say why."""
    operands: list[SSAValue] = []
    names = [name for name, _ in op.get_irdl_definition().operands]
    arguments: dict[str, Attribute] = {}
    for name, value in zip(names, op.tensor_arguments(), strict=True):
        if value is None:
            arguments[name] = UnitAttr()
        elif isinstance(value, SSAValue):
            arguments[name] = _operand(operands, value)
        else:
            arguments[name] = ArrayAttr([_operand(operands, each) for each in value])
    for name in op.get_irdl_definition().properties:
        if name != SEGMENTS:
            arguments[name] = _plain(op.properties.get(name))
    if isinstance(op, IndexOp | IndexPutOp):
        arguments = _with_gaps(op, arguments)
    attributes = {**op.attributes, REASON: StringAttr(reason)}
    _replace(op, f"aten.{op.ATEN}", arguments, operands, attributes)


def lower_call(op: TensorCallOp) -> None:
    """Replace a call of Torch IR by the same of Tensor IR."""
    _replace(op, op.callee.data, op.arguments.data, list(op.inputs), op.attributes)


def _operand(operands: list[SSAValue], value: SSAValue) -> OperandAttr:
    operands.append(value)
    return OperandAttr(len(operands) - 1)


def _plain(value: Attribute | None) -> Attribute:
    if value is None:
        return UnitAttr()
    if isinstance(value, DenseArrayBase):
        integers = cast(DenseArrayBase[IntegerType], value).get_values()
        return ArrayAttr([IntegerAttr(integer, i64) for integer in integers])
    return value


def _with_gaps(op: TorchOp, arguments: Mapping[str, Attribute]) -> dict[str, Attribute]:
    """`indices` with `none` for the axes before `dim`, as PyTorch has it."""
    indices = arguments["indices"]
    assert isinstance(indices, ArrayAttr)
    gaps = [UnitAttr()] * op.integer("dim")
    others = {name: value for name, value in arguments.items() if name != "dim"}
    return {**others, "indices": ArrayAttr([*gaps, *indices.data])}


def _replace(
    op: TorchOp | TensorCallOp,
    callee: str,
    arguments: Mapping[str, Attribute],
    operands: Sequence[SSAValue],
    attributes: Mapping[str, Attribute],
) -> None:
    call = CallOp(callee, arguments, operands, op.result_types)
    call.location = op.location
    call.attributes |= attributes
    assert op.parent is not None
    op.parent.insert_op_before(call, op)
    for old, new in zip(op.results, call.results, strict=True):
        new.name_hint = old.name_hint
        old.replace_all_uses_with(new)
    op.detach()
    op.erase()
    reason = attributes.get(REASON)
    why = f": {reason.data}" if isinstance(reason, StringAttr) else ""
    record(PASS, callee, True, f"runs in PyTorch{why}", call)
