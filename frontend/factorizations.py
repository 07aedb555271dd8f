"""Factorizations whose factors depend on the strides of the matrix, given matrices that lie as in eager.

    torch.linalg.slogdet(w)                  # w: 6 by 6 elements with strides (1, 6)

becomes

    torch.linalg.slogdet(w.mT.clone().mT)

PyTorch factors the transpose of a contiguous matrix, and the matrix itself otherwise. The formulas of the
gradients, traced for eager's strides, read the factors accordingly. A call of PyTorch gets row-major
memory, or a permuted view of such.
"""

from __future__ import annotations

import torch

from .calls import permuted

aten = torch.ops.aten

FACTORIZATIONS = (
    aten._linalg_det.default,
    aten._linalg_slogdet.default,
    aten._linalg_solve_ex.default,
)
"""The operators that ask whether their first argument is contiguous, and return the factors."""


def keep_factored_order(graph: torch.fx.Graph) -> None:
    """Let each factorization in a graph of ATen operators get a matrix that is contiguous as in eager."""
    for node in list(graph.nodes):
        if node.op != "call_function" or node.target not in FACTORIZATIONS:
            continue
        matrix = node.args[0]
        base, _ = permuted(matrix)
        if base.meta["val"].is_contiguous():
            continue  # a call gives it so, and permutes it as the program does
        with graph.inserting_before(node):
            node.replace_input_with(matrix, _cloned(graph, matrix))


def _cloned(graph: torch.fx.Graph, matrix: torch.fx.Node) -> torch.fx.Node:
    """A clone of a matrix, which is contiguous if it is, and else the transpose of a contiguous one."""
    if matrix.meta["val"].is_contiguous():
        return _clone(graph, matrix)
    return _transpose(graph, _clone(graph, _transpose(graph, matrix)))


def _clone(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    made = graph.call_function(aten.clone.default, (node,))
    made.meta = node.meta | {"val": node.meta["val"].contiguous()}
    return made


def _transpose(graph: torch.fx.Graph, node: torch.fx.Node) -> torch.fx.Node:
    made = graph.call_function(aten.transpose.int, (node, -2, -1))
    made.meta = node.meta | {"val": node.meta["val"].mT}
    return made
