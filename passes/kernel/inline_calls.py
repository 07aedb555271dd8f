"""`inline-calls`: a host function that calls others becomes one list of buffers and launches.

    func.func private @layer(%x: memref<4xf32>) -> memref<4xf32> {
      %y = kernel.alloc : memref<4xf32>
      kernel.launch @k_exp(%x, %y) blocks(1) threads(4) : memref<4xf32>, memref<4xf32>
      func.return %y : memref<4xf32>
    }
    ... %b = func.call @layer(%a) ...
becomes
    ... %b = kernel.alloc : memref<4xf32>
        kernel.launch @k_exp(%a, %b) blocks(1) threads(4) : memref<4xf32>, memref<4xf32> ...

The kernels stay as they are, launched once for each call. Private functions that were called are gone
afterwards; calls of functions without a body, or with several blocks, stay.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from ...dialects.inside import ops_of
from ...errors import DeploError
from ..decisions import record


def _inline(op: func.CallOp, callee: func.FuncOp) -> None:
    """Replace the call `op` by what `callee` does. Raises DeploError for a function that calls itself."""
    if _calls_itself(callee):
        name = callee.sym_name.data
        raise DeploError(f"@{name} calls itself, so that its calls cannot be inlined")
    block = op.parent
    assert block is not None
    mapping: dict[SSAValue, SSAValue] = dict(
        zip(callee.body.block.args, op.arguments, strict=True)
    )
    for each in callee.body.block.ops:
        if isinstance(each, func.ReturnOp):
            values = [mapping[v] for v in each.arguments]
            for old, new in zip(op.results, values, strict=True):
                new.name_hint = old.name_hint or new.name_hint
                old.replace_all_uses_with(new)
            break
        block.insert_op_before(each.clone(value_mapper=mapping), op)
    op.detach()
    op.erase()


@dataclass(frozen=True)
class InlineCallsPass(ModulePass):
    """Replace each call of a host function by the buffers and launches of that function."""

    name = "inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Inline the calls. Raises DeploError for a function that calls itself."""
        called: set[func.FuncOp] = set()
        count = 0
        while calls := _calls_in(op):
            for call, callee in calls.items():
                _inline(call, callee)
                called.add(callee)
                count += 1
        for callee in called:
            if callee.sym_visibility == StringAttr("private"):
                callee.detach()
                callee.erase()
        reason = f"{count} calls of {len(called)} functions"
        record(self.name, "main", count > 0, reason if count else "nothing is called")


def _calls_in(root: Operation) -> dict[func.CallOp, func.FuncOp]:
    """The calls in an operation of functions of one block, with these."""
    calls = ops_of(root, func.CallOp)
    callees = {call: SymbolTable.lookup_symbol(call, call.callee) for call in calls}
    return {
        call: callee
        for call, callee in callees.items()
        if isinstance(callee, func.FuncOp) and len(callee.body.blocks) == 1
    }


def _calls_itself(function: func.FuncOp) -> bool:
    """Whether a function calls itself, or what it calls does call it."""
    seen: set[func.FuncOp] = set()
    todo = [function]
    while todo:
        for callee in _calls_in(todo.pop()).values():
            if callee is function:
                return True
            if callee not in seen:
                seen.add(callee)
                todo.append(callee)
    return False
