"""Names for new kernels and functions: no two kernels of a module share one, at any stage.

Remarks, `explain` and `--why-not` speak of kernels by their names, and CUDA and LLVM link by them.
`analysis/verify.py` checks it.
"""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from ..analysis.launches import kernels_of
from ..dialects.loop import KernelOp


class FreshNames:
    """Names that are taken, to make new ones that are not.

    >>> names = FreshNames(["k_x"])
    >>> names.fresh("k_x"), names.fresh("k_x"), names.fresh("k_y")
    ('k_x_2', 'k_x_3', 'k_y')
    """

    def __init__(self, taken: Iterable[str]):
        self._taken = set(taken)
        self._counts: dict[str, int] = {}

    def fresh(self, wanted: str) -> str:
        """Take `wanted`, with the next number if it is taken, and return it."""
        name, count = wanted, self._counts.get(wanted, 1)
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._counts[wanted] = count
        self._taken.add(name)
        return name


def function_names(module: ModuleOp) -> FreshNames:
    """The names of the module's functions."""
    return FreshNames(op.sym_name.data for op in module.ops if isinstance(op, func.FuncOp))


def insert_kernel(new: KernelOp, before: KernelOp) -> None:
    """Insert a kernel in front of another, under a name that no other kernel of the module has."""
    module = before.get_toplevel_object()
    assert isinstance(module, Operation)
    taken = (kernel.sym_name.data for kernel in kernels_of(module))
    new.sym_name = StringAttr(FreshNames(taken).fresh(new.sym_name.data))
    assert before.parent is not None
    before.parent.insert_op_before(new, before)
