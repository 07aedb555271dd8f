"""The instruction of the machine that an operation is."""

from __future__ import annotations

from xdsl.ir import Operation

from ..machine.ptx import Instruction, find_instruction


def instruction_of(op: Operation) -> Instruction | None:
    """The row of an operation, None if it is no instruction of its own."""
    condition = ("condition",) if getattr(op, "condition", None) is not None else ()
    return find_instruction(op.name, (*op.properties, *condition))
