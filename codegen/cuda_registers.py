"""Which elements of arrays of registers are written where they are used, and where they are computed.

float acc[4];                                  acc[0] = acc[0] + x * y;     and not
const float old = acc[0];
const float next = old + x * y;
acc[0] = next;
"""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from ..dialects import kernel, loop
from ..dialects.cuda_scalars import form_of
from ..dialects.loop_access import in_registers

Access = loop.LoadOp | loop.StoreOp


def is_written_where_used(op: loop.LoadOp) -> bool:
    """Whether a load from registers is no statement: nothing changes the array before the last use of it."""
    if not in_registers(op.memref):
        return False
    left = {use.operation for use in op.result.uses}
    following = op.next_op
    while left and following is not None and not following.regions:
        left.discard(following)
        if left and isinstance(following, loop.StoreOp) and following.memref is op.memref:
            return False
        following = following.next_op
    return not left


def is_replaced_next(op: loop.LoadOp) -> bool:
    """Whether the next access to the element that is loaded is a store, in the same block."""
    following = op.next_op
    while following is not None and not following.regions:
        if isinstance(following, Access) and _same_element(following, op):
            return isinstance(following, loop.StoreOp)
        following = following.next_op
    return False


def _same_element(one: Access, other: Access) -> bool:
    """Whether accesses name one element of an array with the same words."""
    return (one.memref, one.map, *one.indices) == (other.memref, other.map, *other.indices)


def places_of(op: Operation) -> dict[SSAValue, loop.StoreOp]:
    """The stores to registers of the results of an operation which is one assignment each with them."""
    if not (isinstance(op, _ASSIGNED) or form_of(op) is not None):
        return {}
    places: dict[SSAValue, loop.StoreOp] = {}
    following = op.next_op
    while isinstance(following, loop.StoreOp) and following.value.owner is op:
        if in_registers(following.memref) and following.value.has_one_use():
            places[following.value] = following
        following = following.next_op
    return places if len(places) == len(op.results) else {}


_ASSIGNED = (
    loop.LoadOp,
    loop.TestOp,
    kernel.ShuffleOp,
    kernel.MmaOp,
    kernel.WgmmaOp,
    kernel.WgmmaWaitOp,
)
"""Operations whose text may assign to elements of arrays, besides those on scalars."""
