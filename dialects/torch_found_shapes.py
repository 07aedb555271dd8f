"""Families of `torch` operations with an extent that they find in the values of their operands.

    %at = torch.nonzero %x : (tensor<6x4xi1>) -> tensor<?x2xi64, #sym.extents<s0>>

The type of the result says which size that is; what it may be, `@main` says of the size.
"""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .scalars import is_bool
from .sizes import Extent, shape_of
from .syntax import tensor_type
from .torch_base import Shape, TorchOp
from .torch_shapes import broadcast_shapes, verify_indices


def found_extent(op: TorchOp, axis: int = 0) -> Extent:
    """The extent of an axis that the first result of `op` says; raises VerifyException if it has none."""
    shape = shape_of(tensor_type(op.results[0]))
    if len(shape) <= axis:
        raise VerifyException(f"finds how many elements axis {axis} has, of a result {list(shape)}")
    return shape[axis]


def is_mask(value: SSAValue) -> bool:
    """Whether an index is a mask of places, not a tensor of positions."""
    return is_bool(tensor_type(value).element_type)


def verify_masked(mask: Shape, source: Shape, first: int) -> int:
    """The axis behind those that a mask stands for; raises VerifyException if it has other extents."""
    last = first + len(mask)
    if first < 0 or source[first:last] != mask:
        raise VerifyException(f"a mask {list(mask)} from axis {first} does not fit {list(source)}")
    return last


class IndexShapeOp(TorchOp):
    """Neighbouring axes from `dim` on, each indexed by a tensor, which broadcast, or all by one mask."""

    def result_shape(self) -> Shape | None:
        source, *indices = self.operand_shapes()
        first, last = self.integer("dim"), self.integer("dim") + len(indices)
        if len(indices) == 1 and is_mask(self.operands[1]):
            last = verify_masked(indices[0], source, first)
            return (*source[:first], found_extent(self, first), *source[last:])
        verify_indices(*self.operands[1:])
        if not indices or first < 0 or last > len(source):
            raise VerifyException(
                f"{len(indices)} indices from axis {first} do not fit {list(source)}"
            )
        return (*source[:first], *broadcast_shapes(*indices), *source[last:])


class NonzeroShapeOp(TorchOp):
    """Gives the place of each element that is not zero: an index for each axis."""

    def result_shape(self) -> Shape | None:
        (shape,) = self.operand_shapes()
        return found_extent(self), len(shape)


class SelectedShapeOp(TorchOp):
    """Gives, as a list, the elements for which a mask holds."""

    def result_shape(self) -> Shape | None:
        broadcast_shapes(*self.operand_shapes())
        if not is_mask(self.operands[1]):
            raise VerifyException("mask must hold bools")
        return (found_extent(self),)


class RepeatsShapeOp(TorchOp):
    """Gives each place of a list as often as the list says there."""

    def result_shape(self) -> Shape | None:
        (repeats,) = self.operand_shapes()
        verify_indices(self.operands[0])
        if len(repeats) != 1:
            raise VerifyException(f"repeats {list(repeats)} must be a list")
        return (found_extent(self),)


class UniqueShapeOp(TorchOp):
    """Gives each value once; for each element the place of its value; how often each value is there."""

    def result_shape(self) -> Shape | None:
        (shape,) = self.operand_shapes()
        _, inverse, counts = (shape_of(tensor_type(result)) for result in self.results)
        if "dim" in self.properties:
            raise VerifyException("compares slices along an axis, not elements")
        if inverse not in (shape, (0,)) or counts not in ((found_extent(self),), (0,)):
            raise VerifyException(f"a result {list(inverse)} or {list(counts)} does not fit")
        return (found_extent(self),)

    def searched(self) -> Extent:
        """How many elements there are."""
        return prod(self.operand_shapes()[0])
