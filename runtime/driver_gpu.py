"""A GPU through CUDA's driver alone: its memory, and one stream, the legacy default one.

Memory comes from a pool of the program's own. What is not used any more is given back to it when memory is
asked for next: a garbage collection calls nothing of the driver's.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache, cached_property
from threading import Lock
from typing import Any

from ..errors import CheckError, DeploError, MissingEnvironmentError
from . import cuda_driver
from .cuda_prepared import VECTOR_BYTES
from .device_arrays import DeviceLibrary
from .dlpack import LEGACY_STREAM
from .failures import failure

KEEP_ALL = 2**64 - 1
"""Bytes up to which the pool keeps what is given back."""


STOPPED = ("CUDA_ERROR_LAUNCH_FAILED", "CUDA_ERROR_ILLEGAL_INSTRUCTION", "CUDA_ERROR_ASSERT")
"""What the driver may say of a kernel that ended by a trap, which is what a check that fails does."""


class StoppedError(DeploError):
    """Work on a GPU failed, by an error of that name."""


class Block:
    """A piece of memory; its owner gets it back when nobody has it any more."""

    def __init__(self, address: int, nbytes: int, returned: deque[int]):
        self.address, self.nbytes = address, nbytes
        if nbytes:
            weakref.finalize(self, returned.append, address).atexit = False


class DriverGpu:
    """A GPU for programs without PyTorch; it says to each call that it runs here."""

    def __init__(self, index: int):
        """The GPU of that number. Raises DeploError if there is none."""
        cuda = cuda_driver.driver()
        self.index = index
        self._device = cuda_driver.ok(cuda.cuDeviceGet(index), f"finding GPU {index}")
        doing = f"starting to use GPU {index}"
        self._context = cuda_driver.ok(cuda.cuDevicePrimaryCtxRetain(self._device), doing)
        self._returned: deque[int] = deque()
        self._giving_back = Lock()
        self._lent = False
        self.library = DeviceLibrary(self)

    # ------------------------------------------------------------------------- as `Gpu` and `Gpus`

    def of(self, arguments: Sequence[Any], target: str) -> DriverGpu:
        """See `Gpus.of`; whether it runs the code was found out when that was chosen."""
        return self

    @contextmanager
    def active(self) -> Generator[None]:
        """See `Gpu.active`."""
        cuda = cuda_driver.driver()
        doing = f"using GPU {self.index}"
        cuda_driver.ok(cuda.cuCtxPushCurrent(self._context), doing)
        try:
            yield
        finally:
            cuda_driver.ok(cuda.cuCtxPopCurrent(), doing)

    def may_repeat(self, *, groups: bool) -> bool:
        """See `Gpu.may_repeat`."""
        return True

    def stream(self) -> int:
        """See `Gpu.stream`."""
        return LEGACY_STREAM

    def branches(self, launches: int) -> AbstractContextManager[Sequence[int]]:
        """See `Gpu.branches`: one after the other."""
        return nullcontext([LEGACY_STREAM])

    def aligned(self, value: Any) -> Any:
        """See `Gpu.aligned`."""
        return value if value.address % VECTOR_BYTES == 0 else value.copy()

    # ------------------------------------------------------------------------- as `Copies`

    def allocate(self, nbytes: int) -> Block:
        """New memory, with undefined content."""
        cuda = cuda_driver.driver()
        self._give_back()
        if not nbytes:
            return Block(0, 0, self._returned)
        asked = cuda.cuMemAllocFromPoolAsync(nbytes, self._pool, LEGACY_STREAM)
        address = cuda_driver.ok(asked, f"asking GPU {self.index} for {nbytes} bytes")
        return Block(int(address), nbytes, self._returned)

    def upload(self, address: int, source: Any) -> None:
        """Copy a numpy array, which lies row by row, to the GPU."""
        if source.nbytes:
            copied = cuda_driver.driver().cuMemcpyHtoD(address, source.ctypes.data, source.nbytes)
            cuda_driver.ok(copied, f"copying to GPU {self.index}")

    def download(self, target: Any, address: int) -> None:
        """Copy from the GPU to a numpy array, which lies row by row."""
        if not target.nbytes:
            return
        with self.active():
            self.synchronize()
            copied = cuda_driver.driver().cuMemcpyDtoH(target.ctypes.data, address, target.nbytes)
            cuda_driver.ok(copied, f"copying from GPU {self.index}")

    def copy(self, address: int, source: int, nbytes: int) -> None:
        """Copy memory of the GPU."""
        if nbytes:
            cuda = cuda_driver.driver()
            copied = cuda.cuMemcpyDtoDAsync(address, source, nbytes, LEGACY_STREAM)
            cuda_driver.ok(copied, f"copying on GPU {self.index}")

    def lend(self, memory: Any, stream: int | None) -> None:
        """See `Copies.lend`. What is used on the legacy stream is in order with what comes later."""
        if stream not in (None, LEGACY_STREAM):
            self._lent = True

    def synchronize(self) -> None:
        """Wait for all work. Raises StoppedError if any failed."""
        cuda = cuda_driver.driver()
        (result,) = cuda.cuStreamSynchronize(LEGACY_STREAM)
        if result != cuda.CUresult.CUDA_SUCCESS:
            raise StoppedError(result.name)

    @cached_property
    def _pool(self) -> Any:
        """The pool that memory is from."""
        cuda = cuda_driver.driver()
        asked = cuda.CUmemPoolProps()
        asked.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
        asked.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
        asked.location.id = self.index
        doing = f"making a pool of memory on GPU {self.index}"
        pool = cuda_driver.ok(cuda.cuMemPoolCreate(asked), doing)
        keeps = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
        limit = cuda.cuuint64_t(KEEP_ALL)
        cuda_driver.ok(cuda.cuMemPoolSetAttribute(pool, keeps, limit), doing)
        return pool

    def _give_back(self) -> None:
        """Give back to the pool what is not used any more."""
        cuda = cuda_driver.driver()
        doing = f"giving back memory of GPU {self.index}"
        if self._returned and self._lent:
            cuda_driver.ok(cuda.cuCtxSynchronize(), doing)
        with self._giving_back:
            while self._returned:
                address = self._returned.popleft()
                cuda_driver.ok(cuda.cuMemFreeAsync(address, LEGACY_STREAM), doing)

    # ------------------------------------------------------------------------- what it is

    @cached_property
    def capability(self) -> tuple[int, int]:
        """Its compute capability."""
        major, minor = (
            self.attribute(f"COMPUTE_CAPABILITY_{part}") for part in ("MAJOR", "MINOR")
        )
        return major, minor

    @cached_property
    def block_shared_bytes(self) -> int:
        """Shared memory that one block can ask for."""
        return self.attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN")

    def attribute(self, name: str) -> int:
        """A number that the driver knows of it."""
        cuda = cuda_driver.driver()
        kind = getattr(cuda.CUdevice_attribute, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(cuda_driver.ok(cuda.cuDeviceGetAttribute(kind, self._device), f"asking {name}"))


@cache
def driver_gpu(index: int) -> DriverGpu:
    """The GPU of that number, once for all programs."""
    return DriverGpu(index)


def driver_version() -> tuple[int, int]:
    """The newest CUDA that the driver knows.

    Raises MissingEnvironmentError where there is no driver, no GPU or no bindings for Python.
    """
    cuda = cuda_driver.driver()
    try:
        (result,) = cuda.cuInit(0)
        number = cuda_driver.ok(cuda.cuDriverGetVersion(), "asking the driver's version")
    except RuntimeError as error:
        why = str(error).partition("\n")[0]
        raise MissingEnvironmentError(f"there is no NVIDIA driver ({why})") from error
    if result != cuda.CUresult.CUDA_SUCCESS:
        raise MissingEnvironmentError(f"NVIDIA's driver finds none ({result.name})")
    return number // 1000, number % 1000 // 10


def current_index() -> int:
    """The number of the GPU that this thread uses by now, else the first."""
    cuda = cuda_driver.driver()
    context = cuda_driver.ok(cuda.cuCtxGetCurrent(), "asking for the current GPU")
    if not int(context):
        return 0
    return int(cuda_driver.ok(cuda.cuCtxGetDevice(), "asking for the current GPU"))


def stopped(error: str, messages: Sequence[str]) -> Exception:
    """The exception for work that failed by an error, of a program whose checks may say `messages`.

    A GPU does not tell which of its checks stopped a kernel, nor whether one did.
    """
    after = "; the GPU takes no more work from this process: start a new one"
    if error not in STOPPED or not messages:
        return DeploError(f"the GPU stopped the program ({error}){after}")
    exceptions = [failure(message) for message in messages]
    (kind, *others) = dict.fromkeys(map(type, exceptions))
    listed = " or ".join(messages)
    text = f"{listed} ({error}){after}"
    return CheckError(text) if others else kind(text)
