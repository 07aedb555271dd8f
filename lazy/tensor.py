"""`deplo.Tensor`: an expression that computes itself when its elements are asked for.

    a = deplo.Tensor([[1.0, 2.0], [3.0, 4.0]])
    b = (a @ a.mT + 1).sum(axis=0)          # nothing is computed
    b.numpy()                               # one program: compiled, or found, and run

Functions are methods, too: `x.sum(axis=0)` is `array_api.sum(x, axis=0)`; `functions.py` has them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from math import prod
from typing import Any

import numpy as np

from ..dialects.sizes import Extent
from .data import node_of
from .dtypes import INTEGRAL, DType, Number, bfloat16, float32
from .expression import Node
from .programs import realize_nodes

METHODS: dict[str, Callable[..., Any]] = {}
"""The functions that are methods and operators; `functions.py` and `neural.py` enter theirs."""

VERSION = "2024.12"
"""The version of the array API standard that `deplo.array_api` has."""


def _operator(name: str) -> Any:
    """An operator, of tensors and numbers: what else there is must be made a tensor first."""

    def method(self: Tensor, *others: Any) -> Any:
        for other in others:
            if other is None:
                return NotImplemented  # nothing is equal to it, and there is no order
            if not isinstance(other, Tensor | Number):
                what = f"{type(other).__module__}.{type(other).__name__}"
                raise TypeError(f"{name}: {what} is no deplo.Tensor, make one of it")
        return METHODS[name](self, *others)

    return method


def _reflected(name: str) -> Any:
    """The operator with the operands the other way round."""

    def method(self: Tensor, other: Any) -> Any:
        if not isinstance(other, Number):
            return _operator(name)(self, other)  # which says why not
        return METHODS[name](other, self)

    return method


class Tensor:
    """A lazy tensor on the CPU; see the module. Two that were computed alike have the same `node`.

    `data` are numbers, lists of them, or arrays of numpy, torch or what speaks DLPack, whose memory it reads.
    """

    __slots__ = ("__weakref__", "node")
    __array_ufunc__ = None  # so that numpy leaves `array + tensor` to us, which refuses it

    def __init__(self, data: Any, dtype: Any = None):
        if isinstance(data, Tensor):
            self.node = data.node if dtype is None else node_of_tensor(data, dtype)
        else:
            self.node = node_of(data, dtype)

    @classmethod
    def of(cls, node: Node) -> Tensor:
        """The tensor of an expression."""
        made = cls.__new__(cls)
        made.node = node
        return made

    # ---- what it is

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Its extents."""
        return self.node.shape

    @property
    def dtype(self) -> DType:
        """What its elements are."""
        return self.node.dtype

    @property
    def ndim(self) -> int:
        """The number of its axes."""
        return len(self.shape)

    @property
    def size(self) -> Extent:
        """The number of its elements."""
        return prod(self.shape)

    @property
    def device(self) -> str:
        """Where it is computed: `cpu`."""
        return "cpu"

    def to_device(self, device: str, /, *, stream: Any = None) -> Tensor:
        """Itself; raises ValueError for a device that is not `cpu`."""
        if device != "cpu" or stream is not None:
            raise ValueError(f"lazy tensors are computed on the CPU, not on {device!r}")
        return self

    @property
    def T(self) -> Tensor:  # noqa: N802 - the standard's name
        """A matrix, transposed."""
        if self.ndim != 2:
            raise ValueError(f"T is of matrices; of {self.ndim} axes use mT or permute_dims")
        return METHODS["matrix_transpose"](self)

    @property
    def mT(self) -> Tensor:  # noqa: N802
        """Its matrices, transposed."""
        return METHODS["matrix_transpose"](self)

    # ---- computing

    def realize(self) -> Tensor:
        """Compute it now, in one program; gives itself."""
        realize(self)
        return self

    def numpy(self) -> np.ndarray[Any, Any]:
        """Its elements; a tensor made from an array gives that array's memory."""
        if self.dtype is bfloat16:
            raise TypeError("numpy has no bfloat16: ask for astype(float32)")
        self.realize()
        assert self.node.array is not None
        return self.dtype.shown(self.node.array)

    def item(self) -> Number:
        """Its only element as a Python number."""
        if self.size != 1:
            raise TypeError(
                f"only a tensor of one element is a number, not one of {list(self.shape)}"
            )
        return _printable(self).numpy().item()

    def tolist(self) -> Any:
        """Its elements in nested lists."""
        return _printable(self).numpy().tolist()

    def _number(self) -> Any:
        if self.ndim:
            raise TypeError(
                f"only a tensor without axes is a number, not one of {list(self.shape)}"
            )
        return self.item()

    def __bool__(self) -> bool:
        return bool(self._number())

    def __int__(self) -> int:
        return int(self._number())

    def __float__(self) -> float:
        return float(self._number())

    def __complex__(self) -> complex:
        return complex(self._number())

    def __index__(self) -> int:
        if self.dtype.kind not in INTEGRAL:
            raise TypeError(f"an index is an integer, not {self.dtype}")
        return int(self._number())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        options = {"max_version": max_version, "dl_device": dl_device, "copy": copy}
        asked = {name: value for name, value in options.items() if value is not None}
        array: Any = self.numpy()
        return array.__dlpack__(stream=stream, **asked)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        return (1, 0)  # kDLCPU

    def __repr__(self) -> str:
        text = np.array2string(_printable(self).numpy(), separator=", ", prefix="Tensor(")
        return f"Tensor({text}, dtype={self.dtype})"

    # ---- operators

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        if api_version not in (None, VERSION):
            raise ValueError(f"there is array API {VERSION}, not {api_version}")
        return import_module("..array_api", __package__)

    def __getattr__(self, name: str) -> Any:
        if name in METHODS:
            return partial(METHODS[name], self)
        raise AttributeError(f"a deplo.Tensor has no {name!r}")

    def __getitem__(self, key: Any) -> Tensor:
        return METHODS["getitem"](self, key)

    def __setitem__(self, key: Any, value: Tensor | Number) -> None:
        """Become the tensor with other elements at some positions; what was made of it before stays."""
        self.node = METHODS["setitem"](self, key, value).node

    def __iter__(self) -> Iterator[Tensor]:
        return iter(METHODS["unstack"](self))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without axes has no length")
        return int(self.shape[0])

    __hash__ = None  # pyright: ignore[reportAssignmentType] - it compares by elements
    __pos__, __neg__ = _operator("positive"), _operator("negative")
    __abs__, __invert__ = _operator("abs"), _operator("bitwise_invert")
    __eq__, __ne__ = _operator("equal"), _operator("not_equal")
    __lt__, __le__ = _operator("less"), _operator("less_equal")
    __gt__, __ge__ = _operator("greater"), _operator("greater_equal")
    # An operator that commutes has the number behind the tensor, as captured programs have it.
    __add__ = __radd__ = _operator("add")
    __sub__, __rsub__ = _operator("subtract"), _reflected("subtract")
    __mul__ = __rmul__ = _operator("multiply")
    __truediv__, __rtruediv__ = _operator("divide"), _reflected("divide")
    __floordiv__, __rfloordiv__ = _operator("floor_divide"), _reflected("floor_divide")
    __mod__, __rmod__ = _operator("remainder"), _reflected("remainder")
    __pow__, __rpow__ = _operator("pow"), _reflected("pow")
    __matmul__, __rmatmul__ = _operator("matmul"), _reflected("matmul")
    __and__ = __rand__ = _operator("bitwise_and")
    __or__ = __ror__ = _operator("bitwise_or")
    __xor__ = __rxor__ = _operator("bitwise_xor")
    __lshift__, __rlshift__ = _operator("bitwise_left_shift"), _reflected("bitwise_left_shift")
    __rshift__, __rrshift__ = _operator("bitwise_right_shift"), _reflected("bitwise_right_shift")


def node_of_tensor(tensor: Tensor, dtype: Any) -> Node:
    """The expression of a tensor, cast."""
    return METHODS["astype"](tensor, dtype).node


def _printable(tensor: Tensor) -> Tensor:
    """The tensor in a dtype that numpy has."""
    return METHODS["astype"](tensor, float32) if tensor.dtype is bfloat16 else tensor


def realize(*tensors: Tensor) -> None:
    """Compute tensors now, all in one program."""
    realize_nodes([tensor.node for tensor in tensors])
