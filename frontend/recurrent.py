"""Recurrent networks while they are traced: one operator each, whose shapes are known without running a step.

PyTorch knows the shape of `aten.lstm.input` only by tracing its every time step, which takes minutes for a
long sequence. So while a program is exported, `torch.lstm` and its kin are operators of our own with the same
arguments; the importer gives them their names back. So they are in a graph of Dynamo's. Where a gradient is
asked for, they are traced as their scans.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch._guards import detect_fake_mode

from .recurrent_layers import needs_gradients, network

NAMESPACE = "deplo"
NAMES = ("lstm", "gru", "rnn_tanh", "rnn_relu")

aten = torch.ops.aten


def _shapes_of_lstm(
    input: torch.Tensor, hx: Sequence[torch.Tensor], *rest: Any
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    hidden, cell = hx
    output, last = _shapes(input, hidden, *rest)
    return output, last, torch.empty_like(cell)


def _shapes(
    input: torch.Tensor,
    hidden: torch.Tensor,
    params: Sequence[torch.Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The output of every step, and the last state: one vector of it per direction.

    Raises RuntimeError for sequences without steps, as PyTorch does.
    """
    if input.shape[1 if batch_first else 0] == 0:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN")
    directions = 2 if bidirectional else 1
    output = input.new_empty((*input.shape[:2], directions * hidden.shape[-1]))
    return output, torch.empty_like(hidden)


def _differentiable(name: str, *args: Any) -> Any:
    """A network as its scans where a gradient is asked for, else as the operator."""
    if needs_gradients(args):
        return network(name, *args)
    with torch._C._AutoDispatchBelowAutograd():  # pyright: ignore[reportPrivateUsage]
        return getattr(torch.ops.deplo, name).default(*args)


_LIBRARY = torch.library.Library(NAMESPACE, "FRAGMENT")

for _name in NAMES:
    _operator = getattr(aten, _name).input
    _LIBRARY.define(str(_operator._schema).replace(f"aten::{_name}.input", _name))
    _LIBRARY.impl(_name, _operator, "CompositeExplicitAutograd")
    _LIBRARY.impl(_name, partial(_differentiable, _name), "Autograd")
    # Not `register_fake`, which looks through all modules there are for who calls it: 30 ms.
    _LIBRARY.impl(_name, _shapes_of_lstm if _name == "lstm" else _shapes, "Meta")

ATEN_NAMES = {
    getattr(getattr(torch.ops, NAMESPACE), name).default: f"aten.{name}.input" for name in NAMES
}
"""The name in ATen of each of our operators."""

NETWORKS: Mapping[Any, str] = {
    operator: name
    for name in NAMES
    for operator in (getattr(aten, name).input, getattr(torch.ops.deplo, name).default)
}
"""Each operator that is a whole network on padded sequences, and what its cells are."""

_FUNCTIONS: Mapping[Any, Any] = {
    getattr(torch, name): getattr(getattr(torch.ops, NAMESPACE), name).default for name in NAMES
}


def whole_operator(func: Callable[..., Any], args: Sequence[Any]) -> Any:
    """The operator of our own that a call is for, if it is of a recurrent network on padded sequences."""
    operator = _FUNCTIONS.get(func)
    lists = 1 if func is torch.lstm else 2
    if operator is not None and len(args) == 9 and isinstance(args[lists], (list, tuple)):
        return operator
    return None


def _whole(func: Callable[..., Any]) -> Callable[..., Any]:
    """What runs a network as one operator while it is traced, but for packed sequences."""

    def run(*args: Any) -> Any:
        operator = None if detect_fake_mode(args) is None else whole_operator(func, args)
        return func(*args) if operator is None else operator(*args)

    return run


CALLED: Mapping[Any, Callable[..., Any]] = {func: _whole(func) for func in _FUNCTIONS}
"""What takes the place of each network in a graph of Dynamo's."""

