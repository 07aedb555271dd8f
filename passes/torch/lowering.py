"""What the lowerings of Torch IR share: a builder that names, casts and broadcasts.

A rule is a function `(Lowering, op) -> value`. It computes in `Lowering.element`, which is f32 where the
result is f16 or bf16, and i32 where it is ui8; the pass casts what it returns to the result's element type.
So a composite operation is rounded to a half type once, at its end, as PyTorch's own kernels do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from math import inf, isfinite, prod
from typing import Any

from xdsl.builder import Builder
from xdsl.dialects.builtin import (
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.ir.affine import AffineExpr, AffineSet
from xdsl.rewriter import InsertPoint

from ...analysis.index import extent_range, simplify
from ...dialects import sizes
from ...dialects.index import affine_map, condition, delinearize, linearize
from ...dialects.products import Product
from ...dialects.scalars import STORAGE_FLOATS, Combiner, Function, Update, is_bool, is_float, ui8
from ...dialects.sizes import Extent, ExtentAttr, Size, tensor_of
from ...dialects.syntax import scalar_attr, tensor_type
from ...dialects.tensor_ir import (
    CastOp,
    ConstantOp,
    ElementwiseOp,
    IndexMapOp,
    IotaOp,
    ReduceOp,
    SizeOp,
)
from ...dialects.tensor_ir_indexed import GatherOp, NthElementOp, ScatterOp, SortOp
from ...dialects.torch_base import ScalarValue, Shape, number_of, value_of
from ...index.affine import replace_dims
from .known_places import known_place


class Refusal(Exception):
    """An operation cannot be lowered; the message says what about it."""


LARGEST: dict[Attribute, float] = {
    f16: 65504.0,
    bf16: (2 - 2**-7) * 2.0**127,
    f32: (2 - 2**-23) * 2.0**127,
}
"""The largest numbers of the types that are narrower than a Python number."""

Rule = Callable[["Lowering", Any], SSAValue | Sequence[SSAValue]]
"""Lowers one operation: gives a value per result, of the result's shape."""


def element_of(value: SSAValue) -> Attribute:
    """The element type of a tensor."""
    return tensor_type(value).element_type


def shape_of(value: SSAValue) -> Shape:
    """The extents of a tensor."""
    return sizes.shape_of(tensor_type(value))


def compute_element(element: Attribute) -> Attribute:
    """What to compute in for results of `element`: arithmetic does not happen in f16, bf16 or ui8."""
    if element == ui8:
        return i32
    return f32 if isinstance(element, STORAGE_FLOATS) else element


def dims(rank: int) -> list[AffineExpr]:
    """The first `rank` dims of an index map."""
    return [AffineExpr.dimension(i) for i in range(rank)]


class Lowering:
    """Builds the operations that replace one operation on tensors, in front of it."""

    def __init__(
        self,
        op: Operation,
        *,
        may_call: bool = False,
        in_order: bool = False,
        on_gpu: bool = False,
        products: Mapping[Product, Attribute] | None = None,
        places: dict[SSAValue, SSAValue] | None = None,
    ):
        """With `may_call`, PyTorch runs what a rule refuses; `in_order` is said in `analysis/orders.py`.

        `products` has what factors in f32 are rounded to; `places`, of masks, where they hold, if known."""
        self.op = op
        self.may_call = may_call
        self.in_order = in_order
        self.on_gpu = on_gpu
        self.hint = op.results[0].name_hint or op.name.rpartition(".")[2]
        result = tensor_type(op.results[0])
        self.result_element = result.element_type
        self.element = compute_element(result.element_type)
        self.shape = sizes.shape_of(result)
        self.products = products or {}
        self.places = {} if places is None else places
        self._builder = Builder(InsertPoint.before(op))
        self._inserted: list[Operation] = []

    def undo(self) -> None:
        """Erase everything that was built."""
        for op in reversed(self._inserted):
            op.detach()
            op.erase()
        self._inserted.clear()

    def place(self, op: Operation) -> None:
        """Insert an operation."""
        op.location = self.op.location
        self._builder.insert(op)
        self._inserted.append(op)

    def _insert(self, op: Operation, suffix: str) -> SSAValue:
        self.place(op)
        (result,) = op.results
        result.name_hint = f"{self.hint}_{suffix}"
        return result

    def inside(self, block: Block) -> Lowering:
        """Build the same way at the end of a block."""
        other = copy(self)
        other._builder, other._inserted = Builder(InsertPoint.at_end(block)), []
        return other

    # ---- values

    def constant(
        self, value: ScalarValue | Size, element: Attribute, shape: Shape = ()
    ) -> SSAValue:
        """A tensor that holds `value`, a number or a dynamic size, everywhere."""
        if isinstance(value, Size):
            size = self._insert(SizeOp(value, tensor_of(i64, shape)), "size")
            return self.cast(size, element)
        constant = ConstantOp(_converted(value, element), tensor_of(element, shape))
        return self._insert(constant, "const")

    def iota(self, axis: int, element: Attribute, shape: Shape) -> SSAValue:
        """Each position's index along `axis`."""
        return self._insert(IotaOp(axis, tensor_of(element, shape)), "index")

    def argument(
        self,
        argument: SSAValue | IntegerAttr | FloatAttr | ExtentAttr,
        element: Attribute | None = None,
        shape: Shape | None = None,
    ) -> SSAValue:
        """A tensor or number argument, cast and broadcast; by default as the result is computed.

        An integer wraps to the width of the element type, as the number of PyTorch's binary operators does.
        """
        is_byte = (self.result_element if element is None else element) == ui8
        element = self.element if element is None else element
        shape = self.shape if shape is None else shape
        if isinstance(argument, SSAValue):
            stored = self.cast(argument, ui8) if is_byte else argument
            return self.broadcast(self.cast(stored, element), shape)
        stored = ui8 if is_byte else element
        value = value_of(argument)
        if isinstance(value, int) and isinstance(stored, IntegerType) and stored != i1:
            value = _wrapped(value, stored)
        return self.cast(self.constant(value, stored, shape), element)

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """`value` with elements of `element`. A half type is reached, and left, through f32."""
        source = element_of(value)
        if source == element:
            return value
        if source == ui8 and (number := self._as_constant(value)) is not None:
            return self.constant(number, element, shape_of(value))
        for half, other in ((source, element), (element, source)):
            if isinstance(half, STORAGE_FLOATS) and other != f32:
                value = self._insert(CastOp(value, f32), "f32")
                break
        if element_of(value) == element:
            return value
        return self._insert(CastOp(value, element), str(element))

    def factor(self, value: SSAValue, kind: Product) -> SSAValue:
        """What a product multiplies of `value`: rounded where the module lets it be, and computed in f32."""
        rounded = self.products.get(kind)
        widened = isinstance(value.owner, CastOp) and isinstance(
            element_of(value.owner.input), STORAGE_FLOATS
        )
        if rounded is None or element_of(value) != f32 or widened:
            return value
        return self.cast(self.cast(value, rounded), f32)

    # ---- the primitives

    def apply(self, function: Function, *values: SSAValue) -> SSAValue:
        """`function` at each position; a bool that must be a number is refused."""
        return self._insert(ElementwiseOp(function, values), function.value)

    def fill_like(self, value: SSAValue, number: ScalarValue | Size) -> SSAValue:
        """`number` in the shape and element type of `value`. A fraction among integers is refused."""
        element = element_of(value)
        if isinstance(number, float) and not is_float(element) and number % 1:
            raise Refusal(f"the fraction {number} among elements of {element}")
        return self.constant(number, element_of(value), shape_of(value))

    def with_number(
        self, function: Function, value: SSAValue, number: ScalarValue | Size
    ) -> SSAValue:
        """`function(value, number)`."""
        return self.apply(function, value, self.fill_like(value, number))

    def select(self, chosen: SSAValue, then: SSAValue, otherwise: SSAValue) -> SSAValue:
        """`then` where `chosen` is true, else `otherwise`."""
        return self.apply(Function.SELECT, chosen, then, otherwise)

    def truth(self, value: SSAValue) -> SSAValue:
        """Whether each element is not zero; NaN is true."""
        return self.cast(value, i1)

    def reduce(self, combiner: Combiner, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Fold `axes`, each of which stays as an axis of extent 1."""
        if not axes:
            return value
        names = {Combiner.ADD: "sum", Combiner.MUL: "prod"}
        return self._insert(ReduceOp(combiner, value, axes), names.get(combiner, combiner.value))

    def gather(self, source: SSAValue, indices: SSAValue, axis: int) -> SSAValue:
        """Slices of `source` along `axis`."""
        shape, counted = shape_of(source), shape_of(indices)
        if (place := known_place(indices, shape[axis])) is not None:
            rank, after = len(counted), dims(axis + len(counted) + len(shape) - axis - 1)
            inside = replace_dims(place, after[axis : axis + rank])
            exprs = [*after[:axis], inside, *after[axis + rank :]]
            result = (*shape[:axis], *counted, *shape[axis + 1 :])
            return self.index_map([source], [exprs], result, suffix="at")
        return self._insert(GatherOp(source, indices, axis), "gather")

    def checked(self, index: SSAValue, extent: Extent) -> SSAValue:
        """`index`, each of which is inside an axis of `extent`, or the program stops."""
        return self.gather(self.iota(0, i64, (extent,)), index, 0)

    def gather_along(self, source: SSAValue, position: SSAValue, axis: int) -> SSAValue:
        """`source[p, position[p, i, q], q]` at each `[p, i, q]`; positions must be inside the axis."""
        extents, shape = shape_of(source), shape_of(position)
        if len(shape) == 1:
            return self.gather(source, position, 0)
        flat = self.fill_like(position, 0)
        for i, extent in enumerate(extents):
            index = position if i == axis else self.iota(i, i64, shape)
            flat = self.apply(Function.ADD, self.with_number(Function.MUL, flat, extent), index)
        return self.gather(self.reshape(source, (prod(extents),)), flat, 0)

    def scatter(
        self, update: Update, value: SSAValue, indices: SSAValue, updates: SSAValue, axis: int
    ) -> SSAValue:
        """`value`, changed along `axis`; see `tensor_ir.scatter`."""
        return self._insert(ScatterOp(update, value, indices, updates, axis), "scatter")

    def sort(
        self, value: SSAValue, axis: int, count: Extent, *, descending: bool = False
    ) -> tuple[SSAValue, SSAValue]:
        """The first `count` values along `axis` in order, and their positions; see `tensor_ir.sort`."""
        op = SortOp(value, axis, count, descending=descending)
        self.place(op)
        for result, suffix in zip(op.results, ("sorted", "order"), strict=True):
            result.name_hint = f"{self.hint}_{suffix}"
        return op.values, op.positions

    def nth_element(self, places: SSAValue, value: SSAValue, axis: int) -> SSAValue:
        """The positions along `axis` of what stands at `places` in order; see `tensor_ir.nth_element`."""
        return self._insert(NthElementOp(places, value, axis), "order")

    # ---- layout

    def index_map(
        self,
        sources: Sequence[SSAValue],
        indices: Sequence[Sequence[AffineExpr]],
        shape: Shape,
        *,
        conditions: Sequence[Sequence[AffineExpr]] | None = None,
        fill: ScalarValue | None = None,
        suffix: str = "map",
    ) -> SSAValue:
        """Read `sources[k][indices[k]]`, where the expressions of `conditions[k]` are at least zero."""
        rank, ranges = len(shape), [extent_range(extent) for extent in shape]
        maps = [affine_map(rank, [simplify(e, ranges) for e in i]) for i in indices]
        guards: list[AffineSet] | None = None
        if conditions is not None:
            guards = [condition(rank, [simplify(e, ranges) for e in c]) for c in conditions]
        element = element_of(sources[0])
        fill_attr = None if fill is None else scalar_attr(_converted(fill, element), element)
        return self._insert(
            IndexMapOp(sources, maps, shape, conditions=guards, fill=fill_attr), suffix
        )

    def broadcast(self, value: SSAValue, shape: Shape) -> SSAValue:
        """`value` with leading axes added and axes of extent 1 repeated."""
        source = shape_of(value)
        if source == shape:
            return value
        if (constant := self._as_constant(value)) is not None:
            return self.constant(constant, element_of(value), shape)
        lead = len(shape) - len(source)
        index = [
            AffineExpr.constant(0) if extent == 1 else AffineExpr.dimension(lead + axis)
            for axis, extent in enumerate(source)
        ]
        return self.index_map([value], [index], shape, suffix="bc")

    def _as_constant(self, value: SSAValue) -> ScalarValue | None:
        return number_of(value.owner.value) if isinstance(value.owner, ConstantOp) else None

    def reshape(self, value: SSAValue, shape: Shape) -> SSAValue:
        """The same elements, in row-major order, as `shape`."""
        source = shape_of(value)
        if source == shape:
            return value
        index: list[AffineExpr] = []
        for axes, places in _groups(source, shape):
            place = linearize([dims(len(shape))[i] for i in places], [shape[i] for i in places])
            index += delinearize(place, [source[i] for i in axes])
        return self.index_map([value], [index], shape, suffix="view")

    def permute(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """Axis `i` of the result is axis `axes[i]` of `value`."""
        source = shape_of(value)
        if list(axes) == list(range(len(source))):
            return value
        index = [AffineExpr.dimension(list(axes).index(axis)) for axis in range(len(source))]
        return self.index_map([value], [index], tuple(source[a] for a in axes), suffix="permute")

    def squeeze(self, value: SSAValue, axes: Sequence[int]) -> SSAValue:
        """`value` without `axes`, each of which has extent 1."""
        return self.reshape(value, tuple(n for i, n in enumerate(shape_of(value)) if i not in axes))


def _groups(source: Shape, shape: Shape) -> list[tuple[range, range]]:
    """Axes of a tensor and axes that the same elements have in another shape, as few together as can be.

    Where all extents are numbers, the index of the whole is as good: it simplifies to the same.
    """
    ends = (len(source), len(shape))
    if all(isinstance(extent, int) for extent in (*source, *shape)):
        return [(range(ends[0]), range(ends[1]))]
    found: list[tuple[range, range]] = []
    first = (0, 0)
    while first != ends:
        last = next(
            (i, total - i)
            for total in range(sum(first) + 1, sum(ends) + 1)
            for i in range(max(first[0], total - ends[1]), min(ends[0], total - first[1]) + 1)
            if (i, total - i) == ends
            or prod(source[first[0] : i]) == prod(shape[first[1] : total - i])
        )
        found.append((range(first[0], last[0]), range(first[1], last[1])))
        first = last
    return found


def _converted(value: ScalarValue, element: Attribute) -> ScalarValue:
    """A Python number as PyTorch stores it: truth for bool, truncated for integers.

    Raises Refusal for one that is too large: there PyTorch fails for some operators, others make it infinite.
    """
    if is_bool(element):
        return bool(value)
    if element == ui8 and isinstance(value, int) and -256 < value < 0:
        return value + 256  # so does PyTorch
    if isinstance(element, IntegerType):
        if not isfinite(value) or _wrapped(int(value), element) != int(value):
            sign = "u" if element == ui8 else ""
            raise Refusal(f"{value}, which is no {sign}int{element.width.data}")
        return int(value)
    if isfinite(value) and abs(value) > LARGEST.get(element, inf):
        raise Refusal(f"{value}, which is more than {element} holds")
    return float(value)


def _wrapped(value: int, element: IntegerType) -> int:
    """An integer modulo 2 to the power of the width of an element type, within its range."""
    size = 1 << element.width.data
    least = 0 if element.signedness.data is Signedness.UNSIGNED else -size // 2
    return (value - least) % size + least
