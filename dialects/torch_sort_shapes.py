"""Families of `torch` operations that give values along an axis by their order, with positions."""

from __future__ import annotations

from xdsl.dialects.builtin import FloatAttr, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, shape_of
from .syntax import tensor_type
from .torch_base import Shape, TorchOp
from .torch_shapes import ReductionOp, normalize_axis


class SortShapeOp(TorchOp):
    """Values along an axis in order, and their positions."""

    def axis(self) -> int:
        """The axis, counted from the front."""
        return normalize_axis(self.integer("dim"), len(self.operand_shapes()[0]))

    def axis_extent(self) -> Extent:
        """The extent of the axis; a 0-d tensor counts as one element."""
        shape = self.operand_shapes()[0]
        return shape[self.axis()] if shape else 1

    def count(self) -> Extent:
        """How many values there are in the result."""
        if "k" not in self.properties:
            return self.axis_extent()
        if not 0 <= self.extent("k") <= self.axis_extent():
            raise VerifyException(f"k = {self.extent('k')} of {self.axis_extent()} values")
        return self.extent("k")

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        if shape:
            axis = self.axis()
            shape = (*shape[:axis], self.count(), *shape[axis + 1 :])
        _verify_positions(self, shape)
        return shape


class OrderShapeOp(ReductionOp):
    """The value at one place of the order along an axis, and its position if the axis is given."""

    def result_shape(self) -> Shape | None:
        shape = super().result_shape()
        if "k" in self.properties:
            source = self.operand_shapes()[0]
            extent = source[self.reduced_axes()[0]] if source else 1
            if not 1 <= self.extent("k") <= extent:
                raise VerifyException(f"k = {self.extent('k')} of {extent} values")
        if shape is not None and len(self.results) > 1:
            _verify_positions(self, shape)
        return shape


class SearchShapeOp(TorchOp):
    """Where values belong in sequences that are in order, which are the last axis of a tensor."""

    def sequences(self) -> SSAValue:
        """The sequences: one, or one for each row of the values."""
        value = getattr(self, "boundaries", None) or getattr(self, "sorted_sequence", None)
        assert isinstance(value, SSAValue)
        return value

    def searched(self) -> SSAValue | IntegerAttr | FloatAttr:
        """The values, or one number."""
        value: SSAValue | IntegerAttr | FloatAttr = getattr(self, "input")  # noqa: B009
        return value

    def result_shape(self) -> Shape | None:
        sequence, searched = shape_of(tensor_type(self.sequences())), self.searched()
        shape = shape_of(tensor_type(searched)) if isinstance(searched, SSAValue) else ()
        rows = len(sequence) == len(shape) and sequence[:-1] == shape[:-1]
        if not sequence or not (len(sequence) == 1 or rows):
            raise VerifyException(f"values {list(shape)} do not fit sequences {list(sequence)}")
        sorter = getattr(self, "sorter", None)
        if sorter is not None and shape_of(tensor_type(sorter)) != sequence:
            raise VerifyException(f"a sorter must have shape {list(sequence)}, got {sorter.type}")
        return shape


def _verify_positions(op: TorchOp, shape: Shape) -> None:
    positions = tensor_type(op.results[1])
    if shape_of(positions) != shape:
        raise VerifyException(f"positions must have shape {list(shape)}, got {positions}")
