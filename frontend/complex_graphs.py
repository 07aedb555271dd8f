"""Takes complex numbers out of a graph of ATen operators: each complex tensor becomes a pair of real ones.

    y = torch.view_as_real(torch.polar(a, b) * c)    # c: complex64[4], an input

becomes, with c an input of float32[4, 2],

    re, im = a * cos(b), a * sin(b)
    y = stack([re * c[..., 0] - im * c[..., 1], re * c[..., 1] + im * c[..., 0]], -1)

So there are no complex numbers in any IR, but between calls of PyTorch. What crosses between a program and
its caller is the same memory either way (`as_pairs`, `as_complex`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch._subclasses.fake_tensor import unset_fake_temporarily

from ..dialects.torch import OPS_BY_ATEN
from ..errors import UsageError
from . import complex_arithmetic, complex_layouts, fourier
from .complex_values import PARTS, Builder, Pair, Values, is_complex
from .importer import DROPPED, Importer, has_effect
from .sizes import Refused
from .unsupported import OpOverload

aten = torch.ops.aten
Node = torch.fx.Node

RULES: dict[Any, Callable[..., Any]] = {
    **complex_arithmetic.RULES,
    **complex_layouts.RULES,
    **fourier.RULES,
}
"""Operator -> what gives its result, of the builder and its arguments."""


@dataclass
class WithoutComplex:
    """What a graph without complex numbers needs, and gives, beside what it did before."""

    constants: dict[Node, torch.Tensor] = field(default_factory=dict[Node, torch.Tensor])
    """Its tables, as placeholders."""
    results: frozenset[int] = frozenset()
    """Which of the values that it returns stand for complex ones, with both parts along a last axis."""


def without_complex(graph: torch.fx.Graph, importer: Importer) -> WithoutComplex:
    """Change a graph whose arguments are known to `importer`, which is told what cannot be changed."""
    nodes = [n for n in graph.nodes if n.op in ("placeholder", "call_function", "get_attr")]
    if not any(map(_has_complex, nodes)):
        return WithoutComplex()
    return _Splitting(graph, importer).run(nodes)


class _Splitting:
    """One graph on its way to have no complex numbers."""

    def __init__(self, graph: torch.fx.Graph, importer: Importer):
        self.graph = graph
        self.importer = importer
        self.values = Values(graph)
        self.made = WithoutComplex()
        self._pairs: dict[Node, Any] = {}
        self._tables: dict[str, Node] = {}

    def run(self, nodes: Sequence[Node]) -> WithoutComplex:
        replaced: list[Node] = []
        for node in nodes:
            if node.op != "call_function":
                if is_complex(node):
                    self._pairs[node] = self._argument(node)
            elif _has_complex(node) or any(n in self._pairs for n in node.all_input_nodes):
                if node.target not in DROPPED:
                    self._replace(node)
                replaced.append(node)
        self._return_pairs()
        kept = self.importer.unknown.union(self.importer.reasons)
        for node in reversed(replaced):
            if not node.users and node not in kept:
                self.graph.erase_node(node)
        self.graph.eliminate_dead_code(has_effect)
        return self.made

    def _argument(self, node: Node) -> Pair:
        """An argument of `@main`, which is the real tensor of both parts now."""
        value = node.meta["val"]
        if value.dtype in PARTS:
            with self.values.mode:
                real = torch.empty((*value.shape, 2), dtype=PARTS[value.dtype], device=value.device)
            node.meta = {**node.meta, "val": real}
        return Pair(interleaved=node)

    def _replace(self, node: Node) -> None:
        """Let the users of a node have its pair, or the real node that stands for it."""
        if node.target is operator.getitem and node.args[0] in self._pairs:
            source: Any = self._pairs[node.args[0]]
            self._put(node, source[node.args[1]])
            return
        try:
            result = self._apply(node)
        except Refused as reason:
            self._put(node, self._refused(node, str(reason)))
            return
        self._put(node, result)

    def _put(self, node: Node, result: Any) -> None:
        if isinstance(result, Node):
            if result is not node:
                node.replace_all_uses_with(result)
            return
        self._pairs[node] = result

    def _apply(self, node: Node) -> Any:
        target: Any = node.target
        rule = RULES.get(target)
        if rule is None:
            known = f"{target._opname}.{target._overloadname}" in OPS_BY_ATEN
            raise Refused("complex numbers" if known else "")
        if target in fourier.RULES and self.importer.fallback == "eager":
            raise Refused("PyTorch's own transform is faster")
        args, kwargs = self._mapped(node.args), self._mapped(node.kwargs)
        return rule(self._builder(node), *args, **kwargs)

    def _builder(self, node: Node) -> Builder:
        return Builder(node, self.values, self._constant)

    def _mapped(self, given: Any) -> Any:
        """Arguments with pairs in the places of complex nodes."""
        if isinstance(given, Node):
            return self._pairs.get(given, given)
        if isinstance(given, (list, tuple)):
            return [self._mapped(item) for item in given]  # pyright: ignore[reportUnknownVariableType]
        if isinstance(given, Mapping):
            return {key: self._mapped(value) for key, value in given.items()}  # pyright: ignore
        return given

    def _refused(self, node: Node, reason: str) -> Any:
        """What stands for the results of a node that PyTorch is to run, if it may."""
        e = self._builder(node)
        calls = self.importer.fallback == "eager" and isinstance(node.target, OpOverload)
        for source in node.all_input_nodes:
            if isinstance(pair := self._pairs.get(source), Pair):
                whole = e.interleaved(pair)
                paired = calls and not is_complex(whole)  # complex32 stays as it is
                given = e(aten.view_as_complex.default, whole) if paired else whole
                node.replace_input_with(source, given)
        if calls:
            self.importer.reasons[node] = reason
        else:
            self.importer.unsupported.add(node, reason)
            self.importer.unknown.add(node)
        return self._opaque(node)

    def _opaque(self, node: Node) -> Any:
        """The results of a node that stays, as pairs."""
        value = node.meta["val"]
        if isinstance(value, (list, tuple)):
            with self.graph.inserting_after(node):
                items = []
                for i, each in enumerate(value):
                    item = self.graph.call_function(operator.getitem, (node, i))
                    item.meta = {**node.meta, "val": each}
                    items.append(item)
            return [self._view(item) if is_complex(item) else item for item in items]
        return self._view(node) if is_complex(node) else node

    def _view(self, node: Node) -> Pair:
        with self.graph.inserting_after(node):
            view = self.graph.call_function(aten.view_as_real.default, (node,))
        real = torch.view_as_real(self.values.of(node))
        view.meta = {**node.meta, "val": real}
        return Pair(interleaved=view)

    def _constant(self, name: str, make: Callable[[], torch.Tensor]) -> Node:
        """The placeholder of a table, made once."""
        if name not in self._tables:
            with unset_fake_temporarily():
                table = make()
            first = next(iter(self.graph.nodes))
            with self.graph.inserting_before(first):
                node = self.graph.placeholder(_identifier(name))
            with self.values.mode:
                fake = torch.empty(table.shape, dtype=table.dtype, device=self.importer.device)
            node.meta = {"val": fake}
            self.importer.add_argument(node, fake, node.name, {"deplo.constant": node.name})
            self.made.constants[node] = table
            self._tables[name] = node
        return self._tables[name]

    def _return_pairs(self) -> None:
        """Let the graph return pairs as real tensors."""
        output = self.graph.output_node()
        (returned,) = output.args
        e = Builder(output, self.values, self._constant)
        results: set[int] = set()
        given: list[Any] = []
        for i, node in enumerate(returned):  # type: ignore[arg-type]
            if isinstance(node, Node) and isinstance(self._pairs.get(node), Pair):
                results.add(i)
                given.append(e.interleaved(self._pairs[node]))
            else:
                given.append(node)
        output.args = (tuple(given),)
        self.made.results = frozenset(results)


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name)


def _has_complex(node: Node) -> bool:
    value = node.meta.get("val")
    values: Any = value if isinstance(value, (list, tuple)) else (value,)
    return any(isinstance(v, torch.Tensor) and v.is_complex() for v in values)


# --------------------------------------------------------------------------- at a call


class Declared(Protocol):
    """An argument of `@main`, as its caller sees it."""

    @property
    def name(self) -> str: ...
    @property
    def dtype(self) -> torch.dtype: ...


def as_pairs(value: Any, argument: Declared) -> torch.Tensor:
    """The memory of a complex tensor as a real tensor. Raises UsageError for anything else."""
    if not isinstance(value, torch.Tensor) or value.dtype != argument.dtype:
        got = value.dtype if isinstance(value, torch.Tensor) else type(value).__name__
        raise UsageError(
            f"argument '{argument.name}': expected dtype {argument.dtype}, got {got}; compile the program "
            "again for other arrays"
        )
    return parts_of(value)


def parts_of(value: torch.Tensor) -> torch.Tensor:
    """What `@main` gets for an argument: of a complex tensor its memory as a real one."""
    return torch.view_as_real(value.detach().resolve_conj()) if value.is_complex() else value


def as_complex(result: torch.Tensor) -> torch.Tensor:
    """A row-major result of `@main` as a complex tensor on its memory, which is no view to autograd."""
    made = torch.empty(0, dtype=result.dtype.to_complex(), device=result.device)
    strides = [stride // 2 for stride in result.stride()[:-1]]
    offset = result.storage_offset() // 2
    return made.set_(result.untyped_storage(), offset, result.shape[:-1], strides)
