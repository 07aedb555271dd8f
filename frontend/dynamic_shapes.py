"""What the caller asks of an axis: that its extent may change from call to call.

    deplo.compile(model, (x,), dynamic_shapes={"x": {0: Dim("batch"), 1: Dim("seq", max=4096)}})

`dynamic_shapes` is torch.export's. Export tells what an axis of extent 1 does from what a longer one does, so
where such an axis is to be dynamic the program is traced with two positions; nothing but shapes is traced.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
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
        """The name of the size that the axis says, if it has one: `n` for `Dim("n")` and `2 * Dim("n")`."""
        root = getattr(self.dim, "root", self.dim)
        return root.__name__ if type(root) is Dim else None

    @property
    def is_size(self) -> bool:
        """Whether the axis is to be a size, not a multiple of one."""
        return not hasattr(self.dim, "root")

    @property
    def must_change(self) -> bool:
        """Whether an extent that the program fixes is an error: for all but `Dim.AUTO`."""
        return isinstance(self.dim, Dim) or _kind(self.dim) == "DYNAMIC"

    @property
    def minimum(self) -> int | None:
        """The smallest size that was asked for, if one was; 0 is what a `Dim` has that says nothing."""
        return self.dim.min or None


def _kind(dim: Any) -> str | None:
    """AUTO, DYNAMIC or STATIC for a hint; None for a named size or a number."""
    return getattr(getattr(dim, "type", None), "name", None)


def asked_axes(
    module: torch.nn.Module, inputs: Inputs, dynamic_shapes: Any
) -> tuple[AskedAxis, ...]:
    """The axes that `dynamic_shapes` says something of, but that they are fixed.

    Raises UsageError if it is not organized as the inputs are, or names an axis that there is not.
    """
    if dynamic_shapes is None:
        return ()
    named = _positions(module, inputs.args, inputs.kwargs)
    tree = named if isinstance(dynamic_shapes, Mapping) else tuple(named.values())
    asked = [
        AskedAxis(position, axis, dim)
        for position, said in _leaves(tree, dynamic_shapes, "dynamic_shapes")
        for axis, dim in _axes(said)
        if isinstance(dim, Dim) or _kind(dim) in ("AUTO", "DYNAMIC")
    ]
    flat = pytree.tree_leaves((inputs.args, inputs.kwargs))
    for each in asked:
        value = flat[each.position]
        if not isinstance(value, torch.Tensor):
            raise UsageError(f"dynamic_shapes: input {each.position} is no tensor, it has no axes")
        if not 0 <= each.axis < value.ndim:
            raise UsageError(
                f"dynamic_shapes: input {each.position} has {value.ndim} axes, no axis {each.axis}"
            )
    return tuple(asked)


def _positions(
    program: torch.nn.Module | Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """The inputs by the name of their parameter, each tensor as its position among the flattened inputs."""
    function = program.forward if isinstance(program, torch.nn.Module) else program
    flat, spec = pytree.tree_flatten((tuple(args), dict(kwargs)))
    numbered, named = pytree.tree_unflatten(list(range(len(flat))), spec)
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*numbered, **named).arguments
    except (TypeError, ValueError) as error:
        raise UsageError(
            f"dynamic_shapes: the program's inputs have no names: {error}; wrap it in a function"
        ) from error
    kinds = {name: parameter.kind for name, parameter in signature.parameters.items()}
    collected = [name for name in bound if kinds[name] is inspect.Parameter.VAR_KEYWORD]
    if collected:
        raise UsageError(
            f"dynamic_shapes: torch.export takes no dynamic sizes where **{collected[0]} collects inputs; "
            "give the program's function a parameter for each"
        )
    return bound


def _parts(tree: Any) -> Sequence[Any] | None:
    """What a list, a tuple or a class that PyTorch knows consists of."""
    node = pytree.SUPPORTED_NODES.get(type(tree))
    return None if node is None else node.flatten_fn(tree)[0]


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
    parts = _parts(tree)
    if parts is None or not isinstance(said, list | tuple):
        raise UsageError(f"{where} is not organized as the inputs are")
    shapes = cast(Sequence[Any], said)
    if len(parts) != len(shapes):
        raise UsageError(f"{where} has {len(shapes)} entries for {len(parts)} inputs")
    for i, (part, each) in enumerate(zip(parts, shapes, strict=True)):
        yield from _leaves(part, each, f"{where}[{i}]")


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
    return pytree.tree_leaves((inputs.args, inputs.kwargs))[asked.position].shape[asked.axis]


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


def by_position(asked: Sequence[AskedAxis]) -> dict[int, dict[int, Any]]:
    """The `Dim` of each axis, by position and axis."""
    axes: dict[int, dict[int, Any]] = {}
    for each in asked:
        axes.setdefault(each.position, {})[each.axis] = each.dim
    return axes


def shapes_at(
    program: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    axes: Mapping[int, Mapping[int, Any]],
) -> Any:
    """`dynamic_shapes` that says `axes[position]` of the flattened inputs."""

    def said(tree: Any) -> Any:
        if isinstance(tree, int):
            return dict(axes[tree]) if tree in axes else None
        if isinstance(tree, Mapping):
            return {name: said(part) for name, part in cast(Mapping[Any, Any], tree).items()}
        parts = [said(part) for part in _parts(tree) or ()]
        return tuple(parts) if isinstance(tree, tuple) else parts

    return said(_positions(program, args, kwargs))


def positions_by_name(
    program: torch.nn.Module | Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, int]:
    """The position of each flattened input by its name in the IR: `x`, or `x_0` for a part of `x`."""
    found: dict[str, int] = {}

    def visit(name: str, tree: Any) -> None:
        if isinstance(tree, int):
            found[name] = tree
        elif isinstance(tree, Mapping):
            for key, part in cast(Mapping[Any, Any], tree).items():
                visit(f"{name}_{key}", part)
        else:
            for i, part in enumerate(_parts(tree) or ()):
                visit(f"{name}_{i}", part)

    for name, tree in _positions(program, args, kwargs).items():
        visit(name, tree)
    return found
