"""`roll-registers`: what a thread does to many registers alike becomes loops over arrays.

    %s:4 = scf.for %k = ... iter_args(%a0 = %z, %a1 = %z, %a2 = %z, %a3 = %z) -> (f32, f32, f32, f32) {
      %x0 = loop.load %x[%i, %k] : memref<64x32xf32>
      %x1 = loop.load %x[%i + 16, %k] : memref<64x32xf32>      // and %x2, %x3
      %n0 = arith.addf %a0, %x0 : f32                           // and %n1, %n2, %n3
      scf.yield %n0, %n1, %n2, %n3 : f32, f32, f32, f32
    }
becomes
    %s = loop.registers : memref<4xf32, "registers">
    scf.for %k = ... {
      scf.for %turn = %c0 to %c4 step %c1 {
        %v = loop.load %x[%i + %turn * 16, %k] : memref<64x32xf32>
        %a = loop.load %s[%turn] : memref<4xf32, "registers">
        %n = arith.addf %a, %v : f32
        loop.store %n, %s[%turn] : memref<4xf32, "registers">
      } {unroll}
    }

First what a loop carries becomes arrays (`carried_arrays.py`). Then, in each block, operations that are alike
are found (`families.py`) and become one loop (`rolled_units.py`), where the result is shorter and the loop's
iterations, one after the other, are an order in which the operations may stand (`rolled_order.py`). The
compiler of CUDA C++ unrolls every loop, and every place in an array is then a number: the machine code has
the same registers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from math import prod
from typing import Any

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...analysis.index import operand_ranges, simplify
from ...dialects.index import index_properties
from ...dialects.inside import ops_in, ops_of
from ...dialects.kernel import FuncOp
from ...dialects.loop import LoadOp, RegistersOp, StoreOp
from ...dialects.loop_access import INDEX
from ...index.affine import split_constant
from ..decisions import record
from .carried_arrays import carry_in_arrays, load
from .families import Family
from .rolled_units import Function, Plan, Unit, plan

NAMES = "mnopqr"
"""What the counters of a nest are called, from the outermost on."""


@dataclass
class _Rolling:
    """The operations of a block that follow each other, on their way to be loops."""

    plan: Plan
    end: InsertPoint
    numbers: _Numbers
    arrays: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    """The array of each family that others read, by its identity."""

    def run(self) -> int:
        """Put the units of the plan in their order in front of the end; gives how many are loops."""
        for unit in self.plan.units:
            if unit.turns > 1:
                self._emit(unit)
                continue
            ((op,),) = unit.families
            op.detach()
            Rewriter.insert_op(op, self.end)
        rolled = [unit for unit in self.plan.units if unit.turns > 1]
        for unit in rolled:
            for family in unit.families:
                self._hand_on(family)
        for unit in reversed(rolled):
            for op in reversed([op for family in unit.families for op in family]):
                Rewriter.erase_op(op, safe_erase=False)
        return len(rolled)

    def _emit(self, unit: Unit) -> None:
        """Put the nest of loops of a unit in front of the end."""
        for family in unit.families:
            if self.plan.in_array(family):
                Rewriter.insert_op(self._array(family), self.end)
        counters: list[SSAValue] = []
        point = self.end
        for depth, extent in enumerate(unit.nest):
            loop = self.numbers.loop(extent, NAMES[depth % len(NAMES)])
            loop.location = unit.families[0][0].location
            Rewriter.insert_op(loop, point)
            counters.append(loop.body.block.args[0])
            end = loop.body.block.last_op
            assert end is not None
            point = InsertPoint.before(end)
        body = _Body(self, unit, counters, point)
        for family in unit.families:
            body.emit(family)

    def _array(self, family: Family) -> RegistersOp:
        """The array in which a family's results lie: those of one operation next to each other."""
        results = family[0].results
        made = RegistersOp(len(family) * len(results), results[0].type)
        made.result.name_hint = results[0].name_hint
        made.location = family[0].location
        self.arrays[id(family)] = made.result
        return made

    def _hand_on(self, family: Family) -> None:
        """Have what stays as it is read elements of the family's array."""
        if (array := self.arrays.get(id(family))) is None:
            return
        for turn, op in enumerate(family):
            for number, result in enumerate(op.results):
                readers = {use.operation: None for use in result.uses}
                for reader in readers:
                    unit = self.plan.unit.get(reader)
                    if unit is not None and unit.turns > 1:
                        continue
                    place = turn * len(op.results) + number
                    value = load(array, place, result.name_hint, reader)
                    for position, operand in enumerate(reader.operands):
                        if operand is result:
                            reader.operands[position] = value


@dataclass
class _Body:
    """The body of a unit's loops as it is made."""

    rolling: _Rolling
    unit: Unit
    counters: Sequence[SSAValue]
    point: InsertPoint
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """What stands for a result of the first operation of a family."""
    loaded: dict[tuple[SSAValue, AffineExpr], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, AffineExpr], SSAValue]
    )

    def emit(self, family: Family) -> None:
        """Put the operation of a turn in the body, and what it gives in the family's array."""
        first = family[0]
        operands = {
            position: self._operand(family, position) for position in range(len(first.operands))
        }
        made = self._rebuilt(family, operands)
        made.location = first.location
        Rewriter.insert_op(made, self.point)
        for old, new in zip(first.results, made.results, strict=True):
            new.name_hint = old.name_hint
            self.values[old] = new
        if (array := self.rolling.arrays.get(id(family))) is not None:
            count = len(first.results)
            turn = self._counted(tuple(range(len(family))), 0)
            for number, result in enumerate(made.results):
                store = StoreOp(result, array, [turn * count + number], self.counters)
                store.location = first.location
                Rewriter.insert_op(store, self.point)

    def _operand(self, family: Family, position: int) -> SSAValue:
        """What a turn reads as an operand."""
        value, plan = family[0].operands[position], self.rolling.plan
        if value in self.values:
            return self.values[value]
        elements = plan.elements(family, position)
        if elements is None:
            return value
        owner = value.owner
        assert isinstance(owner, Operation)
        array = self.rolling.arrays[id(plan.family[owner])]
        count, number = len(owner.results), owner.results.index(value)
        place = self._counted(elements, elements[0]) * count + number
        key = array, place
        if key not in self.loaded:
            op = LoadOp(array, [place], self.counters)
            op.result.name_hint = value.name_hint
            op.location = family[0].location
            Rewriter.insert_op(op, self.point)
            self.loaded[key] = op.result
        return self.loaded[key]

    def _counted(self, function: Function, first: int) -> AffineExpr:
        """A function of the turn as an expression of the counters."""
        strides = self.unit.strides.get(function)
        if strides is None:  # the turn itself
            strides = [prod(self.unit.nest[i + 1 :]) for i in range(len(self.unit.nest))]
        expr = AffineExpr.constant(first)
        for number, stride in enumerate(strides):
            if stride:
                expr = AffineExpr.dimension(number) * stride + expr
        return expr

    def _rebuilt(self, family: Family, operands: dict[int, SSAValue]) -> Operation:
        """The operation of a turn."""
        op: Any = family[0]
        definition = type(op)
        positions = iter(range(len(op.operands)))
        groups: dict[str, Any] = {}
        for name, _ in definition.get_irdl_definition().operands:
            group = getattr(op, name)
            if group is None or isinstance(group, SSAValue):
                groups[name] = None if group is None else operands[next(positions)]
            else:
                groups[name] = [operands[next(positions)] for _ in group]
        said = {n: a for n, a in op.properties.items() if n != "operandSegmentSizes"}
        for index in getattr(op, "INDEXED", ()):
            if index.map in said:
                said[index.map], groups[index.operands] = self._index(family, index, groups)
        results = [getattr(op, name) for name, _ in definition.get_irdl_definition().results]
        types = [r.type if isinstance(r, SSAValue) else [v.type for v in r] for r in results]
        return definition.build(
            operands=[*groups.values()],
            properties=said,
            attributes=op.attributes,
            result_types=types,
        )

    def _index(self, family: Family, index: Any, groups: dict[str, Any]) -> Any:
        """An index of a turn: that of the first one, and what the counters add to it."""
        maps: list[Any] = [op.properties[index.map] for op in family]
        operands = [*groups[index.operands], *self.counters]
        before, ranges = len(operands) - len(self.counters), operand_ranges(operands)
        exprs: list[AffineExpr] = []
        for column in zip(*(map.data.results for map in maps), strict=True):
            constants = tuple(split_constant(expr)[1] for expr in column)
            expr = column[0]
            for number, stride in enumerate(self.unit.strides[constants], before):
                expr = expr + AffineExpr.dimension(number) * stride
            exprs.append(simplify(expr, ranges))
        return index_properties((exprs, operands))


class _Numbers:
    """The numbers that loops of a kernel count to, at its beginning."""

    def __init__(self, function: FuncOp):
        self.block = function.body.block
        front = takewhile(lambda op: isinstance(op, arith.ConstantOp), self.block.ops)
        self.found = {
            op.value.value.data: op.result
            for op in front
            if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr)
            if op.result.type == INDEX
        }

    def loop(self, extent: int, name: str) -> scf.ForOp:
        """A loop that counts to an extent, to be unrolled."""
        block = Block([scf.YieldOp()], arg_types=[INDEX])
        block.args[0].name_hint = name
        loop = scf.ForOp(self._at(0), self._at(extent), self._at(1), [], Region(block))
        loop.attributes["unroll"] = UnitAttr()
        return loop

    def _at(self, number: int) -> SSAValue:
        """A number."""
        if number not in self.found:
            made = arith.ConstantOp.from_int_and_width(number, INDEX)
            made.result.name_hint = f"c{number}"
            first = self.block.first_op
            assert first is not None
            Rewriter.insert_op(made, InsertPoint.before(first))
            self.found[number] = made.result
        return self.found[number]


def _runs(block: Block) -> Iterator[tuple[list[Operation], InsertPoint]]:
    """The operations of a block between those that have regions, and where each run of them ends."""
    run: list[Operation] = []
    for op in list(block.ops):
        if op.regions or isinstance(op, scf.YieldOp):
            if run:
                yield run, InsertPoint.before(op)
            run = []
        elif op.operands or op.results == ():
            run.append(op)  # a number or an array stays in front of all that reads it
    if run:
        yield run, InsertPoint.at_end(block)


def roll(function: FuncOp) -> tuple[int, int]:
    """Roll what a kernel does alike; gives how many arrays its loops carry, and how many loops were made."""
    arrays = carry_in_arrays(function)
    loops, numbers = 0, _Numbers(function)
    blocks = [function.body.block]
    blocks += [region.block for op in ops_in(function) for region in op.regions if region.blocks]
    for block in blocks:
        for ops, end in _runs(block):
            if (made := plan(ops)) is not None:
                loops += _Rolling(made, end, numbers).run()
    for op in ops_of(function, arith.ConstantOp):
        if op.result.first_use is None:
            Rewriter.erase_op(op)
    return arrays, loops


@dataclass(frozen=True)
class RollRegistersPass(ModulePass):
    """Turn what a thread does to many registers alike into loops over arrays."""

    name = "roll-registers"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.body.block.ops:
            if not isinstance(function, FuncOp):
                continue
            arrays, loops = roll(function)
            fired = bool(arrays or loops)
            reason = f"loops over registers: {loops}; arrays that loops carry: {arrays}"
            if not fired:
                reason = "no operations are alike and shorter as a loop"
            record(self.name, function.sym_name.data, fired, reason, function)
