"""Families of `torch` operations that slide a window over axes: convolution, pooling, unfolding.

Each checks that its arguments give the extents of its first result, and answers where windows start.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, ceil_div
from .syntax import tensor_type
from .torch_base import Shape, TorchOp
from .torch_shapes import normalize_axis


@dataclass(frozen=True)
class Slide:
    """How a window slides along one axis: window `o` starts at `o * stride - padding`."""

    kernel: Extent
    stride: int
    padding: int
    dilation: int

    @property
    def span(self) -> Extent:
        """The distance from the first to one past the last position of a window."""
        return self.dilation * (self.kernel - 1) + 1


def per_axis(values: tuple[int, ...], axes: int, name: str) -> tuple[int, ...]:
    """One value per axis; a list of one holds for every axis."""
    if len(values) not in (1, axes):
        raise VerifyException(f"{name} {list(values)} must have 1 or {axes} values")
    return values * axes if len(values) == 1 else values


class ConvolutionShapeOp(TorchOp):
    """Convolution, or its transpose, over all axes but the first two."""

    def slides(self) -> list[Slide]:
        """How the window slides along each axis."""
        weight = self.operand_shapes()[1]
        axes = len(weight) - 2
        stride, padding, dilation = (
            per_axis(self.integers(name), axes, name) for name in ("stride", "padding", "dilation")
        )
        if any(s < 1 for s in (*stride, *dilation)):
            raise VerifyException("stride and dilation must be positive")
        return [Slide(*each) for each in zip(weight[2:], stride, padding, dilation, strict=True)]

    def result_shape(self) -> Shape | None:
        source, weight = self.operand_shapes()[:2]
        groups = self.integer("groups")
        if len(source) != len(weight) or not 3 <= len(source) <= 5 or groups < 1:
            raise VerifyException(f"input {list(source)} does not fit weight {list(weight)}")
        slides = self.slides()
        if self.flag("transposed"):
            channels, fits = weight[1] * groups, source[1] == weight[0]
            added = per_axis(self.integers("output_padding"), len(slides), "output_padding")
            extents = [
                (n - 1) * s.stride - 2 * s.padding + s.span + more
                for n, s, more in zip(source[2:], slides, added, strict=True)
            ]
        else:
            channels, fits = weight[0], source[1] == weight[1] * groups
            extents = [
                (n + 2 * s.padding - s.span) // s.stride + 1
                for n, s in zip(source[2:], slides, strict=True)
            ]
        if not fits or source[1] % groups != 0 or channels % groups != 0:
            raise VerifyException(
                f"{source[1]} channels in {groups} groups do not fit weight {list(weight)}"
            )
        if any(n < 0 for n in extents):
            raise VerifyException("the kernel is larger than the padded input")
        return (source[0], channels, *extents)


class PoolShapeOp(TorchOp):
    """Folds each window of the last axes to one element."""

    AXES: ClassVar[int] = 2
    """How many of the last axes are pooled."""

    def slides(self) -> list[Slide]:
        """How the window slides along each pooled axis; without a stride, windows do not overlap."""
        kernel = per_axis(self.integers("kernel_size"), self.AXES, "kernel_size")
        stride = per_axis(self.integers("stride") or kernel, self.AXES, "stride")
        padding = per_axis(self.integers("padding"), self.AXES, "padding")
        dilation = (1,) * self.AXES
        if "dilation" in self.properties:
            dilation = per_axis(self.integers("dilation"), self.AXES, "dilation")
        if any(n < 1 for n in (*kernel, *stride, *dilation)):
            raise VerifyException("kernel_size, stride and dilation must be positive")
        if any(2 * p > k for p, k in zip(padding, kernel, strict=True)):
            raise VerifyException("padding must be at most half of kernel_size")
        return [Slide(*each) for each in zip(kernel, stride, padding, dilation, strict=True)]

    def result_shape(self) -> Shape | None:
        source = self.operand_shapes()[0]
        if len(source) not in (self.AXES + 1, self.AXES + 2):
            raise VerifyException(
                f"pools the last {self.AXES} axes after 1 or 2, got {list(source)}"
            )
        slides = self.slides()
        lead = len(source) - self.AXES
        extents = [self._windows(n, slide) for n, slide in zip(source[lead:], slides, strict=True)]
        if any(n < 1 for n in extents):
            raise VerifyException("the kernel is larger than the padded input")
        return (*source[:lead], *extents)

    def _windows(self, extent: Extent, slide: Slide) -> Extent:
        """The number of windows; `ceil_mode` adds one that starts inside and ends outside."""
        free = extent + 2 * slide.padding - slide.span
        if not self.flag("ceil_mode"):
            return free // slide.stride + 1
        count = ceil_div(free, slide.stride) + 1
        starts_outside = (count - 1) * slide.stride >= extent + slide.padding
        return count - 1 if starts_outside else count


class Pool3dShapeOp(PoolShapeOp):
    """Folds each window of the last three axes to one element."""

    AXES: ClassVar[int] = 3


class AdaptivePoolShapeOp(TorchOp):
    """Folds the last axes to `output_size` windows that cover them."""

    def result_shape(self) -> Shape | None:
        source, size = self.operand_shapes()[0], self.integers("output_size")
        if len(source) - len(size) not in (1, 2) or any(n < 0 for n in size):
            raise VerifyException(f"{list(source)} is not pooled to {list(size)}")
        return (*source[: len(source) - len(size)], *size)


class UnfoldShapeOp(TorchOp):
    """Windows of `size` every `step` positions of an axis; the window becomes the last axis."""

    def result_shape(self) -> Shape | None:
        source, size, step = self.operand_shapes()[0], self.integer("size"), self.integer("step")
        axis = normalize_axis(self.integer("dimension"), len(source))
        extent = source[axis] if source else 1
        if not 0 <= size <= extent or step < 1:
            raise VerifyException(f"windows of {size} every {step} do not fit extent {extent}")
        if not source:
            return (size,)
        return (*source[:axis], (extent - size) // step + 1, *source[axis + 1 :], size)


class DiagonalShapeOp(TorchOp):
    """The diagonal of two axes, as a new last axis."""

    def axes(self) -> tuple[int, int]:
        """The axes that give the row and the column."""
        rank = tensor_type(self.operands[0]).get_num_dims()
        row, column = (normalize_axis(self.integer(name), rank) for name in ("dim1", "dim2"))
        if row == column:
            raise VerifyException(f"dim1 and dim2 are both axis {row}")
        return row, column

    def result_shape(self) -> Shape | None:
        shape, (row, column) = self.operand_shapes()[0], self.axes()
        offset = self.integer("offset")
        rows, columns = shape[row] + min(offset, 0), shape[column] - max(offset, 0)
        kept = tuple(n for i, n in enumerate(shape) if i not in (row, column))
        return (*kept, max(min(rows, columns), 0))
