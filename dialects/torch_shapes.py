"""Families of `torch` operations: the base classes that check the shape of a result.

A family knows how the arguments of its members give the result's extents. `torch_contract.txt` gives
the family of each ATen overload, and `torch_ops.py` makes the members.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr
from xdsl.ir import SSAValue
from xdsl.utils.exceptions import VerifyException

from .scalars import is_integer
from .sizes import Extent, Size, ceil_div
from .syntax import tensor_type
from .torch_base import ScalarValue, Shape, TorchOp

# --------------------------------------------------------------------------- helpers


def is_extent(number: Extent) -> bool:
    """Whether a number that stands for an extent is one; a size always is."""
    return isinstance(number, Size) or number >= 0


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The extents that PyTorch's broadcasting gives; raises VerifyException if there are none."""
    rank = max((len(shape) for shape in shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    result: list[Extent] = []
    for extents in zip(*padded, strict=True):
        wide = {extent for extent in extents if extent != 1}
        if len(wide) > 1:
            listed = " and ".join(str(list(shape)) for shape in shapes)
            raise VerifyException(f"shapes {listed} do not broadcast")
        result.append(wide.pop() if wide else 1)
    return tuple(result)


def broadcasts_to(source: Shape, target: Shape) -> bool:
    """Whether `source` broadcasts to exactly `target`."""
    tail = target[len(target) - len(source) :]
    return len(source) <= len(target) and all(
        n in (1, m) for n, m in zip(source, tail, strict=True)
    )


def normalize_axis(axis: int, rank: int) -> int:
    """`axis` counted from the front; a 0-d tensor counts as one axis, as in PyTorch."""
    limit = max(rank, 1)
    if not -limit <= axis < limit:
        raise VerifyException(f"axis {axis} is outside a tensor of rank {rank}")
    return axis % limit


def normalize_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Each axis counted from the front, in the order given; raises if one is named twice."""
    normal = tuple(normalize_axis(axis, rank) for axis in axes)
    if len(set(normal)) != len(normal):
        raise VerifyException(f"axes {list(axes)} name one axis twice")
    return normal


def slice_bounds(extent: Extent, start: Extent | None, end: Extent | None) -> tuple[Extent, Extent]:
    """Where PyTorch's slice of an axis starts and ends, after wrapping and clamping."""
    low = 0 if start is None else start + extent if start < 0 else start
    high = extent if end is None else end + extent if end < 0 else end
    low = min(max(low, 0), extent)
    return low, min(max(high, low), extent)


# --------------------------------------------------------------------------- element-wise


class PointwiseOp(TorchOp):
    """Applies a function at each position; its operands broadcast."""

    def result_shape(self) -> Shape | None:
        return broadcast_shapes(*self.operand_shapes())


class SameShapeOp(TorchOp):
    """Gives a result of its first operand's shape."""

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        dim = self.properties.get("dim")
        if isinstance(dim, IntegerAttr):
            normalize_axis(dim.value.data, len(shape))
        if "dims" in self.properties:
            normalize_axes(self.integers("dims"), len(shape))
        return shape


# --------------------------------------------------------------------------- reductions

KEEP_WITHOUT_AXES = ("any.dims", "all.dims")
"""Reductions that fold nothing when `dim` is an empty list; the others then fold everything."""


class ReductionOp(TorchOp):
    """Folds the axes in `dim`, or all of them; `keepdim` keeps each as an axis of extent 1."""

    def reduced_axes(self) -> tuple[int, ...]:
        """The folded axes, counted from the front and in increasing order."""
        rank = tensor_type(self.operands[0]).get_num_dims()
        dim = self.properties.get("dim")
        if isinstance(dim, IntegerAttr):
            axes = normalize_axes([dim.value.data], rank)
        elif isinstance(dim, DenseArrayBase) and (len(dim) or self.ATEN in KEEP_WITHOUT_AXES):
            axes = normalize_axes(self.integers("dim"), rank)
        else:
            axes = tuple(range(rank))
        return tuple(sorted(axes)) if rank else ()

    def result_shape(self) -> Shape | None:
        shape = self.operand_shapes()[0]
        axes, keep = self.reduced_axes(), self.flag("keepdim")
        return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)


# --------------------------------------------------------------------------- linear algebra


class LinearShapeOp(TorchOp):
    """`input @ weight.T + bias`."""

    def result_shape(self) -> Shape | None:
        source, weight, *bias = self.operand_shapes()
        if not source or len(weight) not in (1, 2) or source[-1] != weight[-1]:
            raise VerifyException(f"input {list(source)} does not fit weight {list(weight)}")
        result = (*source[:-1], *weight[:-1])
        if bias and not broadcasts_to(bias[0], result):
            raise VerifyException(f"bias {list(bias[0])} does not fit a result {list(result)}")
        return result


class MatmulShapeOp(TorchOp):
    """The product of two tensors, with the batch axes and 1-d cases of `torch.matmul`."""

    def result_shape(self) -> Shape | None:
        left, right = self.operand_shapes()[-2:]
        if not left or not right or left[-1] != right[-2 if len(right) > 1 else 0]:
            raise VerifyException(f"cannot multiply {list(left)} by {list(right)}")
        batch = broadcast_shapes(left[:-2], right[:-2])
        return batch + left[-2:-1] + (right[-1:] if len(right) > 1 else ())


class MatrixShapeOp(MatmulShapeOp):
    """The product of two matrices or of two batches of them; nothing broadcasts but an addend."""

    def result_shape(self) -> Shape | None:
        *addend, left, right = self.operand_shapes()
        if len(left) != len(right) or len(left) not in (2, 3) or left[:-2] != right[:-2]:
            raise VerifyException(f"cannot multiply {list(left)} by {list(right)}")
        result = super().result_shape()
        if addend and result and not broadcasts_to(addend[0], result):
            raise VerifyException(f"addend {list(addend[0])} does not fit a result {list(result)}")
        return result


# --------------------------------------------------------------------------- neural networks


class NormShapeOp(TorchOp):
    """Normalizes over the last axes, which have the extents `normalized_shape`."""

    def result_shape(self) -> Shape | None:
        shape, *affine = self.operand_shapes()
        normalized = self.extents("normalized_shape")
        if not normalized or shape[-len(normalized) :] != normalized:
            raise VerifyException(f"{list(shape)} does not end in {list(normalized)}")
        if any(s != normalized for s in affine):
            raise VerifyException(f"weight and bias must have shape {list(normalized)}")
        return shape


class AttentionShapeOp(TorchOp):
    """softmax(query @ key.T * scale + mask) @ value over the last two axes."""

    def result_shape(self) -> Shape | None:
        query, key, value = self.operand_shapes()[:3]
        fits = (
            len(query) == len(key) == len(value) >= 2
            and query[-1] == key[-1]
            and key[-2] == value[-2]
        )
        if not fits:
            raise VerifyException(
                f"query {list(query)}, key {list(key)} and value {list(value)} do not fit"
            )
        if not self.flag("enable_gqa"):
            return (*broadcast_shapes(query[:-2], key[:-2], value[:-2]), query[-2], value[-1])
        heads = [s[-3] if len(s) > 2 else 0 for s in (query, key, value)]
        if 0 in heads or heads[1] != heads[2] or heads[0] % heads[1] != 0:
            raise VerifyException(f"{heads[0]} query heads do not share {heads[1]} key heads")
        batch = broadcast_shapes(query[:-3], key[:-3], value[:-3])
        return (*batch, heads[0], query[-2], value[-1])


class EmbeddingShapeOp(TorchOp):
    """Rows of a table, one per index."""

    def result_shape(self) -> Shape | None:
        weight, indices = self.operand_shapes()
        if len(weight) != 2:
            raise VerifyException(f"weight must have 2 axes, got {len(weight)}")
        verify_indices(self.operands[1])
        return (*indices, weight[1])


# --------------------------------------------------------------------------- indexing


def verify_indices(*indices: SSAValue) -> None:
    """Raise unless each is a tensor of integers."""
    if not all(is_integer(tensor_type(value).element_type) for value in indices):
        raise VerifyException("indices must be integers")


class GatherShapeOp(TorchOp):
    """One element of `input` for each index, at the index's own position on the other axes."""

    def result_shape(self) -> Shape | None:
        source, index = self.operand_shapes()
        verify_indices(self.operands[1])
        axis = normalize_axis(self.integer("dim"), len(source))
        # A 0-d input or index counts as one of extent 1.
        extents, wanted = source or (1,), index or (1,)
        fits = len(extents) == len(wanted) and all(
            m <= n for i, (m, n) in enumerate(zip(wanted, extents, strict=True)) if i != axis
        )
        if not fits:
            raise VerifyException(f"index {list(index)} does not fit {list(source)}")
        return index


class IndexSelectShapeOp(TorchOp):
    """Positions of one axis, chosen by a list of indices."""

    def result_shape(self) -> Shape | None:
        source, index = self.operand_shapes()
        verify_indices(self.operands[1])
        axis = normalize_axis(self.integer("dim"), len(source))
        count = index[0] if index else 1
        if len(index) > 1 or (not source and count != 1):
            raise VerifyException(f"a list of indices {list(index)} does not fit {list(source)}")
        return (*source[:axis], count, *source[axis + 1 :]) if source else ()


# --------------------------------------------------------------------------- creation


class SizedOp(TorchOp):
    """Makes a tensor of extents `size`, or of none for a scalar."""

    def result_shape(self) -> Shape | None:
        return self.extents("size")


class ArangeShapeOp(TorchOp):
    """Counts from `start` (0 if absent) to `end`, exclusive, by `step` (1 if absent)."""

    def result_shape(self) -> Shape | None:
        start, step = self.optional_scalar("start"), self.optional_number("step")
        start, end = 0 if start is None else start, self.scalar("end")
        step = 1 if step is None else step
        if isinstance(start, Size) or isinstance(end, Size):
            return (self._counted(start, end, step),)
        if not step or not all(map(math.isfinite, (start, step, end))):
            raise VerifyException("needs finite bounds and a step that is not zero")
        return (max(0, math.ceil((end - start) / step)),)

    def _counted(
        self, start: ScalarValue | Size, end: ScalarValue | Size, step: ScalarValue
    ) -> Extent:
        """How many numbers there are where a bound is a dynamic size."""
        if isinstance(start, float) or isinstance(end, float) or not isinstance(step, int):
            raise VerifyException("counts to or from a dynamic size in whole numbers only")
        if step < 0:
            start, end, step = end, start, -step
        if step == 0:
            raise VerifyException("needs finite bounds and a step that is not zero")
        return max(0, ceil_div(end - start, step))
