"""Which operations of a launch, in which all threads of a block take part, some of them may not reach.

Threads part where a condition or the limit of a loop differs between them: where it follows from the number
of a thread, from what threads read at different places, or from what is their own.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from ..dialects.inside import ops_in
from ..dialects.loop import ForOp, KernelOp, LoadOp, RegistersOp, TestOp
from ..dialects.tile import CombineOp, LaunchOp, Level, PackOp, PrefixOp, StageOp
from ..dialects.tile_mma import MmaOp, WgmmaOp
from .index import always_holds, operand_ranges, simplify

COOPERATIVE = (CombineOp, PrefixOp, StageOp, PackOp, MmaOp, WgmmaOp)
"""Operations in which all threads of a block take part."""


def diverging(kernel: KernelOp) -> Iterator[Operation]:
    """The cooperative operations of a kernel that are not proven to be reached by all threads of a block."""
    for launch in ops_in(kernel):
        if isinstance(launch, LaunchOp):
            threads = _Threads(launch)
            for op in ops_in(launch):
                if isinstance(op, COOPERATIVE) and not threads.stay_together_at(op):
                    yield op


class _Threads:
    """What differs between the threads of the blocks of a launch."""

    def __init__(self, launch: LaunchOp):
        self._launch = launch
        self._known: dict[SSAValue, bool] = {}

    def stay_together_at(self, op: Operation) -> bool:
        """Whether the conditions and limits around an operation are the same for all threads."""
        parent = op.parent_op()
        while parent is not None and parent is not self._launch:
            match parent:
                case scf.IfOp() if not self._same(parent.cond):
                    return False
                case ForOp() if not all(map(self._same, parent.limit_operands)):
                    return False
                case _:
                    parent = parent.parent_op()
        return True

    def _same(self, value: SSAValue) -> bool:
        if value not in self._known:
            self._known[value] = self._is_same(value)
        return self._known[value]

    def _is_same(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            axis = self._launch.axis_of(value)
            return not isinstance(value.block.parent_op(), PackOp) and (
                axis is None or axis.level.data is not Level.THREAD or axis.extent.data == 1
            )
        match op := value.owner:
            case LoadOp():
                return not isinstance(op.memref.owner, RegistersOp) and self._all(op)
            case CombineOp():
                rest = {a for a in self._launch.body.block.args if not self._is_same(a)}
                return rest <= set(op.axes) or self._same(op.value)
            case PrefixOp() | MmaOp() | WgmmaOp():
                return False
            case TestOp():
                ranges = operand_ranges(op.operands_)
                always = all(always_holds(simplify(e, ranges), ranges) for e in op.exprs)
                return always or self._all(op)
            case Operation():
                return self._all(op)
            case _:
                return False

    def _all(self, op: Operation) -> bool:
        """Whether all that an operation and its regions read is the same."""
        return all(self._same(v) for each in ops_in(op) for v in each.operands)
