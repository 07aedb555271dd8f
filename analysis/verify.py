"""The whole check of a module: each op's verifier, then dominance; errors know their op.

`ModuleOp.verify` reports most failures without saying which op failed. `verify_module` verifies op
by op, inner ops first, so that the op is known. A `Verifier` is for a module that passes change one after
the other: most of them leave most modules as they are, and to see that takes a small part of the time.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from operator import attrgetter, is_

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.traits import NoTerminator
from xdsl.utils.exceptions import VerifyException

from .attached_messages import message_of
from .dominance import check_dominance
from .launches import kernels_of

_type_of = attrgetter("type")


class InvalidOpError(VerifyException):
    """An op that breaks a rule of its dialect; `op` is that op."""

    def __init__(self, op: Operation, message: str):
        self.op = op
        super().__init__(message)


def verify_module(module: ModuleOp) -> None:
    """Raise a `VerifyException` with an `op` attribute at the first op that is not valid."""
    _verify_op(module)
    _verify_kernel_names(module)
    check_dominance(module)


class Snapshot:
    """A module as it is now, to ask later whether anything was changed: a small part of comparing two."""

    def __init__(self, module: ModuleOp) -> None:
        self._parts: list[object] = []
        _list_parts(module, self._parts)

    def same(self, later: Snapshot) -> bool:
        """Whether the other one is of the same module, exactly as it was."""
        parts = later._parts
        return len(parts) == len(self._parts) and all(map(is_, parts, self._parts))


class Verifier:
    """Verifies a module after each pass, unless it is exactly what was verified before."""

    def __init__(self) -> None:
        self._verified: Snapshot | None = None

    def verify(self, module: ModuleOp) -> None:
        """Raise a `VerifyException` with an `op` attribute at the first op that is not valid."""
        snapshot = Snapshot(module)
        if self._verified is not None and self._verified.same(snapshot):
            return
        verify_module(module)
        self._verified = snapshot


def _list_parts(op: Operation, found: list[object]) -> None:
    """List all that a verifier may look at: objects that only are the same if nothing was changed.

    None ends what an op has itself, and each of its regions: so equal lists have the same structure. Reads
    xDSL's own fields: its views of them take three times as long, and this runs after every pass.
    """
    found.append(op)
    found += op._operands
    found += map(_type_of, op.results)
    for named in (op.properties, op.attributes):
        if named:
            found += named
            found += named.values()
    found += op._successors
    found.append(None)
    for region in op.regions:
        found.append(region)
        for block in region.blocks:
            found.append(block)
            found += map(_type_of, block.args)
            inner = block.first_op
            while inner is not None:
                _list_parts(inner, found)
                inner = inner._next_op
        found.append(None)


def _verify_op(op: Operation) -> None:
    for region in op.regions:
        for block in region.blocks:
            if block.first_op is None:
                _verify_empty_block(block)
            for inner in block.ops:
                _verify_op(inner)
    try:
        op.verify(verify_nested_ops=False)
    except (VerifyException, ValueError) as error:
        raise InvalidOpError(op, _message(op, error)) from error


def _verify_kernel_names(module: ModuleOp) -> None:
    """Two kernels of a module never share a name: what passes tell people names one of them."""
    taken: set[str] = set()
    for kernel in kernels_of(module):
        name = kernel.sym_name.data
        if name in taken:
            raise InvalidOpError(kernel, f"another kernel is called @{name}")
        taken.add(name)


def _verify_empty_block(block: Block) -> None:
    """A block without ops ends nowhere; only a region without terminators may hold one."""
    parent = block.parent_op()
    region = block.parent
    if parent is None or region is None or parent.has_trait(NoTerminator):
        return
    raise InvalidOpError(parent, "contains a block without a terminator")


def _message(op: Operation, error: Exception) -> str:
    """xDSL's message, without what the diagnostic says anyway."""
    text = message_of(error)
    for prefix in ("Operation does not verify: ", f"Operation {op.name} ", f"'{op.name}' op "):
        text = text.removeprefix(prefix)
    return text
