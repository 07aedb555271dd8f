"""Recurrent networks as scans over time, and their gradients as scans back.

    hs, h = layer(gates of all steps, h0, w_hh)   # scan: h = cell(gates[t], h @ w_hh.T, h)
    dgates = scan back of the derivative of `cell`, with dh = dproduct @ w_hh
    dw_hh  = dproduct.T @ [h0, *hs[:-1]]          # one product over all steps, as are dx and dw_ih

A scan has what depends on the step before alone: the products of the input, and in the gradient all sums
over steps, are one product each. Half types are computed in f32;
a hidden state has the type of the results, which the next step reads, and the state of the cells stays in
f32. Formulas and the order of gates are those of PyTorch's documentation of `torch.nn.LSTM`, `GRU` and `RNN`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch._higher_order_ops.scan import scan_op
from torch.utils import _pytree as pytree

Tensor = torch.Tensor
Cell = Callable[..., tuple[Tensor, ...]]
"""The new states, from the gates of the input, those of the hidden state, and the states."""


def _lstm(gates: Tensor, product: Tensor, hidden: Tensor, cells: Tensor) -> tuple[Tensor, ...]:
    """c' = f * c + i * g and h' = o * tanh(c')."""
    admit, forget, new, give = (gates + product).chunk(4, -1)
    cells = torch.sigmoid(forget) * cells + torch.sigmoid(admit) * torch.tanh(new)
    return torch.sigmoid(give) * torch.tanh(cells), cells


def _gru(gates: Tensor, product: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
    """h' = n + z * (h - n), in which the reset gate acts on the product of the state."""
    reset, update, new = gates.chunk(3, -1)
    reset_h, update_h, new_h = product.chunk(3, -1)
    new = torch.tanh(new + torch.sigmoid(reset + reset_h) * new_h)
    return (new + torch.sigmoid(update + update_h) * (hidden - new),)


def _tanh(gates: Tensor, product: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
    return (torch.tanh(gates + product),)


def _relu(gates: Tensor, product: Tensor, hidden: Tensor) -> tuple[Tensor, ...]:
    return (torch.relu(gates + product),)


CELLS: dict[str, Cell] = {"lstm": _lstm, "gru": _gru, "rnn_tanh": _tanh, "rnn_relu": _relu}


@dataclass(frozen=True)
class _Weights:
    """The parameters of one layer in one direction, in the type that it is computed in."""

    of_input: Tensor
    of_hidden: Tensor
    biases: tuple[Tensor, ...]
    """None, or those of the input and of the state."""
    projection: Tensor | None


def _scan(step: Callable[..., Any], operands: Sequence[Any], *, reverse: bool) -> tuple[Any, Any]:
    """The last carried values, and what each step gives besides: `torch.scan`'s operator."""
    carried, slices, shared = operands
    if reverse:
        slices = [each.flip(0) for each in slices]
    # A parameter that a program closes over becomes a tensor of the trace by what is done to it.
    made = scan_op(step, list(carried), list(slices), tuple(each.view_as(each) for each in shared))
    last, stacks = made[: len(carried)], made[len(carried) :]
    return last, [each.flip(0) for each in stacks] if reverse else stacks


def _linear(value: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    product = value @ weight.mT
    return product if bias is None else product + bias


@dataclass(frozen=True)
class _Layer:
    """One layer in one direction, without the product of its input.

    Its tensors are the gates of the input, [steps, batch, gates], the weight of the state, its bias, the
    projection, and the first states, [batch, features].
    """

    cell: Cell
    reverse: bool

    def run(self, *tensors: Any) -> tuple[list[Tensor], Sequence[Tensor]]:
        """The last states, and of all steps the states and the products of the state."""
        gates, weight, bias, projection, *states = tensors
        count, given = len(states), [x for x in (weight, bias, projection) if x is not None]

        def step(*values: Tensor) -> list[Tensor]:
            hidden, *others = values[:count]
            _, of_hidden, *rest = values[count:]
            wide = hidden.to(of_hidden.dtype)
            product = _linear(wide, of_hidden, None if bias is None else rest[0])
            new, *more = self.cell(values[count], product, wide, *others)
            if projection is not None:
                new = _linear(new, rest[-1], None)
            made = [new.to(hidden.dtype), *more]
            return made + [each.clone() for each in (*made, product)]

        return _scan(step, (states, [gates], given), reverse=self.reverse)

    def run_back(
        self, tensors: Sequence[Any], stacks: Sequence[Tensor], gradients: Sequence[Tensor]
    ) -> tuple[Any, ...]:
        """The gradients of `tensors`, from those of the hidden states of all steps and of the last states.

        `stacks` are what `run` gave of all steps.
        """
        gates, weight, bias, projection, *states = tensors
        d_stack, *d_last = gradients
        *stacks, products = stacks
        count, wide = len(states), gates.dtype
        before = [
            _shifted(*each, reverse=self.reverse).to(wide)
            for each in zip(states, stacks, strict=True)
        ]

        def step(*values: Tensor) -> list[Tensor]:
            d_hidden, *d_others = values[:count]
            d_given, *inputs = values[count : 2 * count + 3]
            of_hidden, *projections = values[2 * count + 3 :]
            d_new = d_hidden = d_hidden + d_given.to(wide)
            for each in projections:
                d_new = d_hidden @ each
            derive: Any = torch.func.vjp(self.cell, *inputs)[1]
            d_gates, d_product, d_direct, *d_others = derive((d_new, *d_others))
            results = [d_gates, d_product, *(d_hidden for _ in projections)]
            d_before = d_direct + d_product @ of_hidden
            return [d_before, *d_others, *(each.clone() for each in results)]

        carried = [each.to(wide) for each in d_last]
        shared = [x for x in (weight, projection) if x is not None]
        slices = [d_stack, gates, products, *before]
        d_first, made = _scan(step, (carried, slices, shared), reverse=not self.reverse)
        d_gates, d_products, *d_hidden = made
        d_projection = None
        if projection is not None:
            d_projection = _outer(d_hidden[0], self.cell(gates, products, *before)[0])
        d_bias = None if bias is None else d_products.sum((0, 1))
        d_states = [d.to(state.dtype) for d, state in zip(d_first, states, strict=True)]
        return d_gates, _outer(d_products, before[0]), d_bias, d_projection, *d_states


class _Differentiable(torch.autograd.Function):
    """A layer with the gradient above."""

    @staticmethod
    def forward(ctx: Any, layer: _Layer, *tensors: Any) -> tuple[Tensor, ...]:
        last, stacks = layer.run(*tensors)
        ctx.layer, ctx.count = layer, len(tensors)
        ctx.save_for_backward(*tensors, *stacks)
        return stacks[0], *last

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx: Any, *grad_outputs: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        saved = ctx.saved_tensors
        made = ctx.layer.run_back(saved[: ctx.count], saved[ctx.count :], grad_outputs)
        return None, *made


def needs_gradients(values: Sequence[Any]) -> bool:
    """Whether autograd is to know what is computed of some values."""
    leaves = pytree.tree_leaves(values)
    return torch.is_grad_enabled() and any(
        isinstance(value, Tensor) and value.requires_grad for value in leaves
    )


def _shifted(first: Tensor, stack: Tensor, *, reverse: bool) -> Tensor:
    """The state that each step reads."""
    first = first.unsqueeze(0)
    return torch.cat([stack[1:], first] if reverse else [first, stack[:-1]])


def _outer(left: Tensor, right: Tensor) -> Tensor:
    """Columns of `left` by columns of `right`, summed over steps and sequences."""
    return left.flatten(0, 1).mT @ right.flatten(0, 1)


def _direction(
    cell: Cell, value: Tensor, states: Sequence[Tensor], weights: _Weights, *, reverse: bool
) -> tuple[Tensor, ...]:
    """The hidden state of each step of `value`, [steps, batch, features], and the last states."""
    biases = list(weights.biases)
    # The reset gate of a GRU acts on the bias of the state, which is part of the step therefore.
    in_step = biases.pop() if cell is _gru and biases else None
    gates = value.to(weights.of_input.dtype) @ weights.of_input.mT
    for bias in biases:
        gates = gates + bias
    hidden, *others = states
    others = [each.to(gates.dtype) for each in others]
    tensors = (gates, weights.of_hidden, in_step, weights.projection, hidden, *others)
    layer = _Layer(cell, reverse)
    if needs_gradients(tensors):
        return _Differentiable.apply(layer, *tensors)  # type: ignore[return-value]
    last, stacks = layer.run(*tensors)
    return stacks[0], *last


def _parts(
    params: Sequence[Tensor], wide: torch.dtype, *, biases: bool, projects: bool
) -> Iterator[_Weights]:
    """The weights of each layer, and of each layer those of each direction."""
    width = 2 + 2 * biases + projects
    for first in range(0, len(params), width):
        of_input, of_hidden, *rest = (each.to(wide) for each in params[first : first + width])
        projection = rest.pop() if projects else None
        yield _Weights(of_input, of_hidden, tuple(rest), projection)


def network(
    name: str,
    input: Tensor,
    hx: Any,
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """The outputs of the last layer of `torch.lstm` or its kin, and the last states of all."""
    states: list[Tensor] = [hx] if isinstance(hx, Tensor) else list(hx)
    directions = 2 if bidirectional else 1
    wide = torch.float32 if input.dtype in (torch.float16, torch.bfloat16) else input.dtype
    projects = states[0].shape[-1] != states[-1].shape[-1]
    parts = _parts(params, wide, biases=has_biases, projects=projects)
    value = input.transpose(0, 1) if batch_first else input
    lasts: list[tuple[Tensor, ...]] = []
    for layer in range(num_layers):
        outputs: list[Tensor] = []
        for direction in range(directions):
            first = [state[layer * directions + direction] for state in states]
            weights = next(parts)
            made = _direction(CELLS[name], value, first, weights, reverse=direction == 1)
            outputs.append(made[0])
            lasts.append(made[1:])
        value = torch.cat(outputs, -1) if bidirectional else outputs[0]
        if train and dropout and layer < num_layers - 1:
            value = F.dropout(value, dropout, training=True)
    if batch_first:
        value = value.transpose(0, 1)
    stacked = (torch.stack(each) for each in zip(*lasts, strict=True))
    return value, *(last.to(input.dtype) for last in stacked)
