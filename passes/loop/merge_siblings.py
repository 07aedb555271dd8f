"""`merge-siblings`: kernels that do the same to different weights of one input become one kernel.

    %k = loop.kernel @k_k(%x, %wk) { for %i { for %j { store (sum over x[%i, .] * wk[%j, .]) } } }
    %v = loop.kernel @k_v(%x, %wv) { for %i { for %j { store (sum over x[%i, .] * wv[%j, .]) } } }
becomes
    %k, %v = loop.kernel @k_k(%x, %wk, %wv) { for %i { for %j { both sums; both stores } } }

Merged are kernels whose bodies are the same up to which inputs they read, that share an input, and of which
the later one needs nothing that is computed after the earlier one. The shared input is then read once and
there is one launch less. `share-sweeps` joins their reductions; of those few are merged, since each has sums
of its own in the registers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...analysis.cost import size_bytes
from ...analysis.equivalence import equivalent
from ...dialects.inside import ops_in, ops_of
from ...dialects.loop import AssertOp, CheckedIndexOp, ForOp, KernelOp, YieldOp
from ..decisions import record
from ..replacing import rename
from .folded_contractions import MOST_SUMS, sums_in

PASS = "merge-siblings"


def is_full(group: Sequence[KernelOp]) -> bool:
    """Whether one kernel more would have more sums than should share the registers."""
    sums = sums_in(group[0])
    return sums > 0 and (len(group) + 1) * sums > MOST_SUMS


def _shared_bytes(first: KernelOp, second: KernelOp) -> int:
    """Bytes of the inputs that both kernels read at the same place."""
    pairs = zip(first.inputs, second.inputs, first.input_args, strict=True)
    return sum(
        size_bytes(argument.type)
        for a, b, argument in pairs
        if a is b and isinstance(argument.type, MemRefType)
    )


def decline_reason(first: KernelOp, second: KernelOp, position: dict[Operation, int]) -> str | None:
    """Why two kernels stay apart, or None if they become one."""
    if any(isinstance(o, AssertOp | CheckedIndexOp) for k in (first, second) for o in ops_in(k)):
        return "checks indices from data"
    inner = [o for o in ops_in(first.body) if isinstance(o, ForOp) and not o.res]
    if not inner:
        return "has no free loops"
    for value in second.inputs:
        owner = value.owner
        if isinstance(owner, Operation) and position[owner] >= position[first]:
            return f"reads what is computed after {first.sym_name.data}"
    return None


def are_siblings(first: KernelOp, second: KernelOp) -> bool:
    """Whether two kernels do the same and share an input, but not all of them."""
    return (
        first.parent is second.parent
        and list(first.inputs) != list(second.inputs)
        and first.inputs.types == second.inputs.types
        and first.outputs.types == second.outputs.types
        and equivalent(first.body, second.body)
        and _shared_bytes(first, second) > 0
    )


def merge(kernels: Sequence[KernelOp]) -> KernelOp:
    """One kernel with the outputs of all, to stand in the place of the first."""
    first = kernels[0]
    inputs = list(dict.fromkeys(value for kernel in kernels for value in kernel.inputs))
    outputs = [t for kernel in kernels for t in kernel.outputs.types]
    merged = KernelOp(first.sym_name.data, inputs, outputs)
    merged.location = first.location
    entry = merged.body.block
    of_input = dict(zip(inputs, merged.input_args, strict=True))
    free_outputs = iter(merged.output_args)
    for kernel in kernels:
        arguments = [of_input[v] for v in kernel.inputs]
        arguments += [next(free_outputs) for _ in kernel.outputs]
        values: dict[SSAValue, SSAValue] = {}
        for old, new in zip(kernel.body.block.args, arguments, strict=True):
            new.name_hint = new.name_hint or old.name_hint
            values[old] = new
        if kernel is first:
            for op in first.body.block.ops:
                entry.add_op(op.clone(value_mapper=values))
        else:
            _interleave(entry, kernel.body.block, values)
    return merged


def _interleave(target: Block, source: Block, values: dict[SSAValue, SSAValue]) -> None:
    """Copy the statements of `source`, level by level, into the same levels of `target`."""
    loops = [o for o in target.ops if isinstance(o, ForOp) and not o.res]
    end = target.last_op if isinstance(target.last_op, YieldOp) else None
    anchor = loops[0] if loops else end
    same = iter(loops)
    for op in source.ops:
        if isinstance(op, YieldOp):
            continue
        if isinstance(op, ForOp) and not op.res:
            loop = next(same)
            values[op.induction_var] = loop.induction_var
            _interleave(loop.body.block, op.body.block, values)
            continue
        copy = op.clone(value_mapper=values)
        if anchor is None:
            target.add_op(copy)
        else:
            target.insert_op_before(copy, anchor)


def _replace(kernels: Sequence[KernelOp], merged: KernelOp) -> None:
    first = kernels[0]
    assert first.parent is not None
    first.parent.insert_op_before(merged, first)
    rename([output for kernel in kernels for output in kernel.outputs], merged.outputs)
    for kernel in kernels:
        kernel.detach()
        kernel.erase()


@dataclass(frozen=True)
class MergeSiblingsPass(ModulePass):
    """Merge kernels that do the same to different weights of one input."""

    name = PASS

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        kernels = ops_of(op, KernelOp)
        position: dict[Operation, int] = {o: i for i, o in enumerate(ops_in(op))}
        groups: list[list[KernelOp]] = []
        for kernel in kernels:
            family = next(
                (g for g in groups if are_siblings(g[0], kernel) and not is_full(g)), None
            )
            reason = None if family is None else decline_reason(family[0], kernel, position)
            if family is None or reason is not None:
                groups.append([kernel])
                if family is not None:
                    into = family[0].sym_name.data
                    text = f"not merged with {into}: {reason}"
                    record(PASS, kernel.sym_name.data, False, text, kernel, (into,))
            else:
                family.append(kernel)
        for group in groups:
            if len(group) == 1:
                continue
            shared = _shared_bytes(group[0], group[1])
            names = tuple(kernel.sym_name.data for kernel in group[1:])
            merged = merge(group)
            _replace(group, merged)
            reason = f"merged with {', '.join(names)}, sharing {shared} B"
            record(PASS, merged.sym_name.data, True, reason, merged, names)
