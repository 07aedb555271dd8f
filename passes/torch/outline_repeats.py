"""`outline-repeats`: layers that repeat become one function, called once for each.

    %a = torch.linear %x, %w0 ...                 func.func private @layer(%x, %w) { ... }
    %b = torch.gelu %a ...
    %c = torch.linear %b, %w1 ...        becomes  func.func @main(...) {
    %d = torch.gelu %c ...                          %b = func.call @layer(%x, %w0)
    ...                                             %d = func.call @layer(%b, %w1)

So that a model of forty equal layers is decomposed, fused and scheduled as fast as one of a single layer;
`inline-calls` puts the launches back once the kernels are made.

Two runs of operations are equal if the same operators, arguments and types follow each other and read
each other's results in the same way. What they read from elsewhere becomes a parameter. Of the places
where a repeated run may be cut, the one that the fewest values cross is taken, which in a network with
residual connections is the end of a layer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects.torch import CallOp
from ...dialects.torch_base import TorchOp
from ..decisions import record
from ..symbol_names import function_names

MIN_OPERATIONS = 8
"""Fewer operations than this are left alone: a chain of equal activations fuses better than it calls."""

_CANDIDATES = 8
"""How many distances between equal operations are looked at."""


@dataclass(frozen=True)
class _Repeat:
    """`copies` equal runs of `period` operations, one after the other, from position `start`."""

    start: int
    period: int
    copies: int
    parameters: list[tuple[SSAValue, ...]]
    """For each parameter its value in each copy. Two may have the same value in some copies."""
    results: list[tuple[int, int]]
    """What is read outside: position in the run and number of the result."""
    carried: int
    """How many parameters differ between the copies and are computed."""

    @property
    def saved(self) -> int:
        """Operations that need not be compiled again."""
        return (self.copies - 1) * self.period


class _Function:
    """The operations of one function, and where each value is defined among them."""

    def __init__(self, block: Block):
        self.ops = [op for op in block.ops if not isinstance(op, func.ReturnOp)]
        self.position = {op: i for i, op in enumerate(self.ops)}
        numbers: dict[Hashable, int] = {}
        self.tokens = [
            numbers.setdefault(_token(op), len(numbers))
            if isinstance(op, TorchOp | CallOp)
            else -1 - i
            for i, op in enumerate(self.ops)
        ]

    def best_repeat(self) -> _Repeat | None:
        """The repetition that saves most."""
        repeats = [
            repeat
            for period in self._periods()
            for start, length in self._runs(period)
            if (repeat := self._best_cut(start, length, period)) is not None
        ]
        return max(repeats, key=lambda r: (r.saved, -r.period, -r.start), default=None)

    def _periods(self) -> list[int]:
        """The distances at which most operations come again."""
        last: dict[int, int] = {}
        distances: Counter[int] = Counter()
        for i, token in enumerate(self.tokens):
            if token in last:
                distances[i - last[token]] += 1
            last[token] = i
        long = [(count, -p) for p, count in distances.items() if p >= MIN_OPERATIONS]
        return [-negative for _, negative in sorted(long, reverse=True)[:_CANDIDATES]]

    def _runs(self, period: int) -> list[tuple[int, int]]:
        """Start and length of each stretch whose operations all come again after `period`."""
        runs: list[tuple[int, int]] = []
        start = 0
        for i in range(len(self.tokens) - period + 1):
            end = i == len(self.tokens) - period
            if end or self.tokens[i] != self.tokens[i + period]:
                if i - start >= period:
                    runs.append((start, i - start))
                start = i + 1
        return runs

    def _best_cut(self, start: int, length: int, period: int) -> _Repeat | None:
        """The repetition cut where the first two copies say that the fewest values cross."""
        shifts = range(min(period, length - period + 1))
        pairs = [self._cut(start + shift, period, 2) for shift in shifts]
        for cut in sorted(filter(None, pairs), key=lambda c: (c.carried + len(c.results), c.start)):
            copies = (length - (cut.start - start)) // period + 1
            if (whole := self._cut(cut.start, period, copies)) is not None:
                return whole
        return None

    def _cut(self, start: int, period: int, copies: int) -> _Repeat | None:
        """The repetition cut at `start`, or None if the copies do not read alike."""
        parameters: dict[tuple[SSAValue, ...], None] = {}
        results: dict[tuple[int, int], None] = {}
        for offset in range(period):
            ops = [self.ops[start + copy * period + offset] for copy in range(copies)]
            for operands in zip(*(op.operands for op in ops), strict=True):
                inside = {
                    self._inside(value, start + copy * period, period)
                    for copy, value in enumerate(operands)
                }
                if len(inside) > 1:
                    return None
                if inside == {None}:
                    parameters[operands] = None
            for copy, op in enumerate(ops):
                for number, result in enumerate(op.results):
                    if any(
                        not self._is_inside(use.operation, start + copy * period, period)
                        for use in result.uses
                    ):
                        results[offset, number] = None
        carried = sum(
            len(set(values)) > 1 and not all(isinstance(v, BlockArgument) for v in values)
            for values in parameters
        )
        return _Repeat(start, period, copies, list(parameters), list(results), carried)

    def _is_inside(self, op: Operation, start: int, period: int) -> bool:
        return start <= self.position.get(op, -1) < start + period

    def _inside(self, value: SSAValue, start: int, period: int) -> tuple[int, int] | None:
        """Where in a copy a value is computed, or None if it comes from elsewhere."""
        owner = value.owner
        if isinstance(owner, Block) or not self._is_inside(owner, start, period):
            return None
        return self.position[owner] - start, owner.results.index(value)  # pyright: ignore[reportArgumentType]


def _token(op: Operation) -> Hashable:
    """Equal for operations that may be copies of each other."""
    return (
        op.name,
        tuple(sorted(op.properties.items(), key=lambda item: item[0])),
        tuple(sorted(op.attributes.items(), key=lambda item: item[0])),
        tuple(op.operand_types),
        tuple(op.result_types),
        *map(_body_token, op.regions),
    )


def _body_token(region: Region) -> Hashable:
    """Equal for regions that compute the same: their operations, with where each operand comes from."""
    (block,) = region.blocks
    values: list[SSAValue] = [*block.args, *(result for op in block.ops for result in op.results)]
    number = {value: i for i, value in enumerate(values)}
    return tuple((_token(op), *(number[value] for value in op.operands)) for op in block.ops)


def _outline(function: _Function, repeat: _Repeat, name: str) -> func.FuncOp:
    """Make the function of a repetition and call it in place of each copy."""
    ops = function.ops[repeat.start : repeat.start + repeat.period * repeat.copies]
    first = ops[: repeat.period]
    block = Block(arg_types=[values[0].type for values in repeat.parameters])
    arguments_of = dict(zip(repeat.parameters, block.args, strict=True))
    for values, argument in arguments_of.items():
        argument.name_hint = values[0].name_hint
    mapping: dict[SSAValue, SSAValue] = {}
    for offset, op in enumerate(first):
        cloned = op.clone(value_mapper=mapping)
        # One value of the first copy may be two parameters; what the other copies read tells them apart.
        read = zip(*(each.operands for each in ops[offset :: repeat.period]), strict=True)
        for i, values in enumerate(read):
            if values in arguments_of:
                cloned.operands[i] = arguments_of[values]
        block.add_op(cloned)
    returned = [mapping[first[offset].results[number]] for offset, number in repeat.results]
    block.add_op(func.ReturnOp(*returned))
    types = [v.type for v in returned]
    replaced: dict[SSAValue, SSAValue] = {}
    for copy in range(repeat.copies):
        mine = ops[copy * repeat.period : (copy + 1) * repeat.period]
        arguments = [replaced.get(values[copy], values[copy]) for values in repeat.parameters]
        call = func.CallOp(name, arguments, types)
        call.location = mine[0].location
        parent = mine[0].parent
        assert parent is not None
        parent.insert_op_before(call, mine[0])
        for (offset, number), new in zip(repeat.results, call.results, strict=True):
            old = mine[offset].results[number]
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
            replaced[old] = new
    for op in reversed(ops):
        op.detach()
        op.erase()
    outlined = func.FuncOp(
        name, (list(block.arg_types), types), Region(block), visibility="private"
    )
    outlined.location = first[0].location
    return outlined


@dataclass(frozen=True)
class OutlineRepeatsPass(ModulePass):
    """Call one function for each of several equal runs of Torch IR operations."""

    name = "outline-repeats"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        names = function_names(op)
        for main in [o for o in op.ops if isinstance(o, func.FuncOp)]:
            if len(main.body.blocks) != 1:
                continue  # it has no body, or several blocks, which have no one order
            found = False
            while (repeat := (body := _Function(main.body.block)).best_repeat()) is not None:
                name = names.fresh("layer")
                outlined = _outline(body, repeat, name)
                op.body.block.insert_op_before(outlined, main)
                reason = f"{repeat.copies} times the same {repeat.period} operations"
                record(self.name, name, True, reason, outlined)
                found = True
            if not found:
                record(self.name, main.sym_name.data, False, "no layer comes twice", main)
