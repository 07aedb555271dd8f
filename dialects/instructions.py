"""The instruction of the machine that an operation is."""

from __future__ import annotations

from xdsl.ir import Operation

from ..machine.matrix_instructions import WGMMA, MatrixInstruction
from ..machine.ptx import Instruction, find_instruction
from . import tile_mma
from .kernel_mma import WgmmaWaitOp
from .kernel_wgmma import WgmmaOp
from .mma import MmaBase


def row_of(op: Operation) -> Instruction | MatrixInstruction | None:
    """The row that says which GPUs have what an operation is; None if all of them do."""
    match op:
        case MmaBase():
            return op.instruction[0]
        case WgmmaOp() | WgmmaWaitOp() | tile_mma.WgmmaOp():
            return WGMMA
        case _:
            return instruction_of(op)


def instruction_of(op: Operation) -> Instruction | None:
    """The row of an operation, None if it is no instruction of its own."""
    condition = ("condition",) if getattr(op, "condition", None) is not None else ()
    return find_instruction(op.name, (*op.properties, *condition))
