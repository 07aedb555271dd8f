"""What a program takes for granted of its dynamic sizes, beyond their ranges.

    h % 2 == 0, 2 * ((h - 1) // 2) + 2 == h        # PyTorch's guards: h is even
    tensor<?xf32, #sym.extents<s0 * 2>>            # so h is twice a size

A property that leaves a size only one remainder makes it a multiple of another size, and expressions over it
are equal where PyTorch says they are. Every other one must follow from the ranges, where nobody asks for it
before a call: `torch.export` leaves that to us, Dynamo does not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import sympy
import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._sympy import functions

from ..dialects.multiples import Multiple
from ..errors import UnsupportedOpError
from .sizes import Sizes

LARGEST_SCALE = 64
"""Sizes are multiples by no more: where guards leave a single value, every divisor leaves one remainder."""


def shape_environment(graph: torch.fx.Graph) -> ShapeEnv | None:
    """Where PyTorch keeps what it took for granted of a graph's sizes; None where it has none."""
    for node in graph.nodes:
        if isinstance(value := node.meta.get("val"), FakeTensor):
            return value.fake_mode.shape_env
    return None


def guards_of(graph: torch.fx.Graph) -> list[Any]:
    """What PyTorch took for granted of a graph's sizes, as conditions over its symbols."""
    environment = shape_environment(graph)
    if environment is None:
        return []
    return [environment.replace(guard.expr) for guard in environment.guards]


def as_multiples(sizes: Sizes, guards: Collection[Any]) -> Sizes:
    """The same sizes; one that `guards` leave a single remainder becomes a multiple of another size.

    One that they leave a single value, that of the example, becomes a number.
    """
    for symbol in sizes.known:
        about = [g for g in guards if isinstance(g, sympy.Basic) and symbol in g.free_symbols]
        while (found := _multiple(sizes, symbol, about)) is not None:
            sizes = found
            if _is_fixed(sizes, symbol, about):
                value = sizes.known[symbol].hint
                sizes = sizes.with_range(symbol, minimum=value, maximum=value)
                break
    return sizes


def _is_fixed(sizes: Sizes, symbol: sympy.Symbol, guards: Collection[Any]) -> bool:
    """Whether `guards` refute all values of a symbol but that of the example."""
    values, step = sizes.known[symbol], sizes.multiples[symbol].scale

    def refuted(minimum: int, maximum: int) -> bool:
        if minimum > maximum:
            return True
        limited = sizes.with_range(symbol, minimum, maximum)
        return any(limited.holds(sympy.Not(guard)) for guard in guards)

    return refuted(values.minimum, values.hint - step) and refuted(values.hint + step, values.largest)


def _multiple(sizes: Sizes, symbol: sympy.Symbol, guards: Collection[Any]) -> Sizes | None:
    """`sizes` with one symbol as a multiple of what it is there; None if no divisor leaves one remainder."""
    was = sizes.multiples.get(symbol, Multiple())
    for divisor in sorted(set(_divisors(guards, LARGEST_SCALE // was.scale))):
        multiples = [
            Multiple(was.scale * divisor, was.offset - was.scale * less) for less in range(divisor)
        ]
        candidates = [
            Sizes(sizes.known, {**sizes.multiples, symbol: each})
            for each in multiples
            if each.is_in(sizes.known[symbol])
        ]
        allowed = [c for c in candidates if not any(c.holds(sympy.Not(g)) for g in guards)]
        if len(allowed) == 1:
            return allowed[0]
    return None


def _divisors(guards: Collection[Any], largest: int) -> Iterator[int]:
    kinds = (functions.FloorDiv, functions.CleanDiv, functions.Mod, functions.PythonMod)
    for guard in guards:
        for division in guard.atoms(*kinds):
            divisor = division.args[1]
            if divisor.is_Integer and 1 < divisor <= largest:
                yield int(divisor)


def check_guards(guards: Collection[Any], sizes: Sizes) -> None:
    """Raise UnsupportedOpError unless all guards follow from what the sizes are."""
    # those of other symbols are of strides, on which no value depends
    of_sizes = [guard for guard in guards if isinstance(guard, bool) or sizes.knows(guard)]
    open_guards = [sizes.text(guard) for guard in of_sizes if not sizes.holds(guard)]
    if not open_guards:
        return
    listed = "\n".join(f"  {text}" for text in dict.fromkeys(open_guards))
    raise UnsupportedOpError(
        f"this program was captured for sizes with these properties only:\n{listed}\n"
        "Give the sizes a smallest and a largest value for which they hold, or fix them."
    )
