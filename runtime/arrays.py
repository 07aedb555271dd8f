"""Numpy arrays and torch tensors as pointers: checked on the way in, allocated on the way out.

A numpy bfloat16 array is an array of its bits, `uint16`. Torch is imported only once a tensor is here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import cache, partial
from math import prod
from operator import attrgetter
from typing import Any, Protocol

import numpy as np

from ..errors import UsageError
from .huge_pages import LARGE_BYTES, ask_for_huge_pages
from .plan_parts import ALIGNMENT, Argument, Array
from .sizes import Extent, static

NUMPY_DTYPES = {
    "i1": "bool",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f16": "float16",
    "bf16": "uint16",
    "f32": "float32",
    "f64": "float64",
    "ui8": "uint8",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}

TORCH_DTYPES = NUMPY_DTYPES | {"bf16": "bfloat16"}


class Library(Protocol):
    """Where a program's arrays live: how to read those given and to make new ones."""

    name: str

    def check(self, value: Any, argument: Argument) -> Any:
        """`value` as a contiguous array of `argument`'s dtype and shape, copied if it is strided."""
        ...

    def empty(self, array: Array) -> Any:
        """A new array with undefined content."""
        ...

    def copy(self, value: Any) -> Any:
        """A new array of the same content, row by row."""
        ...

    def pointer(self, value: Any, /) -> int:
        """The address of the first element."""
        ...

    def pointers(self, values: Sequence[Any]) -> list[int]:
        """The addresses of several arrays."""
        ...

    def addresses(self, values: Sequence[Any], arguments: Sequence[Argument]) -> list[int] | None:
        """The addresses of arrays that can be used as they are, or None if `check` is to look at each."""
        ...

    def guard(self, values: Sequence[Any]) -> Callable[..., bool] | None:
        """What says at once whether so many arrays are like these, or None if nothing does.

        Alike are those of the same types, dtypes, devices, shapes, strides and bits, such as conjugation.
        """
        ...

    def maker(self, array: Array) -> Callable[[], Any]:
        """What makes arrays like `empty` does."""
        ...


def is_torch_tensor(value: object) -> bool:
    """Whether `value` is a torch tensor, told without importing torch."""
    return hasattr(value, "data_ptr") and hasattr(value, "is_contiguous")


def _is_plain(value: Any, dtype: Any, shape: Any) -> bool:
    """Whether a value is a numpy array of that dtype and shape, row by row, at an address of its elements."""
    return (
        type(value) is np.ndarray
        and value.dtype == dtype
        and value.shape == shape
        and value.flags.c_contiguous
        and value.flags.aligned
    )


def _has_own_operators(kind: Any, tensor: Any) -> bool:
    """Whether a subclass of `torch.Tensor` says what operators do: its memory is not what they read."""
    functions = [getattr(each.__torch_function__, "__func__", None) for each in (kind, tensor)]
    own_function = functions[0] is not None and functions[0] is not functions[1]
    return own_function or kind.__torch_dispatch__ is not tensor.__torch_dispatch__


class NumpyLibrary:
    """Arrays of numpy, on the CPU."""

    name = "numpy"

    def check(self, value: Any, argument: Argument) -> Any:
        """See `Library.check`."""
        if not isinstance(value, np.ndarray | np.generic):
            raise mismatch(argument, "a numpy array", type(value).__name__)
        array: Any = np.asarray(value)
        expected = np.dtype(NUMPY_DTYPES[argument.array.dtype])
        extension = array.dtype.isnative and array.dtype.name == extension_name(argument)
        if array.dtype != expected and not extension:
            raise mismatch(argument, f"dtype {expected}", str(array.dtype))
        check_shape(argument, array.shape)
        return np.require(array, requirements=["C", "A"])

    def empty(self, array: Array) -> Any:
        """See `Library.empty`."""
        return np.empty(tuple(map(static, array.shape)), NUMPY_DTYPES[array.dtype])

    def copy(self, value: Any) -> Any:
        """See `Library.copy`."""
        return np.array(value, order="C")

    def pointer(self, value: Any, /) -> int:
        """See `Library.pointer`."""
        return value.ctypes.data

    def pointers(self, values: Sequence[Any]) -> list[int]:
        """See `Library.pointers`."""
        return [value.ctypes.data for value in values]

    def addresses(self, values: Sequence[Any], arguments: Sequence[Argument]) -> list[int] | None:
        """See `Library.addresses`."""
        for value, argument in zip(values, arguments, strict=True):
            array = argument.array
            if not _is_plain(value, NUMPY_DTYPES[array.dtype], array.shape):
                return None
        return self.pointers(values)

    def guard(self, values: Sequence[Any]) -> Callable[..., bool] | None:
        """See `Library.guard`."""
        known = [(value.dtype, value.shape) for value in values]

        def fits(*values: Any) -> bool:
            return all(
                _is_plain(value, dtype, shape)
                for value, (dtype, shape) in zip(values, known, strict=True)
            )

        return fits

    def maker(self, array: Array) -> Callable[[], Any]:
        """See `Library.maker`."""
        return partial(self.empty, array)


class TorchLibrary:
    """Tensors of torch on one device, such as `cpu` or `cuda:0`."""

    name = "torch"

    def __init__(self, device: str):
        import torch

        self._empty: Any = torch.empty
        self._strided, self._tensor = torch.strided, torch.Tensor
        self._parameter = torch.nn.Parameter
        self.pointer: Callable[[Any], int] = torch.Tensor.data_ptr
        self.device = device
        self._contiguous = torch.contiguous_format
        self._device = torch.device(device)
        self._is_cpu = device == "cpu"
        guards: Any = attrgetter("_C._dynamo.guards")(torch)
        self._guards = getattr(guards, "TensorGuards", None)
        kind = self._device.type
        self._empty_strided = getattr(guards, f"_empty_strided_{kind}", None)
        self._dtypes = {name: getattr(torch, dtype) for name, dtype in TORCH_DTYPES.items()}

    def check(self, value: Any, argument: Argument) -> Any:
        """See `Library.check`."""
        array = argument.array
        kind = type(value)
        if not isinstance(value, self._tensor):
            raise mismatch(argument, "a torch tensor", kind.__name__)
        if kind is not self._tensor and _has_own_operators(kind, self._tensor):
            got = f"a {kind.__name__}, which has operators of its own"
            raise mismatch(argument, "a plain torch tensor", got)
        if value.is_nested:
            raise mismatch(argument, "a dense tensor", "a nested tensor")
        if value.dtype is not (dtype := self._dtypes[array.dtype]):
            raise mismatch(argument, f"dtype {dtype}", str(value.dtype))
        if value.shape != array.shape:
            check_shape(argument, value.shape)
        if not value.is_cpu if self._is_cpu else value.device != self._device:
            raise mismatch(argument, f"device {self._device}", str(value.device))
        if value.layout is not self._strided:
            raise mismatch(argument, "a dense tensor", str(value.layout))
        if value.is_neg() or value.is_conj():
            value = value.detach().resolve_conj().resolve_neg()
        if value._is_zerotensor():
            return self.empty(array).zero_()
        try:
            value.data_ptr()
        except RuntimeError:
            got = "one of a transform of torch.func, such as vmap"
            raise mismatch(argument, "a tensor with memory", got) from None
        # What reads it reads memory, or runs without gradients (`calls.py`).
        return value if value.is_contiguous() else value.detach().contiguous()

    def empty(self, array: Array) -> Any:
        """See `Library.empty`."""
        return self.made(array.dtype, array.shape)

    def copy(self, value: Any) -> Any:
        """See `Library.copy`."""
        return value.detach().clone(memory_format=self._contiguous)

    def made(self, dtype: str, shape: Sequence[Extent]) -> Any:
        """A new tensor."""
        made = self._empty(shape, dtype=self._dtypes[dtype], device=self._device)
        return _on_huge_pages(made) if self._is_cpu and made.nbytes >= LARGE_BYTES else made

    def pointers(self, values: Sequence[Any]) -> list[int]:
        """See `Library.pointers`."""
        return [value.data_ptr() for value in values]

    def addresses(self, values: Sequence[Any], arguments: Sequence[Argument]) -> list[int] | None:
        """See `Library.addresses`."""
        dtypes, strided, tensor, parameter = (
            self._dtypes,
            self._strided,
            self._tensor,
            self._parameter,
        )
        found: list[int] = []
        for value, argument in zip(values, arguments, strict=True):
            array, kind = argument.array, type(value)
            if (
                (kind is not tensor and kind is not parameter)
                or value.is_nested
                or value.dtype is not dtypes[array.dtype]
                or value.shape != array.shape
                or not value.is_cpu
                or value.layout is not strided
                or not value.is_contiguous()
                or value.is_neg()
                or value.is_conj()
                or value._is_zerotensor()
            ):
                return None
            try:
                found.append(value.data_ptr())
            except RuntimeError:
                return None
        return found

    def guard(
        self, values: Sequence[Any], dynamic: Sequence[Collection[int]] | None = None
    ) -> Callable[..., bool] | None:
        """See `Library.guard`; it is the one that Dynamo puts in front of compiled functions.

        Of each array, axes that are `dynamic` may have any extent, and the array any strides then.
        """
        if self._guards is None or not values:
            return None
        free = dynamic or [()] * len(values)
        sizes = [
            [None if axis in axes else n for axis, n in enumerate(value.shape)]
            for value, axes in zip(values, free, strict=True)
        ]
        strides = [
            [None if axes else n for n in value.stride()]
            for value, axes in zip(values, free, strict=True)
        ]
        guards = self._guards(*values, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides)
        return guards.check

    def maker(self, array: Array) -> Callable[[], Any]:
        """See `Library.maker`; without PyTorch's dispatcher, as Inductor does it: on the current device."""
        if self._empty_strided is None:
            return partial(self.empty, array)
        shape = tuple(map(static, array.shape))
        strides = tuple(prod(max(n, 1) for n in shape[i + 1 :]) for i in range(len(shape)))
        make = partial(self._empty_strided, shape, strides, self._dtypes[array.dtype])
        if self._is_cpu and make().nbytes >= LARGE_BYTES:
            return lambda: _on_huge_pages(make())
        return make


def _on_huge_pages(tensor: Any) -> Any:
    """The tensor, which is new."""
    ask_for_huge_pages(tensor.data_ptr(), tensor.nbytes)
    return tensor


@cache
def torch_library(device: str) -> TorchLibrary:
    """The tensors of torch on a device."""
    return TorchLibrary(device)


def numpy_array(name: str, value: Any) -> Any:
    """An argument as a numpy array, in the memory that it has, if other libraries tell that (DLPack)."""
    if isinstance(value, np.ndarray | np.generic) or not hasattr(value, "__dlpack__"):
        return value
    if is_torch_tensor(value) and value.is_neg():
        value = value.resolve_neg()  # which DLPack does not tell
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise UsageError(
            f"argument '{name}': a {type(value).__name__} that numpy cannot read ({error})"
        ) from error


def extension_name(argument: Argument) -> str:
    """The name numpy extensions such as ml_dtypes give to the dtype of `argument`."""
    return TORCH_DTYPES[argument.array.dtype]


def is_like(value: Any, array: Array) -> bool:
    """Whether a value has the dtype and the shape of an array of a plan whose sizes are known."""
    dtype = str(value.dtype).removeprefix("torch.")
    names = TORCH_DTYPES[array.dtype], NUMPY_DTYPES[array.dtype]
    return dtype in names and tuple(value.shape) == array.shape


def check_count(arguments: Sequence[Argument], values: Sequence[object]) -> None:
    """Raise unless there is one value per argument."""
    if len(arguments) != len(values):
        names = ", ".join(argument.name for argument in arguments)
        raise UsageError(f"expected {len(arguments)} arrays ({names}), got {len(values)}")


def shapes_of(values: Sequence[Any]) -> list[tuple[int, ...]]:
    """The shapes of arrays; of anything else, and of tensors that have no shape yet, none."""
    try:
        return [tuple(getattr(value, "shape", ())) for value in values]
    except RuntimeError:
        return [()] * len(values)


def aligned_bytes(size: int) -> Any:
    """A numpy byte array of `size` bytes that starts at a multiple of the arena's alignment."""
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size]


def write_back(updated: Sequence[int], arguments: Sequence[Any], arrays: Sequence[Any]) -> None:
    """Give the arguments that a plan writes to what it wrote, where it got copies of them."""
    for i in updated:
        argument = arguments[i]
        if arrays[i] is not argument:
            (argument.detach() if is_torch_tensor(argument) else argument)[...] = arrays[i]


def check_shape(argument: Argument, shape: tuple[int, ...]) -> None:
    """Raise UsageError unless an array has the shape of an argument."""
    if shape != argument.array.shape:
        raise mismatch(argument, f"shape {list(argument.array.shape)}", str(list(shape)))


def mismatch(argument: Argument, expected: str, got: str) -> UsageError:
    """What is said of an argument that is not as expected."""
    return UsageError(
        f"argument '{argument.name}': expected {expected}, got {got}; the program was compiled for "
        f"{argument.said or argument.array}, compile it again for other arrays"
    )
