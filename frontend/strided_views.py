"""`as_strided` of tensors that lie in memory with their axes in another order.

    x.transpose(0, 1).as_strided(size, stride)       # x: 4 by 8 elements, row by row

becomes

    x.transpose(0, 1).permute(1, 0).as_strided(size, stride)

The operator counts places in memory. A tensor of the IR has none: it is taken to lie row by row, as the
permuted one does in PyTorch too.
"""

from __future__ import annotations

import torch

from .arguments import BY_STRIDES, is_plain
from .layouts import order_in_memory

aten = torch.ops.aten


def permute_to_memory_order(graph: torch.fx.Graph) -> None:
    """Let each `as_strided` of a graph of ATen operators that reads all of some memory read it row by row.

    One that reads a part of memory, or memory from another place on, stays as it is.
    """
    for node in [n for n in graph.nodes if str(n.target).removeprefix("aten.") in BY_STRIDES]:
        source = node.args[0]
        order = None if is_plain(source) else order_in_memory(source)
        if order is None or source.meta["val"].storage_offset() != 0:
            continue
        with graph.inserting_before(node):
            moved = graph.call_function(aten.permute.default, (source, order))
        moved.meta = source.meta | {"val": source.meta["val"].permute(order)}
        node.args = (moved, *node.args[1:])
