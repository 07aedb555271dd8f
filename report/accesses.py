"""What a report says of each access: its width, and what it costs a warp, or how far a CPU steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import BlockArgument, Operation

from ..analysis.bank_conflicts import Access, first_warp
from ..analysis.coalescing import UNKNOWN_SIZE, access_cost
from ..dialects.index import linearize
from ..dialects.inside import ops_in
from ..dialects.loop import ForOp, LoadOp, StoreOp
from ..dialects.scalars import storage_bytes
from ..dialects.sizes import shape_of
from ..dialects.tile import LaunchOp, StageOp
from ..index.affine import count_symbols, values_at
from .stages import line_of


def accesses_of(launch: LaunchOp, *, on_gpu: bool) -> list[dict[str, Any]]:
    """The accesses of a launch in order, as JSON data; those of registers are none.

    Those that differ in where they begin alone, as of a loop that is unrolled, are one, the first of `count`.
    """
    found: dict[str, dict[str, Any]] = {}
    for access in _accesses(launch, on_gpu=on_gpu):
        lanes: list[int] = access["lanes"] or []
        key = {**access, "line": 0, "lanes": [lane - lanes[0] for lane in lanes]}
        known = found.setdefault(json.dumps(key), {**access, "count": 0})
        known["count"] += 1
    return list(found.values())


def _accesses(launch: LaunchOp, *, on_gpu: bool) -> Iterator[dict[str, Any]]:
    warp = first_warp(launch) if on_gpu else None
    for op in ops_in(launch):
        if warp is None:
            if isinstance(op, LoadOp | StoreOp) and isinstance(op.memref.type, MemRefType):
                yield _on_cpu(op, op.memref.type)
        elif (cost := access_cost(op, launch, warp)) is not None:
            yield {
                **_said(op, cost.memory, cost.space),
                "width": cost.width,
                "cost": cost.cost,
                "least": cost.least,
                "lanes": list(cost.lanes),
                "stride": None,
            }


def _said(op: Operation, memory: str, space: str) -> dict[str, Any]:
    array = op.source if isinstance(op, StageOp) else op.operands[-1]
    if isinstance(op, LoadOp | StoreOp):
        array = op.memref
    assert isinstance(array.type, MemRefType)
    return {
        "operation": op.name,
        "memory": memory,
        "space": space,
        "line": line_of(op),
        "element_bytes": storage_bytes(array.type.element_type),
    }


def _on_cpu(op: LoadOp | StoreOp, kind: MemRefType) -> dict[str, Any]:
    return {
        **_said(op, op.memref.name_hint or "memory", "memory"),
        "width": None,
        "cost": None,
        "least": None,
        "lanes": None,
        "stride": _stride(op, kind),
    }


def _stride(op: Access, kind: MemRefType) -> int | None:
    """Elements from one turn of the innermost loop around an access to the next; None if data decide it."""
    if not all(isinstance(index, BlockArgument) for index in op.indices):
        return None
    loop = op.parent_op()
    while loop is not None and not isinstance(loop, ForOp | LaunchOp):
        loop = loop.parent_op()
    match loop:
        case ForOp():
            counter = loop.induction_var
        case LaunchOp() if loop.body.block.args:
            counter = loop.body.block.args[-1]
        case _:
            return 0
    flat = linearize(op.map.data.results, shape_of(kind))
    dims = [[0, 1] if index is counter else [0, 0] for index in op.indices]
    first, second = values_at(flat, 2, dims, (UNKNOWN_SIZE,) * count_symbols([flat]))
    return second - first
