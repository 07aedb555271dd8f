"""Operands of the extents that an operator asks for, where only Dynamo's guards say that they have these.

    x = scores.view(-1, 10)                     # s0 * s1 rows
    gather(x, 1, target.view(-1, 1))            # s2 * s3 rows, and Dynamo guards s0 * s1 == s2 * s3

becomes

    index = constant_pad_nd(target.view(-1, 1), [0, 0, 0, s0 * s1 - s2 * s3])
    constant_pad_nd(gather(x, 1, index), [0, 0, 0, s2 * s3 - s0 * s1])

The IR compares extents by the ranges of sizes, which do not relate products of several sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sympy
import torch

from .size_guards import guards_of, shape_environment
from .sizes import expression_of
from .unsupported import OpOverload

aten = torch.ops.aten

LOOKUPS = (
    aten.gather.default,
    aten.scatter.src,
    aten.scatter.value,
    aten.scatter_add.default,
    aten.scatter_reduce.two,
)
"""Operators of a tensor, an axis, and an index that has at most the tensor's extents along the other axes."""


def pad_to_guarded_extents(graph: torch.fx.Graph) -> None:
    """Pad operands to the extents that Dynamo's guards say that they have, in place."""
    guards: list[Any] = [guard for guard in guards_of(graph) if isinstance(guard, sympy.Eq)]
    equal = [guard.lhs - guard.rhs for guard in guards]
    for node in list(graph.nodes) if equal else ():
        if node.target in LOOKUPS:
            _fit_index(graph, node, equal)
        elif _broadcasts(node):
            wanted = node.meta["val"].shape
            with graph.inserting_before(node):
                fitted = [_fitted(graph, each, wanted, equal) for each in node.args]
            node.args = tuple(fitted)


def _broadcasts(node: torch.fx.Node) -> bool:
    """Whether the operands of a node are broadcast to its result."""
    target: Any = node.target
    if not isinstance(target, OpOverload) or not isinstance(node.meta["val"], torch.Tensor):
        return False
    return target is aten.expand.default or torch.Tag.pointwise in target.tags


def _fit_index(graph: torch.fx.Graph, node: torch.fx.Node, equal: Sequence[Any]) -> None:
    """Give the index of a node, and what is written there, the extents of the tensor that it indexes."""
    value, axis, index, *written = node.args
    given, wanted = index.meta["val"].shape, list(value.meta["val"].shape)  # type: ignore[union-attr]
    if len(wanted) != len(given) or not given:
        return
    wanted[axis] = given[axis]  # type: ignore[index]
    with graph.inserting_before(node):
        fitted = [_fitted(graph, each, wanted, equal) for each in (index, *written)]
    if fitted[0] is index:
        return
    node.args = (value, axis, *fitted)
    if node.target is aten.gather.default:
        users = list(node.users)
        node.meta = node.meta | {"val": _example(node, fitted[0].meta["val"].shape)}
        with graph.inserting_before(node.next):
            result = _fitted(graph, node, given, equal)
        node.replace_all_uses_with(result, delete_user_cb=lambda user: user in users)


def _fitted(graph: torch.fx.Graph, node: Any, wanted: Sequence[Any], equal: Sequence[Any]) -> Any:
    """A tensor with the extents of `wanted`, from the last on, that it is guarded to have; else `node`."""
    value = node.meta.get("val") if isinstance(node, torch.fx.Node) else None
    if not isinstance(value, torch.Tensor) or not 0 < value.ndim <= len(wanted):
        return node
    given = list(value.shape)
    last = list(wanted)[-len(given) :]
    shape = [n if _differ(m, n, equal) else m for m, n in zip(given, last, strict=True)]
    pairs = list(zip(given, shape, strict=True))
    if all(m is n for m, n in pairs):
        return node
    made = graph.call_function(aten.constant_pad_nd.default, (node, []))
    made.args = (node, [pad for m, n in reversed(pairs) for pad in (0, 0 if m is n else n - m)])
    made.meta = node.meta | {"val": _example(node, shape)}
    return made


def _differ(m: Any, n: Any, equal: Sequence[Any]) -> bool:
    """Whether two extents differ as expressions, by a multiple of one of `equal`, which are 0."""
    if not isinstance(m, torch.SymInt) or not isinstance(n, torch.SymInt):
        return False
    difference: Any = sympy.expand(expression_of(m) - expression_of(n))
    return difference != 0 and any(sympy.cancel(difference / zero).is_number for zero in equal)


def _example(node: torch.fx.Node, shape: Sequence[Any]) -> torch.Tensor:
    """A fake tensor like a node's, of another shape."""
    value = node.meta["val"]
    environment = shape_environment(node.graph)
    assert environment is not None
    with environment.suppress_guards(), value.fake_mode:
        return torch.empty(list(shape), dtype=value.dtype, device=value.device)
