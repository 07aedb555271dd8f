"""`name-kernels`: a kernel is called after the value it computes and what it does.

    loop.kernel @k_z(...)   that reduces, with result %rms_norm
becomes
    loop.kernel @k_rms_norm_reduce(...)

`reduce` has a reduction, `layout` moves data without arithmetic, `pointwise` is the rest. Equal names get
a number. The names survive to CUDA and to reports.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.passes import ModulePass

from ...analysis.cost import work
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import ForOp, KernelOp
from ..decisions import record
from ..symbol_names import FreshNames


def kind_of(kernel: KernelOp) -> str:
    """What a kernel does, in one word."""
    if any(isinstance(op, ForOp) and op.res for op in ops_in(kernel)):
        return "reduce"
    # A kernel of no iterations does no work, whatever it says; count one iteration's arithmetic.
    arithmetic = any(op.name.startswith("math.") for op in ops_in(kernel)) or work(kernel) > 0
    return "pointwise" if arithmetic else "layout"


@dataclass(frozen=True)
class NameKernelsPass(ModulePass):
    """Give every kernel a name of its own that says what it computes."""

    name = "name-kernels"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = FreshNames(())
        for kernel in ops_of(op, KernelOp):
            old = kernel.sym_name.data
            new = names.fresh(f"k_{kernel.outputs[0].name_hint or 'value'}_{kind_of(kernel)}")
            if old == new:
                record(self.name, old, False, "already has its name", kernel)
                continue
            kernel.sym_name = StringAttr(new)
            record(self.name, new, True, f"was {old}", kernel, (old,))
