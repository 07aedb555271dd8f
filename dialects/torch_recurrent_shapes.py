"""Families of `torch` operations that are whole recurrent networks, layers and directions included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, shape_of
from .syntax import tensor_type
from .torch_base import Shape, TorchOp


@dataclass(frozen=True)
class Weights:
    """The parameters of one layer in one direction."""

    of_input: SSAValue
    of_hidden: SSAValue
    biases: tuple[SSAValue, ...]
    """None, or those of the input and of the state."""
    projection: SSAValue | None


class RecurrentShapeOp(TorchOp):
    """Runs a recurrent network over sequences: gives the last layer's state of each step, and last states.

    The first axes of the input are steps and sequences, in the other order with `batch_first`. The first axis
    of each state counts layers, and of each layer its directions.
    """

    GATES: ClassVar[int] = 1
    """How many vectors each step computes from its input and its state."""

    @property
    def states(self) -> Sequence[SSAValue]:
        """The initial states: the hidden one first."""
        given: Any = self.hx  # type: ignore[attr-defined]
        return [given] if isinstance(given, SSAValue) else list(given)

    @property
    def directions(self) -> int:
        """1, or 2 for a network that also runs from the last step to the first."""
        return 2 if self.flag("bidirectional") else 1

    def parts(self) -> Iterator[Weights]:
        """The weights of each layer, and of each layer those of each direction."""
        given: Any = self.params  # type: ignore[attr-defined]
        params: list[SSAValue] = list(given)
        width = self._parameters()
        for first in range(0, self.integer("num_layers") * self.directions * width, width):
            of_input, of_hidden, *rest = params[first : first + width]
            projection = rest.pop() if self._projects() else None
            yield Weights(of_input, of_hidden, tuple(rest), projection)

    def _projects(self) -> bool:
        """Whether the hidden state is smaller than the state of the cells."""
        shapes = [shape_of(tensor_type(state)) for state in self.states]
        return any(shape != shapes[0] for shape in shapes)

    def _parameters(self) -> int:
        """How many parameters a layer has in one direction."""
        return 2 + 2 * self.flag("has_biases") + self._projects()

    def result_shape(self) -> Shape | None:
        source = shape_of(tensor_type(self.operands[0]))
        states = [shape_of(tensor_type(state)) for state in self.states]
        if len(source) != 3 or any(len(shape) != 3 for shape in states):
            raise VerifyException("needs an input and states of 3 axes")
        layers, directions = self.integer("num_layers"), self.directions
        given: Any = self.params  # type: ignore[attr-defined]
        count = layers * directions * self._parameters()
        if layers < 1 or len(given) != count:
            raise VerifyException(f"needs {count} parameters, got {len(given)}")
        batch, steps = source[:2] if self.flag("batch_first") else source[1::-1]
        if steps == 0:
            raise VerifyException("needs at least one step")
        for shape in states:
            if shape[:2] != (layers * directions, batch):
                raise VerifyException(f"a state of shape {list(shape)} does not fit")
        hidden, cells = states[0][2], states[-1][2]
        self._verify_parameters(source[2], hidden, cells)
        for result, shape in zip(self.results[1:], states, strict=True):
            if shape_of(tensor_type(result)) != shape:
                raise VerifyException(f"gives a last state of shape {list(shape)}")
        return (*source[:2], directions * hidden)

    def _verify_parameters(self, features: Extent, hidden: Extent, cells: Extent) -> None:
        """Raise VerifyException for a parameter of a wrong shape."""
        rows = self.GATES * cells
        for number, part in enumerate(self.parts()):
            if number >= self.directions:
                features = self.directions * hidden
            expected = [(part.of_input, (rows, features)), (part.of_hidden, (rows, hidden))]
            expected += [(bias, (rows,)) for bias in part.biases]
            if part.projection is not None:
                expected.append((part.projection, (hidden, cells)))
            for value, shape in expected:
                if shape_of(tensor_type(value)) != shape:
                    got = list(shape_of(tensor_type(value)))
                    raise VerifyException(f"has a parameter of shape {got} in place of {list(shape)}")


class LstmShapeOp(RecurrentShapeOp):
    """Long short-term memory, of a hidden state and a state of the cells."""

    GATES: ClassVar[int] = 4


class GruShapeOp(RecurrentShapeOp):
    """Gated recurrent units."""

    GATES: ClassVar[int] = 3
