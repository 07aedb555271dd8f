"""`narrow-results`: what every reader of a kernel's result rounds is stored as it is rounded.

    %a = loop.kernel @k_a(%x) : (...) -> tensor<8xf32> { ... loop.store %v, %a[%i] }
    %b = loop.kernel @k_b(%a) { ... %v = loop.load %a[%i]   %r = arith.truncf %v : f32 to bf16 ... }
becomes
    %a = loop.kernel @k_a(%x) : (...) -> tensor<8xbf16> { ... %r = arith.truncf %v   loop.store %r, %a[%i] }
    %b = loop.kernel @k_b(%a) { ... %r = loop.load %a[%i] ... }

`fuse-loops` merges a conversion into its readers, where what is converted may then stay behind. So it is
rounded once, to the same value, and takes half the room. What is put together from several results is rounded
in each branch first, so that it is seen of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import KernelOp, LoadOp, StoreOp
from ...errors import counted
from ..decisions import record
from ..replacing import replace


def reader_arguments(result: SSAValue) -> list[SSAValue] | None:
    """What a result is to the kernels that read it; None if something else reads it."""
    uses = list(result.uses)
    readers = [use.operation for use in uses if isinstance(use.operation, KernelOp)]
    if not uses or len(readers) < len(uses):
        return None
    return [r.body.block.args[use.index] for r, use in zip(readers, uses, strict=True)]


def _roundings(argument: SSAValue) -> dict[LoadOp, list[arith.TruncFOp]] | None:
    """What rounds each load of an argument; None if something else is done with one."""
    found: dict[LoadOp, list[arith.TruncFOp]] = {}
    for load in [use.operation for use in argument.uses]:
        if not isinstance(load, LoadOp):
            return None
        users = [use.operation for use in load.result.uses]
        found[load] = [op for op in users if isinstance(op, arith.TruncFOp)]
        if len(found[load]) < len(users):
            return None
    return found


def _round_in_branches(kernel: KernelOp) -> None:
    """Have each branch of a condition round what it loads, if what the condition gives is only rounded."""
    for choice in [op for op in ops_in(kernel) if isinstance(op, scf.IfOp) and len(op.output) == 1]:
        ends = [region.block.last_op for region in choice.regions if region.blocks]
        loads = [end.operands[0].owner for end in ends if isinstance(end, scf.YieldOp)]
        roundings = [use.operation for use in choice.output[0].uses]
        types = {op.result.type for op in roundings if isinstance(op, arith.TruncFOp)}
        alike = len(types) == 1 and all(isinstance(op, arith.TruncFOp) for op in roundings)
        if not alike or not all(isinstance(op, LoadOp) for op in loads):
            continue
        (element,) = types
        for end in ends:
            assert end is not None and end.parent is not None
            rounded = arith.TruncFOp(end.operands[0], element)
            end.parent.insert_op_before(rounded, end)
            end.operands = [rounded.result]
        narrow = Rewriter.replace_value_with_new_type(choice.output[0], element)
        for op in roundings:
            op.results[0].replace_all_uses_with(narrow)
            op.detach()
            op.erase()


def _narrow(kernel: KernelOp, position: int) -> bool:
    """Store a result as all its readers round it, if they do."""
    result, argument = kernel.outputs[position], kernel.output_args[position]
    arguments = reader_arguments(result)
    readings = [_roundings(each) for each in arguments or ()]
    roundings = [op for each in readings for ops in (each or {}).values() for op in ops]
    stores = [use.operation for use in argument.uses if isinstance(use.operation, StoreOp)]
    types = {op.result.type for op in roundings}
    if (
        not arguments
        or None in readings
        or len(types) != 1
        or len(stores) < len(list(argument.uses))
    ):
        return False
    (element,) = types
    for store in stores:
        assert store.parent is not None
        rounded = arith.TruncFOp(store.value, element)
        rounded.result.name_hint = store.value.name_hint
        store.parent.insert_op_before(rounded, store)
        store.operands = [rounded.result, *store.operands[1:]]
    assert isinstance(result.type, TensorType)
    made = TensorType(element, result.type.shape, result.type.encoding)
    for value in (result, argument, *arguments):
        to = made if value is result else KernelOp.buffer_type(made)
        Rewriter.replace_value_with_new_type(value, to)
    for each in readings:
        for load, ops in (each or {}).items():
            _read_rounded(load, ops)
    return True


def _read_rounded(load: LoadOp, roundings: list[arith.TruncFOp]) -> None:
    """Load what was rounded by some operations, in their place."""
    narrow = LoadOp(load.memref, load.map.data.results, list(load.indices))
    for op in roundings:
        op.result.replace_all_uses_with(narrow.result)
        op.detach()
        op.erase()
    replace(load, narrow)


@dataclass(frozen=True)
class NarrowResultsPass(ModulePass):
    """Have kernels store bf16 or f16 where all that read a result round it."""

    name = "narrow-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = ops_of(op, KernelOp)
        for kernel in kernels:
            _round_in_branches(kernel)
        for kernel in kernels:
            narrowed = sum(_narrow(kernel, position) for position in range(len(kernel.outputs)))
            reason = f"{counted(narrowed, 'result')} as the readers round it"
            if not narrowed:
                reason = "not all that reads a result rounds it, and to the same type"
            record(self.name, kernel.sym_name.data, narrowed > 0, reason, kernel)
