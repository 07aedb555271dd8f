"""Recurrent networks: a scan over time for each layer and direction.

torch.lstm %x, [%h, %c], [%w_ih, %w_hh, ...]  ->  the gates of all steps from %x, as one product;
                                                  tensor_ir.scan of one step: the product of %w_hh with
                                                  the state, then the cells

A hidden state has the elements of the results, which the next step reads; the state of the cells is kept as
it is computed, in f32 for half types. Formulas and the order of gates are those of PyTorch's
documentation of `torch.nn.LSTM`, `GRU` and `RNN`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from xdsl.ir import SSAValue

from ...dialects import torch_ops as t
from ...dialects.scalars import Function
from ...dialects.sizes import Extent, extent_expr
from ...dialects.torch_base import TorchOp
from ...dialects.torch_recurrent_shapes import RecurrentShapeOp, Weights
from .activations import sigmoid
from .layout import join
from .linear_algebra import product
from .lowering import Lowering, Refusal, Rule, dims, element_of, shape_of
from .scan import Values, scan

Cell = Callable[[Lowering, SSAValue, SSAValue, Values], list[SSAValue]]
"""The new states, from the gates of the input, those of the hidden state, and the states."""


def _piece(e: Lowering, value: SSAValue, axis: int, start: Extent, extent: Extent) -> SSAValue:
    """`extent` positions of an axis from `start` on."""
    shape, index = shape_of(value), dims(len(shape_of(value)))
    index[axis] = index[axis] + extent_expr(start)
    return e.index_map([value], [index], (*shape[:axis], extent, *shape[axis + 1 :]), suffix="at")


def _gates(e: Lowering, value: SSAValue, count: int) -> list[SSAValue]:
    """The vectors that stand next to each other in rows."""
    extent = shape_of(value)[1] // count
    return [_piece(e, value, 1, i * extent, extent) for i in range(count)]


def _sum(e: Lowering, *values: SSAValue) -> SSAValue:
    total, *rest = values
    for value in rest:
        total = e.apply(Function.ADD, total, value)
    return total


def _lstm(e: Lowering, gates: SSAValue, hidden: SSAValue, states: Values) -> list[SSAValue]:
    """c' = f * c + i * g and h' = o * tanh(c')."""
    admit, forget, new, give = _gates(e, _sum(e, gates, hidden), 4)
    kept = e.apply(Function.MUL, sigmoid(e, forget), states[1])
    added = e.apply(Function.MUL, sigmoid(e, admit), e.apply(Function.TANH, new))
    cells = _sum(e, kept, added)
    return [e.apply(Function.MUL, sigmoid(e, give), e.apply(Function.TANH, cells)), cells]


def _gru(e: Lowering, gates: SSAValue, hidden: SSAValue, states: Values) -> list[SSAValue]:
    """h' = n + z * (h - n), in which the reset gate acts on the product of the state."""
    reset, update, new = _gates(e, gates, 3)
    reset_h, update_h, new_h = _gates(e, hidden, 3)
    resets = sigmoid(e, _sum(e, reset, reset_h))
    news = e.apply(Function.TANH, _sum(e, new, e.apply(Function.MUL, resets, new_h)))
    distance = e.apply(Function.SUB, states[0], news)
    updates = sigmoid(e, _sum(e, update, update_h))
    return [_sum(e, news, e.apply(Function.MUL, updates, distance))]


def _tanh(e: Lowering, gates: SSAValue, hidden: SSAValue, states: Values) -> list[SSAValue]:
    return [e.apply(Function.TANH, _sum(e, gates, hidden))]


def _relu(e: Lowering, gates: SSAValue, hidden: SSAValue, states: Values) -> list[SSAValue]:
    value = _sum(e, gates, hidden)
    zero = e.fill_like(value, 0)
    return [e.select(e.apply(Function.LT, value, zero), zero, value)]


def _linear(e: Lowering, value: SSAValue, weight: SSAValue, *biases: SSAValue) -> SSAValue:
    """Rows of `value` times rows of `weight`, and biases."""
    factors = [e.cast(each, e.element) for each in (value, weight)]
    result = product(e, *factors, transposed=True)
    shape = shape_of(result)
    return _sum(e, result, *(e.broadcast(e.cast(bias, e.element), shape) for bias in biases))


def _direction(
    e: Lowering,
    cell: Cell,
    value: SSAValue,
    states: Values,
    weights: Weights,
    *,
    reversed: bool,
) -> list[SSAValue]:
    """The states of a layer at all steps of `value`, [steps, batch, features], in one direction."""
    in_step = weights.biases[1:] if cell is _gru else ()
    # The reset gate of a GRU acts on the bias of the state, which is part of the step therefore.
    gates = _linear(e, value, weights.of_input, *weights.biases[: len(weights.biases) - len(in_step)])

    def step(e: Lowering, carried: Values, slices: Values, shared: Values) -> Values:
        of_hidden, *rest = shared
        hidden, *others = carried
        biases, projections = rest[: len(in_step)], rest[len(in_step) :]
        product = _linear(e, hidden, of_hidden, *biases)
        new, *more = cell(e, slices[0], product, [e.cast(hidden, e.element), *others])
        for projection in projections:
            new = _linear(e, new, projection)
        return [e.cast(new, element_of(hidden)), *more]

    projections = () if weights.projection is None else (weights.projection,)
    shared = (weights.of_hidden, *in_step, *projections)
    hidden, *others = states
    carried = [hidden, *(e.cast(other, e.element) for other in others)]
    return scan(e, step, (carried, [gates], shared), reversed=reversed)


def _last(e: Lowering, stack: SSAValue, *, reversed: bool) -> SSAValue:
    """The state that the last step gave, with an axis of one layer."""
    return _piece(e, stack, 0, 0 if reversed else shape_of(stack)[0] - 1, 1)


def _recurrent(cell: Cell, e: Lowering, op: RecurrentShapeOp) -> Sequence[SSAValue]:
    """The outputs of the last layer, and the last states of all."""
    e.hint = op.name.rpartition(".")[2]
    layers = op.integer("num_layers")
    if op.flag("train") and op.number("dropout") and layers > 1:
        raise Refusal("dropout between layers in training, of which PyTorch draws the random numbers")
    value: SSAValue = op.operands[0]
    if op.flag("batch_first"):
        value = e.permute(value, (1, 0, 2))
    lasts: list[list[SSAValue]] = [[] for _ in op.states]
    outputs: list[SSAValue] = []
    for number, weights in enumerate(op.parts()):
        states = [_piece(e, state, 0, number, 1) for state in op.states]
        states = [e.squeeze(state, [0]) for state in states]
        reversed = number % op.directions == 1
        stacks = _direction(e, cell, value, states, weights, reversed=reversed)
        for found, stack in zip(lasts, stacks, strict=True):
            found.append(_last(e, stack, reversed=reversed))
        outputs.append(stacks[0])
        if len(outputs) == op.directions:
            value, outputs = join(e, outputs, 2), []
    if op.flag("batch_first"):
        value = e.permute(value, (1, 0, 2))
    return [value, *(join(e, found, 0) for found in lasts)]


RULES: dict[type[TorchOp], Rule] = {
    t.LstmOp: partial(_recurrent, _lstm),
    t.GruOp: partial(_recurrent, _gru),
    t.RnnTanhOp: partial(_recurrent, _tanh),
    t.RnnReluOp: partial(_recurrent, _relu),
}
"""The rule for each recurrent network."""
