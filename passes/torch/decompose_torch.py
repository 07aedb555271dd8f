"""Lowers Torch IR to the primitives of Tensor IR.

Before:
    %mean = torch.mean %x {dim = [1]} : (tensor<4x8xf32>) -> tensor<4xf32>

After:
    %mean_sum = tensor_ir.reduce add(%x) over [1] : tensor<4x8xf32> -> tensor<4x1xf32>
    %mean_const = tensor_ir.constant 8.0 : tensor<4x1xf32>
    %mean_div = tensor_ir.elementwise div(%mean_sum, %mean_const) : … -> tensor<4x1xf32>
    %mean = tensor_ir.index_map (i) -> %mean_div[i, 0] : (tensor<4x1xf32>) -> tensor<4xf32>

Leaves no operation of `torch`: if one cannot be lowered, the pass raises
UnsupportedOpError, which lists every such operation, and the module is left half done; in a module with
`deplo.fallback = "eager"` it becomes a `tensor_ir.call` instead, as each `torch.call` does. f16 and bf16
are computed in f32 and rounded once, at the end of each operation of Torch IR. Factors of products in f32
are rounded to what `deplo.products` says (`dialects/products.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects.builtin import FileLineColLoc, ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import VerifyException

from ...analysis.orders import runs_in_order
from ...dialects.allowed_sizes import allowed_at, allowing
from ...dialects.calls import FALLBACK
from ...dialects.inside import ops_in, ops_of
from ...dialects.products import rounded_products
from ...dialects.sizes import UndecidedSize
from ...dialects.syntax import tensor_type
from ...dialects.torch import CallOp
from ...dialects.torch_base import TorchOp
from ...dialects.torch_scan import ScanOp
from ...errors import UnsupportedOpError
from ...machine.targets import get_target
from ..decisions import record
from . import (
    activations,
    creation,
    elementwise,
    found,
    indexing,
    layout,
    linear_algebra,
    masks,
    neural,
    normalization,
    reductions,
    scan,
    scatter,
    search,
    sort,
    windows,
)
from .fallback import lower_call, replace_by_call
from .lowering import Lowering, Refusal, Rule

RULES: dict[type[TorchOp], Rule] = {
    **elementwise.RULES,
    **activations.RULES,
    **reductions.RULES,
    **layout.RULES,
    **linear_algebra.RULES,
    **neural.RULES,
    **normalization.RULES,
    **scan.RULES,
    **windows.RULES,
    **indexing.RULES,
    **scatter.RULES,
    **masks.RULES,
    **found.RULES,
    **search.RULES,
    **sort.RULES,
    **creation.RULES,
}
"""How each operation of the contract is lowered."""


@dataclass(frozen=True)
class DecomposeTorchPass(ModulePass):
    """Lowers Torch IR to the primitives of Tensor IR."""

    name = "decompose-torch"

    target: str = "sm_90a"
    """What the program is for: some do in order what others have to compare everything for."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Lower every operation of `torch`. Raises UnsupportedOpError listing those it cannot."""
        refused: list[str] = []
        lowered = 0
        start = partial(
            Lowering,
            in_order=runs_in_order(self.target),
            on_gpu=get_target(self.target).is_gpu,
            products=rounded_products(op),
            places={},
        )
        falls_back = op.attributes.get(FALLBACK) == StringAttr("eager")
        # A loop of launches calls no operator of PyTorch.
        stepped = {each for scan in ops_of(op, ScanOp) for each in ops_in(scan)}
        with allowing(allowed_at(op)):
            for each in ops_in(op):
                if isinstance(each, CallOp):
                    lower_call(each)
                elif isinstance(each, TorchOp):
                    may_call = falls_back and each not in stepped
                    if (reason := _lower(each, start, may_call)) is None:
                        lowered += 1
                    elif may_call:
                        replace_by_call(each, reason)
                    else:
                        refused.append(f"  {_where(each)}{each.name}: {reason}")
        if refused:
            raise UnsupportedOpError(
                "these operations cannot be lowered to Tensor IR:\n" + "\n".join(refused)
            )
        if lowered:
            record(self.name, "main", True, f"lowered {lowered} operations of torch")


def _lower(op: TorchOp, start: Callable[..., Lowering], may_call: bool) -> str | None:
    """Replace `op`, or say why not and leave everything as it was; then PyTorch may run it, or not."""
    if not op.results:
        op.detach()
        op.erase()
        return None
    lowering = start(op, may_call=may_call)
    try:
        values = RULES[type(op)](lowering, op)
    except (Refusal, VerifyException, UndecidedSize) as reason:
        lowering.undo()
        return str(reason)
    if isinstance(values, SSAValue):
        values = [values]
    _replace(op, _finished(lowering, op, values))
    return None


def _finished(lowering: Lowering, op: TorchOp, values: Sequence[SSAValue]) -> list[SSAValue]:
    """The values in the element types of the op's results, under the names of its results."""
    finished: list[SSAValue] = []
    for value, result in zip(values, op.results, strict=True):
        type = tensor_type(result)
        value = lowering.cast(value, type.element_type)
        if value.type != type:
            raise AssertionError(f"{op.name} lowered to {value.type}, not {type}")
        if value.owner.parent is op.parent and value not in op.operands:
            value.name_hint = result.name_hint or lowering.hint
        finished.append(value)
    return finished


def _replace(op: TorchOp, values: Sequence[SSAValue]) -> None:
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def _where(op: Operation) -> str:
    match op.location:
        case FileLineColLoc(filename=file, line=line):
            return f"{file.data}:{line.data}: "
        case _:
            return ""
