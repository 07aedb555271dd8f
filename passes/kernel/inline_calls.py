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

The kernels stay as they are, launched once for each call. Private functions are gone afterwards.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.traits import SymbolTable

from ...dialects.inside import ops_in
from ..decisions import record


def _inline(call: func.CallOp, callee: func.FuncOp) -> None:
    """Replace `call` by what `callee` does."""
    block = call.parent
    assert block is not None
    mapping: dict[SSAValue, SSAValue] = dict(
        zip(callee.body.block.args, call.arguments, strict=True)
    )
    for op in callee.body.block.ops:
        if isinstance(op, func.ReturnOp):
            values = [mapping[v] for v in op.arguments]
            for old, new in zip(call.results, values, strict=True):
                new.name_hint = old.name_hint or new.name_hint
                old.replace_all_uses_with(new)
            break
        block.insert_op_before(op.clone(value_mapper=mapping), call)
    call.detach()
    call.erase()


@dataclass(frozen=True)
class InlineCallsPass(ModulePass):
    """Replace each call of a host function by the buffers and launches of that function."""

    name = "inline-calls"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        called: set[func.FuncOp] = set()
        count = 0
        while calls := [o for o in ops_in(op) if isinstance(o, func.CallOp)]:
            for call in calls:
                callee = SymbolTable.lookup_symbol(op, call.callee)
                assert isinstance(callee, func.FuncOp)
                _inline(call, callee)
                called.add(callee)
                count += 1
        for callee in called:
            callee.detach()
            callee.erase()
        reason = f"{count} calls of {len(called)} functions" if count else "nothing is called"
        record(self.name, "main", count > 0, reason)
