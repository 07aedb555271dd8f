"""The arena of a host function: a launch finds in it what the launches before it have left there.

Each buffer is an array of its own here; whose bytes are whose shows where two buffers overlap.
"""

from __future__ import annotations

import numpy as np
from xdsl.dialects import func
from xdsl.ir import SSAValue

from ..analysis.plan import buffer_bytes
from ..analysis.stores import KernelFunc, accumulated_arguments, stored_arguments
from ..dialects.kernel import AllocOp, LaunchOp, TensorMapOp
from ..dialects.sizes import static_extent
from .tensor_ir import ProgramError

FREE = -1


class Arena:
    """Who owns each byte of a function's arena."""

    def __init__(self, function: func.FuncOp):
        self.places: dict[SSAValue, tuple[int, slice]] = {}
        end = 0
        for op in function.body.block.ops:
            if isinstance(op, AllocOp) and op.offset is not None:
                first = static_extent(op.offset.data)
                last = first + static_extent(buffer_bytes(op.result.type))
                self.places[op.result] = len(self.places), slice(first, last)
                end = max(end, last)
            elif isinstance(op, TensorMapOp) and op.tensor in self.places:
                self.places[op.result] = self.places[op.tensor]
        self.owner = np.full(end, FREE, np.int64)

    def launch(self, op: LaunchOp, function: KernelFunc) -> None:
        """A kernel runs; raises ProgramError if one of its buffers is not, or not any more, its own."""
        stored, added = stored_arguments(function), accumulated_arguments(function)
        pairs = [
            (operand, argument)
            for operand, argument in zip(op.arguments, function.body.block.args, strict=True)
            if operand in self.places
        ]
        for operand, argument in pairs:
            if argument in stored - added:
                number, place = self.places[operand]
                self.owner[place] = number
        for operand, argument in pairs:
            number, place = self.places[operand]
            if np.any(self.owner[place] != number):
                raise ProgramError(
                    f"{op.location}: kernel {function.sym_name.data} gets %{argument.name_hint}, whose "
                    "place in the arena holds another buffer or nothing"
                )
