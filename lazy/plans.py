"""`deplo.prepare`: a plan that computes tensors as often as it is executed, on the same data or others.

n = deplo.Variable("n", 1, 4096)
x = deplo.Tensor(data)
plan = deplo.prepare(x[:n].sum(axis=0))
(total,) = plan.execute_with(n=37)
plan.bind(x, other).execute_with(n=38)       # nothing is compiled again
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..dialects.sizes import Size
from ..errors import UsageError
from ..execution import Code, ExecutionPlan
from .data import node_of
from .expression import Node, leaf
from .programs import code_of
from .tensor import METHODS, Tensor


class TensorPlan(ExecutionPlan):
    """An execution plan for lazy tensors. Its inputs are the tensors with elements that these depend on."""

    def __init__(
        self, code: Code, leaves: Sequence[Node], outputs: Sequence[Node], results: Sequence[int]
    ):
        """Output `i` is the program's result `results[i]`."""
        super().__init__(code)
        self._leaves = tuple(leaves)
        self._read = tuple(node.array for node in leaves)
        self._dtypes = tuple(node.dtype for node in outputs)
        self._results = tuple(results)
        self._arrays = list(self._read)
        self._sizes: dict[str, int] = {}

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        """The tensors that `bind` takes, in the order of the program's arguments."""
        return tuple(map(Tensor.of, self._leaves))

    def bind(self, tensor: Tensor, data: Any) -> TensorPlan:
        """Execute on other data in the place of a tensor's, of its dtype and shape; gives the plan.

        Along axes that are variables there may be more data, or less: as much as the executions read. Raises
        UsageError if the plan does not read the tensor, or the data do not fit.
        """
        array = tensor.node.array
        places = [i for i, read in enumerate(self._read) if read is not None and read is array]
        if not places:
            raise UsageError("bind: the plan reads no such tensor; plan.inputs are those it reads")
        given = node_of(data)
        for place in places:
            wanted, has = self._leaves[place], given.shape
            if given.array is None or given.dtype is not wanted.dtype:
                raise UsageError(f"bind: expected data of {wanted.dtype}, got {given.dtype}")
            if len(has) != len(wanted.shape) or any(
                not isinstance(n, Size) and n != m for n, m in zip(wanted.shape, has, strict=True)
            ):
                raise UsageError(
                    f"bind: expected data of shape {list(wanted.shape)}, got {list(has)}"
                )
        for place in places:
            self._arrays[place] = given.array
        return self

    def execute(self) -> tuple[Tensor, ...]:
        """Compute the tensors; variables have the values that the plan was prepared with."""
        return self.execute_with()

    def execute_with(self, **variables: int) -> tuple[Tensor, ...]:
        """Compute the tensors for values of variables. Nothing is compiled but in the first execution.

        Raises UsageError for a value that is missing or not in its limits, or for which there are not
        enough data.
        """
        sizes = self._sizes | variables
        found = self.run(self._arrays, sizes if sizes or self.plan.sizes else None)
        pairs = zip(self._results, self._dtypes, strict=True)
        return tuple(Tensor.of(leaf(found[i], dtype)) for i, dtype in pairs)

    def start(self, variables: Mapping[str, int]) -> TensorPlan:
        """The plan, with values for variables that an execution does not say.

        Raises UsageError for what names no values, such as a list of variables.
        """
        if not isinstance(variables, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"variables must be values by name, as {{'n': 37}}, not {type(variables).__name__}; "
                "leave them out if each execution says them"
            )
        for size in self.plan.sizes:
            if size.name in variables:
                size.check(variables[size.name])
        self._sizes = dict(variables)
        return self


def prepare(*tensors: Tensor, variables: Mapping[str, int] | None = None) -> TensorPlan:
    """A plan that computes tensors; they share kernels. `variables` are values for those they depend on.

    Raises UsageError where there is nothing to compute, or a variable is the extent of no data's axis.
    """
    nodes = [tensor.node for tensor in tensors]
    if all(node.array is not None for node in nodes):
        raise UsageError("these tensors have their elements; there is nothing to compute")
    wanted = list(dict.fromkeys(nodes))
    code, leaves = code_of(wanted)
    plan = TensorPlan(code, leaves, nodes, [wanted.index(node) for node in nodes])
    return plan.start(variables) if variables else plan


METHODS["program"] = prepare
