"""Operators of `prims` and aliases that PyTorch's passes put into graphs, as operators of ATen.

    prims.fma(a, b, c), aten.true_divide.Tensor(a, b)

becomes

    a * b + c, a / b

Dynamo makes a fused multiplication of `addcmul_` and its kin, and AOTAutograd tensors of floats that may
change.
"""

from __future__ import annotations

import torch

aten = torch.ops.aten

FMA = "prims.fma.default"
"""By name: only what Dynamo imports for it defines it."""

CONVERT = torch.ops.prims.convert_element_type.default


def prims_as_aten(graph: torch.fx.Graph) -> None:
    """Replace what the dialect knows under another name, or in parts."""
    for node in list(graph.nodes):
        if node.op != "call_function":
            continue
        if node.target is CONVERT:
            value, dtype = node.args
            node.target = aten._to_copy.default
            node.args, node.kwargs = (value,), {"dtype": dtype}
        elif node.target is aten.true_divide.Tensor:
            node.target = aten.div.Tensor
        elif node.target is aten.square.default:
            node.target, node.args = aten.mul.Tensor, (node.args[0], node.args[0])
        elif str(node.target) == FMA:
            left, right, added = node.args
            with graph.inserting_before(node):
                product = graph.call_function(aten.mul.Tensor, (left, right))
            product.meta = dict(node.meta)
            node.target, node.args = aten.add.Tensor, (product, added)
