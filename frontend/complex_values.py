"""Complex tensors as pairs of real ones, and what builds real operators of them in a graph.

A complex tensor of shape S is two real tensors of shape S, a real one of shape S + [2] with both parts of an
element next to each other (as `torch.view_as_real`), or one of shape [2] + S with all real parts first.
Each is made from another where an operator first asks for it, as views or a concatenation of real tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.node import map_arg

from .sizes import Refused

aten = torch.ops.aten

PARTS: dict[torch.dtype, torch.dtype] = {
    torch.complex64: torch.float32,
    torch.complex128: torch.float64,
}
"""The dtype of the real and of the imaginary part, for each complex dtype that deplo computes with."""

Number: TypeAlias = bool | int | float
Part: TypeAlias = "torch.fx.Node | Number"


@dataclass
class Pair:
    """A complex tensor. At least one of its forms is there; `im` is None also where all of it is zero."""

    re: torch.fx.Node | None = None
    im: torch.fx.Node | None = None
    interleaved: torch.fx.Node | None = None
    """Shape S + [2]."""
    planes: torch.fx.Node | None = None
    """Shape [2] + S."""

    @property
    def is_real(self) -> bool:
        """Whether the imaginary part is zero everywhere."""
        return self.re is not None and self.im is None and self.planes is self.interleaved is None


def is_complex(node: Any) -> bool:
    """Whether a node's value is one complex tensor."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    return isinstance(value, torch.Tensor) and value.is_complex()


def part_dtype(dtype: torch.dtype) -> torch.dtype:
    """The dtype of both parts. Raises Refused for complex32."""
    if dtype not in PARTS:
        raise Refused(f"dtype {str(dtype).removeprefix('torch.')}")
    return PARTS[dtype]


class Values:
    """The fake tensors of a graph, all in one mode."""

    def __init__(self, graph: torch.fx.Graph):
        values = [node.meta.get("val") for node in graph.nodes if node.op == "placeholder"]
        self.mode: FakeTensorMode = detect_fake_mode(values) or FakeTensorMode()
        self._known: dict[torch.fx.Node, Any] = {}

    def of(self, node: torch.fx.Node) -> Any:
        """The value of a node: a row-major fake tensor of this mode, or what is no tensor."""
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor):
            return value
        if node not in self._known:
            with self.mode:
                self._known[node] = torch.empty(value.shape, dtype=value.dtype, device=value.device)
        return self._known[node]


class Builder:
    """Builds real operators in front of a node of a graph, with its line and its device."""

    def __init__(
        self,
        node: torch.fx.Node,
        values: Values,
        constant: Callable[[str, Callable[[], torch.Tensor]], torch.fx.Node],
    ):
        """`constant` gives the node of a constant tensor by its name, made if it is not there yet."""
        self.node = node
        self.constant = constant
        self._values = values
        self._device = next(
            (v.device for n in (node, *node.all_input_nodes) for v in _tensors(n)), None
        )

    def __call__(self, op: Any, *args: Any, **kwargs: Any) -> Any:
        """Call an operator on nodes and numbers; gives its node."""
        graph = self.node.graph
        with graph.inserting_before(self.node):
            made = graph.call_function(op, args, kwargs)
        fake_args, fake_kwargs = map_arg((made.args, made.kwargs), self._values.of)
        with self._values.mode:
            value = op(*fake_args, **fake_kwargs)
        made.meta = {**self.node.meta, "val": value}
        return made

    def shape(self, node: torch.fx.Node) -> list[Any]:
        """The extents of a real tensor: integers and symbolic sizes."""
        return list(node.meta["val"].shape)

    def extents(self, node: torch.fx.Node) -> list[Any]:
        """The extents of a real tensor as arguments of operators: integers and nodes of sizes."""
        return [
            n if isinstance(n, int) else self(aten.sym_size.int, node, axis)
            for axis, n in enumerate(self.shape(node))
        ]

    def full(self, shape: Any, number: Number, dtype: torch.dtype) -> torch.fx.Node:
        """A tensor that holds one number."""
        return self(aten.full.default, shape, number, dtype=dtype, device=self._device)

    def like(self, node: torch.fx.Node, number: Number) -> torch.fx.Node:
        """A tensor like another that holds one number."""
        return self(aten.full_like.default, node, number)

    def cast(self, node: torch.fx.Node, dtype: torch.dtype) -> torch.fx.Node:
        """A real tensor in another dtype."""
        if node.meta["val"].dtype == dtype:
            return node
        return self(aten._to_copy.default, node, dtype=dtype)

    # ---- the forms of a pair

    def re(self, pair: Pair) -> torch.fx.Node:
        """The real part."""
        made = pair.re
        if made is None:
            made = pair.re = self._select(pair, 0)
        return made

    def im(self, pair: Pair) -> torch.fx.Node:
        """The imaginary part."""
        made = pair.im
        if made is None:
            zeros = pair.is_real
            made = pair.im = self.like(self.re(pair), 0.0) if zeros else self._select(pair, 1)
        return made

    def _select(self, pair: Pair, part: int) -> torch.fx.Node:
        if pair.planes is not None:
            return self(aten.select.int, pair.planes, 0, part)
        assert pair.interleaved is not None
        return self(aten.select.int, pair.interleaved, -1, part)

    def interleaved(self, pair: Pair) -> torch.fx.Node:
        """Both parts of each element next to each other, along a last axis."""
        made = pair.interleaved
        if made is None and pair.planes is not None:
            order = [*range(1, len(self.shape(pair.planes))), 0]
            made = self(aten.permute.default, pair.planes, order)
        elif made is None:
            parts = [self(aten.unsqueeze.default, p, -1) for p in self.parts(pair)]
            made = self(aten.cat.default, parts, -1)
        pair.interleaved = made
        return made

    def parts(self, pair: Pair) -> tuple[torch.fx.Node, torch.fx.Node]:
        """The real and the imaginary part."""
        return self.re(pair), self.im(pair)

    def zeros_kept(self, pair: Pair, each: Callable[[torch.fx.Node], Any]) -> Pair:
        """The pair of `each` of both parts; `each` gives zeros for zeros."""
        if pair.is_real:
            return Pair(each(self.re(pair)))
        return Pair(*map(each, self.parts(pair)))


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    value = node.meta.get("val")
    values: Any = value if isinstance(value, (list, tuple)) else (value,)
    return [v for v in values if isinstance(v, torch.Tensor)]
