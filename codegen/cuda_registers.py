"""Which elements of arrays of registers are written where they are used, and where they are computed.

float acc[4];                                  acc[0] = acc[0] + x * y;     and not
const float old = acc[0];
const float next = old + x * y;
acc[0] = next;
"""

from __future__ import annotations

from xdsl.dialects import scf
from xdsl.ir import Operation, SSAValue

from ..dialects import kernel
from ..dialects.cuda_scalars import form_of
from ..dialects.loop import LoadOp, StoreOp, TestOp
from ..dialects.loop_access import in_registers

Access = LoadOp | StoreOp


def is_written_where_used(op: LoadOp) -> bool:
    """Whether a load from registers is no statement: nothing changes the array before the last use of it."""
    if not in_registers(op.memref):
        return False
    left = {use.operation for use in op.result.uses}
    following = op.next_op
    while left and following is not None and not following.regions:
        left.discard(following)
        if left and isinstance(following, StoreOp) and following.memref is op.memref:
            return False
        following = following.next_op
    return not left


def is_replaced_next(op: LoadOp) -> bool:
    """Whether the next access to the element that is loaded is a store, in the same block."""
    following = op.next_op
    while following is not None and not following.regions:
        if isinstance(following, Access) and _same_element(following, op):
            return isinstance(following, StoreOp)
        following = following.next_op
    return False


def _same_element(one: Access, other: Access) -> bool:
    """Whether accesses name one element of an array with the same words."""
    return (one.memref, one.map, *one.indices) == (other.memref, other.map, *other.indices)


def places_of(op: Operation) -> dict[SSAValue, StoreOp]:
    """The stores to registers of the results of an operation which is one assignment each with them."""
    if not (isinstance(op, _ASSIGNED) or form_of(op) is not None):
        return {}
    places: dict[SSAValue, StoreOp] = {}
    following = op.next_op
    while isinstance(following, StoreOp) and following.value.owner is op:
        if in_registers(following.memref) and following.value.has_one_use():
            places[following.value] = following
        following = following.next_op
    return places if len(places) == len(op.results) else {}


def carried_by(op: Operation) -> SSAValue | None:
    """The variable of the loop around an operation that its result may be assigned to at once.

    That is what the loop carries as its next value, if nothing after the operation reads the one before.
    """
    loop = op.parent_op()
    if not isinstance(loop, scf.ForOp) or len(op.results) != 1 or not op.results[0].has_one_use():
        return None
    if not (isinstance(op, LoadOp) or form_of(op) is not None):
        return None
    ((user, number),) = ((use.operation, use.index) for use in op.results[0].uses)
    if user is not loop.body.block.last_op:
        return None
    readers = {use.operation for use in loop.body.block.args[number + 1].uses}
    following = op.next_op
    while following is not None:
        if readers and any(each in readers for each in following.walk()):
            return None
        following = following.next_op
    return loop.res[number]


_ASSIGNED = (
    LoadOp,
    TestOp,
    kernel.ShuffleOp,
    kernel.MmaOp,
    kernel.WgmmaOp,
    kernel.WgmmaWaitOp,
)
"""Operations whose text may assign to elements of arrays, besides those on scalars."""
