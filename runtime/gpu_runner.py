"""Runs the plans of a program file on a GPU by CUDA's driver."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from ..errors import DeploError, UsageError
from .arrays import is_torch_tensor, numpy_array, shapes_of, write_back
from .cuda import CudaProgram
from .device_arrays import DeviceArray, DeviceLibrary, new_array, taken_array
from .dlpack import CUDA, LEGACY_STREAM
from .driver_gpu import (
    DriverGpu,
    StoppedError,
    current_index,
    driver_gpu,
    driver_version,
    stopped,
)
from .gpus import runs_code_for
from .nvrtc import Cubin, Usage, compute_capability
from .plan import Plan
from .plan_parts import Argument
from .runners import Members, Said


class GpuRunner:
    """A GPU. Arrays on it are taken as they are, others are copied there.

    Outputs are on the GPU if an input is, else numpy's.
    """

    def __init__(self, gpu: DriverGpu, target: Said):
        self._gpu = gpu
        self._target = str(target["name"])
        kind = code_kind(target, gpu.capability)
        assert kind is not None
        self._kind = kind
        self._messages: list[str] = []

    @property
    def library(self) -> DeviceLibrary:
        """The arrays of the GPU."""
        return self._gpu.library

    @contextmanager
    def active(self) -> Generator[None]:
        """See `Runner.active`. Raises what a failed check of the program stands for."""
        try:
            with self._gpu.active():
                yield
        except StoppedError as error:
            raise stopped(str(error), [*dict.fromkeys(self._messages)]) from error

    def take(self, name: str, value: Any) -> Any:
        """See `Runner.take`."""
        if isinstance(value, DeviceArray):
            return value
        if not hasattr(value, "__dlpack_device__") or value.__dlpack_device__()[0] != CUDA:
            return numpy_array(name, value)
        if is_torch_tensor(value) and value.is_neg():
            value = value.resolve_neg()  # which DLPack does not tell
        try:
            return taken_array(self._gpu, value.__dlpack__(stream=LEGACY_STREAM))
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise UsageError(
                f"argument '{name}': a {type(value).__name__} that cannot be read on GPU {self._gpu.index} "
                f"({error})"
            ) from error

    def hold(self, array: Any, argument: Argument) -> Any:
        """See `Runner.hold`."""
        dtype = "bfloat16" if argument.array.dtype == "bf16" else str(array.dtype)
        held = new_array(self._gpu, dtype, array.shape)
        held[...] = array
        return held

    def program(self, plan: Plan, code: Any, members: Members) -> Callable[..., Sequence[Any]]:
        """See `Runner.program`."""
        if any(each.target != self._target for each in plan.whole):
            raise ValueError(f"a plan of another target than {self._target}")
        names = {kernel.name for each in plan.whole for kernel in each.kernels}
        cubins = {name: self._cubin(code[name], members) for name in names}
        self._messages += [m for each in plan.whole for k in each.kernels for m in k.messages]
        made = CudaProgram(plan, cubins, self._gpu)
        made.load(self._gpu)
        return _GpuProgram(made, self)

    def _cubin(self, said: Said, members: Members) -> Cubin:
        """The code of a kernel; PTX, which the driver compiles, ends with a zero."""
        symbol = said["symbol"]
        if not isinstance(symbol, str):
            raise TypeError(f"a kernel named {symbol}")
        text = bytes(members[said[self._kind]]) + (b"\0" if self._kind == "ptx" else b"")
        return Cubin(self._target, text, {symbol: usage_of(said)})

    def finish(self) -> None:
        """See `Runner.finish`."""
        self._gpu.synchronize()

    def give(self, values: Sequence[Any], inputs: Sequence[Any]) -> list[Any]:
        """See `Runner.give`."""
        if any(isinstance(each, DeviceArray) for each in inputs):
            return list(values)
        known: dict[int, Any] = {}
        made = {id(each): each.on_host(known) for each in values if isinstance(each, DeviceArray)}
        return [made.get(id(each), each) for each in values]


class _GpuProgram:
    """A plan on a GPU: arguments that are numpy's are copied there, and copied back if they change."""

    def __init__(self, program: CudaProgram, runner: GpuRunner):
        self._program, self._runner = program, runner

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        plan = self._program.plan.at(shapes_of(arguments))
        library = self._runner.library
        placed = [
            value if isinstance(value, DeviceArray) else library.check(value, argument)
            for value, argument in zip(arguments, plan.arguments, strict=True)
        ]
        results = self._program(*placed, given=given)
        self._runner.finish()
        write_back(plan.updated, arguments, placed)
        passed = {id(own): value for own, value in zip(placed, arguments, strict=True)}
        return tuple(passed.get(id(result), result) for result in results)


def runner(target: Said, device: int | None) -> GpuRunner:
    """What runs the plans of a target that has no obstacle on GPU `device`, or the current one."""
    return GpuRunner(_gpu(device), target)


def obstacle(target: Said, device: int | None) -> str | None:
    """Why GPU `device`, or the current one, does not run the code of a target, or None."""
    try:
        version = driver_version()
        gpu = _gpu(device)
    except DeploError as error:
        return f"needs a GPU: {error}"
    if (kind := code_kind(target, gpu.capability)) is None:
        major, minor = gpu.capability
        return f"does not run on GPU {gpu.index}, which is sm_{major}{minor}"
    major, minor = map(int, target["toolkit"])
    needed = (major, minor) if kind == "ptx" else (major, 0)
    if version < needed:
        has, needs = (".".join(map(str, each)) for each in (version, needed))
        return f"needs a driver for CUDA {needs} or later, this one is for {has}"
    if (most := int(target["shared_bytes"])) > gpu.block_shared_bytes:
        return (
            f"needs {most} bytes of shared memory for a block, GPU {gpu.index} has {gpu.block_shared_bytes}"
        )
    return None


def code_kind(target: Said, capability: tuple[int, int]) -> str | None:
    """What of a target's code a GPU runs: its machine code (`cubin`), its `ptx`, or nothing.

    PTX for a target without a suffix runs on all later GPUs ("PTX Compatibility"); no other is in a file.
    """
    if runs_code_for(target["name"], capability):
        return "cubin"
    major, minor, suffix = compute_capability(target["name"])
    return "ptx" if not suffix and capability >= (major, minor) else None


def usage_of(said: Said) -> Usage:
    """What a file says of a kernel's registers and memory."""
    return Usage(**{name: int(number) for name, number in said["usage"].items()})


def _gpu(device: int | None) -> DriverGpu:
    """The GPU of that number, or the current one."""
    return driver_gpu(current_index() if device is None else device)


def described(target: Said) -> str:
    """What runs a target, in words."""
    major, minor, suffix = compute_capability(target["name"])
    if suffix:
        return f"GPUs of compute capability {major}.{minor}"
    return f"GPUs of compute capability {major}.{minor or 'x'}, and later ones by PTX"


def code_described(code: Any, members: Members) -> dict[str, Any]:
    """What a file has of code, as JSON data."""
    used = {name: asdict(usage_of(said)) for name, said in code.items()}
    sizes = [len(members[said[kind]]) for said in code.values() for kind in ("cubin", "ptx") if kind in said]
    return {"code_bytes": sum(sizes), "usage": used}
