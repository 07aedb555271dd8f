"""The kernel that `materialize-tile` is making: what the lowerings of a block's common work share."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects.kernel import FuncOp, SharedOp
from ...dialects.loop import ForOp
from ...dialects.tile import SHARED, LaunchOp


@dataclass
class Machine:
    """The kernel under construction."""

    function: FuncOp
    thread: SSAValue
    launch_threads: list[int]

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.function.threads.value.data

    def shared(
        self, shape: list[int], element: Attribute, name: str | None, align: int | None = None
    ) -> SSAValue:
        """Shared memory, declared at the start of the kernel."""
        type = MemRefType(element, shape, memory_space=SHARED)  # pyright: ignore[reportArgumentType]
        op = SharedOp(type, align)
        op.result.name_hint = name
        Builder(InsertPoint.at_start(self.function.body.block)).insert(op)
        return op.result


def in_loop(op: Operation) -> bool:
    """Whether an operation may run several times."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp | LaunchOp):
        if isinstance(parent, ForOp | scf.ForOp):
            return True
        parent = parent.parent_op()
    return False
