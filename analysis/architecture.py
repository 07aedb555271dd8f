"""Whether a GPU can run a program: its instructions, and the shared memory of its blocks."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from ..dialects import cuda
from ..dialects.inside import ops_in, ops_of
from ..dialects.instructions import row_of
from ..errors import DeploError
from ..machine.matrix_instructions import MatrixInstruction
from ..machine.targets import TARGETS, has_instruction


def require_architecture(module: ModuleOp, target: str) -> None:
    """Raise DeploError at an operation whose instruction the GPUs of `target` do not have.

    The rows of instructions say since which compute capability there are such, kernels how much shared
    memory their launches ask for.
    """
    limit = TARGETS[target].block_shared_bytes if target in TARGETS else None
    for function in ops_of(module, cuda.FuncOp):
        if limit is not None and function.shared_bytes > limit:
            raise DeploError(
                f"@{function.sym_name.data} needs {function.shared_bytes} bytes of shared memory, "
                f"a block of {target} can have {limit}; schedule it with smaller blocks or fewer stages"
            )
    for op in ops_in(module):
        if (row := row_of(op)) is not None and not has_instruction(target, row):
            only = row.only if isinstance(row, MatrixInstruction) else None
            raise DeploError(
                f"'{op.name}' at {op.location} needs {only or f'sm_{row.since} or later'}, the target is "
                f"{target}; lower the program for this target again, without it"
            )
