"""Which operators of a program PyTorch runs, and why, from the calls in any IR."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.traits import SymbolTable

from ..dialects.calls import REASON, SIZE, TensorCallOp
from ..dialects.kernel import CallOp
from ..dialects.part_calls import parts_of
from .eager_calls import EagerCall
from .locations import line_of


def fallbacks(module: ModuleOp) -> tuple[EagerCall, ...]:
    """The operators that PyTorch runs, in the order of their first calls."""
    found: dict[tuple[str, str], list[str]] = {}
    for op in _calls(module, "main"):
        if op.callee.data == SIZE:
            continue  # of deplo's own
        reason = op.attributes.get(REASON)
        text = reason.data if isinstance(reason, StringAttr) else ""
        found.setdefault((op.callee.data, text), []).append(line_of(op))
    return tuple(EagerCall(name, reason, tuple(where)) for (name, reason), where in found.items())


def _calls(module: ModuleOp, name: str) -> Iterator[TensorCallOp | CallOp]:
    """The calls of PyTorch that a host function makes, itself or through others."""
    function = SymbolTable.lookup_symbol(module, name)
    assert isinstance(function, func.FuncOp)
    for op in function.body.block.ops:
        if isinstance(op, TensorCallOp | CallOp):
            if parts := parts_of(op.callee.data, op.call_arguments):
                for part in parts:
                    yield from _calls(module, part)
            else:
                yield op
        elif isinstance(op, func.CallOp):
            yield from _calls(module, op.callee.root_reference.data)
