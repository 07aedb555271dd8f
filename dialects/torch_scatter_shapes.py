"""Families of `torch` operations that write into a copy of their first operand."""

from __future__ import annotations

from math import prod

from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .torch_base import Shape, TorchOp
from .torch_found_shapes import is_mask, verify_masked
from .torch_shapes import (
    broadcast_shapes,
    broadcasts_to,
    normalize_axis,
    verify_indices,
)
from .torch_window_shapes import DiagonalShapeOp


class ScatterShapeOp(TorchOp):
    """Writes one element for each index, at the index's own position on the other axes.

    What is written is the last tensor, which may be larger than the index, or a number.
    """

    def result_shape(self) -> Shape | None:
        source, index, *written = self.operand_shapes()
        verify_indices(self.operands[1])
        axis = normalize_axis(self.integer("dim"), len(source))
        if 0 in index:
            return source  # PyTorch asks nothing of an index without elements
        limit = (*source[:axis], *index[axis : axis + 1], *source[axis + 1 :])
        for shape in (limit, *written):
            if len(shape) != len(index) or any(m > n for m, n in zip(index, shape, strict=True)):
                raise VerifyException(f"index {list(index)} does not fit {list(shape)}")
        return source


class IndexReduceShapeOp(TorchOp):
    """Folds slices along one axis into those that a list of indices names."""

    def result_shape(self) -> Shape | None:
        target, index, source = self.operand_shapes()
        verify_indices(self.operands[1])
        axis = normalize_axis(self.integer("dim"), len(target))
        count = index[0] if index else 1
        expected = (*target[:axis], count, *target[axis + 1 :]) if target else ()
        if len(index) > 1 or source != expected:
            raise VerifyException(f"source {list(source)} does not fit index {list(index)}")
        return target


class IndexPutShapeOp(TorchOp):
    """Writes at neighbouring axes from `dim` on, each indexed by a tensor; indices and values broadcast."""

    def indices_of(self) -> list[SSAValue]:
        """The indices, one for each axis from `dim` on."""
        return list(self.operands[1:-1])

    def written_shape(self) -> Shape:
        """The extents that the written values broadcast to; of a mask, as many places as there are values."""
        source, *indices, values = self.operand_shapes()
        first = self.integer("dim")
        last = first + len(indices)
        if len(indices) == 1 and is_mask(self.operands[1]):
            last = verify_masked(indices[0], source, first)
            behind = len(source) - last
            count = values[-1 - behind] if len(values) > behind else 1
            return (*source[:first], count, *source[last:])
        verify_indices(*self.indices_of())
        if not indices or first < 0 or last > len(source):
            raise VerifyException(
                f"{len(indices)} indices from axis {first} do not fit {list(source)}"
            )
        return (*source[:first], *broadcast_shapes(*indices), *source[last:])

    def result_shape(self) -> Shape | None:
        written, values = self.written_shape(), self.operand_shapes()[-1]
        if not broadcasts_to(values, written):
            raise VerifyException(f"values {list(values)} do not fit {list(written)}")
        return self.operand_shapes()[0]


class MaskedScatterShapeOp(TorchOp):
    """Writes the elements of the last tensor, in order, where a mask holds."""

    def result_shape(self) -> Shape | None:
        target, mask, _ = self.operand_shapes()
        return broadcast_shapes(target, mask)


class DiagonalScatterShapeOp(DiagonalShapeOp):
    """Writes a diagonal."""

    def result_shape(self) -> Shape | None:
        target, source = self.operand_shapes()
        diagonal = super().result_shape()
        if source != diagonal:
            raise VerifyException(
                f"source {list(source)} does not fit a diagonal of {list(target)}"
            )
        return target


class StridedShapeOp(TorchOp):
    """Reads the elements of a contiguous tensor by other strides."""

    def view(self) -> tuple[Shape, Shape, int]:
        """Extents, strides and the first position."""
        size, stride = self.integers("size"), self.integers("stride")
        offset = self.optional_integer("storage_offset") or 0
        if len(size) != len(stride) or any(n < 0 for n in (*size, *stride, offset)):
            raise VerifyException(f"size {list(size)} and stride {list(stride)} do not fit")
        return size, stride, offset

    def result_shape(self) -> Shape | None:
        size, stride, offset = self.view()
        last = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True))
        count = prod(self.operand_shapes()[0])
        if 0 not in size and last >= count:
            raise VerifyException(f"goes to element {last} of a tensor of {count}")
        return size


class StridedScatterShapeOp(StridedShapeOp):
    """Writes elements of a contiguous tensor that are some strides apart."""

    def result_shape(self) -> Shape | None:
        target, source = self.operand_shapes()
        size, strides, _ = self.view()
        super().result_shape()
        if source != size:
            raise VerifyException(f"source {list(source)} does not fit size {list(size)}")
        reached = 1  # by the axes of smaller strides
        for stride, n in sorted(zip(strides, size, strict=True)):
            if n > 1 and stride < reached:
                told = f"strides {list(strides)} that interlace"
                raise VerifyException(f"writes an element twice, or by {told}")
            reached += (n - 1) * stride
        return target
