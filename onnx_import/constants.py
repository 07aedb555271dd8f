"""The elements of tensors that depend on no input: computed while a model is imported.

There is no second table of what operators mean: the interpreter of Tensor IR executes what the rules said.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
from xdsl.context import Context

from .. import interpreter
from ..dialects.sizes import Size
from ..errors import DeploError
from ..lazy.dtypes import bfloat16
from ..lazy.expression import LEAF, Node, said
from ..lazy.programs import build_module, in_order
from ..passes.torch.decompose_torch import DecomposeTorchPass
from .dtypes import is_float
from .rules import Refused
from .shapes import Values

MAX_ELEMENTS = 1 << 20
"""Elements of a tensor that is computed while a model is imported."""

MAX_LIST = 1 << 10
"""Elements of what says a shape."""


class Constants:
    """Which expressions depend on inputs, and the elements of those that do not."""

    def __init__(self) -> None:
        self._depends: dict[Node, bool] = {}
        self.sizes: dict[Node, Values] = {}
        """The elements of lists in which there are sizes."""

    def add_input(self, node: Node) -> None:
        """A tensor that only a call says."""
        self._depends[node] = True

    def depends(self, node: Node) -> bool:
        """Whether an expression depends on an input."""
        waiting = [node]
        while waiting:
            each = waiting[-1]
            if each in self._depends:
                waiting.pop()
                continue
            sources = list(each.sources)
            unknown = [source for source in sources if source not in self._depends]
            if unknown:
                waiting += unknown
                continue
            sized = any(isinstance(n, Size) for n in (*each.shape, *said(each.properties)[1]))
            self._depends[each] = sized or any(self._depends[source] for source in sources)
            waiting.pop()
        return self._depends[node]

    def know(self, node: Node) -> np.ndarray[Any, Any]:
        """The elements of an expression; it is a leaf after that. Raises Refused if it depends on inputs."""
        if self.depends(node):
            raise Refused("it depends on the model's inputs")
        if node.dtype is bfloat16:
            raise Refused("it is of bfloat16, which numpy does not have")
        if node.array is None:
            node.settle(_computed(node))
        assert node.array is not None
        return node.array

    def know_extents(self, node: Node) -> Values:
        """The elements of a list of integers, sizes among them. Raises Refused if they depend on inputs."""
        found = self.sizes.get(node)
        return self.know(node) if found is None else found

    def elements(self, node: Node) -> Values | None:
        """The elements of what may say a shape, if they are known."""
        found = self.sizes.get(node)
        if found is not None or self.depends(node):
            return found
        extents = [n for n in node.shape if isinstance(n, int)]
        is_small = len(extents) <= 1 and prod(extents) <= MAX_LIST and not is_float(node.dtype)
        return self.know(node) if is_small else None


def _computed(node: Node) -> np.ndarray[Any, Any]:
    nodes = in_order([node])
    for each in nodes:
        extents = [n for n in each.shape if isinstance(n, int)]
        if len(extents) < len(each.shape) or prod(extents) > MAX_ELEMENTS:
            raise Refused(f"a tensor of shape {list(each.shape)} is not computed then")
        if each.dtype is bfloat16:
            raise Refused("bfloat16 is not computed then")
    module = build_module(nodes, [node])
    arrays = [each.array for each in nodes if each.operator == LEAF and each.array is not None]
    try:
        DecomposeTorchPass().apply(Context(), module)
        with np.errstate(all="ignore"):
            (found,) = interpreter.execute(module, arrays)
    except (DeploError, interpreter.NotExecutable, interpreter.ProgramError) as error:
        raise Refused(str(error)) from error
    return np.ascontiguousarray(found, node.dtype.storage).reshape(node.shape)
