"""A scan of Torch IR as one of Tensor IR and the function that it runs.

    %h, %hs = torch.scan carried(%h0) slices(%x) shared(%w) ... { ... torch.yield %a, %a }
->
    func.func private @step(%h, %x, %w) { ... func.return %a }
    %hs = tensor_ir.scan @step carried(%h0) slices(%x) shared(%w) : ...
    %h = tensor_ir.index_map (i) -> %hs[8, i] ...

What a step only passes on is no result of the function: a value that it carries unchanged is shared, and an
output that is a value carried is what the scan stacks of it. Nor is an output that nothing reads. A slice
must begin at a multiple of `SLICE_BYTES`. Where its size is none, its last axis is padded with zeros; `step`
and the caller see tensors without them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import tensor_ir_scan as tensor_scan
from ...dialects import torch_ops as t
from ...dialects.scalars import storage_bytes
from ...dialects.sizes import Extent, extent_expr, tensor_of
from ...dialects.tensor_ir_scan import SLICE_BYTES, is_aligned
from ...dialects.torch_base import Shape, TorchOp
from ...dialects.torch_scan import ScanOp
from ..symbol_names import function_names
from .layout import join
from .lowering import Lowering, Refusal, Rule, dims, element_of, shape_of

Values = Sequence[SSAValue]
Step = Callable[[Lowering, Values, Values, Values], Values]
"""The carried values of the next step, and further outputs, for carried values, slices and shared values."""


def _scan(e: Lowering, op: ScanOp) -> Values:
    """The last carried values, and each output of all steps. Raises Refusal for values that change places."""
    e.hint = "scan"
    block, count = op.body.block, len(op.carried)
    assert block.last_op is not None
    yielded = [_origin(value) for value in block.last_op.operands]
    moves = [yielded[i] is not block.args[i] for i in range(count)]
    computed = dict.fromkeys(yielded[i] for i in range(count) if moves[i])
    if len(computed) < sum(moves) or any(isinstance(value, BlockArgument) for value in computed):
        raise Refusal("a step that carries on a value in the place of another")
    used = [
        v for v, result in zip(yielded[count:], op.results_[count:], strict=True) if result.uses
    ]
    computed |= dict.fromkeys(value for value in used if not isinstance(value, BlockArgument))
    pairs = list(zip(block.args, op.operands, strict=True))
    behind = count + len(op.slices)
    groups = [
        [pairs[i] for i in range(count) if moves[i]],
        pairs[count:behind],
        [pairs[i] for i in range(count) if not moves[i]] + pairs[behind:],
    ]
    stacks: dict[SSAValue, SSAValue] = {}
    if computed:
        carried, slices, shared = ([value for _, value in group] for group in groups)
        step = _moved(
            block, [argument for group in groups for argument, _ in group], list(computed)
        )
        made = scan(e, step, (carried, slices, shared), reversed=op.reversed is not None)
        stacks = dict(zip(computed, made, strict=True))
    trips, reversed = shape_of(op.slices[0])[0], op.reversed is not None
    for i, (argument, value) in enumerate(pairs):
        if argument not in yielded:
            continue
        if i < count and moves[i]:
            stacks[argument] = _shifted(e, value, stacks[yielded[i]], reversed=reversed)
        elif count <= i < behind:
            stacks[argument] = value
        else:
            stacks[argument] = e.broadcast(value, (trips, *shape_of(value)))
    end = 0 if reversed else trips - 1
    lasts = [
        e.reshape(_part(e, stacks[each], end, 1), shape_of(value))
        for each, value in zip(yielded, op.carried, strict=False)
    ]
    unused = (e.constant(0, element_of(result), shape_of(result)) for result in op.results_[count:])
    return [
        *lasts,
        *(stacks.get(v, other) for v, other in zip(yielded[count:], unused, strict=True)),
    ]


def _shifted(e: Lowering, first: SSAValue, stack: SSAValue, *, reversed: bool) -> SSAValue:
    """What each step reads of a value carried: `first`, and what the step before gave to `stack`."""
    first = e.reshape(first, (1, *shape_of(first)))
    steps = shape_of(stack)[0]
    if steps == 1:
        return first
    rest = _part(e, stack, 1 if reversed else 0, steps - 1)
    return join(e, [rest, first] if reversed else [first, rest], 0)


def _origin(value: SSAValue) -> SSAValue:
    """What a copy is made of."""
    while isinstance(value.owner, Operation) and isinstance(value.owner, t.CloneOp | t.AliasOp):
        value = value.owner.operands[0]
    return value


def _moved(block: Block, arguments: Values, results: Values) -> Step:
    """Moves what a block computes, but for its last operation, to where the step is built."""

    def step(inner: Lowering, *given: Values) -> Values:
        for argument, value in zip(arguments, [v for group in given for v in group], strict=True):
            argument.replace_all_uses_with(value)
        for op in list(block.ops)[:-1]:
            location = op.location
            op.detach()
            inner.place(op)
            op.location = location
        return results

    return step


def _part(e: Lowering, stack: SSAValue, start: Extent, extent: Extent) -> SSAValue:
    """`extent` positions of the first axis from `start` on."""
    shape = shape_of(stack)
    index = dims(len(shape))
    index[0] = index[0] + extent_expr(start)
    return e.index_map([stack], [index], (extent, *shape[1:]), suffix="at")


def scan(
    e: Lowering, step: Step, operands: tuple[Values, Values, Values], *, reversed: bool = False
) -> list[SSAValue]:
    """What `step` gives in each step of the leading axis of the slices, stacked along a new leading axis.

    `operands` are the carried values of the first step, the slices, and what all steps share.
    """
    carried, slices, shared = operands
    given = [_padded(e, value, 0) for value in carried]
    sliced = [_padded(e, value, 1) for value in slices]
    types = [value.type for value in given]
    types += [tensor_of(element_of(value), shape_of(value)[1:]) for value in sliced]
    block = Block(arg_types=[*types, *(value.type for value in shared)])
    for argument, value in zip(block.args, (*given, *sliced, *shared), strict=True):
        argument.name_hint = value.name_hint
    inner = e.inside(block)
    shapes = [shape_of(value) for value in carried] + [shape_of(value)[1:] for value in slices]
    inputs = [_cut(inner, v, shape) for v, shape in zip(block.args, shapes, strict=False)]
    first, last = len(carried), len(shapes)
    results = step(inner, inputs[:first], inputs[first:], block.args[last:])
    returned = [_padded(inner, value, 0) for value in results]
    block.add_op(func.ReturnOp(*returned))
    name = _insert_function(e, block, [value.type for value in returned])
    trips = shape_of(slices[0])[0]
    stacked = [tensor_of(element_of(v), (trips, *shape_of(v))) for v in returned]
    op = tensor_scan.ScanOp(name, (given, sliced, shared), stacked, reversed=reversed)
    e.place(op)
    for result in op.results:
        result.name_hint = f"{e.hint}_steps"
    return [
        _cut(e, stack, (trips, *shape_of(value)))
        for stack, value in zip(op.results, results, strict=True)
    ]


def _insert_function(e: Lowering, block: Block, results: Sequence[Attribute]) -> str:
    """Make a private function of a block, in front of the one that is lowered; gives its name."""
    module = e.op.get_toplevel_object()
    assert isinstance(module, ModuleOp)
    name = function_names(module).fresh(f"{e.hint}_step")
    types = list(block.arg_types), list(results)
    function = func.FuncOp(name, types, Region(block), visibility="private")
    function.location = e.op.location
    around = e.op.parent_op()
    assert around is not None
    module.body.block.insert_op_before(function, around)
    return name


def _padded(e: Lowering, value: SSAValue, lead: int) -> SSAValue:
    """`value`, its last axis as long as slices need that begin behind its first `lead` axes."""
    shape, element = shape_of(value), element_of(value)
    if is_aligned(element, shape[lead:]):
        return value
    unit = SLICE_BYTES // storage_bytes(element)
    width: Extent = (shape[-1] + (unit - 1)) // unit * unit
    inside = dims(len(shape))[-1] * -1 + extent_expr(shape[-1] - 1)
    place = [dims(len(shape))]
    padded = (*shape[:-1], width)
    return e.index_map([value], place, padded, conditions=[[inside]], fill=0.0, suffix="pad")


def _cut(e: Lowering, value: SSAValue, shape: Shape) -> SSAValue:
    """The first elements of the last axis of `value`."""
    if shape_of(value) == shape:
        return value
    return e.index_map([value], [dims(len(shape))], shape, suffix="cut")


RULES: dict[type[TorchOp], Rule] = {ScanOp: _scan}
"""The rule for a scan."""
