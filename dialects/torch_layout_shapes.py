"""Families of `torch` operations that change a tensor's layout: views, slices, joins, repeats, padding."""

from __future__ import annotations

import math

from xdsl.dialects.builtin import IntegerAttr
from xdsl.utils.exceptions import VerifyException

from .sizes import Extent, ceil_div, shape_of
from .syntax import tensor_type
from .torch_base import Shape, TorchOp
from .torch_shapes import is_extent, normalize_axes, normalize_axis, slice_bounds


class ViewShapeOp(TorchOp):
    """Reads the same elements in row-major order under another shape."""

    def result_shape(self) -> Shape | None:
        count = math.prod(self.operand_shapes()[0])
        size = self.extents("size")
        known = math.prod(n for n in size if is_extent(n))
        if size.count(-1) == 1 and known != 0:
            size = tuple(count // known if n == -1 else n for n in size)
        if not all(map(is_extent, size)) or math.prod(size) != count:
            wanted = list(self.extents("size"))
            raise VerifyException(f"size {wanted} does not hold {count} elements")
        return size


class PermuteShapeOp(TorchOp):
    """Reorders axes."""

    def permutation(self) -> tuple[int, ...]:
        """For each axis of the result, the axis of the operand."""
        rank = tensor_type(self.operands[0]).get_num_dims()
        axes = normalize_axes(self.integers("dims"), rank)
        if len(axes) != rank:
            raise VerifyException(f"dims {list(axes)} do not reorder {rank} axes")
        return axes

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        return tuple(shape[axis] for axis in self.permutation())


class TransposeShapeOp(PermuteShapeOp):
    """Swaps two axes: `dim0` and `dim1`, or for `t` the two axes of a matrix."""

    def permutation(self) -> tuple[int, ...]:
        rank = tensor_type(self.operands[0]).get_num_dims()
        if "dim0" not in self.properties:
            if rank > 2:
                raise VerifyException(f"takes at most 2 axes, got {rank}")
            return tuple(reversed(range(rank)))
        first = normalize_axis(self.integer("dim0"), rank)
        second = normalize_axis(self.integer("dim1"), rank)
        axes = list(range(rank))
        if axes:
            axes[first], axes[second] = second, first
        return tuple(axes)


class SliceShapeOp(TorchOp):
    """Takes every `step`-th position of one axis."""

    def bounds(self) -> tuple[int, Extent, Extent, int]:
        """The axis, where the slice starts, where it ends, and its step."""
        shape = self.operand_shapes()[0]
        if not shape:
            raise VerifyException("cannot slice a 0-d tensor")
        axis = normalize_axis(self.integer("dim"), len(shape))
        start, end = self.optional_extent("start"), self.optional_extent("end")
        step = self.integer("step")
        if step < 1:
            raise VerifyException(f"step must be positive, got {step}")
        return axis, *slice_bounds(shape[axis], start, end), step

    def result_shape(self) -> Shape | None:
        axis, start, end, step = self.bounds()
        shape = self.operand_shapes()[0]
        return (*shape[:axis], ceil_div(end - start, step), *shape[axis + 1 :])


class SelectShapeOp(TorchOp):
    """Takes one position of an axis and drops the axis."""

    def position(self) -> tuple[int, Extent]:
        """The axis and the position taken."""
        shape = self.operand_shapes()[0]
        if not shape:
            raise VerifyException("cannot select from a 0-d tensor")
        axis = normalize_axis(self.integer("dim"), len(shape))
        index, extent = self.extent("index"), shape[axis]
        if not -extent <= index < extent:
            raise VerifyException(f"index {index} is outside axis {axis} of extent {extent}")
        return axis, index + extent if index < 0 else index

    def result_shape(self) -> Shape | None:
        axis, _ = self.position()
        shape = self.operand_shapes()[0]
        return shape[:axis] + shape[axis + 1 :]


class UnsqueezeShapeOp(TorchOp):
    """Inserts an axis of extent 1 before `dim`."""

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        axis = normalize_axis(self.integer("dim"), len(shape) + 1)
        return (*shape[:axis], 1, *shape[axis:])


class SqueezeShapeOp(TorchOp):
    """Drops those axes in `dim`, or of all axes, that have extent 1."""

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        dim = self.properties.get("dim")
        if dim is None:
            axes = tuple(range(len(shape)))
        elif isinstance(dim, IntegerAttr):
            axes = normalize_axes([dim.value.data], len(shape))
        else:
            axes = normalize_axes(self.integers("dim"), len(shape))
        return tuple(n for i, n in enumerate(shape) if n != 1 or i not in axes)


class ExpandShapeOp(TorchOp):
    """Repeats axes of extent 1 and adds leading ones; -1 keeps an axis."""

    def result_shape(self) -> Shape | None:
        shape, size = self.operand_shapes()[0], self.extents("size")
        added = len(size) - len(shape)
        result = tuple(
            shape[i - added] if n == -1 and i >= added else n for i, n in enumerate(size)
        )
        fits = added >= 0 and all(n in (1, m) for n, m in zip(shape, result[added:], strict=True))
        if not fits or not all(map(is_extent, result)):
            raise VerifyException(f"{list(shape)} does not expand to {list(size)}")
        return result


class CatShapeOp(TorchOp):
    """Joins tensors along an axis they have. An empty 1-d tensor is left out, as in PyTorch."""

    def result_shape(self) -> Shape | None:
        shapes = [s for s in self.operand_shapes() if s != (0,)] or self.operand_shapes()[:1]
        if not shapes:
            raise VerifyException("needs at least one tensor")
        first = shapes[0]
        axis = normalize_axis(self.integer("dim"), len(first))
        if not first or any(
            len(s) != len(first) or s[:axis] + s[axis + 1 :] != first[:axis] + first[axis + 1 :]
            for s in shapes
        ):
            listed = ", ".join(str(list(s)) for s in shapes)
            raise VerifyException(f"shapes {listed} do not join along axis {axis}")
        return (*first[:axis], sum(s[axis] for s in shapes), *first[axis + 1 :])


class StackShapeOp(TorchOp):
    """Joins tensors of one shape along a new axis."""

    def result_shape(self) -> Shape | None:
        shapes = self.operand_shapes()
        if len(set(shapes)) != 1:
            raise VerifyException("stacks tensors of one shape, at least one")
        axis = normalize_axis(self.integer("dim"), len(shapes[0]) + 1)
        return (*shapes[0][:axis], len(shapes), *shapes[0][axis:])


class SplitShapeOp(TorchOp):
    """Cuts an axis into pieces of the given sizes, one result per piece."""

    def result_shape(self) -> Shape | None:
        shape, sizes = self.operand_shapes()[0], self.extents("split_sizes")
        axis = normalize_axis(self.integer("dim"), len(shape))
        if not shape or sum(sizes) != shape[axis] or not all(map(is_extent, sizes)):
            raise VerifyException(f"sizes {list(sizes)} do not cut axis {axis} of {list(shape)}")
        expected = [(*shape[:axis], n, *shape[axis + 1 :]) for n in sizes]
        if expected != [shape_of(tensor_type(r)) for r in self.results]:
            raise VerifyException(f"results must have shapes {[list(s) for s in expected]}")
        return expected[0]


class RepeatShapeOp(TorchOp):
    """Tiles a tensor."""

    def result_shape(self) -> Shape | None:
        shape, repeats = self.operand_shapes()[0], self.extents("repeats")
        if len(repeats) < len(shape) or not all(map(is_extent, repeats)):
            raise VerifyException(f"repeats {list(repeats)} do not fit {list(shape)}")
        padded = (1,) * (len(repeats) - len(shape)) + shape
        return tuple(n * r for n, r in zip(padded, repeats, strict=True))


class PadShapeOp(TorchOp):
    """Adds (or, if negative, removes) positions before and after axes, from the last axis on."""

    def padding(self) -> list[tuple[Extent, Extent]]:
        """For each axis, positions added before and after."""
        rank, pad = tensor_type(self.operands[0]).get_num_dims(), self.extents("pad")
        if len(pad) % 2 or len(pad) > 2 * rank:
            raise VerifyException(f"pad {list(pad)} does not give pairs for at most {rank} axes")
        pairs = [(pad[i], pad[i + 1]) for i in range(0, len(pad), 2)]
        unpadded: list[tuple[Extent, Extent]] = [(0, 0)] * (rank - len(pairs))
        return unpadded + pairs[::-1]

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        result = tuple(n + a + b for n, (a, b) in zip(shape, self.padding(), strict=True))
        if any(n < 0 for n in result):
            raise VerifyException(f"pad {list(self.extents('pad'))} removes more than there is")
        return result
