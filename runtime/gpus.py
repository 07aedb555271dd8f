"""GPUs that programs run on; of PyTorch's, whether there is one and whether it runs code for a target."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Protocol

from ..errors import MissingEnvironmentError, UsageError
from .arrays import Library, TorchLibrary, is_torch_tensor, torch_library
from .cuda_prepared import VECTOR_BYTES
from .nvrtc import compute_capability

MAX_BRANCHES = 8
"""Branches of a recorded graph that launches of a group are shared out to."""

WITHOUT = "the program is compiled and can run where there is one, or compile with target='cpu'"
"""What can be done where there is no GPU to run a program."""


class Gpu(Protocol):
    """A GPU: where its arrays come from, and the stream that launches go to."""

    index: int

    @property
    def library(self) -> Library:
        """Its arrays."""
        ...

    def active(self) -> AbstractContextManager[object]:
        """What has it be the current one."""
        ...

    def may_repeat(self, *, groups: bool) -> bool:
        """Whether a call may be launched as an earlier one was; it has launches at once if `groups`."""
        ...

    def stream(self) -> int:
        """The stream to launch on."""
        ...

    def branches(self, launches: int) -> AbstractContextManager[Sequence[int]]:
        """The streams for launches that may run at once."""
        ...

    def aligned(self, value: Any) -> Any:
        """An array at an address that kernels may copy from, in vectors; a view may begin anywhere."""
        ...


class Gpus(Protocol):
    """Says which GPU a call runs on."""

    def of(self, arguments: Sequence[Any], target: str) -> Gpu:
        """The GPU for these arguments. Raises MissingEnvironmentError unless it runs code for `target`."""
        ...


class TorchGpu:
    """A GPU with PyTorch's memory and streams."""

    def __init__(self, torch: Any, device: Any):
        self.index: int = device.index
        self._torch, self._device = torch, device
        self._side_streams: list[Any] = []

    @property
    def library(self) -> TorchLibrary:
        """See `Gpu.library`."""
        return torch_library(str(self._device))

    def active(self) -> AbstractContextManager[object]:
        """See `Gpu.active`."""
        return self._torch.cuda.device(self._device)

    def may_repeat(self, *, groups: bool) -> bool:
        """See `Gpu.may_repeat`; a graph that is being recorded gets branches."""
        cuda = self._torch.cuda
        is_current = cuda.current_device() == self.index
        return is_current and not (groups and cuda.is_current_stream_capturing())

    def stream(self) -> int:
        """See `Gpu.stream`: PyTorch's current one."""
        return self._torch.cuda.current_stream(self.index).cuda_stream

    @contextmanager
    def branches(self, launches: int) -> Generator[Sequence[int]]:
        """See `Gpu.branches`.

        A graph that is being recorded gets a branch for each, which begin behind what was launched before and
        end before what comes after. Otherwise they go one after the other to the one stream: to have several
        wait for each other takes longer than most kernels.
        """
        torch, device = self._torch, self._device
        current = torch.cuda.current_stream(device)
        if launches < 2 or not torch.cuda.is_current_stream_capturing():
            yield [current.cuda_stream]
            return
        count = min(launches, MAX_BRANCHES) - 1
        own = self._side_streams
        own += [torch.cuda.Stream(device) for _ in range(count - len(own))]
        sides = own[:count]
        for side in sides:
            side.wait_stream(current)
        yield [current.cuda_stream, *(side.cuda_stream for side in sides)]
        for side in sides:
            current.wait_stream(side)

    def aligned(self, value: Any) -> Any:
        """See `Gpu.aligned`."""
        return value if value.data_ptr() % VECTOR_BYTES == 0 else value.detach().clone()


class TorchGpus:
    """The GPU that the arguments live on, else PyTorch's current one."""

    def __init__(self) -> None:
        self._known: dict[int, TorchGpu] = {}

    def of(self, arguments: Sequence[Any], target: str) -> TorchGpu:
        """See `Gpus.of`; MissingEnvironmentError also where PyTorch finds no GPU."""
        torch = torch_with_gpu()
        device = _device(torch, arguments)
        check_capability(torch, device, target)
        if device.index not in self._known:
            self._known[device.index] = TorchGpu(torch, device)
        return self._known[device.index]


def _device(torch: Any, arguments: Sequence[Any]) -> Any:
    """The GPU that the arguments live on, else torch's current one."""
    for value in arguments:
        if is_torch_tensor(value) and value.device.type == "cuda":
            return value.device
    if arguments:
        raise UsageError("the program runs on a GPU: expected torch tensors on a cuda device")
    return torch.device("cuda", torch.cuda.current_device())


def torch_with_gpu(without: str = WITHOUT) -> Any:
    """PyTorch, ready to use a GPU; MissingEnvironmentError says what can be done if there is none."""
    try:
        import torch
    except ImportError as error:
        raise MissingEnvironmentError("running on a GPU needs torch: pip install torch") from error
    if not torch.cuda.is_available():
        raise MissingEnvironmentError(
            f"no GPU: torch finds no CUDA device on this machine; {without}"
        )
    torch.cuda.init()
    return torch


def check_capability(torch: Any, device: Any, target: str) -> None:
    """Raise MissingEnvironmentError unless `device` runs code for `target`."""
    major, minor = torch.cuda.get_device_capability(device)
    if not runs_code_for(target, (major, minor)):
        raise MissingEnvironmentError(
            f"the program was compiled for {target}, this GPU is sm_{major}{minor}"
        )


def runs_code_for(target: str, capability: tuple[int, int]) -> bool:
    """Whether a GPU runs machine code for `target`: one of its generation, and no older.

    Code for a target with the suffix a runs on exactly that one ("CUDA Binary Compatibility").
    """
    major, minor, suffix = compute_capability(target)
    has_major, has_minor = capability
    return has_major == major and (has_minor == minor if suffix == "a" else has_minor >= minor)


def describe_gpu(target: str) -> str:
    """PyTorch's current GPU in words: its name and multiprocessors, which may be a part of the chip.

    Raises MissingEnvironmentError if there is none, or if it does not run code for `target`.
    """
    torch = torch_with_gpu("kernels are tuned where they run")
    device = torch.device("cuda", torch.cuda.current_device())
    check_capability(torch, device, target)
    found = torch.cuda.get_device_properties(device)
    return f"{found.name} processors={found.multi_processor_count}"
