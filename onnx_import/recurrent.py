"""Recurrent layers, step by step: a sequence's length must be known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..lazy.expression import Node
from .building import (
    add,
    compare,
    concat,
    full,
    mul,
    narrow,
    op,
    permute,
    reshape,
    scalar,
    static_extent,
    sub,
    unary,
    unsqueeze,
    where,
)
from .rules import Call, Refused, rule, same_dtype

MAX_STEPS = 512
"""Steps of a sequence; each is operations of its own."""

Function = Callable[[Node], Node]

ACTIVATIONS: dict[str, Function] = {
    "sigmoid": lambda x: unary("sigmoid", x),
    "tanh": lambda x: unary("tanh", x),
    "relu": lambda x: unary("relu", x),
}
"""The activations that have no parameters, by their names in lower case."""

State = tuple[Node, ...]
Step = Callable[[Node, State], State]
"""From the products of an input, and a state, to the next state; what is given out is the first part."""


def _activations(call: Call, directions: int, *defaults: str) -> list[list[Function]]:
    """The functions of each direction."""
    given: Any = call.given("activations") if "activations" in call.said else None
    call.whatever("activations")
    names = list(defaults) * directions if not given else [each.decode() for each in given]
    for name in ("activation_alpha", "activation_beta", "clip"):
        if call.given(name) not in (None, []):
            raise Refused(f"attribute '{name}'")
    if len(names) != len(defaults) * directions:
        raise Refused(f"activations = {names}")
    if strange := [name for name in names if name.lower() not in ACTIVATIONS]:
        raise Refused(f"activation {strange[0]}")
    functions = [ACTIVATIONS[name.lower()] for name in names]
    size = len(defaults)
    return [functions[i * size : (i + 1) * size] for i in range(directions)]


class Layer:
    """The inputs and attributes that all recurrent layers have."""

    def __init__(self, call: Call, gates: int):
        x, w, r = call.tensor(0), call.tensor(1), call.tensor(2)
        self.dtype = same_dtype(x, w, r)
        self.direction = call.text("direction", "forward", "reverse", "bidirectional")
        self.directions = 2 if self.direction == "bidirectional" else 1
        self.by_batch = call.version >= 14 and call.flag("layout")
        self.x = permute(x, (1, 0, 2)) if self.by_batch else x
        self.hidden = static_extent(r, 2)
        self.steps = static_extent(self.x, 0)
        self.batch = self.x.shape[1]
        if self.steps > MAX_STEPS or self.steps < 1:
            raise Refused(f"a sequence of {self.steps} steps; at most {MAX_STEPS} are taken apart")
        given = call.given("hidden_size")
        if given not in (None, self.hidden) or w.shape[:2] != (
            self.directions,
            gates * self.hidden,
        ):
            raise Refused(f"weights {list(w.shape)} and {list(r.shape)}, hidden_size = {given}")
        self.w, self.r, self.gates = w, r, gates
        self.bias = call.optional(3)
        self.lengths = call.optional(4)

    def initial(self, node: Node | None) -> Node:
        """A first state, which is 0 if none is given: [directions, batch, hidden]."""
        if node is None:
            return full((self.directions, self.batch, self.hidden), 0, self.dtype)
        return permute(node, (1, 0, 2)) if self.by_batch else node

    def part(self, node: Node, direction: int) -> Node:
        """What of a tensor is of a direction."""
        return op("select.int", node, dim=0, index=direction)

    def biases(self, direction: int) -> tuple[Node, Node]:
        """The biases of the input's products and of the state's."""
        width = self.gates * self.hidden
        if self.bias is None:
            zero = full((width,), 0, self.dtype)
            return zero, zero
        both = self.part(self.bias, direction)
        return narrow(both, 0, 0, width), narrow(both, 0, width, 2 * width)

    def gate(self, node: Node, number: int) -> Node:
        """One gate of products, which stand side by side on the last axis."""
        start = number * self.hidden
        return narrow(node, len(node.shape) - 1, start, start + self.hidden)

    def run(self, states: Sequence[Node], steps: Callable[[int], Step]) -> list[Node]:
        """All that is given out, and the last states, of first states and each direction's step."""
        outputs: list[Node] = []
        last: list[list[Node]] = [[] for _ in states]
        for direction in range(self.directions):
            backwards = self.direction == "reverse" or direction == 1
            found, state = self._direction(
                [self.part(each, direction) for each in states],
                steps(direction),
                direction,
                backwards,
            )
            outputs.append(unsqueeze(found, 1))
            for several, each in zip(last, state, strict=True):
                several.append(unsqueeze(each, 0))
        y = concat(outputs, 1)
        finals = [concat(several, 0) for several in last]
        if self.by_batch:
            y, finals = permute(y, (2, 0, 1, 3)), [permute(each, (1, 0, 2)) for each in finals]
        return [y, *finals]

    def _direction(
        self, states: Sequence[Node], step: Step, direction: int, backwards: bool
    ) -> tuple[Node, State]:
        weight = permute(self.part(self.w, direction), (1, 0))
        products = add(op("matmul.default", self.x, weight), self.biases(direction)[0])
        state, given = tuple(states), [states[0]] * self.steps
        for place in reversed(range(self.steps)) if backwards else range(self.steps):
            new = step(op("select.int", products, dim=0, index=place), state)
            given[place] = new[0]
            if self.lengths is not None:
                # Beyond a sequence's end nothing is given out, and its state stays.
                lengths = reshape(self.lengths, (self.batch, 1))
                runs = compare("gt", lengths, scalar(place, lengths))
                given[place] = where(runs, new[0], scalar(0, new[0]))
                new = tuple(where(runs, n, old) for n, old in zip(new, state, strict=True))
            state = new
        return concat([unsqueeze(each, 0) for each in given], 0), state

    def of_state(self, direction: int) -> Callable[[Node], Node]:
        """The products of a state, with the biases."""
        weight = permute(self.part(self.r, direction), (1, 0))
        bias = self.biases(direction)[1]
        return lambda state: add(op("matmul.default", state, weight), bias)


@rule("RNN", 7, 14, 22)
def rnn(call: Call) -> Sequence[Node]:
    """h = f(x @ w.mT + h @ r.mT + biases), at each step."""
    layer = Layer(call, 1)
    functions = _activations(call, layer.directions, "Tanh")

    def steps(direction: int) -> Step:
        products, (f,) = layer.of_state(direction), functions[direction]
        return lambda x, state: (f(add(x, products(state[0]))),)

    return layer.run([layer.initial(call.optional(5))], steps)


@rule("GRU", 7, 14, 22)
def gru(call: Call) -> Sequence[Node]:
    """Gated units, at each step, with the reset before or after the product of the state."""
    layer = Layer(call, 3)
    functions = _activations(call, layer.directions, "Sigmoid", "Tanh")
    resets_product = call.flag("linear_before_reset")

    def steps(direction: int) -> Step:
        products, (f, g) = layer.of_state(direction), functions[direction]
        weight = permute(layer.part(layer.r, direction), (1, 0))
        of_new = layer.gate(weight, 2)
        bias = layer.gate(layer.biases(direction)[1], 2)

        def step(x: Node, state: State) -> State:
            (h,) = state
            both = products(h)
            update = f(add(layer.gate(x, 0), layer.gate(both, 0)))
            reset = f(add(layer.gate(x, 1), layer.gate(both, 1)))
            if resets_product:
                inner = mul(reset, layer.gate(both, 2))
            else:
                inner = add(op("matmul.default", mul(reset, h), of_new), bias)
            new = g(add(layer.gate(x, 2), inner))
            return (add(mul(sub(scalar(1, update), update), new), mul(update, h)),)

        return step

    return layer.run([layer.initial(call.optional(5))], steps)


@rule("LSTM", 7, 14, 22)
def lstm(call: Call) -> Sequence[Node]:
    """Cells with gates for what comes in, what is forgotten and what is given out, at each step."""
    layer = Layer(call, 4)
    functions = _activations(call, layer.directions, "Sigmoid", "Tanh", "Tanh")
    call.only("input_forget", 0, None)
    peepholes = call.optional(7)

    def steps(direction: int) -> Step:
        products, (f, g, h_of) = layer.of_state(direction), functions[direction]
        seen = None if peepholes is None else layer.part(peepholes, direction)

        def peep(gate: Node, number: int, cell: Node) -> Node:
            return gate if seen is None else add(gate, mul(layer.gate(seen, number), cell))

        def step(x: Node, state: State) -> State:
            h, cell = state
            gates = add(x, products(h))
            enters = f(peep(layer.gate(gates, 0), 0, cell))
            stays = f(peep(layer.gate(gates, 2), 2, cell))
            new = add(mul(stays, cell), mul(enters, g(layer.gate(gates, 3))))
            leaves = f(peep(layer.gate(gates, 1), 1, new))
            return mul(leaves, h_of(new)), new

        return step

    return layer.run([layer.initial(call.optional(5)), layer.initial(call.optional(6))], steps)
