"""`-t llvm`: LLVM's text of the kernels that `loop-to-llvm` leaves; of other modules, xDSL writes it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import IO

from xdsl.backend.llvm.convert import LLVMTarget
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..codegen.llvm_sources import llvm_module_text
from ..dialects.schedule import KERNEL_ATTRIBUTE


@dataclass(frozen=True)
class LlvmTarget(LLVMTarget):
    """LLVM IR of a module; the host function, which deplo's runtime stands in for, is not written."""

    def emit(self, ctx: Context, module: ModuleOp, output: IO[str]) -> None:
        """Write the text. Raises DeploError for an operation that has none."""
        if any(KERNEL_ATTRIBUTE in op.attributes for op in module.ops):
            output.write(llvm_module_text(module))
        else:
            super().emit(ctx, module, output)
