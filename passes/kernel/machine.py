"""The kernel that `materialize-tile` is making: what the lowerings of a block's common work share."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.builder import Builder
from xdsl.dialects import scf
from xdsl.dialects.builtin import FunctionType, MemRefType
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.rewriter import InsertPoint

from ...dialects.kernel import FuncOp, SharedOp, TensorMapType
from ...dialects.loop import ForOp
from ...dialects.tile import SHARED, LaunchOp


@dataclass
class Machine:
    """The kernel under construction."""

    function: FuncOp
    thread: SSAValue
    launch_threads: list[int]
    block: SSAValue | None = None
    """The number of the block, if the launch has several."""
    tensor_maps: list[tuple[int, TensorMapType]] = field(
        default_factory=list[tuple[int, TensorMapType]]
    )
    """What the kernel gets in front of its buffers: maps of those with these numbers."""

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.function.threads.value.data

    @property
    def has_clusters(self) -> bool:
        """Whether blocks copy to each other's shared memory."""
        return self.function.cluster is not None

    def shared(
        self, shape: list[int], element: Attribute, name: str | None, align: int | None = None
    ) -> SSAValue:
        """Shared memory, declared at the start of the kernel."""
        type = MemRefType(element, shape, memory_space=SHARED)  # pyright: ignore[reportArgumentType]
        op = SharedOp(type, align)
        op.result.name_hint = name
        Builder(InsertPoint.at_start(self.function.body.block)).insert(op)
        return op.result

    def tensor_map(self, buffer: SSAValue, type: TensorMapType) -> SSAValue:
        """An argument of the kernel that is a map of one of its buffers; the same one for the same map."""
        block, first = self.function.body.block, len(self.tensor_maps)
        described = (list(block.args).index(buffer) - first, type)  # pyright: ignore[reportArgumentType]
        if described not in self.tensor_maps:
            argument = block.insert_arg(type, first)
            argument.name_hint = f"{buffer.name_hint or 'buffer'}_map"
            self.tensor_maps.append(described)
            self.function.function_type = FunctionType.from_lists(list(block.arg_types), [])
        return block.args[self.tensor_maps.index(described)]


def in_loop(op: Operation) -> bool:
    """Whether an operation may run several times."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp | LaunchOp):
        if isinstance(parent, ForOp | scf.ForOp):
            return True
        parent = parent.parent_op()
    return False
