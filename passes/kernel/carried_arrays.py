"""What a loop hands from step to step becomes an array of registers; a part of `roll-registers`.

    %s, %t, %u = scf.for %k = %c0 to %c8 step %c1 iter_args(%a = %z, %b = %z, %c = %z) -> (f32, f32, f32) {
      %x = arith.addf %a, %v : f32                   // and so on
      scf.yield %x, %y, %w : f32, f32, f32
    }
becomes
    %sums = loop.registers : memref<3xf32, "registers">
    loop.store %z, %sums[0] ...                      // and the other two
    scf.for %k = %c0 to %c8 step %c1 {
      %a = loop.load %sums[0] : memref<3xf32, "registers">
      %x = arith.addf %a, %v : f32
      loop.store %x, %sums[0] : memref<3xf32, "registers">   // and so on
    }
    %s = loop.load %sums[0] ...                      // in front of what reads it

Neighbours of one kind, that begin alike and go on alike, are one array. A loop inside that begins with an
array and whose results are the array's next values changes it in place.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from xdsl.dialects import arith, scf
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects.inside import ops_of
from ...dialects.kernel import FuncOp, WgmmaOp, WgmmaWaitOp
from ...dialects.loop import LoadOp, RegistersOp, StoreOp
from ...dialects.loop_access import MAX_REGISTERS, in_registers
from ...index.affine import split_constant

LOOP_LINES = 3
"""Lines of C++ that a loop takes besides its body: the pragma, its head and the brace that ends it."""


def load(array: SSAValue, place: int, hint: str | None, before: Operation) -> SSAValue:
    """An element of an array, read in front of an operation."""
    op = LoadOp(array, [AffineExpr.constant(place)], [])
    op.result.name_hint = hint
    op.location = before.location
    Rewriter.insert_op(op, InsertPoint.before(before))
    return op.result


def constant_place(op: LoadOp | StoreOp) -> int | None:
    """Which element of an array of registers an operation names, if that is a number."""
    if not in_registers(op.memref) or op.indices:
        return None
    return split_constant(op.map.data.results[0])[1]


def carry_in_arrays(function: FuncOp) -> int:
    """Have the loops of a kernel carry arrays where they carry several values alike; gives how many."""
    made = 0
    for loop in ops_of(function, scf.ForOp):
        rows = _rows(loop)
        for first, count in reversed(rows):
            loop = _carry(loop, first, count)
        made += len(rows)
    for op in ops_of(function, WgmmaOp, WgmmaWaitOp):
        _add_in_place(op)
    return made


def _add_in_place(op: WgmmaOp | WgmmaWaitOp) -> None:
    """Have sums that an operation reads from an array lie there afterwards, if nothing else reads them."""
    loads = [v.owner for v in op.sums if isinstance(v.owner, LoadOp) and v.has_one_use()]
    places = [constant_place(load) for load in loads]
    if len(loads) < len(op.sums) or None in places or len({load.memref for load in loads}) > 1:
        return
    if any(isinstance(u.operation, StoreOp | WgmmaOp) for r in op.results for u in r.uses):
        return
    for place, result in zip(places, op.results, strict=True):
        assert place is not None
        if result.first_use is not None:
            _read_from(result, loads[0].memref, place, op)
        store = StoreOp(result, loads[0].memref, [AffineExpr.constant(place)], [])
        store.location = op.location
        Rewriter.insert_op(store, InsertPoint.after(op))


def _read_from(value: SSAValue, array: SSAValue, place: int, made: Operation) -> None:
    """Have what reads a value read an element of an array, in front of the first that does.

    That may be in a branch, if nothing outside of it reads the value.
    """
    block = made.parent
    assert block is not None
    readers = _users(value, block)
    while (
        len({*readers}) == 1
        and isinstance(branch := readers[0], scf.IfOp)
        and value is not branch.cond
    ):
        inside = [use.operation for use in value.uses]
        regions = [
            r for r in branch.regions if r.blocks and any(r.is_ancestor(op) for op in inside)
        ]
        if len(regions) != 1:
            break
        readers = _users(value, regions[0].block)
    reader = _first(readers)
    value.replace_all_uses_with(load(array, place, value.name_hint, reader))


def _rows(loop: scf.ForOp) -> list[tuple[int, int]]:
    """Where rows of values that a loop carries alike begin, and how many values they have."""
    end = loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    kinds = [_kind(loop, *both) for both in zip(loop.iter_args, end.arguments, strict=True)]
    rows: list[tuple[int, int]] = []
    first = 0
    for kind, members in groupby(kinds):
        count = len(list(members))
        if kind is not None and LOOP_LINES < count <= MAX_REGISTERS:
            rows.append((first, count))
        first += count
    return rows


def _kind(
    loop: scf.ForOp, initial: SSAValue, following: SSAValue
) -> tuple[Attribute, object, object] | None:
    """What is alike of values that can be one array; None of one that stays as it is."""
    made = following.owner
    if isinstance(made, Block) or made.parent is not loop.body.block:
        return None
    begin: object
    match initial.owner:
        case arith.ConstantOp(value=value):
            begin = value
        case LoadOp(memref=array):
            begin = array
        case owner:
            begin = type(owner)
    return initial.type, begin, type(made)


def _carry(loop: scf.ForOp, first: int, count: int) -> scf.ForOp:
    """Have a loop carry some of its values in an array; gives the loop that carries the others."""
    body, end = loop.body.block, loop.body.block.last_op
    assert isinstance(end, scf.YieldOp)
    some = slice(first, first + count)
    initial, results = list(loop.iter_args)[some], list(loop.results)[some]
    arguments, following = list(body.args)[1:][some], list(end.arguments)[some]
    place = _array_in_place(loop, initial, results)
    array, base = place or (_array_before(loop, initial, results), 0)
    for number, (argument, value) in enumerate(zip(arguments, following, strict=True), base):
        made = value.owner
        assert isinstance(made, Operation)
        if argument.first_use is not None:
            reader = _first([*_users(argument, body), made])
            argument.replace_all_uses_with(load(array, number, argument.name_hint, reader))
        store = StoreOp(value, array, [AffineExpr.constant(number)], [])
        Rewriter.insert_op(store, InsertPoint.after(made))
    for number, result in enumerate(results, base):
        if result.first_use is not None:
            _read_from(result, array, number, loop)
    new = _without(loop, first, count)
    for value in initial:
        if isinstance(value.owner, LoadOp) and value.first_use is None:
            Rewriter.erase_op(value.owner)
    return new


def _array_in_place(
    loop: scf.ForOp, initial: Sequence[SSAValue], results: Sequence[SSAValue]
) -> tuple[SSAValue, int] | None:
    """The array, and where in it, of which values begin as elements and which gets their ends."""
    loads = [v.owner for v in initial if isinstance(v.owner, LoadOp) and v.has_one_use()]
    stores = [
        use.operation
        for result in results
        for use in result.uses
        if isinstance(use.operation, StoreOp) and use.operation.parent is loop.parent
    ]
    if not len(loads) == len(initial) == len(stores) == sum(r.has_one_use() for r in results):
        return None
    array, base = loads[0].memref, constant_place(loads[0])
    if base is None or any(op.memref is not array for op in (*loads, *stores)):
        return None
    expected = list(range(base, base + len(loads)))
    if any([*map(constant_place, ops)] != expected for ops in (loads, stores)):
        return None
    for op in stores:
        Rewriter.erase_op(op)
    return array, base


def _array_before(
    loop: scf.ForOp, initial: Sequence[SSAValue], results: Sequence[SSAValue]
) -> SSAValue:
    """An array in front of a loop that holds what the loop begins with."""
    made = RegistersOp(len(initial), initial[0].type)
    made.result.name_hint = results[0].name_hint
    stores = [
        StoreOp(value, made.result, [AffineExpr.constant(number)], [])
        for number, value in enumerate(initial)
    ]
    for op in (made, *stores):
        op.location = loop.location
    Rewriter.insert_op([made, *stores], InsertPoint.before(loop))
    return made.result


def _without(loop: scf.ForOp, first: int, count: int) -> scf.ForOp:
    """A loop that no longer carries some of its values, in the place of one that nothing reads them of."""
    some = range(first, first + count)
    block = loop.body.block
    end = block.last_op
    assert isinstance(end, scf.YieldOp)
    others = [v for i, v in enumerate(end.arguments) if i not in some]
    Rewriter.replace_op(end, scf.YieldOp(*others), [])
    for argument in list(block.args)[1:][first : first + count]:
        block.erase_arg(argument)
    kept = [v for i, v in enumerate(loop.iter_args) if i not in some]
    new = scf.ForOp(loop.lb, loop.ub, loop.step, kept, loop.detach_region(loop.body))
    new.attributes |= loop.attributes
    new.location = loop.location
    results = [r for i, r in enumerate(loop.results) if i not in some]
    for old, result in zip(results, new.results, strict=True):
        result.name_hint = old.name_hint
        old.replace_all_uses_with(result)
    Rewriter.insert_op(new, InsertPoint.before(loop))
    Rewriter.erase_op(loop)
    return new


def _users(value: SSAValue, block: Block) -> list[Operation]:
    """The operations of a block that read a value, themselves or in their regions."""
    found: list[Operation] = []
    for use in value.uses:
        op = use.operation
        while op.parent is not block:
            parent = op.parent_op()
            assert parent is not None
            op = parent
        found.append(op)
    return found


def _first(ops: Sequence[Operation]) -> Operation:
    """The first of some operations of one block."""
    if len({*ops}) == 1:
        return ops[0]
    block = ops[0].parent
    assert block is not None
    wanted = {*ops}
    return next(op for op in block.ops if op in wanted)
