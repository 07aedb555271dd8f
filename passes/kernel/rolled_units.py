"""Families of operations that become one loop; a part of `roll-registers`.

A unit is some families of one size: turn k of the loop runs the k-th operation of each. What a turn reads of
its own turn is a value of the loop's body. What it reads of another unit lies in an array of registers; its
place there, like the constants of indices, must follow from the counters of the loop, or of a nest of loops.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation, SSAValue

from ...dialects.loop import LoadOp, StoreOp
from ...dialects.loop_access import MAX_REGISTERS, in_registers
from .carried_arrays import LOOP_LINES
from .families import Family, families_of, indices_of
from .rolled_order import components, dependences

Function = Sequence[int]
"""A number for each turn."""


@dataclass(eq=False)
class Unit:
    """Families of one size; or one operation, which stays as it is."""

    families: list[Family]
    nest: tuple[int, ...] = ()
    """The extents of the nest of loops, the outermost first; none of an operation that stays."""
    strides: dict[Function, tuple[int, ...]] = field(
        default_factory=dict[Function, tuple[int, ...]]
    )
    """What each function of the turn grows by with each counter."""

    @property
    def turns(self) -> int:
        """How many operations each family has."""
        return len(self.families[0])


@dataclass(eq=False)
class Plan:
    """What becomes of operations that follow each other."""

    ops: Sequence[Operation]
    after: Mapping[Operation, Sequence[Operation]]
    families: list[Family]
    units: list[Unit] = field(default_factory=list[Unit])
    """In the order in which they are to stand."""
    turn: dict[Operation, int] = field(default_factory=dict[Operation, int])
    family: dict[Operation, Family] = field(default_factory=dict[Operation, Family])
    unit: dict[Operation, Unit] = field(default_factory=dict[Operation, Unit])

    def __post_init__(self) -> None:
        self.position = {op: number for number, op in enumerate(self.ops)}

    def first(self, unit: Unit) -> int:
        """Where the first operation of a unit stands."""
        return min(self.position[family[0]] for family in unit.families)

    # ------------------------------------------------------------------ what turns read

    def elements(self, family: Family, position: int) -> Function | None:
        """Which turn of another family each turn reads as an operand; None if they all read one value."""
        owners = [op.operands[position].owner for op in family]
        if isinstance(owners[0], Operation) and owners[0] in self.turn:
            return tuple(self.turn[owner] for owner in owners if isinstance(owner, Operation))
        return None

    def functions(self, unit: Unit) -> list[Function]:
        """The numbers by which the turns of a unit differ: constants of indices, and places in arrays."""
        found: list[Function] = []
        for family in unit.families:
            places = [[c for _, index in indices_of(op) for c in index] for op in family]
            found += [tuple(column) for column in zip(*places, strict=True)]
            for position, value in enumerate(family[0].operands):
                elements = self.elements(family, position)
                if elements is not None and self.unit[_owner(value)] is not unit:
                    found.append(elements)
        return found

    def in_array(self, family: Family) -> bool:
        """Whether what a family gives is read by others than its own turns."""
        unit = self.unit[family[0]]
        return any(
            self.unit.get(use.operation) is not unit
            for op in family
            for result in op.results
            for use in result.uses
        )


def _owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def plan(ops: Sequence[Operation]) -> Plan | None:
    """What becomes of operations that follow each other in a block; None if all stay as they are."""
    families = families_of(ops)
    after = dependences(ops) if families else {}
    while families:
        made = Plan(ops, after, families)
        rejected = _rejected(made)
        if not rejected:
            return made
        families = [f for f in families if not any(f is other for other in rejected)]
    return None


def _rejected(plan: Plan) -> list[Family]:
    """Form the units of a plan; gives families that cannot be in one, nothing once all is well."""
    for family in plan.families:
        for turn, op in enumerate(family):
            plan.turn[op], plan.family[op] = turn, family
    if alone := [f for f in plan.families if not _reads_alike(plan, f)]:
        return alone
    groups = _joined(plan)
    units = [Unit(group) for group in groups]
    units += [Unit([[op]]) for op in plan.ops if op not in plan.turn]
    for unit in units:
        plan.unit |= {op: unit for family in unit.families for op in family}
    if torn := _order(plan, units):
        return torn
    rolled = [unit for unit in plan.units if unit.turns > 1]
    for unit in rolled:
        if not _is_loop(plan, unit):
            return unit.families
    _join_neighbours(plan)
    return _too_short(plan)


def _reads_alike(plan: Plan, family: Family) -> bool:
    """Whether each operand of a family is one value, or of one family."""
    for position, first in enumerate(family[0].operands):
        values = [op.operands[position] for op in family]
        if all(value is first for value in values) or isinstance(first.owner, arith.ConstantOp):
            continue
        sources = [
            plan.family.get(v.owner) if isinstance(v.owner, Operation) else None for v in values
        ]
        if sources[0] is None or sources[0] is family or any(s is not sources[0] for s in sources):
            return False
    return True


def _joined(plan: Plan) -> list[list[Family]]:
    """The families in groups: those of which each turn reads its own turn are in one."""
    group = {id(family): [family] for family in plan.families}
    for family in plan.families:
        for position, value in enumerate(family[0].operands):
            elements = plan.elements(family, position)
            source = plan.family.get(value.owner) if isinstance(value.owner, Operation) else None
            if source is None or elements != tuple(range(len(source))):
                continue
            mine, theirs = group[id(family)], group[id(source)]
            if mine is not theirs:
                mine += theirs
                group |= {id(member): mine for member in theirs}
    return [*{id(members): members for members in group.values()}.values()]


def _order(plan: Plan, units: list[Unit]) -> list[Family]:
    """Order the units: those that need each other are one; gives families that cannot be in any order."""
    units = sorted(units, key=plan.first)
    number = {unit: i for i, unit in enumerate(units)}
    before: list[set[int]] = [set() for _ in units]
    for op, others in plan.after.items():
        before[number[plan.unit[op]]] |= {number[plan.unit[other]] for other in others}
    component = components([sorted(b) for b in before])
    members: dict[int, list[Unit]] = {}
    for unit, its in zip(units, component, strict=True):
        members.setdefault(its, []).append(unit)
    for _, group in sorted(members.items()):
        if any(unit.turns != group[0].turns for unit in group):
            return [family for unit in group if unit.turns > 1 for family in unit.families]
        unit = Unit([family for each in group for family in each.families])
        plan.unit |= {op: unit for family in unit.families for op in family}
        plan.units.append(unit)
    return []


def _is_loop(plan: Plan, unit: Unit) -> bool:
    """Whether a unit is a nest of loops: its turns in order do what its operations did."""
    unit.families.sort(key=lambda family: plan.position[family[0]])
    order: dict[int, set[int]] = {i: set() for i in range(len(unit.families))}
    number = {id(family): i for i, family in enumerate(unit.families)}
    for family in unit.families:
        for turn, op in enumerate(family):
            for other in plan.after[op]:
                if plan.unit[other] is not unit:
                    continue
                if plan.turn[other] > turn:
                    return False
                if plan.turn[other] == turn:
                    order[number[id(family)]].add(number[id(plan.family[other])])
                elif any(value.owner is other for value in op.operands):
                    return False
    sequence = components([[*order[i]] for i in range(len(unit.families))])
    if len({*sequence}) != len(sequence):
        return False
    unit.families = [unit.families[i] for i in sorted(order, key=sequence.__getitem__)]
    for family in unit.families:
        if plan.in_array(family) and (
            len(family) * len(family[0].results) > MAX_REGISTERS
            or any(isinstance(result.type, IndexType) for result in family[0].results)
        ):
            return False
    return _has_nest(plan, unit)


def _has_nest(plan: Plan, unit: Unit) -> bool:
    """Find the nest of loops whose counters give what the turns differ in, if there is one."""
    functions = plan.functions(unit)
    found = _nest(functions, unit.turns)
    if found is None:
        return False
    unit.nest, strides = found
    unit.strides = dict(zip(functions, strides, strict=True))
    return True


def _nest(
    functions: Sequence[Function], turns: int
) -> tuple[tuple[int, ...], list[tuple[int, ...]]] | None:
    """Extents of loops with whose counters some functions grow evenly, and by how much; None without any."""
    if turns == 1:
        return (), [() for _ in functions]
    steps = [f[1] - f[0] for f in functions]
    extent = next(
        (
            turn
            for turn in range(2, turns)
            if any(f[turn] - f[turn - 1] != step for f, step in zip(functions, steps, strict=True))
        ),
        turns,
    )
    for f, step in zip(functions, steps, strict=True):
        if any(f[turn] != f[turn - turn % extent] + turn % extent * step for turn in range(turns)):
            return None
    outer = None if turns % extent else _nest([f[::extent] for f in functions], turns // extent)
    if outer is None:
        return None
    extents, strides = outer
    return (*extents, extent), [(*s, step) for s, step in zip(strides, steps, strict=True)]


def _join_neighbours(plan: Plan) -> None:
    """Have units that follow each other and are the same nest be one, where turns need no later turn."""
    units: list[Unit] = []
    for unit in plan.units:
        last = units[-1] if units else unit
        if unit.turns == 1 or last is unit or last.turns != unit.turns:
            units.append(unit)
            continue
        both = Unit([*last.families, *unit.families])
        for mine in (last, unit):
            plan.unit |= {op: both for family in mine.families for op in family}
        longest = max(len(last.nest), len(unit.nest))
        if _is_loop(plan, both) and len(both.nest) <= longest:
            units[-1] = both
            continue
        for mine in (last, unit):
            plan.unit |= {op: mine for family in mine.families for op in family}
        units.append(unit)
    plan.units = units


def _too_short(plan: Plan) -> list[Family]:
    """The families of a unit that is no shorter as loops, if nobody needs its arrays."""
    for unit in plan.units:
        if unit.turns == 1:
            continue
        lines = sum(_is_line(plan, family) for family in unit.families)
        arrays = sum(plan.in_array(family) for family in unit.families)
        if lines + arrays + LOOP_LINES * len(unit.nest) < lines * unit.turns:
            continue
        readers = {
            use.operation for f in unit.families for op in f for r in op.results for use in r.uses
        }
        if all(plan.unit.get(op, unit) is unit or plan.unit[op].turns == 1 for op in readers):
            return unit.families
    return []


def _is_line(plan: Plan, family: Family) -> bool:
    """Whether an operation has a line of C++: reading registers has none, nor has storing a turn's value."""
    match family[0]:
        case LoadOp() as op:
            return not in_registers(op.memref)
        case StoreOp() as op:
            return not (in_registers(op.memref) and plan.elements(family, 0) is not None)
        case _:
            return True
