"""Products of matrices."""

from __future__ import annotations

from ..lazy.expression import Node
from .building import op
from .rules import Call, rule, same_dtype


@rule("MatMul", 1, 9, 13)
def matmul(call: Call) -> Node:
    """As numpy's."""
    a, b = call.tensor(0), call.tensor(1)
    return op("matmul.default", a, b, dtype=same_dtype(a, b))
