"""Runs a plan on a GPU: NVRTC compiles its kernels, the CUDA driver launches them on torch's stream.

Arrays are torch CUDA tensors, and so is the arena: torch's allocator knows every byte, and work is
ordered with the torch operations around it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache, partial
from importlib import import_module
from itertools import cycle
from operator import is_
from typing import Any

from ..errors import DeploError, MissingEnvironmentError, UsageError
from .arrays import (
    TorchLibrary,
    check_count,
    is_torch_tensor,
    shapes_of,
    torch_library,
    write_back,
)
from .calls import BoundCall
from .cuda_prepared import VECTOR_BYTES, Launch, PreparedCall
from .gpus import check_capability, torch_with_gpu
from .loops import in_order, moves_of
from .nvrtc import Cubin, Usage, compile_all, compute_capability
from .plan import Plan
from .plan_parts import Array, CallStep, Ref, Step
from .sizes import static
from .stages import check_found, find_sizes, stages_of
from .tensor_maps import Description, describe, encode

MAX_BLOCKS = 2**31 - 1
"""Blocks of a one-dimensional grid (CUDA C++ Programming Guide, "Technical Specifications")."""

MAX_BRANCHES = 8
"""Branches of a recorded graph that launches of a group are shared out to."""

MAX_PREPARED = 4
"""Calls that a program has prepared at most; the oldest makes room."""

MAX_DESCRIPTORS = 256
"""Tensor maps that a program keeps; buffers tend to lie where they lay in the last call."""


class CudaProgram:
    """A plan compiled for a GPU architecture; call it with the plan's arguments, in order.

    Making one needs NVRTC only. Calling it needs a GPU of that architecture: without one it raises
    MissingEnvironmentError. Calls return before the GPU is done, as torch's do.
    """

    def __init__(self, plan: Plan):
        compute_capability(plan.target)
        self.plan = plan
        self._parts = {name: CudaProgram(part) for name, part in plan.parts.items()}
        self._stages = stages_of(plan)
        cubins = compile_all([k.source for k in plan.kernels], plan.target)
        self._cubins = {k.name: cubin for k, cubin in zip(plan.kernels, cubins, strict=True)}
        self._kernels = {k.name: k for k in plan.kernels}
        self._functions: dict[tuple[int, str], Any] = {}
        self._descriptors: dict[tuple[int, Description], Any] = {}
        self._side_streams: dict[int, list[Any]] = {}
        self._prepared: tuple[tuple[int, PreparedCall], ...] = ()
        self._groups = any(len(group) > 1 for stage in self._stages for group in stage.groups)

    @property
    def usage(self) -> dict[str, Usage]:
        """Registers, spills and memory of each kernel."""
        own = {name: cubin.usage[_symbol(name, cubin)] for name, cubin in self._cubins.items()}
        return {n: u for part in self._parts.values() for n, u in part.usage.items()} | own

    def __call__(self, *arguments: Any, given: Sequence[Sequence[Any]] = ()) -> tuple[Any, ...]:
        """Run the plan; raises UsageError if an argument does not fit it.

        `given` is what its first calls of PyTorch gave, which are not to run again. Raises EmptySize where
        a size is found to be 0.
        """
        if not given and (results := self.again(arguments)) is not None:
            return results
        torch = torch_with_gpu()
        check_count(self.plan.arguments, arguments)
        device = _device(torch, arguments)
        check_capability(torch, device, self.plan.target)
        library = torch_library(str(device))
        shapes = shapes_of(arguments)
        plan = self.plan.at(shapes)
        checked = [
            _aligned(library.check(value, argument))
            for value, argument in zip(arguments, plan.arguments, strict=True)
        ]
        arrays: dict[Ref, Any] = {Ref("argument", i): value for i, value in enumerate(checked)}
        arrays |= {Ref("buffer", i): None for i in range(len(plan.buffers))}
        pointers = {Ref("argument", i): library.pointer(v) for i, v in enumerate(checked)}
        calls: list[Sequence[Any]] = []
        found: dict[int, int] = {}
        with torch.cuda.device(device):
            arena = library.empty(Array("i8", (plan.arena_bytes or 0,)))
            for stage in self._stages:
                begin_turn = _turns(plan, pointers)
                for ref in (Ref("buffer", index) for index in stage.buffers):
                    buffer = plan.buffers[ref.index]
                    if buffer.offset is None:
                        arrays[ref] = library.empty(buffer.array)
                        pointers[ref] = library.pointer(arrays[ref])
                    else:
                        pointers[ref] = library.pointer(arena) + static(buffer.offset)
                for group in in_order(stage.groups, plan.loops, begin_turn):
                    step = plan.steps[group.start]
                    if isinstance(step, CallStep):
                        again = given[len(calls)] if len(calls) < len(given) else None
                        finds = stage.finds and group.start == stage.end - 1
                        array = None if finds else plan.array
                        bound = BoundCall(step, str(device), array=array, programs=self._parts)
                        calls.append(bound.run(arrays, again))
                        pointers |= {ref: library.pointer(arrays[ref]) for ref in step.results}
                        continue
                    launches = [
                        s for s in plan.steps[group.start : group.stop] if isinstance(s, Step)
                    ]
                    with self._branches(torch, device, len(group)) as streams:
                        for step, stream in zip(launches, cycle(streams), strict=False):
                            self._launch(plan, step, pointers, device.index, stream)
                if stage.finds:
                    made = {
                        ref.index: value for ref, value in arrays.items() if ref.kind == "buffer"
                    }
                    found |= find_sizes(self.plan, stage, made, calls)
                    plan = self.plan.at(shapes, found)
                    check_found(plan, stage, made)
        write_back(plan.updated, arguments, checked)
        if all(map(is_, checked, arguments)):
            self._prepare(torch, plan, arguments, library, device)
        return tuple(
            arguments[ref.index] if ref.kind == "argument" else arrays[ref]
            for ref in self.plan.results
        )

    def again(self, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
        """Run the plan as an earlier call did, if arguments are like its: prepared; else None."""
        count = len(arguments)
        for index, prepared in self._prepared:
            if prepared.count == count and prepared.fits(*arguments):
                torch = torch_with_gpu()
                if torch.cuda.current_device() != index or (
                    self._groups and torch.cuda.is_current_stream_capturing()
                ):
                    return None
                start = partial(_start, torch.cuda.current_stream(index).cuda_stream)
                return prepared.run(arguments, start)
        return None

    def _prepare(
        self, torch: Any, plan: Plan, arguments: Sequence[Any], library: TorchLibrary, device: Any
    ) -> None:
        """Prepare calls with such arguments, if kernels that get addresses and sizes are all there is."""
        if plan.calls or plan.tensor_maps or (fits := library.guard(arguments)) is None:
            return
        launches = [
            Launch(
                number,
                step.kernel,
                self._functions[device.index, step.kernel],
                static(step.blocks),
                step.threads,
                self._kernels[step.kernel].shared_bytes,
                step.arguments,
                tuple(map(static, step.sizes)),
            )
            for number, step in enumerate(plan.steps)
            if isinstance(step, Step) and static(step.blocks)
        ]
        with torch.cuda.device(device):
            prepared = PreparedCall(plan, launches, library, fits)
        self._prepared = (*self._prepared[1 - MAX_PREPARED :], (device.index, prepared))

    @contextmanager
    def _branches(self, torch: Any, device: Any, launches: int) -> Generator[list[int]]:
        """The streams for launches that may run at once.

        A graph that is being recorded gets a branch for each, which begin behind what was launched before and
        end before what comes after. Otherwise they go one after the other to the one stream: to have several
        wait for each other takes longer than most kernels.
        """
        current = torch.cuda.current_stream(device)
        if launches < 2 or not torch.cuda.is_current_stream_capturing():
            yield [current.cuda_stream]
            return
        own = self._side_streams.setdefault(device.index, [])
        count = min(launches, MAX_BRANCHES) - 1
        own += [torch.cuda.Stream(device) for _ in range(count - len(own))]
        sides = own[:count]
        for side in sides:
            side.wait_stream(current)
        yield [current.cuda_stream, *(side.cuda_stream for side in sides)]
        for side in sides:
            current.wait_stream(side)

    def _launch(
        self, plan: Plan, step: Step, pointers: Mapping[Ref, int], device: int, stream: int
    ) -> None:
        blocks = static(step.blocks)
        if blocks == 0:
            return
        if blocks > MAX_BLOCKS:
            raise DeploError(f"@{step.kernel}: {blocks} blocks exceed the GPU's {MAX_BLOCKS}")
        key, kernel = (device, step.kernel), self._kernels[step.kernel]
        if key not in self._functions:
            cubin = self._cubins[step.kernel]
            self._functions[key] = _load(step.kernel, cubin, kernel.shared_bytes)
        passed = [self._passed(plan, ref, pointers) for ref in step.arguments]
        values = (*(value for value, _ in passed), *step.sizes)
        size = ctypes.c_int if kernel.size_bits == 32 else ctypes.c_longlong
        types = (*(type for _, type in passed), *[size] * len(step.sizes))
        function, shared_bytes = self._functions[key], kernel.shared_bytes
        _start(stream, step.kernel, function, blocks, step.threads, shared_bytes, (values, types))

    def _passed(self, plan: Plan, ref: Ref, pointers: Mapping[Ref, int]) -> tuple[Any, Any]:
        """What a kernel gets for `ref` and its type; a tensor map is passed by value, without one."""
        if ref.kind != "tensor_map":
            return pointers[ref], ctypes.c_void_p
        map = plan.tensor_maps[ref.index]
        key = (pointers[map.of], describe(plan.array(map.of), map))
        if key not in self._descriptors:
            if len(self._descriptors) >= MAX_DESCRIPTORS:
                self._descriptors.clear()
            doing = f"describing {plan.array(map.of)} to the copy engine"
            self._descriptors[key] = _ok(encode(_driver(), *key), doing)
        return self._descriptors[key], None


def _turns(plan: Plan, pointers: dict[Ref, int]) -> Callable[[int, int], None]:
    """What puts the places of a loop where they are in a turn, by the numbers of both."""
    moves = moves_of(plan.loops, plan.places, plan.array)

    def begin_turn(loop: int, turn: int) -> None:
        for number, move in enumerate(moves):
            if move.place.loop == loop:
                pointers[Ref("place", number)] = move.address(turn, pointers.__getitem__)

    return begin_turn


def _start(
    stream: int,
    kernel: str,
    function: Any,
    blocks: int,
    threads: int,
    shared_bytes: int,
    parameters: Any,
) -> None:
    """Launch a kernel. `parameters` are values and types, or the address of the addresses of values."""
    grid = blocks, 1, 1, threads, 1, 1
    launched = _driver().cuLaunchKernel(function, *grid, shared_bytes, stream, parameters, 0)
    _ok(launched, f"launching @{kernel}")


def _aligned(value: Any) -> Any:
    """A tensor at an address that kernels may copy from, in vectors; a view may begin anywhere."""
    return value if value.data_ptr() % VECTOR_BYTES == 0 else value.detach().clone()


def _device(torch: Any, arguments: Sequence[Any]) -> Any:
    """The GPU that the arguments live on, else torch's current one."""
    for value in arguments:
        if is_torch_tensor(value) and value.device.type == "cuda":
            return value.device
    if arguments:
        raise UsageError("the program runs on a GPU: expected torch tensors on a cuda device")
    return torch.device("cuda", torch.cuda.current_device())


def _symbol(name: str, cubin: Cubin) -> str:
    """The kernel's symbol in its cubin; the only kernel of a cubin may have another name."""
    if name in cubin.usage:
        return name
    if len(cubin.usage) == 1:
        return next(iter(cubin.usage))
    raise DeploError(f"the source of @{name} defines {', '.join(cubin.usage) or 'no kernel'}")


def _load(name: str, cubin: Cubin, shared_bytes: int) -> Any:
    """A kernel, ready to be launched with so much shared memory above what it declares."""
    driver = _driver()
    module = _ok(driver.cuModuleLoadData(cubin.code), f"loading @{name}")
    symbol = _symbol(name, cubin).encode()
    function = _ok(driver.cuModuleGetFunction(module, symbol), f"finding @{name}")
    if shared_bytes:
        most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
        doing = f"asking for {shared_bytes} bytes of shared memory for @{name}"
        _ok(driver.cuFuncSetAttribute(function, most, shared_bytes), doing)
    return function


def _ok(answer: tuple[Any, ...], doing: str) -> Any:
    """The value of a driver call; raises DeploError if it failed."""
    if answer[0] != _driver().CUresult.CUDA_SUCCESS:
        raise DeploError(f"{doing} failed: {answer[0].name}")
    return answer[1] if len(answer) > 1 else None


@cache
def _driver() -> Any:
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise MissingEnvironmentError(
            f"running on a GPU needs CUDA's Python bindings: pip install 'deplo[cuda]' ({error})"
        ) from error
