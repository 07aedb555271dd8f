"""What the caller asks of an axis: that its extent may change from call to call.

    deplo.compile(model, (x,), dynamic_shapes={"x": {0: Dim("batch"), 1: Dim("seq", max=4096)}})

`dynamic_shapes` is torch.export's. Export tells what an axis of extent 1 does from what a longer one does, so
where such an axis is to be dynamic the program is traced with two positions; nothing but shapes is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch.export.dynamic_shapes import Dim
from torch.utils import _pytree as pytree

from ..errors import UsageError
from .python_values import Inputs

TRACED_EXTENT = 2
"""The extent that stands for a dynamic one where the example has 1 or none."""


@dataclass(frozen=True)
class AskedAxis:
    """An axis of a flattened input, and the `Dim` that was given for it."""

    position: int
    axis: int
    dim: Any

    @property
    def name(self) -> str | None:
        """The name of the size, if it is a plain named one."""
        return self.dim.__name__ if type(self.dim) is Dim else None

    @property
    def must_change(self) -> bool:
        """Whether an extent that the program fixes is an error: for all but `Dim.AUTO`."""
        return type(self.dim) is Dim or _kind(self.dim) == "DYNAMIC"

    @property
    def minimum(self) -> int | None:
        """The smallest size that was asked for, if one was. PyTorch cannot tell 0 from none."""
        return self.dim.min or None


def _kind(dim: Any) -> str | None:
    """AUTO, DYNAMIC or STATIC for a hint; None for a named size or a number."""
    return getattr(getattr(dim, "type", None), "name", None)


def asked_axes(
    module: torch.nn.Module, inputs: Inputs, dynamic_shapes: Any
) -> tuple[AskedAxis, ...]:
    """The axes that `dynamic_shapes` says something of, but that they are fixed.

    Raises UsageError if it is not organized as the inputs are.
    """
    if dynamic_shapes is None:
        return ()
    flat, spec = pytree.tree_flatten((inputs.args, inputs.kwargs))
    # each input is named by its position, as one tensor may be given twice
    args, kwargs = pytree.tree_unflatten(list(range(len(flat))), spec)
    named = inspect.signature(module.forward).bind(*args, **kwargs).arguments
    tree = named if isinstance(dynamic_shapes, Mapping) else tuple(named.values())
    return tuple(
        AskedAxis(position, axis, dim)
        for position, said in _leaves(tree, dynamic_shapes, "dynamic_shapes")
        for axis, dim in _axes(said)
        if type(dim) is Dim or _kind(dim) in ("AUTO", "DYNAMIC")
    )


def _leaves(tree: Any, said: Any, where: str) -> Iterator[tuple[int, Any]]:
    """(position, what is said of it) for every input that something is said of."""
    if said is None:
        return
    if isinstance(tree, int):
        yield tree, said
        return
    if isinstance(tree, Mapping) and isinstance(said, Mapping):
        inputs, shapes = cast(Mapping[Any, Any], tree), cast(Mapping[Any, Any], said)
        if unknown := [name for name in shapes if name not in inputs]:
            listed = ", ".join(map(str, inputs))
            raise UsageError(f"{where} names {unknown[0]!r}, which is no input; they are {listed}")
        for name, part in inputs.items():
            yield from _leaves(part, shapes.get(name), f"{where}[{name!r}]")
        return
    if type(tree) in pytree.SUPPORTED_NODES and isinstance(said, list | tuple):
        parts, _ = pytree.SUPPORTED_NODES[type(tree)].flatten_fn(tree)
        shapes = cast(Sequence[Any], said)
        if len(parts) != len(shapes):
            raise UsageError(f"{where} has {len(shapes)} entries for {len(parts)} inputs")
        for i, (part, each) in enumerate(zip(parts, shapes, strict=True)):
            yield from _leaves(part, each, f"{where}[{i}]")
        return
    raise UsageError(f"{where} is not organized as the inputs are")


def _axes(said: Any) -> Iterator[tuple[int, Any]]:
    if isinstance(said, Mapping):
        yield from cast(Mapping[int, Any], said).items()
    elif isinstance(said, list | tuple):
        yield from enumerate(cast(Sequence[Any], said))


def traceable(inputs: Inputs, asked: Sequence[AskedAxis]) -> Inputs:
    """The inputs with at least two positions along every axis that must be able to change."""
    return with_extents(
        inputs,
        {
            (each.position, each.axis): TRACED_EXTENT
            for each in asked
            if each.must_change and _extent(inputs, each) < TRACED_EXTENT
        },
    )


def _extent(inputs: Inputs, asked: AskedAxis) -> int:
    value = pytree.tree_leaves((inputs.args, inputs.kwargs))[asked.position]
    if not isinstance(value, torch.Tensor) or not 0 <= asked.axis < value.ndim:
        return TRACED_EXTENT  # torch.export says what is wrong
    return value.shape[asked.axis]


def with_extents(inputs: Inputs, extents: Mapping[tuple[int, int], int]) -> Inputs:
    """The inputs with other extents along some axes, by position and axis; their values do not matter."""
    if not extents:
        return inputs
    flat, spec = pytree.tree_flatten((inputs.args, inputs.kwargs))
    for (position, axis), extent in extents.items():
        value: torch.Tensor = flat[position]
        shape = [extent if i == axis else n for i, n in enumerate(value.shape)]
        flat[position] = value.new_zeros(shape)
    args, kwargs = pytree.tree_unflatten(flat, spec)
    return Inputs(args, kwargs, inputs.closed_over)
