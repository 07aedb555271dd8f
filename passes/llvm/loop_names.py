"""Names for what loops compute, by which one loop finds what another one computes, too."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from weakref import WeakValueDictionary

from xdsl.dialects import math, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects.loop import IndexOp, LoadOp, StoreOp, TestOp

_CHEAP = (math.AbsFOp, math.FmaOp, math.CopySignOp, math.FloorOp, math.CeilOp, math.TruncOp)
"""Functions that are an instruction or two; all others of `math` are worth a load."""


@dataclass(frozen=True, eq=False)
class _Name:
    """The name of an operation. Equal ones are one object: names contain names, in which most occur often."""

    parts: Hashable


_names: WeakValueDictionary[Hashable, _Name] = WeakValueDictionary()


def _interned(parts: Hashable) -> _Name:
    """Return the one name of these parts."""
    if (name := _names.get(parts)) is None:
        name = _names[parts] = _Name(parts)
    return name


@dataclass
class Names:
    """Names for what a loop computes: equal in two loops for what is equal at the same counter."""

    loop: scf.ForOp
    columns: bool
    """Whether reading down a column counts as costly."""
    of: dict[SSAValue, Hashable] = field(default_factory=dict[SSAValue, Hashable])
    costly: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """Values that a function of `math`, or an element of a column, is part of, in order."""

    def __post_init__(self):
        block = self.loop.body.block
        self.of[block.args[0]] = "counter"
        for op in block.ops:
            if len(op.results) != 1 or (name := self._name(op, self.of)) is None:
                continue
            result = op.results[0]
            self.of[result] = (name, result.type)
            if self._is_costly(op) or any(v in self.costly for v in op.operands):
                self.costly[result] = None

    def _is_costly(self, op: Operation) -> bool:
        if isinstance(op, LoadOp):
            return self.columns and goes_down(op, self.loop.body.block.args[0])
        return op.dialect_name() == "math" and not isinstance(op, _CHEAP)

    def _name(self, op: Operation, known: Mapping[SSAValue, Hashable]) -> Hashable | None:
        """The name of an operation, from those of what it reads; None if it may do more than compute."""
        nameable = isinstance(op, LoadOp | IndexOp | TestOp | scf.IfOp | scf.YieldOp)
        if not nameable and op.dialect_name() not in ("arith", "math"):
            return None
        if any(is_in(v, self.loop.body.block) and v not in known for v in op.operands):
            return None
        given = tuple(known.get(v, v) for v in op.operands)
        inside: list[Hashable] = []
        for block in (block for region in op.regions for block in region.blocks):
            local = dict(known)
            for inner in block.ops:
                if (name := self._name(inner, local)) is None:
                    return None
                local.update((result, (name, n)) for n, result in enumerate(inner.results))
                inside.append(name)
            inside.append("end")
        return _interned((op.name, tuple(op.properties.items()), given, tuple(inside)))

    def find(self, name: Hashable) -> SSAValue | None:
        """The value of that name."""
        return next((value for value, own in self.of.items() if own == name), None)

    def erase_unused(self) -> None:
        """Erase what has a name and is not read."""
        for value in reversed(self.of):
            if value.first_use is None and isinstance(op := value.owner, Operation):
                op.detach()
                op.erase()


def goes_down(access: LoadOp | StoreOp, counter: SSAValue) -> bool:
    """Whether neighbours in the loop are none in memory: an index other than the last one counts."""
    places = {i for i, value in enumerate(access.indices) if value is counter}
    return any(places & expr.used_dims() for expr in access.map.data.results[:-1])


def is_in(value: SSAValue, block: Block) -> bool:
    """Whether a value is an argument of a block, or computed directly in it."""
    owner = value.owner
    return owner is block or (isinstance(owner, Operation) and owner.parent is block)
