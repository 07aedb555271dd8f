"""`deplo.from_onnx`: a model file as a compiled program on numpy arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp

from ..dialects.sizes import Extent
from ..errors import UsageError
from ..execution import Code, ExecutionPlan
from ..lazy.dtypes import DType
from ..lazy.expression import LEAF
from ..lazy.programs import build_module, in_order
from ..machine.host_cpu import find_target
from .dtypes import numpy_dtype
from .importing import Imported
from .names import identifiers


@dataclass(frozen=True)
class Value:
    """An input or an output of a model."""

    name: str
    dtype: DType
    shape: tuple[Extent, ...]


@dataclass(frozen=True)
class Model:
    """A model in Torch IR: `@main` takes the inputs, then the arrays that the model holds."""

    name: str
    module: ModuleOp
    inputs: tuple[Value, ...]
    outputs: tuple[Value, ...]
    held: tuple[tuple[str, DType, np.ndarray[Any, Any]], ...]
    """The arguments behind the inputs: a name that no other has, dtype and elements."""


def model_of(imported: Imported) -> Model:
    """The model of what was imported."""
    inputs = [node for _, node in imported.inputs]
    outputs = [node for _, node in imported.outputs]
    nodes = list(dict.fromkeys([*inputs, *in_order(outputs)]))
    module = build_module(nodes, outputs)
    held = [node for node in nodes[len(inputs) :] if node.operator == LEAF]
    names = [name for name, _ in imported.inputs]
    names += [imported.weights.get(node, f"constant_{i}") for i, node in enumerate(held)]
    (main,) = (op for op in module.ops if isinstance(op, FuncOp))
    plain = identifiers(names)
    for argument, hint in zip(main.body.block.args, plain, strict=True):
        argument.name_hint = hint
    marks = [
        {} if i < len(inputs) else {"deplo.parameter": StringAttr(n)} for i, n in enumerate(names)
    ]
    main.arg_attrs = ArrayAttr([DictionaryAttr(mark) for mark in marks])
    arrays: list[tuple[str, DType, np.ndarray[Any, Any]]] = []
    for node, name in zip(held, plain[len(inputs) :], strict=True):
        assert node.array is not None
        arrays.append((name, node.dtype, node.array))
    return Model(
        imported.name,
        module,
        tuple(Value(name, node.dtype, node.shape) for name, node in imported.inputs),
        tuple(Value(name, node.dtype, node.shape) for name, node in imported.outputs),
        tuple(arrays),
    )


class OnnxProgram(ExecutionPlan):
    """A compiled model; call it with the graph's inputs, in their order or by name."""

    def __init__(self, model: Model, target: str = "cpu", schedule: str | None = None):
        super().__init__(Code(model.module, find_target(target), schedule, bucketed=True))
        self.model = model
        self._held = [array for _, _, array in model.held]
        _ = self.plan  # what is not supported is said now

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The inputs: name, dtype and shape of each."""
        return self.model.inputs

    @property
    def outputs(self) -> tuple[Value, ...]:
        """The outputs: name, dtype and shape of each."""
        return self.model.outputs

    def __call__(self, *arrays: Any, **named: Any) -> Any:
        """The outputs as numpy arrays: one alone, several as a tuple in the graph's order.

        Raises UsageError if the inputs are not those of the model, in dtype, shape or name.
        """
        if self.target.is_gpu:
            raise UsageError(
                f"the model is compiled for {self.target.name}, and numpy arrays are on the CPU: "
                "it can be printed and saved; compile it for cpu to call it"
            )
        given = self._ordered(arrays, named)
        found = self.run([*given, *self._held])
        results = tuple(
            (array.copy() if ref.kind == "argument" else array).view(numpy_dtype(value.dtype))
            for array, ref, value in zip(found, self.plan.results, self.outputs, strict=True)
        )
        return results[0] if len(results) == 1 else results

    def _ordered(self, arrays: Sequence[Any], named: Mapping[str, Any]) -> list[Any]:
        names = [value.name for value in self.inputs]
        listed = ", ".join(names) or "none"
        if len(arrays) > len(names):
            raise UsageError(f"{len(arrays)} inputs for a model of {len(names)}: {listed}")
        by_name = dict(zip(names, arrays, strict=False))
        for name, array in named.items():
            if name not in names:
                raise UsageError(f"the model has no input '{name}'; its inputs are {listed}")
            if name in by_name:
                raise UsageError(f"input '{name}' is given twice")
            by_name[name] = array
        if missing := [name for name in names if name not in by_name]:
            raise UsageError(f"input '{missing[0]}' is missing; the inputs are {listed}")
        return [_stored(by_name[value.name], value) for value in self.inputs]


def _stored(array: Any, value: Value) -> Any:
    """An input as it lies in memory. Raises UsageError for one of another dtype."""
    wanted = numpy_dtype(value.dtype)
    if not isinstance(array, np.ndarray | np.generic):
        raise UsageError(
            f"input '{value.name}': expected a numpy array, got {type(array).__name__}"
        )
    if array.dtype != wanted:
        raise UsageError(f"input '{value.name}': expected dtype {wanted}, got {array.dtype}")
    return np.asarray(array).view(value.dtype.storage)
