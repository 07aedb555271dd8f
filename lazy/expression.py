"""Expressions: nodes of operations of Torch IR, each of which exists once.

    add.Tensor(leaf, full.default(size=(), fill_value=2.0))

A node is an operator's ATen name, its tensors, its other arguments and which of its results is meant. Two
expressions that say the same are the same object, as long as somebody holds it. Shapes come from the dialect.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, Protocol, TypeAlias
from weakref import WeakValueDictionary

import numpy as np
from xdsl.ir import Attribute, Block, SSAValue

from ..dialects.sizes import Extent, Size, tensor_of
from ..dialects.torch import OPS_BY_ATEN
from ..dialects.torch_base import TorchOp, argument_attr
from ..dialects.torch_syntax import TensorArgument
from .dtypes import COMPLEX, PARTS, DType
from .variables import extent, named, reckoning

Argument: TypeAlias = "Node | tuple[Node, ...] | None"
"""A tensor argument of an operator: one, several, or an optional one that is absent."""

Properties: TypeAlias = tuple[tuple[str, Any], ...]

LEAF = "leaf"
"""The operator of what is not computed: it has an array."""


class Node:
    """An expression. Once it was computed it is a leaf: it has an array, and no tensors it came from."""

    __slots__ = (
        *("__weakref__", "arguments", "array", "dtype", "dtypes"),
        *("index", "key", "operator", "properties", "shape"),
    )

    def __init__(
        self,
        operator: str,
        arguments: tuple[Argument, ...],
        properties: Properties,
        shape: tuple[Extent, ...],
        dtypes: tuple[DType, ...],
        index: int = 0,
        array: np.ndarray[Any, Any] | None = None,
    ):
        self.operator = operator
        self.arguments = arguments
        self.properties = properties
        self.shape = shape
        self.dtypes = dtypes
        self.dtype = dtypes[index]
        self.index = index
        self.array = array
        self.key: Any = None

    @property
    def sources(self) -> Iterator[Node]:
        """The nodes it is computed from."""
        return sources_of(self.arguments)

    def settle(self, array: np.ndarray[Any, Any]) -> None:
        """Make it a leaf. What it came from may go, so whoever says the same again computes it again."""
        with _LOCK:
            _NODES.pop(self.key, None)
        self.operator, self.arguments, self.properties = LEAF, (), ()
        self.dtypes, self.index, self.array = (self.dtype,), 0, array


def sources_of(arguments: Iterable[Argument]) -> Iterator[Node]:
    """The nodes among arguments."""
    for argument in arguments:
        if isinstance(argument, Node):
            yield argument
        elif argument is not None:
            yield from argument


_NODES: WeakValueDictionary[Any, Node] = WeakValueDictionary()
_LOCK = threading.Lock()


def _interned(key: Any, made: Node) -> Node:
    made.key = key
    with _LOCK:
        return _NODES.setdefault(key, made)


def leaf(
    array: np.ndarray[Any, Any], dtype: DType, shape: tuple[Extent, ...] | None = None
) -> Node:
    """The node of an array of a dtype's storage; that of the same memory, read the same way, is the same.

    With a `shape` that has variables, of so much of the array, from the front.
    """
    key = (LEAF, array.ctypes.data, array.shape, array.strides, dtype, shape)
    whole = array.shape[:-1] if dtype.kind == COMPLEX else array.shape
    extents = whole if shape is None else shape
    return _interned(key, Node(LEAF, (), (), extents, (dtype,), array=array))


class Rule(Protocol):
    """What computes operators of a dtype that no IR has; its arguments are those of `apply`."""

    def __call__(
        self,
        operator: str,
        arguments: Sequence[Argument],
        dtypes: Sequence[DType],
        properties: Mapping[str, Any],
        index: int,
        /,
    ) -> Node: ...


RULES: dict[DType, Rule] = {}
"""The rules, by dtype: `unsigned.py` and `complex_numbers.py` enter theirs."""


def apply(
    operator: str,
    arguments: Sequence[Argument],
    dtypes: DType | Sequence[DType],
    properties: Mapping[str, Any] | None = None,
    index: int = 0,
) -> Node:
    """The node of result `index` of an operator, whose results have these dtypes and one shape.

    Of dtypes that no IR has, what their rule makes of it. A property that is None is absent. Raises
    VerifyException if the arguments do not fit, TypeError if there is no such operator of the dtypes.
    """
    kinds = (dtypes,) if isinstance(dtypes, DType) else tuple(dtypes)
    for dtype in (*(node.dtype for node in sources_of(arguments)), *kinds):
        if dtype in RULES:
            return RULES[dtype](operator, arguments, kinds, properties or {}, index)
    return plain(operator, arguments, kinds, properties or {}, index)


def plain(
    operator: str,
    arguments: Sequence[Argument],
    dtypes: Sequence[DType],
    properties: Mapping[str, Any],
    index: int = 0,
) -> Node:
    """The node of an operator of the elements that stand for those of the dtypes in Torch IR."""
    present = tuple((k, _plain(v)) for k, v in properties.items() if v is not None)
    listed, kinds = tuple(arguments), tuple(dtypes)
    types = tuple(_typed(argument) for argument in listed)
    shape = _result_shape(operator, types, present, kinds)
    # Numbers are compared by their text: 0.0, -0.0 and False are three, NaN is one.
    key = (operator, listed, said(present), kinds, index)
    return _interned(key, Node(operator, listed, present, shape, kinds, index))


def joined(re: Node, im: Node, dtype: DType) -> Node:
    """The complex node of two parts, which have its shape: they stand along a last axis."""
    properties = (("dim", -1),)
    made = Node("stack.default", ((re, im),), properties, re.shape, (dtype,))
    return _interned(("stack.default", re, im, dtype), made)


def parts_of(node: Node) -> tuple[Node, Node]:
    """The real and the imaginary part of a complex node."""
    if node.operator != LEAF:
        ((re, im),) = node.arguments  # pyright: ignore[reportGeneralTypeIssues, reportAssignmentType]
        return re, im  # pyright: ignore[reportReturnType]
    return _part(node, 0), _part(node, 1)


def _part(node: Node, index: int) -> Node:
    properties = (("dim", len(node.shape)), ("index", index))
    made = Node("select.int", (node,), properties, node.shape, (PARTS[node.dtype],))
    return _interned(("select.int", node, index, PARTS[node.dtype]), made)


def _plain(value: Any) -> Any:
    """A property, with Python's integers for those of numpy and tensors, and tuples for lists."""
    if isinstance(value, bool | int | float | str | DType):
        return value
    return tuple(map(extent, value)) if isinstance(value, Iterable) else extent(value)


def said(properties: Properties) -> Any:
    """What tells properties apart: their text, and their sizes, whose text has names."""
    flat = (v for _, value in properties for v in (value if isinstance(value, tuple) else (value,)))
    return repr(properties), tuple(v for v in flat if isinstance(v, Size))


def tensor_types(shape: Sequence[Extent], dtypes: Iterable[DType]) -> list[Attribute]:
    """The types of an operator's results."""
    return [tensor_of(dtype.element, shape) for dtype in dtypes]


def make_op(
    operator: str,
    tensors: Sequence[TensorArgument],
    properties: Properties,
    result_types: Sequence[Attribute],
) -> TorchOp:
    """The operation of Torch IR."""
    attributes = {
        name: value.element if isinstance(value, DType) else argument_attr(value)
        for name, value in properties
    }
    return OPS_BY_ATEN[operator].build_op(tensors, attributes, result_types)


class _Type(NamedTuple):
    """What of a tensor decides the shape of what is computed from it."""

    shape: tuple[Extent, ...]
    dtype: DType


def _typed(argument: Argument) -> _Type | tuple[_Type, ...] | None:
    if isinstance(argument, tuple):
        return tuple(_Type(node.shape, node.dtype) for node in argument)
    return None if argument is None else _Type(argument.shape, argument.dtype)


@lru_cache(4096)
def _result_shape(
    operator: str,
    types: Sequence[_Type | tuple[_Type, ...] | None],
    properties: Properties,
    dtypes: tuple[DType, ...],
) -> tuple[Extent, ...]:
    """The shape that the dialect gives an operator's first result."""
    block = Block()

    def value(type: _Type) -> SSAValue:
        (of_tensor,) = tensor_types(type.shape, [type.dtype])
        return block.insert_arg(of_tensor, len(block.args))

    def argument(type: _Type | tuple[_Type, ...] | None) -> TensorArgument:
        if type is None or isinstance(type, _Type):
            return type and value(type)
        return [value(each) for each in type]

    tensors = list(map(argument, types))
    # Sorts check the second result by the shape of what they sort, which both have.
    like = next((type.shape for type in types if isinstance(type, _Type)), ())
    op = make_op(operator, tensors, properties, tensor_types(like, dtypes))
    with reckoning():
        shape = op.result_shape()
    assert shape is not None
    return named(shape)
