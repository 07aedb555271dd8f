"""The buffers of a host function: a launch finds in them what the launches before it have left there.

Each buffer is an array of its own here; whose bytes are whose shows where two buffers overlap in the arena,
and which ones nobody has written. A buffer outside of the arena counts as one byte of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ..analysis.launch_groups import array_of
from ..analysis.plan import buffer_bytes
from ..analysis.stores import KernelFunc
from ..dialects.inside import ops_in
from ..dialects.kernel import AllocOp, CallOp, LaunchOp, LoopOp, TensorMapOp
from ..dialects.sizes import static_extent
from ..dialects.stored import accumulated_in, stored_in
from .tensor_ir import ProgramFault

FREE = -1


class Arena:
    """Who owns each byte of a function's buffers."""

    def __init__(self, function: func.FuncOp):
        allocs = [op for op in ops_in(function) if isinstance(op, AllocOp)]
        self.places: dict[SSAValue, tuple[int, slice]] = {}
        end = 0
        for op in sorted(allocs, key=lambda each: each.offset is None):
            first, count = end, 1
            if op.offset is not None:
                first = static_extent(op.offset.data)
                count = static_extent(buffer_bytes(op.result.type))
            self.places[op.result] = len(self.places), slice(first, first + count)
            end = max(end, first + count)
        self.owner = np.full(end, FREE, np.int64)
        self.slices: dict[SSAValue, SSAValue] = {}
        """The array that each argument of a loop's body is a slice of now."""

    def run(self, op: Operation) -> None:
        """An operation of the host runs, but for launches; raises ProgramFault as `launch` does."""
        match op:
            case AllocOp() | TensorMapOp() | LaunchOp() | LoopOp():
                pass
            case CallOp():
                self._read(op, op.inputs)
                self._write(op.outputs)
            case func.ReturnOp():
                self._read(op, op.operands)
            case _:  # what it does with buffers is not known here
                self._write(value for each in ops_in(op) for value in each.operands)

    def begin_turn(self, loop: LoopOp, *, first: bool) -> None:
        """A loop begins its first turn, or a later one."""
        for argument in loop.body.block.args:
            starts = first and argument.index < len(loop.carried)
            array = loop.carried[argument.index] if starts else loop.array_of(argument)
            self.slices[argument] = array

    def launch(self, op: LaunchOp, function: KernelFunc) -> None:
        """A kernel runs.

        Raises ProgramFault if one of its buffers holds nothing, or another buffer by now, or if it stores to
        one that it also gets as another argument, which C++'s `__restrict__` forbids.
        """
        stored, added = stored_in(function.body), accumulated_in(function.body)
        arguments = function.body.block.args
        pairs = [(array_of(v), a) for v, a in zip(op.arguments, arguments, strict=True)]
        # Two slices of one array are different memory: of a stack, the step's own and that of the one before.
        for array, argument in pairs:
            others = [other for value, other in pairs if value is array and other is not argument]
            if argument in stored and any(other.uses for other in others):
                raise ProgramFault(
                    f"'{op.name}' op stores to %{_name(argument)} of @{function.sym_name.data}, which it "
                    "passes as another argument, too",
                    op,
                )
        self._write(array for array, argument in pairs if argument in stored - added)
        self._read(op, [array for array, argument in pairs if argument.uses])

    def _write(self, values: Iterable[SSAValue]) -> None:
        for value in (self.slices.get(value, value) for value in values):
            if value in self.places:
                number, place = self.places[value]
                self.owner[place] = number

    def _read(self, op: Operation, values: Iterable[SSAValue]) -> None:
        for value in (self.slices.get(value, value) for value in values):
            if value not in self.places:
                continue
            number, place = self.places[value]
            owners = self.owner[place]
            if np.any(owners != number):
                held = "another buffer" if np.any(owners[owners != number] != FREE) else "nothing"
                raise ProgramFault(
                    f"'{op.name}' op reads %{_name(value)}, whose place holds {held}", op
                )


def _name(value: SSAValue) -> str:
    return value.name_hint or "buffer"
