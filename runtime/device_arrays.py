"""Arrays in a GPU's memory without PyTorch: what a program from a file computes with, and gives.

    y = program(x)                    # x: a tensor of PyTorch or another library on the GPU
    torch.from_dlpack(y)              # the same memory
    np.asarray(y)                     # a copy
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, Protocol

import numpy as np

from ..errors import UsageError
from .arrays import NUMPY_DTYPES, TORCH_DTYPES, NumpyLibrary, check_shape, mismatch
from .dlpack import CUDA, Taken, give
from .outputs import Elsewhere
from .plan_parts import Argument, Array
from .sizes import static

ANYWHERE = 64
"""The address of arrays without elements."""


class Memory(Protocol):
    """A piece of a GPU's memory, which is there as long as the object."""

    @property
    def address(self) -> int:
        """Where it begins."""
        ...

    @property
    def nbytes(self) -> int:
        """How long it is."""
        ...


class Copies(Protocol):
    """What a GPU does with its memory."""

    index: int

    def allocate(self, nbytes: int) -> Memory:
        """New memory, with undefined content."""
        ...

    def upload(self, address: int, source: Any) -> None:
        """Copy a numpy array, which lies row by row, to the GPU."""
        ...

    def download(self, target: Any, address: int) -> None:
        """Copy from the GPU to a numpy array, which lies row by row."""
        ...

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy memory of the GPU."""
        ...

    def lend(self, memory: Memory, stream: int | None) -> None:
        """Be told that others use memory on a stream: wait for them before it is used again."""
        ...


class DeviceArray(Elsewhere):
    """An array on a GPU, or a view of one. Other libraries take it by DLPack, numpy as a copy."""

    def __init__(self, gpu: Copies, layout: Any, dtype: str, memory: Memory):
        """An array of a dtype of that name in a GPU's memory, where `layout` says."""
        self.gpu, self.layout, self.memory = gpu, layout, memory
        self._dtype = dtype

    @property
    def shape(self) -> tuple[int, ...]:
        """Its extents."""
        return self.layout.shape

    @property
    def dtype(self) -> str:
        """The name of its elements' type, such as float32 or bfloat16."""
        return self._dtype

    @property
    def address(self) -> int:
        """Where its first element is, on the GPU."""
        return self.layout.__array_interface__["data"][0]

    @property
    def is_contiguous(self) -> bool:
        """Whether it lies row by row."""
        return self.layout.flags.c_contiguous

    def __repr__(self) -> str:
        return f"DeviceArray({self._dtype}{list(self.shape)} on GPU {self.gpu.index})"

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.gpu.index

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule; the array is complete, whatever the stream that it is used on."""
        device = self.__dlpack_device__()
        if copy or dl_device not in (None, device):
            raise BufferError("an array on a GPU is given where it is; copy what was made of it")
        self.gpu.lend(self.memory, stream)
        layout = self.layout
        strides = [stride // layout.itemsize for stride in layout.strides]
        return give(self.memory, self.address, self._dtype, self.shape, strides, device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        if copy is False:
            raise ValueError("an array on a GPU is copied to become numpy's")
        found = self.on_host({})
        return found if dtype is None else found.astype(dtype, copy=False)

    def __setitem__(self, place: Any, value: Any) -> None:
        """`array[...] = value`: a copy of an array of the same dtype and shape."""
        assert place is ... and self.is_contiguous and value.shape == self.shape
        if isinstance(value, DeviceArray) and value.is_contiguous:
            self.gpu.copy(self.address, value.address, self.layout.nbytes)
        else:
            self.gpu.upload(self.address, np.ascontiguousarray(value))

    def item(self) -> Any:
        """The number that it is, if it has one element."""
        return self.on_host({}).item()

    def copy(self) -> DeviceArray:
        """A new array, which lies row by row."""
        made = new_array(self.gpu, self._dtype, self.shape)
        made[...] = self
        return made

    def viewed(self, view: Callable[..., Any], *given: Any, reshapes: bool = False) -> DeviceArray:
        """See `Elsewhere.viewed`."""
        if reshapes and not self.is_contiguous:
            raise UsageError(
                "an output is another shape of a view, which deplo does not find in a GPU's memory: have the "
                "program return a copy (.clone())"
            )
        layout = view(self.layout, *given)
        dtype = self._dtype if layout.dtype == self.layout.dtype else str(layout.dtype)
        return DeviceArray(self.gpu, layout, dtype, self.memory)

    def on_host(self, known: dict[int, Any]) -> Any:
        """It as a numpy array; those of the same memory share it there too, if they get the same `known`."""
        if (whole := known.get(id(self.memory))) is None:
            whole = known[id(self.memory)] = np.empty(self.memory.nbytes, np.uint8)
            self.gpu.download(whole, self.memory.address)
        layout = self.layout
        offset = self.address - self.memory.address if layout.size else 0
        return np.ndarray(layout.shape, layout.dtype, whole, offset, layout.strides)


def new_array(gpu: Copies, dtype: str, shape: Sequence[int]) -> DeviceArray:
    """A new array that lies row by row, with undefined content."""
    item = np.dtype(_plain(dtype))
    memory = gpu.allocate(prod(shape) * item.itemsize)
    return DeviceArray(gpu, layout_at(memory.address, shape, item), dtype, memory)


def taken_array(gpu: Copies, capsule: Any) -> DeviceArray:
    """An array of another library, in its memory. Raises ValueError for one that deplo cannot have."""
    taken = Taken(capsule)
    if taken.device != (CUDA, gpu.index):
        raise ValueError(f"it is on device {taken.device}")
    item = np.dtype(_plain(taken.dtype))
    strides = None if taken.strides is None else [n * item.itemsize for n in taken.strides]
    layout = layout_at(taken.address, taken.shape, item, strides)
    return DeviceArray(gpu, layout, taken.dtype, taken)


def layout_at(
    address: int, shape: Sequence[int], dtype: Any, strides: Sequence[int] | None = None
) -> Any:
    """A numpy array at an address that numpy must not read; strides are in bytes."""
    interface = {
        "version": 3,
        "shape": tuple(shape),
        "typestr": dtype.str,
        "data": (address or ANYWHERE, False),
        "strides": None if strides is None else tuple(strides),
    }
    return np.asarray(_At(interface))


class _At:
    """What says to numpy where an array lies."""

    def __init__(self, interface: dict[str, Any]):
        self.__array_interface__ = interface


def _plain(dtype: str) -> str:
    """The dtype that numpy has for one: that of its bits for bfloat16."""
    return "uint16" if dtype == "bfloat16" else dtype


class DeviceLibrary:
    """Arrays on one GPU; those of numpy are copied to it."""

    name = "cuda"

    def __init__(self, gpu: Copies):
        self._gpu = gpu
        self._numpy = NumpyLibrary()

    def check(self, value: Any, argument: Argument) -> Any:
        """See `Library.check`; arrays that lie on the GPU must lie there row by row."""
        array = argument.array
        if not isinstance(value, DeviceArray):
            found = self._numpy.check(value, argument)
            made = self.empty(array)
            made[...] = found
            return made
        if value.dtype not in (name := TORCH_DTYPES[array.dtype], NUMPY_DTYPES[array.dtype]):
            raise mismatch(argument, f"dtype {name}", value.dtype)
        check_shape(argument, value.shape)
        if value.gpu is not self._gpu:
            wanted = f"an array on GPU {self._gpu.index}"
            raise mismatch(argument, wanted, f"one on GPU {value.gpu.index}")
        if not value.is_contiguous:
            raise UsageError(
                f"argument '{argument.name}': an array on a GPU must lie there row by row; pass a copy"
            )
        return value

    def empty(self, array: Array) -> Any:
        """See `Library.empty`."""
        return new_array(self._gpu, TORCH_DTYPES[array.dtype], tuple(map(static, array.shape)))

    def copy(self, value: Any) -> Any:
        """See `Library.copy`."""
        return value.copy()

    def pointer(self, value: Any, /) -> int:
        """See `Library.pointer`."""
        return value.address

    def pointers(self, values: Sequence[Any]) -> list[int]:
        """See `Library.pointers`."""
        return [value.address for value in values]

    def addresses(self, values: Sequence[Any], arguments: Sequence[Argument]) -> list[int] | None:
        """See `Library.addresses`: `check` is to look at each."""
        return None

    def guard(self, values: Sequence[Any]) -> Callable[..., bool] | None:
        """See `Library.guard`."""
        known = [(value.dtype, value.shape) for value in values]

        def fits(*values: Any) -> bool:
            return all(
                isinstance(value, DeviceArray)
                and (value.dtype, value.shape) == like
                and value.is_contiguous
                and value.gpu is self._gpu
                for value, like in zip(values, known, strict=True)
            )

        return fits

    def maker(self, array: Array) -> Callable[[], Any]:
        """See `Library.maker`."""
        return partial(self.empty, array)
